"""The audit trail: each change of the running job, with its author and origin, before and after.

A bounded number of the newest changes is in memory. Each change is also one line of the log, and
one event (``audit``) of the job's history, which outlives the process. Callers mask secrets.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Final

import msgspec

from homeport.job_coordinator.clocks import wall_ms
from homeport.job_coordinator.model.json_values import compact_json
from homeport.job_coordinator.model.wire_form import about

MAX_CHANGES: Final = 1_000
MAX_TEXT: Final = 500
"""Characters of each field; a longer one is cut."""

UNKNOWN: Final = "unknown"
"""The author of a change whose record has none."""

_log = logging.getLogger("audit")


@dataclass(frozen=True, slots=True)
class Change:
    """One change of the running job.

    ``author``: the name of the token, or the user of the tool. ``address``: the peer's
    address, or the tool's host. ``through``: ``http``, or the tool. ``before``, ``after``: the
    values before and after the change; None: no value.
    """

    author: str
    address: str
    through: str
    what: str
    before: str | None = None
    after: str | None = None

    def __str__(self) -> str:
        return (
            f"{self.author} from {self.address} by {self.through}: {self.what}: "
            f"{_shown(self.before)} -> {_shown(self.after)}"
        )

    def bounded(self) -> Change:
        """Return the change with each field cut to one line of ``MAX_TEXT`` characters."""
        given = {name: text for name, text in asdict(self).items() if text is not None}
        return replace(self, **{name: _one_line(text) for name, text in given.items()})


class AuditedChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change as ``GET /v1/audit`` and ``homeport audit --json`` show it."""

    number: Annotated[
        int | msgspec.UnsetType, about("since the driver began; missing with --history")
    ] = msgspec.UNSET
    at_ms: Annotated[int, about("when, in ms since 1970")]
    author: Annotated[str, about("of the token, or the tool's user; or unknown")]
    address: Annotated[str, about("of the peer, or the tool's host; or unknown")]
    through: Annotated[str, about("http, or the tool")]
    what: Annotated[str, about("such as move 0 or config task.commit.ms")]
    before: Annotated[str | None, about("a secret masked; null: nothing was there")]
    after: Annotated[str | None, about("null: nothing is there")]


def _one_line(text: str) -> str:
    line = " ".join(text[: 2 * MAX_TEXT].split())[:MAX_TEXT]
    return "".join(c if c.isprintable() else "?" for c in line)


def _shown(value: str | None) -> str:
    return "nothing" if value is None else repr(value)


class AuditTrail:
    """Keeps the newest changes; runs on one event loop.

    ``write`` writes the fields of a change into the history, as an event.
    """

    def __init__(self, write: Callable[[Mapping[str, Any]], None]) -> None:
        self._write = write
        self._since_ms = wall_ms()
        self._kept: deque[AuditedChange] = deque(maxlen=MAX_CHANGES)
        self._number = 0

    def add(self, change: Change) -> None:
        """Note a change that is about to be carried out."""
        bounded = change.bounded()
        self._number += 1
        _log.info("audit %d: %s", self._number, bounded)
        self._write(asdict(bounded))
        self._kept.append(AuditedChange(number=self._number, at_ms=wall_ms(), **asdict(bounded)))

    def to_json(self) -> bytes:
        """Return the body of ``GET /v1/audit``: the newest changes, by their numbers."""
        changes = msgspec.to_builtins([*self._kept])
        return compact_json({"version": 1, "since_ms": self._since_ms, "changes": changes})
