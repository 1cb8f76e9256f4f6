"""A move whose state is at its destination before the container stops.

PURE. Theory. A move takes long because the container reads its state. A standby on the destination
can read that state while the active works on. When it runs, its lag is at most
``AllocatorSettings.warm_lag`` records, and the spare beside it has a Spark ready (if the job's
containers need one), it is ordered to stop (GIVING_WAY), and its launcher is reserved for the
active. With the evidence of that stop the action goes on as any move (MOVING): the active stops and
starts on the reserved launcher. So the pause does not depend on the size of the state.

The standby is the job's own if it has one there, else a *temporary* one on the launcher that was
reserved first. A temporary standby is a container of its active's group, and all rules for standbys
hold for it: it shares no host with the group, its stop needs evidence, and an active that cannot go
home may take its place. It exists only on that launcher: it never requests a host, is never placed
again, and is removed when its incarnation ends. So it is ASSIGNED, STARTING, RUNNING or STOPPING.

No JobModel has it, and it has no locality, so Samza's records do not know it. The coordinator
stream has its epochs as those of any processor. The next driver finds them without a processor of
the model, treats the standby as a retired one, and stops it.

Decisions.

* *The standby stops before its active*, so that its stop adds nothing to the pause. In between the
  active has one standby less; if it dies then, it takes the reserved launcher.
* *The job's own standby loses its locality with the order to stop*, as in a failover: its active
  takes that place, and the standby waits for another host.
* *Failures are handled as always*: an active that dies goes home or fails over, perhaps to this
  very standby, which ends the wait. A standby that ends by itself ends the action.
* *A standby is not moved warm*, since no input waits for it. An active that does not run takes the
  reserved launcher at once.
* *A timer limits the wait for a Spark.* The configuration decides whether a standby's spare gets
  one. No report shows reliably that it never comes, as for want of memory. Then the container
  starts one itself, as without the key.
* *Where containers are mixed*, the process of the temporary standby rests for the active, with the
  Spark that it has warmed up. It keeps the tasks whose files no other container of that host has.
* *The next driver* begins the action again; what the destination has on its disk is used.
"""

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
    """Return whether the state is read first: the request is warm, and its active runs."""
    is_active = container.replica_of is None
    return placement.request.is_warm and is_active and container.phase is ContainerPhase.RUNNING


def standby_on(draft: Draft, container: ContainerState, host: Host) -> ContainerState | None:
    """Return the job's own standby of this active that holds or requests the host."""
    found = (s for s in separation.others(draft, container) if not s.is_temporary)
    return next((s for s in found if separation.held_host(draft, s) == host), None)


def host_of_a_standby(draft: Draft, container: ContainerState) -> Host | None:
    """Return a host with a standby of the active, for when no other host is left."""
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
    """Return what is wrong with a warm move's destination for good; None: nothing."""
    if draft.host_of(container) == host:
        return f"processor {container.processor_id} runs on {host} already"
    if standby_on(draft, container, host) is not None:
        return None
    return destinations.group_fault(draft, container, host)


def begin_behind(draft: Draft, placement: Placement, container: ContainerState, host: Host) -> bool:
    """Begin with the job's own standby on this host, and return True; False: it has none there."""
    standby = standby_on(draft, container, host)
    if standby is None:
        return False
    begun = answers.begin(draft, placement, container, PlacementStep.WARMING, host)
    begun = replace(begun, standby=standby.processor_id, resource_id=standby.resource_id)
    answers.report_progress(
        draft, begun, f"{named(standby.incarnation)} on {host} has the state, and is to give way"
    )
    return True


def warm_up(
    draft: Draft, placement: Placement, container: ContainerState, launcher: ResourceState
) -> None:
    """Start a temporary standby on the launcher, which was reserved just now.

    If the container does not run, its group has come to this host, or an earlier standby has not
    stopped, start none: the action goes on as any move.
    """
    if (
        not is_warm(placement, container)
        or _is_in_use(draft, container)
        or draft.host_of(container) == launcher.host
        or destinations.group_fault(draft, container, launcher.host) is not None
    ):
        return
    standby = _enter(draft, container, launcher)
    warming = replace(placement, step=PlacementStep.WARMING, standby=standby)
    text = f"a standby on {launcher.host} reads the state; {named(container.incarnation)} runs on"
    answers.report_progress(draft, warming, text)


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
    own = temporary_id(active.processor_id)
    return own in draft.containers or any(i.processor_id == own for i in draft.retired)


