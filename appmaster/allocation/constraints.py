"""Where a container may be asked for, and where best: constraints first, then preference.

PURE. Questions about one placement; nothing here changes a state. For active containers no host is
forbidden but an excluded one; what is limited is the asking: a pending strict request makes YARN
reserve the node, so there is at most one per host.

Source: HA-YARN, "This approach can be considered as a 'best-effort stickiness' policy": home
first. Where home cannot be had, the least loaded other host, since containers that share a host
share its loss.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping

from homeport.appmaster.allocation.job_state.state import (
    ContainerState,
    ResourceState,
)
from homeport.appmaster.allocation.protocol.settings import AllocatorSettings
from homeport.job_coordinator.model.ids import Host


def candidate_hosts(
    settings: AllocatorSettings,
    live: Iterable[Host],
    closed: Container[Host],
    container: ContainerState,
) -> tuple[Host, ...]:
    """The hosts that ``container`` may still ask for by name in this round, sorted."""
    known = settings.strict_hosts
    return tuple(
        h
        for h in sorted(live)
        if h not in closed and h not in container.tried and (known is None or h in known)
    )


def why_not(
    settings: AllocatorSettings,
    live: Container[Host],
    excluded: Container[Host],
    container: ContainerState,
    host: Host,
    small: Container[Host] = (),
) -> str:
    """What keeps ``container`` from being asked for on ``host``, in one clause; empty: nothing."""
    if host not in live:
        return f"{host} is not live"
    if settings.strict_hosts is not None and host not in settings.strict_hosts:
        return f"{host} joined after submission and cannot be asked for by name"
    if host in small:
        return f"{host} is too small for a container"
    if host in excluded:
        return f"the launchers of {host} fell silent"
    if host in container.tried:
        return f"{host} had no room, or launched nothing"
    return ""


def best_host(
    ranked: Iterable[Host],
    home: Host | None,
    is_candidate: Callable[[Host], bool],
    is_near: Callable[[Host], bool] = lambda _: False,
) -> Host | None:
    """Home if it is a candidate, else the first of ``ranked`` that is one; None: there is none.

    A host that is not near others of the container's group comes before all that are.
    """
    if home is not None and is_candidate(home):
        return home
    near = None
    for host in ranked:
        if is_candidate(host):
            if not is_near(host):
                return host
            near = near or host
    return near


def best_launcher(
    idle: Iterable[ResourceState], choice: Host | None, home: Host | None, load: Mapping[Host, int]
) -> ResourceState | None:
    """The idle launcher to take rather than ask for ``choice``; None: ask.

    One at home always; where it would not ask for home anyway, one on the host it would ask for,
    else the one on the least loaded host.
    """
    launchers = tuple(r for r in idle if home is None or choice != home or r.host == home)
    return min(
        launchers,
        key=lambda r: (
            r.host != home,
            r.host != choice,
            load.get(r.host, 0),
            r.host,
            r.resource_id,
        ),
        default=None,
    )
