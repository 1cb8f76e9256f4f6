"""Whether the history of a job is sound, by ``scripts/check-history``."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

_JUDGE = Path(__file__).resolve().parents[2] / "scripts" / "check-history"


def require_sound(folders: Iterable[Path], *options: str) -> str:
    """Return the judge's words on the histories in these folders, which break no rule."""
    argv = [sys.executable, str(_JUDGE), *options, *(str(f) for f in folders if f.exists())]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
