"""Two snapshots of the cluster into the events between them: levels, not edges.

PURE. Theory. The shell polls and compares whole snapshots, so a lost callback heals with the next
poll. Comparing with nothing (``before`` None) tells all that is so; ``step`` counts as stale what
it knows already, so a shell that is in doubt may do that at any time.

What this module does not know: launchers and their children. What Skein says of a container is
evidence for a request, not for an incarnation (safety P1).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from homeport.appmaster.allocation.events import (
    Event,
    HostsObserved,
    ResourceAllocated,
    ResourceEnded,
)
from homeport.job_coordinator.model.ids import Host, RequestId


class SkeinContainerState(Enum):
    """Skein's states, as far as they matter here."""

    REQUESTED = "requested"
    """WAITING or REQUESTED: YARN has not granted it."""
    RUNNING = "running"
    """Granted and launched."""
    ENDED = "ended"
    """SUCCEEDED, FAILED or KILLED."""


@dataclass(frozen=True, slots=True)
class SkeinContainer:
    """One container as Skein shows it; ``request_id`` None: not one that we asked for.

    Of one that has ended: ``story``, ``is_own_fault`` and ``is_taken_back`` as in
    ``ResourceEnded``.
    """

    skein_id: str
    request_id: RequestId | None
    state: SkeinContainerState
    host: Host | None = None
    story: str = ""
    is_own_fault: bool = False
    is_taken_back: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a poll saw: all of Skein's containers, and all live hosts."""

    containers: tuple[SkeinContainer, ...] = ()
    hosts: tuple[Host, ...] = ()


def events_between(before: Snapshot | None, after: Snapshot) -> tuple[Event, ...]:
    """What became true from ``before`` (None: unknown) to ``after``.

    Order: hosts first, then by request. A container that vanished has ended.
    """
    events: list[Event] = []
    if before is None or set(before.hosts) != set(after.hosts):
        events.append(HostsObserved(tuple(sorted(set(after.hosts)))))
    was = _by_request(before or Snapshot())
    now = _by_request(after)
    for request_id in sorted({*was, *now}):
        old, new = was.get(request_id), now.get(request_id, _VANISHED)
        if old is not None and new.state is old.state:
            continue
        if new.state is SkeinContainerState.RUNNING:
            events.append(ResourceAllocated(request_id))
        elif new.state is SkeinContainerState.ENDED:
            events.append(
                ResourceEnded(
                    request_id,
                    story=new.story,
                    is_own_fault=new.is_own_fault,
                    is_taken_back=new.is_taken_back,
                )
            )
    return tuple(events)


_VANISHED = SkeinContainer("", None, SkeinContainerState.ENDED)


def _by_request(snapshot: Snapshot) -> dict[RequestId, SkeinContainer]:
    return {c.request_id: c for c in snapshot.containers if c.request_id is not None}
