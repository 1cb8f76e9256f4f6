"""Turns two snapshots of the cluster into the events between them.

PURE. The shell polls and compares whole snapshots, so that each poll makes up for lost ones.
Without an earlier snapshot (``before`` None) it gets an event for everything in the new one. It may
leave the earlier one out at any time, since ``step`` counts facts that it knows as stale.

This module does not know of launchers and their children. Skein's report of a container is evidence
about a request, not about an incarnation (safety P1).
"""

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum

from homeport.appmaster.allocation.protocol.events import (
    Event,
    HostReport,
    HostsObserved,
    ResourceAllocated,
    ResourceEnded,
)
from homeport.job_coordinator.model.ids import Host, RequestId, ResourceId


class SkeinContainerState(Enum):
    """The states of Skein that the allocator distinguishes."""

    REQUESTED = "requested"
    """WAITING or REQUESTED: YARN has not granted it."""
    RUNNING = "running"
    """Granted and launched."""
    ENDED = "ended"
    """SUCCEEDED, FAILED or KILLED."""


@dataclass(frozen=True, slots=True)
class SkeinContainer:
    """One container as Skein shows it; ``request_id`` None: the allocator did not request it.

    ``story``, ``is_own_fault`` and ``is_taken_back`` describe its end; see ``ResourceEnded``.
    """

    skein_id: str
    request_id: RequestId | None
    state: SkeinContainerState
    host: Host | None = None
    story: str = ""
    is_own_fault: bool = False
    is_taken_back: bool = False

    def ended(self, request_id: RequestId, resource_id: ResourceId | None = None) -> ResourceEnded:
        """Return the end of this container as an event."""
        return ResourceEnded(
            request_id, resource_id, self.story, self.is_own_fault, self.is_taken_back
        )


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The result of a poll: all of Skein's containers, all live hosts, and reports of hosts."""

    containers: tuple[SkeinContainer, ...] = ()
    hosts: tuple[Host, ...] = ()
    reports: tuple[HostReport, ...] = ()


def events_between(
    before: Snapshot | None, after: Snapshot, *, memory_mb: int = 0, cores: int = 0
) -> tuple[Event, ...]:
    """Return the events from ``before`` (None: unknown) to ``after``: hosts first, then by request.

    A container that vanished has ended. A change of a host's free resources is an event only if
    a container of this size now fits there, or no longer does.
    """
    events: list[Event] = []
    size = memory_mb, cores
    if before is None or _relevant_facts(before, *size) != _relevant_facts(after, *size):
        reports = sorted(after.reports, key=lambda r: r.host)
        events.append(HostsObserved(tuple(sorted(set(after.hosts))), tuple(reports)))
    old_containers = _by_request(before or Snapshot())
    new_containers = _by_request(after)
    for request_id in sorted({*old_containers, *new_containers}):
        old, new = old_containers.get(request_id), new_containers.get(request_id, _VANISHED)
        if old is not None and new.state is old.state:
            continue
        if new.state is SkeinContainerState.RUNNING:
            events.append(ResourceAllocated(request_id))
        elif new.state is SkeinContainerState.ENDED:
            events.append(new.ended(request_id))
    return tuple(events)


def _relevant_facts(snapshot: Snapshot, memory_mb: int, cores: int) -> Hashable:
    known = {
        (r.host, r.rack, r.memory_mb, r.cores, r.is_live, r.has_room(memory_mb, cores))
        for r in snapshot.reports
    }
    return frozenset(snapshot.hosts), frozenset(known)


_VANISHED = SkeinContainer("", None, SkeinContainerState.ENDED)


def _by_request(snapshot: Snapshot) -> dict[RequestId, SkeinContainer]:
    return {c.request_id: c for c in snapshot.containers if c.request_id is not None}
