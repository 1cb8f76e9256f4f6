"""The commands that a page lets its reader type."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "getting-started.md"
_OPENS, _CLOSES = "```sh", "```"


def commands_of(page: Path) -> list[list[str]]:
    """The lines of each block of the page that is marked as ``sh``, in order, comments included."""
    blocks: list[list[str]] = []
    is_open = False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line == _OPENS:
            blocks.append([])
            is_open = True
        elif line == _CLOSES:
            is_open = False
        elif is_open:
            blocks[-1].append(line)
    return blocks
