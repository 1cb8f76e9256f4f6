"""How long containers stood still when they went from one incarnation to the next.

PURE: events in, pauses out. What a reader of the outputs sees: from the last transaction that a
processor's incarnations before have committed to the first one of the next.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .reading import Event

_COMMITTED = "transaction-committed"


@dataclass(frozen=True)
class Pause:
    """Of one processor. ``source``, ``target``: the hosts before and after. Units: ms."""

    processor_id: str
    epoch: int
    source: str
    target: str
    ms: int


def pause_before(events: Iterable[Event], processor_id: str, epoch: int) -> Pause | None:
    """Return the pause that ended with the first transaction of that epoch.

    None: the epoch has committed none yet, or no epoch before it has.

    ``events``: the whole history of the job, on one clock. ``epoch``: that of the incarnation after
    the pause.
    """
    last: Event | None = None
    first: Event | None = None
    for event in events:
        if event.name != _COMMITTED or event.processor_id != processor_id or event.epoch is None:
            continue
        if event.epoch < epoch and (last is None or event.at > last.at):
            last = event
        elif event.epoch == epoch and (first is None or event.at < first.at):
            first = event
    if last is None or first is None:
        return None
    return Pause(processor_id, epoch, last.host, first.host, first.at - last.at)
