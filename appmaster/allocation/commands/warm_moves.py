"""A move whose state is at its destination before the container stops.

PURE. Theory. What makes a move long is the reading of the state, and a standby reads that beside
the active that works. So a standby comes first, then the order of any move: the launcher is
reserved, the container stops, and starts there. The standby on the destination is the job's own,
where there is one; else a temporary one on the launcher that was reserved. When it runs and is
behind by no more than ``AllocatorSettings.warm_lag`` records, and the spare beside it has a Spark
ready where the job's containers need one, it is ordered to stop (GIVING_WAY), and its launcher is
reserved for the active. With the evidence of that the action is in MOVING, as
any other. The active works on until then: it is stopped only when all is ready for it, so that what
it misses does not depend on the size of the state.

A temporary standby is a container of the group of its active, so that all that holds of standbys
holds of it: it shares no host with another of the group, its stop needs evidence, and an active
that cannot go home may take its place. It is entered when a launcher at the destination is there,
on that launcher, and is nowhere without it: it never asks for a host, is never placed again, and is
gone with its incarnation, whatever ended that. So it is ASSIGNED, STARTING, RUNNING or STOPPING.

No JobModel has it, and it has no locality: Samza's records do not know of it. Its epochs are in the
coordinator stream as those of all processors are. A later driver finds them there without a
processor of the model, takes the standby for a retired one, and has it stopped.

Decisions.

* *The standby stops before its active does*, not after: its stop is no part of the pause then. For
  these moments the active has one standby less; one that dies in them takes the reserved launcher.
* *Of the job's own standby the locality goes with the order to stop*, as in a failover: it is not
  to come back to the place that its active takes. It waits for another host, as after a failover.
* *What happens meanwhile happens as always*: an active that dies goes home, or fails over, to this
  very standby perhaps, which ends the wait. A standby that ends by itself ends the action.
* *A standby is not moved warm*: no input waits for it. An active that does not run is not
  either: it takes the reserved launcher at once.
* *The Spark is waited for by a timer, and by nothing else.* Whether a standby's spare is to have
  one follows from the configuration; that it never comes, for want of memory or as it cannot start,
  is seen in no report for sure. The container then starts one itself, as without the key.
* *The next driver* begins the action again, from what is on the disk of the destination.
"""

from __future__ import annotations

from dataclasses import replace

from homeport.appmaster.allocation import destinations, host_search, separation
from homeport.appmaster.allocation.commands import answers
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.placements import Placement, PlacementStep, SparkWait
from homeport.appmaster.allocation.job_state.state import (
    ContainerPhase,
    ContainerState,
    ResourceState,
)
from homeport.appmaster.allocation.protocol.events import Timer, TimerKind, named
from homeport.appmaster.allocation.protocol.instructions import DeleteLocality
from homeport.appmaster.allocation.protocol.reasons import ReasonKind
from homeport.appmaster.allocation.protocol.settings import AllocatorSettings
from homeport.job_coordinator.grouper.standby_models import temporary_id
from homeport.job_coordinator.model.ids import Host, ProcessorId

_READY = frozenset({ContainerPhase.RUNNING, ContainerPhase.FAILED})


def is_warm(placement: Placement, container: ContainerState) -> bool:
    """Return whether the state is read first: the request asks for it, and its active runs."""
    is_active = container.replica_of is None
    return placement.request.is_warm and is_active and container.phase is ContainerPhase.RUNNING


def standby_on(draft: Draft, container: ContainerState, host: Host) -> ContainerState | None:
    """Return the job's own standby of this active that is on the host, or on its way there."""
    found = (s for s in separation.others(draft, container) if not s.is_temporary)
    return next((s for s in found if separation.held_host(draft, s) == host), None)


def host_of_a_standby(draft: Draft, container: ContainerState) -> Host | None:
    """Return a host with a standby of the active already, for when no other host is left."""
    standbys = (s for s in separation.others(draft, container) if not s.is_temporary)
    hosts = (separation.held_host(draft, s) for s in standbys)
    return next((h for h in hosts if h is not None and not destinations.host_fault(draft, h)), None)


