"""The last events with a decision: cause, reasons, records and instructions, in that order.

The log is in memory alone, bounded in number and bytes, and begins with this driver. Events are
numbered: a second request returns the new ones, and shows whether any is missing. No values of the
configuration are in it, so nothing needs masking.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Final

from homeport.appmaster.allocation.container_process_manager import Decision
from homeport.appmaster.allocation.protocol.events import Event, describe, named
from homeport.appmaster.allocation.protocol.instructions import Instruction, Record, brief
from homeport.appmaster.allocation.protocol.reasons import Reason
from homeport.job_coordinator.http.query_params import EventsAsked
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.json_values import compact_json, parse_object
from homeport.job_coordinator.model.placement import PlacementRequest, PlacementSource

MAX_EVENTS: Final = 10_000
MAX_BYTES: Final = 8 * 1024 * 1024
"""The limit of all events together, as they are served."""

_TRAIL: Final = 10

MAX_SHOWN: Final = 1_000
"""The most reasons, records and instructions of one event, each; others are only counted."""


@dataclass(frozen=True, slots=True)
class _Entry:
    number: int
    body: bytes
    processors: frozenset[ProcessorId]


class EventLog:
    """Keeps the newest events that fit."""

    def __init__(
        self, now_ms: Callable[[], int], *, max_events: int = MAX_EVENTS, max_bytes: int = MAX_BYTES
    ) -> None:
        self._now_ms = now_ms
        self._since_ms = now_ms()
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._entries: deque[_Entry] = deque()
        self._bytes = 0
        self._last = 0

    def add(self, event: Event, decision: Decision, instructions: Iterable[Instruction]) -> None:
        """Add the newest event; ``instructions``: the decision's, without repetitions."""
        self._last += 1
        reasons, records, orders = decision.reasons, decision.records, tuple(instructions)
        said = (reasons[:MAX_SHOWN], records[:MAX_SHOWN], orders[:MAX_SHOWN])
        body = {
            "number": self._last,
            "at_ms": self._now_ms(),
            "cause": describe(event),
            "reasons": [_reason(r) for r in said[0]],
            "records": [_record(r) for r in said[1]],
            "instructions": [brief(i) for i in said[2]],
            "left_out": len(reasons) + len(records) + len(orders) - sum(map(len, said)),
        }
        self._keep(_Entry(self._last, compact_json(body), _processors(event, said[0])))

    def _keep(self, entry: _Entry) -> None:
        self._entries.append(entry)
        self._bytes += len(entry.body)
        while len(self._entries) > self._max_events or (
            self._bytes > self._max_bytes and len(self._entries) > 1
        ):
            self._bytes -= len(self._entries.popleft().body)

    def trail(self, event: Event) -> str:
        """Return the last events of the processors of ``event``, or of all, the newest last.

        Each is one line with its reasons, for the report of an event that could not be decided.
        """
        processors = _processors(event, ())
        found = [e for e in self._entries if not processors or processors & e.processors]
        lines = [f"  the last events of {', '.join(sorted(processors)) or 'the job'}:"]
        for entry in found[-_TRAIL:]:
            body = parse_object(entry.body, "an event")
            why = "; ".join(reason["sentence"] for reason in body["reasons"])
            lines.append(f"    {entry.number} {body['cause']}: {why or 'no reason'}")
        return "\n".join(lines)

    def to_json(self, asked: EventsAsked) -> bytes:
        """Return the body of ``GET /v1/events``, in the order of the numbers.

        ``first`` and ``last``: the numbers of the oldest event kept and of the newest (0: none
        yet). ``more``: whether requested events are left out: the oldest ones where ``since`` is
        not given, else the newest.
        """
        found = [e for e in self._entries if _is_asked_for(e, asked)]
        is_newest_first = asked.since is None
        kept = found[-asked.limit :] if is_newest_first else found[: asked.limit]
        head = compact_json(
            {
                "version": 1,
                "since_ms": self._since_ms,
                "first": self._entries[0].number if self._entries else 0,
                "last": self._last,
                "more": len(kept) < len(found),
            }
        )
        return b'%s,"events":[%s]}' % (head[:-1], b",".join(e.body for e in kept))


def _is_asked_for(entry: _Entry, asked: EventsAsked) -> bool:
    is_new = asked.since is None or entry.number > asked.since
    return is_new and (asked.processor_id is None or asked.processor_id in entry.processors)


def _processors(event: Event, reasons: Iterable[Reason]) -> frozenset[ProcessorId]:
    ids = {i for r in reasons for i in (r.processor_id, r.other) if i is not None}
    incarnation = getattr(event, "incarnation", None)
    if isinstance(incarnation, Incarnation):
        ids.add(incarnation.processor_id)
    return frozenset(ids)


def _reason(reason: Reason) -> Mapping[str, Any]:
    return {
        "kind": reason.kind.value,
        "processor_id": reason.processor_id,
        "host": reason.host,
        "other": reason.other,
        "sentence": str(reason),
    }


def _record(record: Record) -> str:
    said = (f"{f.name}={_value(getattr(record, f.name))}" for f in fields(record) if f.compare)
    return f"{type(record).__name__} {' '.join(said)}"


def _value(value: object) -> str:
    match value:
        case Incarnation():
            return named(value)
        case PlacementRequest():
            return f"{value.uuid}: {value.processor_id} to {value.destination}"
        case PlacementSource():
            return f"{value.epoch} on {value.host}"
        case Enum():
            return str(value.value)
        case tuple():
            return f"[{' '.join(map(_value, value))}]"
    return str(value)
