"""Figures beside their targets, as a table."""

from __future__ import annotations

import os
import statistics
import string
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

_BAR = 40
_TURNS = 2_000_000
_STACK = 60


class BenchmarkError(Exception):
    """Something could not be measured; the message is one line."""


class Spent:
    """What passes from now on: seconds by the clock, and CPU seconds by ``cpu_s``."""

    def __init__(self, cpu_s: Callable[[], float] = time.process_time) -> None:
        self._cpu_s = cpu_s
        self._began = time.perf_counter(), cpu_s()

    def so_far(self) -> tuple[float, float]:
        """Return (seconds, CPU seconds) since the begin."""
        return time.perf_counter() - self._began[0], self._cpu_s() - self._began[1]

    def found(self) -> dict[str, float]:
        """Return both by name, as a process prints them."""
        return dict(zip(("s", "cpu_s"), self.so_far(), strict=True))


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. ``target`` is empty, and ``reached`` None, where none was set.

    ``number``, ``unit``: what ``value`` shows, for a plot. ``parts``: what the figure consists of,
    (name, number) in their order, for a plot too. ``has_failed``: there is no figure, and
    ``target`` is the reason.
    """

    what: str
    value: str
    target: str = ""
    reached: bool | None = None
    number: float = 0.0
    unit: str = ""
    parts: tuple[tuple[str, float], ...] = ()
    has_failed: bool = False


def failed(what: str, reason: object) -> Row:
    """Return the row of what could not be measured."""
    return Row(what, "failed", str(reason), has_failed=True)


def figure(
    what: str, value: float, unit: str, target: str = "", *, reached: bool | None = None
) -> Row:
    """Return a figure, by default without a target."""
    return Row(what, _with_unit(value, unit), target, reached, value, unit)


def at_most(what: str, value: float, limit: float | None, unit: str) -> Row:
    """Return a figure of at most ``limit``; None: it has no target."""
    if limit is None:
        return figure(what, value, unit)
    return figure(what, value, unit, f"<= {_with_unit(limit, unit)}", reached=value <= limit)


def at_least(what: str, value: float, limit: float | None, unit: str) -> Row:
    """Return a figure of at least ``limit``; None: it has no target."""
    if limit is None:
        return figure(what, value, unit)
    return figure(what, value, unit, f">= {_with_unit(limit, unit)}", reached=value >= limit)


def spread(
    what: str,
    values: Sequence[float],
    unit: str,
    limit: float | None = None,
    parts: tuple[tuple[str, float], ...] = (),
) -> Row:
    """The median of several values and, in brackets, the least and the largest of them.

    ``limit``: what the median is to be at most.
    """
    middle = statistics.median(values)
    ends = f"{_number(min(values))} to {_number(max(values))}"
    target = "" if limit is None else f"<= {_with_unit(limit, unit)}"
    reached = None if limit is None else middle <= limit
    return Row(what, f"{_with_unit(middle, unit)} ({ends})", target, reached, middle, unit, parts)


def phased(
    what: str,
    totals: Sequence[float],
    phases: Mapping[str, Sequence[float]],
    limit: float | None = None,
    label: str = "{}",
) -> Iterator[Row]:
    """Yield the whole with its parts, then each phase: medians and ranges of several runs.

    ``label``: of a phase, with its name.
    """
    parts = tuple((name, statistics.median(values)) for name, values in phases.items())
    yield spread(what, totals, "s", limit, parts)
    for name, values in phases.items():
        yield spread(f"  {label.format(name)}", values, "s")


def machine_rows(loads: Sequence[float], busy: Sequence[float]) -> Iterator[Row]:
    """Yield how busy the machine was in several runs."""
    yield spread("  load average of the minute before", loads, "")
    yield spread("  cores busy meanwhile", [100 * share for share in busy], "%")


def timed(what: str, count: int, work: Callable[[], object], least: float | None = None) -> Row:
    """Return how many of ``count`` things ``work`` does in a CPU second of the whole process.

    RocksDB's own threads are part of it. ``least``: the target.
    """
    spent = Spent()
    work()
    s, cpu_s = spent.so_far()
    return at_least(f"{what} ({cpu_s:.2f} CPU s, {s:.2f} s)", count / cpu_s, least, "/CPU s")


def table(
    found: Mapping[str, float], *figures: tuple[str, str, str, float | None]
) -> Iterator[Row]:
    """Yield a row for each of ``figures``: (what, its name in ``found``, unit, at most)."""
    for what, name, unit, limit in figures:
        yield at_most(what, found[name], limit, unit)


def progress(text: str) -> None:
    """Print what is under way, beside the table."""
    print(text, file=sys.stderr, flush=True)


def print_machine() -> str:
    """Print how much of a machine there is, how fast, and how busy it is; return it.

    The loop is the measure by which figures of different machines can be compared.
    """
    load = os.getloadavg()[0]
    found = (
        f"{os.cpu_count()} cores, a bare loop of Python's takes {_loop_ns():.0f} ns a turn, "
        f"load average of the last minute {load:.1f}"
    )
    print(f"machine: {found}", flush=True)
    return found


def _loop_ns() -> float:
    began = time.process_time_ns()
    total = 0
    for number in range(_TURNS):
        total += number % 7
    return (time.process_time_ns() - began) / _TURNS


def print_section(title: str, rows: Iterable[Row], *, plot: bool = False) -> list[Row]:
    """Print the title, and each row as soon as it is there; with ``plot`` its rates as bars, too.

    Return the rows.
    """
    print(f"\n{title}", flush=True)
    shown = []
    for row in rows:
        verdict = {None: "", True: "reached", False: "MISSED"}[row.reached]
        line = f"  {row.what:<60} {row.value:>17}  {row.target:<15} {verdict}"
        print(line.rstrip(), flush=True)
        shown.append(row)
    if plot:
        _print_bars([row for row in shown if row.unit.endswith("/s")])
        _print_stacks([row for row in shown if row.parts])
    return shown


def _print_bars(rows: Sequence[Row]) -> None:
    """One bar per rate, the longest ``_BAR`` characters; nothing without two to compare."""
    longest = {row.unit: max(r.number for r in rows if r.unit == row.unit) for row in rows}
    for row in rows if len(rows) > 1 else ():
        share = row.number / longest[row.unit] if longest[row.unit] > 0 else 0
        print(f"  {row.what:<60} {'#' * round(share * _BAR)} {row.value}", flush=True)


def _print_stacks(rows: Sequence[Row]) -> None:
    if not rows:
        return
    names = list(dict.fromkeys(name for row in rows for name, _ in row.parts))
    letters = dict(zip(names, string.ascii_lowercase, strict=False))
    longest = max(sum(number for _, number in row.parts) for row in rows)
    print("  " + "  ".join(f"{letters[name]} {name}" for name in names))
    for row in rows:
        bar, until = "", 0.0
        for name, number in row.parts:
            until += number
            bar += letters[name] * (round(until / longest * _STACK) - len(bar))
        print(f"  {row.what:<60} {bar} {row.value}", flush=True)


def _with_unit(value: float, unit: str) -> str:
    return f"{_number(value)} {unit}".rstrip()


def _number(value: float) -> str:
    whole = value == int(value) or abs(value) >= 100  # noqa: PLR2004 - three digits say enough
    return f"{value:,.0f}" if whole else f"{value:.3g}"
