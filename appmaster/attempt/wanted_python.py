"""The file that has the environment in which the supervisor starts the AM's programs.

It lives as long as the AM's container: a new attempt begins in the submission's environment.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

_NAME = "python.json"


@dataclass(frozen=True, slots=True)
class WantedPython:
    """``place``: the environment for the next starts; None: the submission's."""

    place: str | None

    @staticmethod
    def read(folder: Path) -> WantedPython | None:
        """Return what the last driver has written; None: no driver has."""
        try:
            return WantedPython(json.loads((folder / _NAME).read_bytes())["place"])
        except FileNotFoundError:
            return None

    def write(self, folder: Path) -> None:
        """Write it, whole or not at all."""
        new = folder / f"{_NAME}.new"
        new.write_text(json.dumps({"place": self.place}), encoding="utf-8")
        new.replace(folder / _NAME)
