"""The moments of a failure and of its recovery, from the history of all processes.

PURE: events in, moments out. All times are of one clock, the machine's since its start, as the
processes of a local cluster share one. A recovery that took several epochs is shown by the epoch
that committed; those in between show as failures in the status.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from check_history.reading import Event

PHASES = ("detect", "decide", "stop", "resource", "start", "fence", "restore", "first-batch")
"""Of a recovery, in their order, as ``/v1/status`` names them."""


@dataclass(frozen=True)
class Lost:
    """A container that ran when its host was lost. ``standby``: holds its replica, if any."""

    processor_id: str
    epoch: int
    standby: str | None


@dataclass(frozen=True)
class Moment:
    """What happened, and when. Units: ms since the machine's start."""

    name: str
    at_ms: int
    host: str


def moments(events: Sequence[Event], lost: Lost, killed_ms: int) -> list[Moment]:
    """The moments from the kill to the successor's first commit, by time.

    What is not there, or not yet, is left out. ``events``: the whole history of the job.
    """
    after = [event for event in events if event.at >= killed_ms]
    committed = _first(after, lambda e: _is_successor(e, lost, "transaction-committed"))
    epoch = committed.epoch if committed is not None else None
    found: list[Moment | None] = [
        _moment("the lease has run out", _first_of(after, lost, "revoked")),
        _moment("failover decided", _first(after, lambda e: _decides(e, lost))),
        _moment(
            "the standby is ordered to stop", _first(after, lambda e: _is_standby_stop(e, lost))
        ),
        _moment("the standby has stopped", _first(after, lambda e: _has_stopped(e, lost))),
    ]
    for name, event in _OF_THE_SUCCESSOR:
        found.append(_moment(name, _first(after, _of(lost, event, epoch))))
    restored = [e for e in after if _of(lost, "restore-finished", epoch)(e)]
    found.append(_moment(_AT_HEADS, restored[-1] if restored else None))
    found.append(_moment(FIRST_OUTPUT, committed))
    return sorted((moment for moment in found if moment), key=lambda moment: moment.at_ms)


@dataclass(frozen=True)
class OwnEnd:
    """How a container that was cut off has ended by itself. Units: ms since the machine's start.

    ``committed_ms``: its last committed transaction; ``fenced_ms``: when its successor fenced it.
    """

    cause: str
    ended_ms: int
    committed_ms: int
    fenced_ms: int


def own_end(
    events: Sequence[Event], lost: Lost, cut_ms: int, successors: Sequence[Lost]
) -> OwnEnd | None:
    """Return the end that its own host reports; None: no report, as from a host that died.

    ``successors``: containers that have taken over from it, with their epochs at the cut.
    """
    after = [event for event in events if event.at >= cut_ms]
    ended = _first_of(after, lost, "child-stopped")
    fenced = _first(after, lambda e: any(_is_successor(e, who, "fenced") for who in successors))
    if ended is None or fenced is None:
        return None
    committed = [e.at for e in events if _is_of(e, lost, "transaction-committed")]
    cause = str(ended.fields.get("cause"))
    return OwnEnd(cause, ended.at, max(committed, default=0), fenced.at)


def gained(events: Sequence[Event], gainer: Lost, killed_ms: int) -> list[Moment]:
    """The moments of a container that gives its tasks and others to the next incarnation.

    ``gainer``: with the epoch that it had at the kill; its process goes on.
    """
    after = [event for event in events if event.at >= killed_ms]
    ended = [_moment(name, _first_of(after, gainer, event)) for name, event in _OF_THE_OVERTAKEN]
    found = [*filter(None, ended), *moments(events, gainer, killed_ms)]
    return sorted(found, key=lambda moment: moment.at_ms)


def revoked_ms(events: Sequence[Event], lost: Sequence[Lost], killed_ms: int) -> int | None:
    """When the leases of all that were lost had run out; None: not yet."""
    after = [event for event in events if event.at >= killed_ms]
    ends = [_first_of(after, who, "revoked") for who in lost]
    return None if None in ends else max(end.at for end in ends if end)


_OF_THE_OVERTAKEN = (("ordered to let go", "stop-ordered"), ("has let go", "child-stopped"))
FIRST_OUTPUT = "first output committed"
_PERMITTED, _FENCED = "successor permitted", "older ids fenced"
_AT_HEADS, _STARTED = "stores at their heads", "successor reports itself started"
_OF_THE_SUCCESSOR = (
    (_PERMITTED, "permit-granted"),
    ("permit is at the launcher", "permit-received"),
    ("process started", "child-started"),
    (_FENCED, "fenced"),
    (_STARTED, "started"),
    ("first record", "first-record"),
)
TAKING_OVER = (*(name for name, _ in _OF_THE_OVERTAKEN), _PERMITTED, _FENCED, _AT_HEADS, _STARTED)
"""The moments of ``gained`` that each container has that takes tasks over, in their order."""


def first_output_ms(found: Iterable[Moment]) -> int | None:
    """When the successor's first output was committed; None: it was not."""
    return next((moment.at_ms for moment in found if moment.name == FIRST_OUTPUT), None)


def _first(events: Iterable[Event], wanted: Callable[[Event], bool]) -> Event | None:
    return next(filter(wanted, events), None)


def _moment(name: str, event: Event | None) -> Moment | None:
    return None if event is None else Moment(name, event.at, event.host)


def _first_of(events: Iterable[Event], lost: Lost, name: str) -> Event | None:
    return _first(events, lambda event: _is_of(event, lost, name))


def _is_of(event: Event, lost: Lost, name: str) -> bool:
    return (event.name, event.processor_id, event.epoch) == (name, lost.processor_id, lost.epoch)


def _is_successor(event: Event, lost: Lost, name: str) -> bool:
    is_newer = event.epoch is not None and event.epoch > lost.epoch
    return event.name == name and event.processor_id == lost.processor_id and is_newer


def _of(lost: Lost, name: str, epoch: int | None) -> Callable[[Event], bool]:
    """Whether an event is that one of the successor; of its first where none has committed yet."""
    return lambda e: _is_successor(e, lost, name) and epoch in {None, e.epoch}


def _decides(event: Event, lost: Lost) -> bool:
    return event.name == "failover-decided" and event.fields.get("active") == lost.processor_id


def _is_standby_stop(event: Event, lost: Lost) -> bool:
    return lost.standby is not None and _names(event, "stop-ordered", lost.standby)


def _has_stopped(event: Event, lost: Lost) -> bool:
    return lost.standby is not None and _names(event, "child-stopped", lost.standby)


def _names(event: Event, name: str, processor_id: str) -> bool:
    return event.name == name and event.processor_id == processor_id
