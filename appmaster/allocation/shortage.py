"""Which containers wait, and what keeps them from each host: for people.

PURE. Derived from the state and the hosts' last reports; nothing is decided here. If capacity is
short for ever the allocator goes on with its rounds of requests. This report shows that, and what
would help.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from homeport.appmaster.allocation.job_state.occupancy import occupancy_of
from homeport.appmaster.allocation.job_state.state import (
    AllocatorState,
    ContainerPhase,
    Containers,
    ContainerState,
    JobPhase,
)
from homeport.appmaster.allocation.protocol.events import HostReport
from homeport.appmaster.allocation.protocol.settings import AllocatorSettings
from homeport.config.number_text import counted
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.status.shape import Needs, ShownShortage, ShownWaiter

_WITHOUT_GRANT = frozenset({ContainerPhase.QUEUED, ContainerPhase.REQUESTED})
_SHOWN = 20
"""So many containers, and so many hosts, are shown; ``count`` and ``hosts_count`` are of all."""
_SAID = 5
"""So many of each are in the sentence."""


def shortage(
    state: AllocatorState,
    reports: Iterable[HostReport],
    since_ms: Callable[[ProcessorId], int | None] = lambda _: None,
) -> ShownShortage | None:
    """Return what keeps those that wait from a place; None where none waits.

    ``since_ms`` returns since when a container waits, in ms since 1970; None: not known.
    """
    if state.phase is not JobPhase.ACTIVE or state.hosts is None:
        return None
    waiting = [
        p for phase in _WITHOUT_GRANT for p in state.containers.indexed(Containers.PHASE, phase)
    ]
    if not waiting:
        return None
    containers = (state.container(processor_id) for processor_id in sorted(waiting)[:_SHOWN])
    shown = tuple(
        ShownWaiter(
            processor_id=c.processor_id,
            since_ms=since_ms(c.processor_id),
            asks=c.requested_host,
            obstacles=dict(_own(state, c)),
        )
        for c in containers
        if c is not None
    )
    reported = {r.host: r for r in reports}
    hosts = {h: _in_the_way(state, h, reported.get(h)) for h in sorted({*state.hosts, *reported})}
    needs = Needs(
        memory_mb=state.settings.container_memory_mb, cores=state.settings.container_cores
    )
    return ShownShortage(
        says=_sentence(needs, len(waiting), shown, hosts),
        needs=needs,
        count=len(waiting),
        processors=shown,
        hosts=dict(list(hosts.items())[:_SHOWN]),
        hosts_count=len(hosts),
    )


def _sentence(
    needs: Needs, count: int, shown: Sequence[ShownWaiter], hosts: Mapping[Host, str]
) -> str:
    who = ", ".join(w.processor_id for w in shown[:_SAID])
    more = f" and {count - _SAID} more" if count > _SAID else ""
    size = f"{needs.memory_mb} MB and {counted(needs.cores, 'core')}"
    need = f"{counted(count, 'container')} of {size}"
    own = shown[0].obstacles.items()
    shut = [f"{host} {why}" for host, why in hosts.items() if why]
    shut += [f"{host} {why}" for host, why in own if not hosts.get(host)]
    others = f"; and {len(shut) - _SAID} more hosts" if len(shut) > _SAID else ""
    obstacles = "; ".join(shut[:_SAID]) + others or "nothing is in the way"
    open_hosts = f"{counted(sum(not why for why in hosts.values()), 'host')} of {len(hosts)}"
    return f"waiting for {need}: processor {who}{more}; {obstacles} ({open_hosts} could hold one)"


def _in_the_way(state: AllocatorState, host: Host, report: HostReport | None) -> str:
    settings = state.settings
    if host not in (state.hosts or ()):
        return "is lost" if report is not None and not report.is_live else "is not live"
    if host in settings.drained_hosts:
        return "is drained"
    if host in state.exclusions:
        return "is not asked, as its launchers fell silent"
    return "" if report is None else _lack(settings, report)


def _lack(settings: AllocatorSettings, report: HostReport) -> str:
    if report.is_too_small(settings.container_memory_mb):
        return f"is too small, with {report.memory_mb} MB"
    if report.has_room(settings.container_memory_mb, settings.container_cores):
        return ""
    return (
        f"has {report.free_memory_mb} of {report.memory_mb} MB and {report.free_cores} of "
        f"{counted(report.cores, 'core')} free"
    )


def _own(state: AllocatorState, container: ContainerState) -> Iterator[tuple[Host, str]]:
    for host in container.tried:
        yield host, "gave it no container in time"
    if container.awaits_home(state.exclusions):
        for host in sorted(occupancy_of(state).loads):
            yield host, f"has a container of the job, and {container.home} may come back"
    active = container.group
    group = {active, *state.containers.indexed(Containers.REPLICA_OF, active)}
    for processor_id in sorted(group - {container.processor_id}):
        other = state.container(processor_id)
        taken = None if other is None else state.host_of(other)
        if taken is not None:
            yield taken, f"has processor {processor_id}, which has the same state"
