"""Ends commands that make no progress, or that an operator cancels.

PURE. Theory. A command waits until a container runs, a standby has read, or an incarnation stops or
starts. That may never happen, and the commands behind it would wait as well. So a command fails if
it makes no progress for ``AllocatorSettings.command_timeout_ms``. Progress is a step of the
command, or a report that less is left to read than ever in this step: a restore may take hours if
it goes on.

Decisions.

* *No second timer*: the request of a launcher and the wait for a Spark have timers of their own. A
  command that waits for its turn has none, since the earlier command ends.
* *The container stays as it is*: it runs on, comes back on its launcher, or goes on with its start.
* *A cancel is a request with its own answer*, for all commands of a container: an operator knows
  the container, but not the uuid of the command.
"""

from collections.abc import Iterable
from dataclasses import replace

from homeport.appmaster.allocation.commands import answers
from homeport.appmaster.allocation.destinations import Find, group_id
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.placements import (
    Placement,
    PlacementStep,
    SparkWait,
    turn,
)
from homeport.appmaster.allocation.job_state.state import ContainerState
from homeport.appmaster.allocation.protocol.events import Timer, TimerKind, named
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.placement import PlacementRequest, PlacementStatus


def limited(find: Find, placements: Iterable[Placement]) -> list[Placement]:
    """Return the commands that need a timer: no other timer ends their wait, and no earlier one."""
    found: list[Placement] = []
    busy: set[ProcessorId] = set()
    for placement in sorted(placements, key=turn):
        group = group_id(find, placement.request.processor_id)
        is_first = group not in busy
        busy.add(group)
        has_timer = (
            placement.step is PlacementStep.RESERVING or placement.spark is SparkWait.AWAITED
        )
        if is_first and not has_timer:
            found.append(placement)
    return found


def settle(draft: Draft) -> None:
    """Run the timer of each command that needs one from its last progress."""
    before = {p.request.uuid: p for p in draft.before.placements}
    due = {p.request.uuid for p in limited(draft.containers.get, draft.placements.values())}
    for uuid, placement in list(draft.placements.items()):
        timer = Timer(TimerKind.COMMAND, uuid)
        is_further = _has_come_further(draft, before.get(uuid), placement)
        if uuid not in due:
            draft.cancel_timer(timer)
        elif is_further or timer not in draft.timers:
            draft.set_timer(timer, draft.settings.command_timeout_ms)


def _has_come_further(draft: Draft, before: Placement | None, placement: Placement) -> bool:
    waits_for = awaited(draft.containers.get, placement)
    left = None if waits_for is None else waits_for.lag
    is_anew = before is None or before.step is not placement.step
    is_less = left is not None and (placement.least is None or left < placement.least)
    least = left if is_anew or is_less else placement.least
    if least != placement.least:
        draft.keep(replace(placement, least=least))
    return is_anew or is_less


def awaited(find: Find, placement: Placement) -> ContainerState | None:
    """Return the container whose progress counts: the standby that reads, or the command's own."""
    if placement.step is PlacementStep.WARMING and placement.standby is not None:
        return find(placement.standby)
    return find(placement.request.processor_id)


def waits(find: Find, placement: Placement) -> str:
    """Return what the command waits for, in one line."""
    container = awaited(find, placement)
    if container is None or container.lag is None:
        return placement.story
    left = f"{named(container.incarnation)} has {container.lag} records left to read"
    return f"{placement.story}; {left}" if placement.story else left


def time_is_over(draft: Draft, uuid: str) -> None:
    """End the command, which has made no progress."""
    placement = draft.placements[uuid]
    story = waits(draft.containers.get, placement)
    limit_ms = draft.settings.command_timeout_ms
    answers.refuse(draft, placement, f"{story}; it has come no further in {limit_ms} ms")


def cancel(draft: Draft, request: PlacementRequest) -> None:
    """End all commands for the container, which stays as it is."""
    own, name = Placement(request), f"processor {request.processor_id}"
    found = sorted(draft.commands_for(request.processor_id), key=turn)
    container = draft.containers.get(request.processor_id)
    if not found or container is None:
        text = f"no command for {name} is under way"
        answers.answer(draft, own, PlacementStatus.BAD_REQUEST, text)
        return
    for placement in found:
        answers.refuse(draft, placement, "it was cancelled")
    ended = ", ".join(p.request.destination for p in found)
    place = draft.host_of(container) or "no host"
    text = f"{ended}: cancelled; {name} is {container.phase.value} on {place}"
    answers.answer(draft, own, PlacementStatus.SUCCEEDED, text)