def reason_to_wait(draft: Draft, container: ContainerState, host: Host) -> str | None:
    """Return why the warm move cannot begin yet; None: it can."""
    standby = standby_on(draft, container, host)
    if standby is not None and standby.phase is not ContainerPhase.RUNNING:
        return f"it waits until processor {standby.processor_id} runs on {host}"
    if standby is None and _is_in_use(draft, container):
        return "it waits until the temporary standby of an earlier move has stopped"
    return None


def fault(draft: Draft, container: ContainerState, host: Host) -> str | None:
    """Return what is wrong with a warm move's destination that waiting does not mend."""
    if draft.host_of(container) == host:
        return f"processor {container.processor_id} runs on {host} already"
    if standby_on(draft, container, host) is not None:
        return None
    return destinations.group_fault(draft, container, host)


def begin_behind(draft: Draft, placement: Placement, container: ContainerState, host: Host) -> bool:
    """Begin where the job has a standby there, whose place the action takes; whether it has."""
    standby = standby_on(draft, container, host)
    if standby is None:
        return False
    begun = answers.begin(draft, placement, container, PlacementStep.WARMING, host)
    begun = replace(begun, standby=standby.processor_id, resource_id=standby.resource_id)
    answers.give_reason(
        draft, begun, f"{named(standby.incarnation)} on {host} has the state, and is to give way"
    )
    return True


def warm_up(
    draft: Draft, placement: Placement, container: ContainerState, launcher: ResourceState
) -> bool:
    """Return whether a temporary standby begins on the launcher, which was reserved just now.

    Not where the container does not run any more, its group has come to this host, or an earlier
    standby has not stopped: then the action goes on as any move.
    """
    if (
        not is_warm(placement, container)
        or _is_in_use(draft, container)
        or draft.host_of(container) == launcher.host
        or destinations.group_fault(draft, container, launcher.host) is not None
    ):
        return False
    standby = _enter(draft, container, launcher)
    warming = replace(placement, step=PlacementStep.WARMING, standby=standby)
    text = f"a standby on {launcher.host} reads the state; {named(container.incarnation)} runs on"
    answers.give_reason(draft, warming, text)
    return True


def _enter(draft: Draft, active: ContainerState, launcher: ResourceState) -> ProcessorId:
    """Assign the launcher to the temporary standby of this active; return its id."""
    own = temporary_id(active.processor_id)
    draft.containers[own] = ContainerState(
        own,
        replica_of=active.processor_id,
        phase=ContainerPhase.ASSIGNED,
        epoch=draft.former.get(own, 0),
        resource_id=launcher.resource_id,
        is_temporary=True,
    )
    draft.because(ReasonKind.WARMS_UP, own, launcher.host, other=active)
    return own


def _is_in_use(draft: Draft, active: ContainerState) -> bool:
    """Return whether its id is in use: by one that has not stopped, or by the JobModel."""
    own = temporary_id(active.processor_id)
    return own in draft.containers or any(i.processor_id == own for i in draft.retired)


def warm(draft: Draft, placement: Placement, container: ContainerState) -> None:
    """Let the standby give way once it is near enough; end the action where it cannot be."""
    launcher = draft.resources.get(placement.resource_id)
    standby = draft.containers.get(placement.standby)
    if launcher is None or launcher.ended is not None:
        answers.fail(draft, placement, f"its launcher on {placement.host} was lost")
    elif container.resource_id == launcher.resource_id:
        _taken_by_failover(draft, placement, launcher)
    elif standby is not None and _is_needed_more(draft, container, standby):
        answers.dismiss(draft, placement)
        moving = answers.await_no_spark(draft, replace(placement, step=PlacementStep.MOVING))
        draft.placements[placement.request.uuid] = moving
    elif standby is None or standby.resource_id != launcher.resource_id:
        answers.fail(draft, placement, f"the standby on {placement.host} has ended")
    elif container.phase in _READY and is_near(draft, standby):
        if placement.spark is SparkWait.OVER or has_what_it_needs(draft.settings, standby):
            _order_to_give_way(draft, placement, standby, launcher)
        elif placement.spark is SparkWait.NOT_YET:
            _wait_for_spark(draft, placement, standby)


