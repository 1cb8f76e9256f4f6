"""What the demo prints: one line per step, and the seconds that each phase took."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class DemoError(Exception):
    """The demo cannot go on, or its result is wrong; the message is one line."""


class Screen:
    """Prints to standard output and remembers the phases, in order."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._phases: list[tuple[str, float]] = []
        self._last_progress = 0.0

    @property
    def seconds(self) -> float:
        """Seconds since the demo began."""
        return time.monotonic() - self._started

    def say(self, text: str) -> None:
        """One line, with the seconds since the start."""
        print(f"[{self.seconds:6.1f} s] {text}", flush=True)

    def progress(self, text: str) -> None:
        """One line, at most every two seconds."""
        now = time.monotonic()
        if now - self._last_progress >= 2.0:  # noqa: PLR2004 - a pace that a reader can follow
            self._last_progress = now
            self.say(text)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Times what happens inside; a phase that fails is not listed."""
        begun = time.monotonic()
        self.say(name)
        yield
        self._phases.append((name, time.monotonic() - begun))

    def table(self, title: str, rows: list[tuple[str, ...]]) -> None:
        """A small table, its columns as wide as they need."""
        print(f"\n{title}")
        if not rows:
            return
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        for row in rows:
            print(
                "  "
                + "  ".join(
                    cell.ljust(width) for cell, width in zip(row, widths, strict=True)
                ).rstrip()
            )

    def phases(self) -> None:
        """The phases and their seconds."""
        rows = [(name, f"{seconds:6.1f} s") for name, seconds in self._phases]
        self.table("Phases", [*rows, ("total", f"{self.seconds:6.1f} s")])
