"""Which containers wait, and what is in the way on each host, whatever the reason is.

PURE. Derived from the state and the hosts' last reports; nothing is decided here. Where capacity is
short for ever the allocator goes on asking in its rounds, each request for its whole time; this is
how people learn of it, and of what would help.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from homeport.appmaster.allocation.job_state.state import (
    AllocatorState,
    ContainerPhase,
    Containers,
    ContainerState,
    JobPhase,
)
from homeport.appmaster.allocation.protocol.events import HostReport
from homeport.appmaster.allocation.protocol.settings import AllocatorSettings
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.status.shape import Needs, ShownShortage, ShownWaiter

_WITHOUT_GRANT = frozenset({ContainerPhase.QUEUED, ContainerPhase.REQUESTED})
_SHOWN = 20
_SAID = 5


@dataclass(frozen=True, slots=True)
class WaitingContainer:
    """A container without a grant; ``asks``: the host it asks or is queued for, None: any or none.

    ``obstacles``: {host: what is in its way there}, beyond what is in everybody's.
    """

    processor_id: ProcessorId
    asks: Host | None
    obstacles: Mapping[Host, str]


@dataclass(frozen=True, slots=True)
class Shortage:
    """The waiting containers, by id, and what is in the way of all: {host: why}; empty: nothing."""

    memory_mb: int
    cores: int
    waiters: tuple[WaitingContainer, ...]
    count: int
    hosts: Mapping[Host, str]

    def __str__(self) -> str:
        who = ", ".join(w.processor_id for w in self.waiters[:_SAID])
        more = f" and {self.count - _SAID} more" if self.count > _SAID else ""
        need = f"{_times(self.count, 'container')} of {self.memory_mb} MB and {self.cores} cores"
        return f"waiting for {need}: processor {who}{more}; {self._of_hosts()}"

    def _of_hosts(self) -> str:
        """Return what is in the way, for the first hosts where something is."""
        shut = [f"{host} {why}" for host, why in self.hosts.items() if why]
        for waiter in self.waiters[:1]:
            mine = waiter.obstacles.items()
            shut += [f"{host} {why}" for host, why in mine if not self.hosts.get(host)]
        more = f"; and {len(shut) - _SAID} more hosts" if len(shut) > _SAID else ""
        open_hosts = len(self.hosts) - sum(map(bool, self.hosts.values()))
        reported = "; ".join(shut[:_SAID]) + more or "nothing is in the way"
        return f"{reported} ({_times(open_hosts, 'host')} of {len(self.hosts)} could hold one)"

    def shown(self, since_ms: Mapping[ProcessorId, int]) -> ShownShortage:
        """Return the part of the status; ``since_ms``: since when each waits, in ms since 1970."""
        return ShownShortage(
            says=str(self),
            needs=Needs(memory_mb=self.memory_mb, cores=self.cores),
            count=self.count,
            processors=tuple(
                ShownWaiter(
                    processor_id=w.processor_id,
                    since_ms=since_ms.get(w.processor_id),
                    asks=w.asks,
                    obstacles=w.obstacles,
                )
                for w in self.waiters
            ),
            hosts=dict(list(self.hosts.items())[:_SHOWN]),
            hosts_count=len(self.hosts),
        )


def shortage(state: AllocatorState, reports: Iterable[HostReport]) -> Shortage | None:
    """Return what keeps those that wait from a place; None where none waits.

    At most twenty of them are shown; ``count`` is how many there are.
    """
    if state.phase is not JobPhase.ACTIVE or state.hosts is None:
        return None
    waiting = [
        p for phase in _WITHOUT_GRANT for p in state.containers.indexed(Containers.PHASE, phase)
    ]
    if not waiting:
        return None
    shown = (state.container(processor_id) for processor_id in sorted(waiting)[:_SHOWN])
    reported = {r.host: r for r in reports}
    return Shortage(
        state.settings.container_memory_mb,
        state.settings.container_cores,
        tuple(
            WaitingContainer(c.processor_id, c.requested_host, dict(_own(state, c)))
            for c in shown
            if c
        ),
        len(waiting),
        {h: _in_the_way(state, h, reported.get(h)) for h in sorted({*state.hosts, *reported})},
    )


def _in_the_way(state: AllocatorState, host: Host, report: HostReport | None) -> str:
    """Return what is in the way of every container there; empty: nothing that is known."""
    settings = state.settings
    if host not in (state.hosts or ()):
        return "is lost" if report is not None and not report.is_live else "is not live"
    if settings.strict_hosts is not None and host not in settings.strict_hosts:
        return "joined after the submission and cannot be asked for by name"
    if host in settings.drained_hosts:
        return "is drained"
    if state.exclusions.get(host) is not None:
        return "is not asked, as its launchers fell silent"
    return "" if report is None else _lack(settings, report)


def _lack(settings: AllocatorSettings, report: HostReport) -> str:
    """Return what the host has too little of; empty: nothing."""
    if report.is_too_small(settings.container_memory_mb):
        return f"is too small, with {report.memory_mb} MB"
    if report.has_room(settings.container_memory_mb, settings.container_cores):
        return ""
    return (
        f"has {report.free_memory_mb} of {report.memory_mb} MB and {report.free_cores} of "
        f"{report.cores} cores free"
    )


def _own(state: AllocatorState, container: ContainerState) -> Iterator[tuple[Host, str]]:
    """Yield what is in the way of this container alone: others of its group, and tried hosts."""
    for host in container.tried:
        yield host, "gave it no container in time"
    active = container.replica_of or container.processor_id
    group = {active, *state.containers.indexed(Containers.REPLICA_OF, active)}
    for processor_id in sorted(group - {container.processor_id}):
        other = state.container(processor_id)
        resource = other and other.resource_id and state.resource(other.resource_id)
        if resource:
            yield resource.host, f"has processor {processor_id}, which has the same state"


def _times(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count} {what}s"
