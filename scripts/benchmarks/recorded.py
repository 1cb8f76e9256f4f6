"""Figures that are kept: the last recorded run of each section, in one file of this folder.

``scripts/bench --record`` writes them; ``pages_check/figures_page.py`` makes pages of them.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from benchmarks.report import BenchmarkError, Row

ROOT = Path(__file__).resolve().parents[2]
NAME = "scripts/benchmarks/figures.json"
PAGES = "docs/figures"
"""What the paths of all pages of figures begin with."""
_VERDICTS = {None: "", True: "reached", False: "missed"}


class Figure(msgspec.Struct, frozen=True):
    """One row: ``verdict`` is reached, missed or empty."""

    what: str
    value: str
    target: str = ""
    verdict: str = ""


class Recorded(msgspec.Struct, frozen=True):
    """One run of a section. ``begin``, ``end``: the machine then, with its speed and its load."""

    title: str
    command: str
    date: str
    commit: str
    begin: str
    end: str
    rows: tuple[Figure, ...]


Figures = dict[str, dict[str, Recorded]]
"""{benchmark: {section: its last recorded run}}."""


def figures_of(rows: Iterable[Row]) -> tuple[Figure, ...]:
    """Return the rows as they are kept."""
    return tuple(
        Figure(row.what.strip(), row.value, row.target, _VERDICTS[row.reached]) for row in rows
    )


def read(root: Path) -> Figures:
    """Return what is kept; BenchmarkError: the file is damaged."""
    try:
        return msgspec.json.decode((root / NAME).read_bytes(), type=Figures)
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError) as error:
        raise BenchmarkError(
            f"--record: {NAME} has no figures ({error}): git checkout {NAME}"
        ) from None


def keep(name: str, found: Mapping[str, Recorded], root: Path) -> None:
    """Put the sections of one benchmark in the place of their earlier runs."""
    kept = read(root)
    kept[name] = dict(sorted({**kept.get(name, {}), **found}.items()))
    text = msgspec.json.format(msgspec.json.encode(dict(sorted(kept.items()))), indent=1)
    (root / NAME).write_bytes(text + b"\n")


def commit_of(root: Path) -> str:
    """Return the commit of the clone, which has no other changes than figures.

    BenchmarkError: it has, or it is none.
    """
    if changed := [
        path for path in _git(root, "status", "--porcelain", "-uall") if not _is_figure(path)
    ]:
        raise BenchmarkError(
            f"--record: {changed[0][3:]} is not committed: commit it, as figures name their commit"
        )
    return _git(root, "rev-parse", "--short=8", "HEAD")[0]


def _is_figure(line: str) -> bool:
    return line[3:].startswith((NAME, PAGES))


def _git(root: Path, *words: str) -> list[str]:
    try:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        raise BenchmarkError(
            f"--record: git {words[0]} fails in {root}: figures are kept in a clone"
        ) from None
    return done.stdout.splitlines()
