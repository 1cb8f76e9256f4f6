"""Figures beside their targets, as a table."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass


class BenchmarkError(Exception):
    """Something could not be measured; the message is one line."""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. ``target`` is empty, and ``reached`` None, where none was set."""

    what: str
    value: str
    target: str = ""
    reached: bool | None = None


def at_most(what: str, value: float, limit: float, unit: str) -> Row:
    """A figure that is to be no more than ``limit``."""
    return Row(what, _with_unit(value, unit), f"<= {_with_unit(limit, unit)}", value <= limit)


def at_least(what: str, value: float, limit: float, unit: str) -> Row:
    """A figure that is to be no less than ``limit``."""
    return Row(what, _with_unit(value, unit), f">= {_with_unit(limit, unit)}", value >= limit)


def figure(what: str, value: float, unit: str) -> Row:
    """A figure without a target."""
    return Row(what, _with_unit(value, unit))


def print_machine() -> None:
    """How much of a machine there is, and how busy it is with whatever."""
    load = os.getloadavg()[0]
    print(
        f"machine: {os.cpu_count()} cores, load average of the last minute {load:.1f}", flush=True
    )


def print_section(title: str, rows: Iterable[Row]) -> None:
    """The title, and each row as soon as it is there."""
    print(f"\n{title}", flush=True)
    for row in rows:
        verdict = {None: "", True: "reached", False: "MISSED"}[row.reached]
        line = f"  {row.what:<60} {row.value:>17}  {row.target:<15} {verdict}"
        print(line.rstrip(), flush=True)


def _with_unit(value: float, unit: str) -> str:
    whole = value == int(value) or abs(value) >= 100  # noqa: PLR2004 - three digits say enough
    return f"{value:,.0f} {unit}".rstrip() if whole else f"{value:.3g} {unit}"