def _is_needed_more(draft: Draft, container: ContainerState, standby: ContainerState) -> bool:
    """Return whether the container cannot go home while its standby's launcher has no work yet."""
    has_begun = standby.phase is not ContainerPhase.ASSIGNED
    if has_begun or container.phase is not ContainerPhase.QUEUED:
        return False
    return not host_search.may_go_home(draft, container)


def is_near(draft: Draft, standby: ContainerState) -> bool:
    """Whether the standby runs, and is not further behind than an active may read in its start."""
    is_running = standby.phase is ContainerPhase.RUNNING
    return is_running and standby.lag is not None and standby.lag <= draft.settings.warm_lag


def has_what_it_needs(settings: AllocatorSettings, standby: ContainerState) -> bool:
    """Return whether an active that takes its place finds a Spark there, or needs none ready."""
    is_wanted = settings.temporary_have_spark if standby.is_temporary else settings.own_have_spark
    return standby.has_spark or not is_wanted


def _wait_for_spark(draft: Draft, placement: Placement, standby: ContainerState) -> None:
    timer = Timer(TimerKind.SPARE_SPARK, placement.request.processor_id)
    draft.set_timer(timer, draft.settings.spark_timeout_ms)
    text = f"{named(standby.incarnation)} is {standby.lag} records behind; a Spark starts beside it"
    answers.give_reason(draft, replace(placement, spark=SparkWait.AWAITED), text)


def wait_for_no_spark(draft: Draft, processor_id: ProcessorId) -> None:
    """Stop waiting for what was not ready in time."""
    for uuid, placement in draft.placements.items():
        is_its_own = placement.request.processor_id == processor_id
        if is_its_own and placement.spark is SparkWait.AWAITED:
            draft.placements[uuid] = replace(placement, spark=SparkWait.OVER)


def _order_to_give_way(
    draft: Draft, placement: Placement, standby: ContainerState, launcher: ResourceState
) -> None:
    draft.resources[launcher.resource_id] = replace(
        launcher, reserved_for=placement.request.processor_id
    )
    if not standby.is_temporary:
        draft.record(DeleteLocality(standby.processor_id))
        standby = draft.change(replace(standby, home=None))
    answers.stop(draft, standby)
    is_late = placement.spark is SparkWait.OVER and not has_what_it_needs(draft.settings, standby)
    giving = replace(placement, step=PlacementStep.GIVING_WAY)
    giving = answers.await_no_spark(draft, giving)
    text = f"{named(standby.incarnation)} is {standby.lag} records behind, and stops"
    if is_late:
        text = f"{text}; no Spark was ready beside it in {draft.settings.spark_timeout_ms} ms"
    answers.give_reason(draft, giving, text)


def give_way(draft: Draft, placement: Placement, container: ContainerState) -> None:
    """Move the container as any other, with the evidence that the standby has stopped."""
    launcher = draft.resources.get(placement.resource_id)
    if launcher is None or launcher.ended is not None:
        answers.fail(draft, placement, f"its launcher on {placement.host} was lost")
    elif container.resource_id == launcher.resource_id:
        _taken_by_failover(draft, placement, launcher)
    elif draft.holder(launcher.resource_id) is None:
        moving = replace(placement, step=PlacementStep.MOVING)
        draft.placements[placement.request.uuid] = moving


def _taken_by_failover(draft: Draft, placement: Placement, launcher: ResourceState) -> None:
    """Let the start end the action: the active died, and has the standby's place already."""
    draft.resources[launcher.resource_id] = replace(launcher, reserved_for=None)
    launched = replace(placement, step=PlacementStep.MOVING, is_launched=True)
    draft.placements[placement.request.uuid] = answers.await_no_spark(draft, launched)
