"""Findings of the checks of ``homeport doctor``, and their lines. PURE."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from homeport.job_coordinator.model.wire_form import about


class Level(StrEnum):
    """How grave a finding is."""

    OK = "ok"
    UNKNOWN = "unknown"
    """The check could not be made; the finding says why."""
    WARNING = "warning"
    """A job runs, but may fail or is slower than it could be."""
    ERROR = "error"
    """A job does not run, or loses its state."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of one check.

    ``check``: its stable name. ``remedy``: what to change, with the value; empty: nothing.
    """

    check: Annotated[str, about("name of the check, such as kafka.replication")]
    level: Annotated[Level, about("ok, unknown, warning or error")]
    subject: Annotated[str, about("what was looked at")]
    found: Annotated[str, about("how it is")]
    remedy: Annotated[str, about("what to change, with the value; empty where nothing is")] = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A check of one subject, with the findings that it may have; ``name`` is a stable one."""

    name: str
    subject: str

    def ok(self, found: str) -> Finding:
        """Return a finding without a remedy: all is well."""
        return Finding(self.name, Level.OK, self.subject, found)

    def warning(self, found: str, remedy: str) -> Finding:
        """Return a finding of a risk: a job runs, but may fail or is slower than it could be."""
        return Finding(self.name, Level.WARNING, self.subject, found, remedy)

    def error(self, found: str, remedy: str) -> Finding:
        """Return a finding of a fault: a job does not run, or loses its state."""
        return Finding(self.name, Level.ERROR, self.subject, found, remedy)

    def unknown(self, why: str) -> Finding:
        """Return a finding of a check that could not be made."""
        return Finding(self.name, Level.UNKNOWN, self.subject, why)


def exit_code(findings: Sequence[Finding]) -> int:
    """Return 1 where a finding is an error, else 0."""
    return int(any(f.level is Level.ERROR for f in findings))


def lines(findings: Sequence[Finding], *, shows_ok: bool) -> Iterator[str]:
    """Yield the findings with their remedies, errors first; then the count of each level."""
    order = list(Level)
    width = max(len(level) for level in Level)
    for finding in sorted(findings, key=lambda f: -order.index(f.level)):
        if finding.level is Level.OK and not shows_ok:
            continue
        yield f"{finding.level:<{width}}  {finding.check}: {finding.subject}: {finding.found}"
        if finding.remedy:
            yield f"{'':<{width}}  -> {finding.remedy}"
    counts = {level: sum(f.level is level for f in findings) for level in reversed(order)}
    yield ", ".join(f"{count} {level}" for level, count in counts.items() if count) or "no checks"
