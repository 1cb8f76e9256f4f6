"""What a container waits for, in sentences, out of the body of ``/v1/status``.

PURE. ``homeport explain``, ``homeport status`` and the dashboard all show these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from homeport.job_coordinator.ui.times import clock

_IDS_SHOWN: Final = 20


def listed(names: Sequence[str]) -> str:
    """The first twenty names, and how many more there are."""
    more = f" and {len(names) - _IDS_SHOWN} more" if len(names) > _IDS_SHOWN else ""
    return ", ".join(names[:_IDS_SHOWN]) + more


def waits(status: Mapping[str, Any], container: Mapping[str, Any]) -> Iterator[str]:
    """What the processor waits for, a sentence each, which begins after "waits"."""
    yield from container.get("waits") or ()
    yield from _in_its_phase(status, container)
    yield from _unaccounted(status, container)
    yield from _missing(status, container)
    yield from _waits_in_turn(status, container)
    change = status.get("change") or {}
    owners = change.get("waits", {}).get(container["processor_id"], ())
    if owners:
        yield f"for the stop of {', '.join(owners)}, which own tasks of it"
    excluded = status.get("excluded_hosts") or ()
    if container.get("last_host") in excluded:
        yield f"while {container['last_host']} is not asked, as its launchers fell silent"


def _in_its_phase(status: Mapping[str, Any], container: Mapping[str, Any]) -> Iterator[str]:
    phase, wanted = container["phase"], container.get("requested_host")
    if phase == "requested":
        yield f"for a container on {wanted or 'any host'}"
    elif phase == "allocated":
        yield f"for the launcher on {wanted or 'any host'} to check in"
    elif phase == "assigned":
        yield f"for the next check-in of its launcher on {container.get('host')}"
    elif phase == "queued" and wanted:
        yield f"for its turn at {wanted}, which another requests"
    elif phase == "queued" and not status.get("hosts"):
        yield "for the ResourceManager's word of the hosts"
    elif phase == "backing-off":
        yield "for its retry delay to pass"
    elif phase == "starting":
        yield "for its report that its stores are restored"
    elif phase == "stopping":
        yield "for the evidence that it has stopped"


def _unaccounted(status: Mapping[str, Any], container: Mapping[str, Any]) -> Iterator[str]:
    """The incarnations that a new driver waits for before it places a container."""
    names: Sequence[str] = status.get("unaccounted") or ()
    if names and container["phase"] == "queued":
        yield (
            f"until it is known whether {listed(names)} still "
            f"run{'s' if len(names) == 1 else ''}, permitted by an earlier driver"
        )


def _missing(status: Mapping[str, Any], container: Mapping[str, Any]) -> Iterator[str]:
    """What is in its way on each host, since when; nothing where it does not wait for one."""
    said = status.get("waiting") or {}
    found = (
        w for w in said.get("processors", ()) if w["processor_id"] == container["processor_id"]
    )
    for waiter in found:
        needs = said["needs"]
        since = f" since {clock(waiter['since_ms'])}" if waiter["since_ms"] else ""
        obstacles = {**waiter["obstacles"], **{h: why for h, why in said["hosts"].items() if why}}
        shut = "; ".join(f"{host} {why}" for host, why in obstacles.items())
        size = f"{needs['memory_mb']} MB and {needs['cores']} cores"
        yield f"for {size}{since}: {shut or 'nothing is known to be in the way'}"


def _waits_in_turn(status: Mapping[str, Any], container: Mapping[str, Any]) -> Iterator[str]:
    """For what a failover, or an operator's command, has yet to bring about."""
    processor_id = container["processor_id"]
    for failover in status.get("failovers") or ():
        active, standby, host = failover["active"], failover["standby"], failover["host"]
        is_awaited = bool(failover.get("waits_for"))
        if active == processor_id and is_awaited:
            yield f"for the stop of its standby {standby} on {host}, whose place it takes"
        elif active == processor_id:
            yield f"to start on {host or 'any host'}, as it fails over"
        elif standby == processor_id and is_awaited:
            yield f"until it has made way on {host} for processor {active}"
    for placement in status.get("placements") or ():
        if placement["processor_id"] == processor_id:
            yield f"for {command(placement)}"


def command(placement: Mapping[str, Any]) -> str:
    """Return an operator's command that has not ended, with what it waits for."""
    said = f"an operator's command to {placement['destination']}: {placement['step']}"
    return f"{said}, {placement['waits']}" if placement.get("waits") else said