def warm(
    draft: Draft, placement: Placement, container: ContainerState, launcher: ResourceState
) -> None:
    """Let the standby give way once it is near enough; end the action if it never will be."""
    standby = draft.containers.get(placement.standby)
    if standby is not None and _is_needed_more(draft, container, standby):
        answers.dismiss(draft, placement)
        moving = replace(placement, step=PlacementStep.MOVING)
        draft.keep(answers.await_no_spark(draft, moving))
    elif standby is None or standby.resource_id != launcher.resource_id:
        answers.fail(draft, placement, f"the standby on {placement.host} has ended")
    elif container.phase in _READY and is_near(draft, standby):
        if placement.spark is SparkWait.OVER or has_what_it_needs(draft.settings, standby):
            _order_to_give_way(draft, placement, standby, launcher)
        elif placement.spark is SparkWait.NOT_YET:
            _wait_for_spark(draft, placement, standby)


def _is_needed_more(draft: Draft, container: ContainerState, standby: ContainerState) -> bool:
    has_begun = standby.phase is not ContainerPhase.ASSIGNED
    if has_begun or container.phase is not ContainerPhase.QUEUED:
        return False
    return not host_search.may_go_home(draft, container)


def is_near(draft: Draft, standby: ContainerState) -> bool:
    """Return whether the standby runs, and its lag is small enough for the active to read."""
    is_running = standby.phase is ContainerPhase.RUNNING
    return is_running and standby.lag is not None and standby.lag <= draft.settings.warm_lag


def has_what_it_needs(settings: AllocatorSettings, standby: ContainerState) -> bool:
    """Return whether an active that takes its place finds a Spark there, or needs none."""
    is_wanted = settings.temporary_have_spark if standby.is_temporary else settings.own_have_spark
    return standby.has_spark or not is_wanted


def _wait_for_spark(draft: Draft, placement: Placement, standby: ContainerState) -> None:
    timer = Timer(TimerKind.SPARE_SPARK, placement.request.processor_id)
    draft.set_timer(timer, draft.settings.spark_timeout_ms)
    text = f"{named(standby.incarnation)} is {standby.lag} records behind; a Spark starts beside it"
    answers.report_progress(draft, replace(placement, spark=SparkWait.AWAITED), text)


def wait_for_no_spark(draft: Draft, processor_id: ProcessorId) -> None:
    """End the wait for a Spark that was not ready in time."""
    commands = draft.commands_for(processor_id)
    for placement in [p for p in commands if p.spark is SparkWait.AWAITED]:
        draft.keep(replace(placement, spark=SparkWait.OVER))


def _order_to_give_way(
    draft: Draft, placement: Placement, standby: ContainerState, launcher: ResourceState
) -> None:
    draft.resources[launcher.resource_id] = replace(
        launcher, reserved_for=placement.request.processor_id
    )
    if not standby.is_temporary:
        draft.record(DeleteLocality(standby.processor_id))
        standby = draft.change(replace(standby, home=None))
    answers.stop(draft, standby, keeps_process=draft.settings.mixes_roles)
    is_late = placement.spark is SparkWait.OVER and not has_what_it_needs(draft.settings, standby)
    giving = replace(placement, step=PlacementStep.GIVING_WAY)
    giving = answers.await_no_spark(draft, giving)
    text = f"{named(standby.incarnation)} is {standby.lag} records behind, and stops"
    if is_late:
        text = f"{text}; no Spark was ready beside it in {draft.settings.spark_timeout_ms} ms"
    answers.report_progress(draft, giving, text)


def give_way(draft: Draft, placement: Placement, launcher: ResourceState) -> None:
    """Go on as any move, once there is evidence that the standby has stopped."""
    if draft.holder(launcher.resource_id) is None:
        draft.keep(replace(placement, step=PlacementStep.MOVING))


def taken_by_failover(draft: Draft, placement: Placement, launcher: ResourceState) -> None:
    """Let the start end the action: the active died, and already has the standby's place."""
    draft.resources[launcher.resource_id] = replace(launcher, reserved_for=None)
    launched = replace(placement, step=PlacementStep.MOVING, is_launched=True)
    draft.keep(answers.await_no_spark(draft, launched))
