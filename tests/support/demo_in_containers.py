"""``docker/demo`` as its user runs it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

_DEMO = Path(__file__).resolve().parents[2] / "docker" / "demo"
_LIMIT_S = 1500


def verdicts_of(*options: str) -> tuple[str, str]:
    """What has held, a line each, and all that the demo printed; it has passed."""
    with subprocess.Popen(
        [str(_DEMO), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
    ) as child:
        try:
            output, _ = child.communicate(timeout=_LIMIT_S)
        except BaseException:
            # It removes its cluster, which takes seconds.
            os.killpg(child.pid, signal.SIGTERM)
            child.wait(120)
            raise
    assert child.returncode == 0, output
    verdicts = re.findall(r"^  (held|FAILED)  (.*)$", output, re.MULTILINE)
    assert {verdict for verdict, _ in verdicts} == {"held"}
    return "\n".join(text for _, text in verdicts), output
