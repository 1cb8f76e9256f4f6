"""What of a history is still there: segments that were trimmed, and lines that are missing.

The writer names a segment by its process, its kind and the number of its first line, and marks up
to when it has trimmed: ``trimmed-<kind>-<ms since 1970>``. A process that could not write, as on a
full disk, leaves a mark too: ``lost-<ms since 1970>-<process>-<kind>``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

EVENTS, TRANSACTIONS = "events", "transactions"
KINDS = (EVENTS, TRANSACTIONS)

_SEGMENT = re.compile(r"(?P<stem>.+-(?P<start>\d+))-(?P<kind>events|transactions)-(?P<line>\d+)")
_MARKER = re.compile(r"trimmed-(?P<kind>events|transactions)-(?P<ms>\d+)")
_LOST = re.compile(r"lost-(?P<ms>\d+)-(?P<series>.+-(?P<kind>events|transactions))")


@dataclass(frozen=True)
class _Begin:
    """A series whose first segment is not there. ``start_ms``: when its process began it."""

    series: str
    kind: str
    line: int
    start_ms: int


@dataclass
class Folder:
    """The history files of one folder, taken in the order of their names.

    ``trimmed_ms``: {kind: up to when, by the wall clock, its lines may be gone}.
    ``missing``: a sentence for each place where lines are gone that were neither trimmed nor marked
    as lost.
    """

    path: Path
    trimmed_ms: dict[str, int] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    _begins: list[_Begin] = field(default_factory=list)
    _expected: dict[str, int] = field(default_factory=dict)
    _gaps: list[tuple[str, int, int]] = field(default_factory=list)

    def follows(self, path: Path) -> bool:
        """Whether the file goes on where the one before it in its series ended.

        What begins a series does, even where it has lost its begin.
        """
        found = _SEGMENT.fullmatch(path.stem)
        if found is None:
            return True
        series, line = f"{found['stem']}-{found['kind']}", int(found["line"])
        expected = self._expected.get(series)
        if expected is None and line > 0:
            start_ms = int(found["start"]) // 1_000_000
            self._begins.append(_Begin(series, found["kind"], line, start_ms))
        if expected is None or expected == line:
            return True
        self._gaps.append((series, expected, line))
        return False

    def has(self, path: Path, lines: int) -> None:
        """The file has so many whole lines."""
        found = _SEGMENT.fullmatch(path.stem)
        if found is not None:
            self._expected[f"{found['stem']}-{found['kind']}"] = int(found["line"]) + lines

    def look_for_marks(self) -> None:
        """After all files: what was trimmed meanwhile is marked before it goes."""
        lost: set[str] = set()
        for path in self.path.iterdir():
            found = _MARKER.fullmatch(path.name) or _LOST.fullmatch(path.name)
            if found is not None:
                known = self.trimmed_ms.get(found["kind"], 0)
                self.trimmed_ms[found["kind"]] = max(known, int(found["ms"]))
                lost.add(found.groupdict().get("series", ""))
        self.missing += [
            _missing(self.path / series, expected, line)
            for series, expected, line in self._gaps
            if series not in lost
        ]
        self.missing += self._untrimmed()

    def _untrimmed(self) -> Iterator[str]:
        for begin in self._begins:
            # What is trimmed was written after its process began.
            if self.trimmed_ms.get(begin.kind, -1) < begin.start_ms:
                yield _missing(self.path / begin.series, 0, begin.line)


def _missing(series: Path, first: int, following: int) -> str:
    return f"{series}: lines {first + 1} to {following} are missing, and were not trimmed"
