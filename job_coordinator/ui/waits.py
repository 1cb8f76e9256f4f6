"""What a container waits for, in sentences, out of the status.

PURE. ``homeport explain``, ``homeport status`` and the dashboard all show these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from homeport.job_coordinator.status.shape import Phase, ShownContainer, ShownPlacement, ShownStatus
from homeport.job_coordinator.ui.times import clock

_IDS_SHOWN: Final = 20


def listed(names: Sequence[str]) -> str:
    """The first twenty names, and how many more there are."""
    more = f" and {len(names) - _IDS_SHOWN} more" if len(names) > _IDS_SHOWN else ""
    return ", ".join(names[:_IDS_SHOWN]) + more


def waits(status: ShownStatus, container: ShownContainer) -> Iterator[str]:
    """What the processor waits for, a sentence each, which begins after "waits"."""
    yield from container.waits
    yield from _in_its_phase(status, container)
    yield from _unaccounted(status, container)
    yield from _missing(status, container)
    yield from _waits_in_turn(status, container)
    owners = () if status.change is None else status.change.waits.get(container.processor_id, ())
    if owners:
        yield f"for the stop of {', '.join(owners)}, which own tasks of it"
    if container.last_host in status.excluded_hosts:
        yield f"while {container.last_host} is not asked, as its launchers fell silent"


def _in_its_phase(status: ShownStatus, container: ShownContainer) -> Iterator[str]:
    phase, wanted = container.phase, container.requested_host
    if phase is Phase.REQUESTED:
        yield f"for a container on {wanted or 'any host'}"
    elif phase is Phase.ALLOCATED:
        yield f"for the launcher on {wanted or 'any host'} to check in"
    elif phase is Phase.ASSIGNED:
        yield f"for the next check-in of its launcher on {container.host}"
    elif phase is Phase.QUEUED and wanted:
        yield f"for its turn at {wanted}, which another requests"
    elif phase is Phase.QUEUED and not status.hosts:
        yield "for the ResourceManager's word of the hosts"
    elif phase is Phase.BACKING_OFF:
        yield "for its retry delay to pass"
    elif phase is Phase.STARTING:
        yield "for its report that its stores are restored"
    elif phase is Phase.STOPPING:
        yield "for the evidence that it has stopped"


def _unaccounted(status: ShownStatus, container: ShownContainer) -> Iterator[str]:
    names = status.unaccounted
    if names and container.phase is Phase.QUEUED:
        yield (
            f"until it is known whether {listed(names)} still "
            f"run{'s' if len(names) == 1 else ''}, permitted by an earlier driver"
        )


def _missing(status: ShownStatus, container: ShownContainer) -> Iterator[str]:
    found = status.waiting
    if found is None:
        return
    for waiter in found.processors:
        if waiter.processor_id != container.processor_id:
            continue
        since = f" since {clock(waiter.since_ms)}" if waiter.since_ms else ""
        obstacles = {**waiter.obstacles, **{h: why for h, why in found.hosts.items() if why}}
        shut = "; ".join(f"{host} {why}" for host, why in obstacles.items())
        size = f"{found.needs.memory_mb} MB and {found.needs.cores} cores"
        yield f"for {size}{since}: {shut or 'nothing is known to be in the way'}"


def _waits_in_turn(status: ShownStatus, container: ShownContainer) -> Iterator[str]:
    name = container.processor_id
    for each in status.failovers:
        if each.active == name and each.waits_for:
            yield f"for the stop of its standby {each.standby} on {each.host}, whose place it takes"
        elif each.active == name:
            yield f"to start on {each.host or 'any host'}, as it fails over"
        elif each.standby == name and each.waits_for:
            yield f"until it has made way on {each.host} for processor {each.active}"
    for placement in status.placements:
        if placement.processor_id == name:
            yield f"for {command(placement)}"


def command(placement: ShownPlacement) -> str:
    """Return an operator's command that has not ended, with what it waits for."""
    text = f"an operator's command to {placement.destination}: {placement.step}"
    return f"{text}, {placement.waits}" if placement.waits else text
