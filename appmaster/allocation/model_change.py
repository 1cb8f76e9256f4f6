"""A JobModel is published: the first of a job, a change, or the one that a new driver finds.

PURE. A new version *overtakes* a container if it changes its tasks, inputs or changelog partitions,
or a key that only a start reads. Such a container works on until the next owners of its tasks are
ready (``cooperative_change``); then it stops, with evidence, and begins again on its launcher, in
its process unless the start of one reads a changed key. A container that the version does not have
is *retired*: it stops, and its launcher is free. No other container is touched. A successor may
request a resource and hold a launcher meanwhile, but its permit waits until all former owners of
its tasks have stopped (``container_allocator.may_be_permitted``). Source: safety I1, I2.

Decisions.

* *A stop that a model ordered* is not charged, whatever its cause is, nor the loss of its launcher.
* *FINISHED* stays, unless the model gives the processor a task or input that it did not have. The
  same holds for a finish that is reported after the order to stop. Another processor runs what it
  loses.
* *A new version forgives* all that was charged, and tries FAILED containers again: it may have
  mended them, and their tasks are not processed. One that follows from a loss alone does neither.
* *A retired processor that returns* before it has stopped is overtaken.
* *A process that rests* when a key changes that only a start reads ends with its launcher.
"""

from dataclasses import replace

from immutables import Map

from homeport.appmaster.allocation import container_allocator as allocator
from homeport.appmaster.allocation import cooperative_change, separation
from homeport.appmaster.allocation import standby_container_manager as standbys
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.state import (
    LIVE,
    TERMINAL,
    WAITING,
    ContainerPhase,
    ContainerState,
    Failover,
    JobPhase,
    Predecessor,
    ResourceState,
)
from homeport.appmaster.allocation.job_state.transitions import Trigger
from homeport.appmaster.allocation.protocol.events import (
    JobModelPublished,
    RetiredStopped,
    Timer,
    TimerKind,
)
from homeport.appmaster.allocation.protocol.instructions import WriteStop
from homeport.appmaster.allocation.protocol.reasons import ReasonKind
from homeport.appmaster.allocation.retries import charge_again
from homeport.config.errors import InvariantViolation
from homeport.job_coordinator.model.ids import Host, ProcessorId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause

_GIVEN_UP = frozenset({ContainerPhase.FAILED, ContainerPhase.BACKING_OFF})


def published(draft: Draft, event: JobModelPublished) -> None:
    """Put the version in force, unless the job has it already, or ends."""
    if draft.phase is JobPhase.ACTIVE and event.version < draft.model_version:
        raise InvariantViolation(
            f"JobModel version {event.version} published over version {draft.model_version}"
        )
    is_first = draft.phase is JobPhase.NEW
    if not is_first and (
        draft.phase is not JobPhase.ACTIVE or event.version == draft.model_version
    ):
        draft.count_stale()
        return
    draft.phase = JobPhase.ACTIVE
    draft.model_version = event.version
    draft.is_everybody_due = True
    if not is_first:
        draft.older = event.older
    if is_first:
        draft.retired = frozenset(Incarnation(p, epoch) for p, epoch in event.retired.items())
        draft.former = Map(event.former)
    if not event.is_by_itself:
        _forgive_all(draft, event.version)
    for container in draft.each():
        if container.processor_id not in event.processors:
            _retire(draft, container, keeps_process=event.is_cooperative)
    _take_up(draft, event)
    if is_first:
        charge_again(draft, event.failures)


def _forgive_all(draft: Draft, version: int) -> None:
    for container in draft.each():
        draft.cancel_timer(Timer(TimerKind.RETRY_WINDOW, container.processor_id))
        if container.failures:
            draft.because(ReasonKind.FORGIVEN, container, detail=f"JobModel version {version}")
            draft.change(replace(container, failures=0))


def _take_up(draft: Draft, event: JobModelPublished) -> None:
    regrouped: list[ProcessorId] = []
    for processor_id, last_host in event.processors.items():
        known = draft.containers.get(processor_id)
        home = last_host if draft.settings.host_affinity_enabled else None
        if known is None:
            _enter(draft, event, processor_id, home)
        else:
            if known.replica_of != event.standbys.get(processor_id):
                known = draft.change(replace(known, replica_of=event.standbys.get(processor_id)))
                regrouped.append(processor_id)
            _go_on(draft, event, known, home)
    for processor_id in regrouped:
        _keep_apart(draft, draft.containers[processor_id])


def _enter(
    draft: Draft, event: JobModelPublished, processor_id: ProcessorId, home: Host | None
) -> None:
    epoch = event.epochs.get(processor_id, 0)
    floor = event.floors.get(processor_id, epoch)
    draft.retired -= {Incarnation(processor_id, epoch)}
    entered = ContainerState(
        processor_id,
        replica_of=event.standbys.get(processor_id),
        epoch=epoch,
        floor=floor,
        # What it ran with, if a driver died in mid-change, is not known any more.
        has_gained=floor > epoch,
        home=home,
    )
    record = event.failovers.get(processor_id)
    if record is not None and entered.replica_of is None:
        under_way = Failover(record.step, record.standby, record.host, record.used)
        entered = replace(entered, failover=under_way)
    draft.containers[processor_id] = replace(entered, unfenced=_unfenced(event, entered))
    draft.because(ReasonKind.ENTERED, processor_id, home, f"version {event.version}")


def _keep_apart(draft: Draft, container: ContainerState) -> None:
    host = separation.held_host(draft, container)
    if host is None or separation.may_stay(draft, container, host):
        return
    if container.phase not in LIVE:
        standbys.step_aside(draft, container)
        return
    _stop(draft, container)
    for other in separation.others(draft, container):
        if other.phase in WAITING and separation.held_host(draft, other) == host:
            standbys.step_aside(draft, other)


def _unfenced(event: JobModelPublished, container: ContainerState) -> tuple[Predecessor, ...]:
    """Return the stream's list; known stops stay noted."""
    listed = set(event.unfenced.get(container.processor_id, ()))
    if container.epoch:
        # The last one has no successor, so it has not been fenced.
        listed.add(container.incarnation)
    stopped = {p.incarnation for p in container.unfenced if p.is_stopped}
    return tuple(Predecessor(i, i in stopped) for i in sorted(listed))


def _go_on(
    draft: Draft, event: JobModelPublished, container: ContainerState, home: Host | None
) -> None:
    floor = event.floors.get(container.processor_id, container.floor)
    is_overtaken = container.is_overtaken or floor > container.epoch
    if container.phase in LIVE and not is_overtaken:
        return
    may_keep = container.keeps_process or not container.is_overtaken
    may_rest = event.is_cooperative and may_keep
    known = draft.change(
        replace(
            container,
            floor=floor,
            keeps_process=may_rest,
            has_gained=container.has_gained or container.processor_id in event.gainers,
            is_retired=False,
            home=container.home if container.resource_id is not None else home,
            unfenced=_unfenced(event, container),
        )
    )
    if known.phase in LIVE:
        if known.phase is not ContainerPhase.RUNNING:
            _stop(draft, known)
        _give_reason(draft, ReasonKind.OVERTAKEN, known)
    elif known.phase is ContainerPhase.ASSIGNED and container.keeps_process and not may_rest:
        _leave_process(draft, known)
    elif (known.phase in _GIVEN_UP and not event.is_by_itself) or (
        known.phase in TERMINAL and known.has_gained
    ):
        draft.cancel_timer(Timer(TimerKind.RETRY_DELAY, known.processor_id))
        again = draft.change(replace(known, launch_failures=0, last_failure=None, tried=()))
        draft.move(again, Trigger.MODEL_CHANGED, ContainerPhase.QUEUED)
        _give_reason(draft, ReasonKind.TRIED_AGAIN, again)


def _give_reason(draft: Draft, kind: ReasonKind, container: ContainerState) -> None:
    draft.because(kind, container, draft.host_of(container), f"version {draft.model_version}")


def _stop(draft: Draft, container: ContainerState) -> None:
    if container.phase is not ContainerPhase.STOPPING:
        cooperative_change.let_go(draft, container)


def _leave_process(draft: Draft, container: ContainerState) -> None:
    launcher = draft.resources[ResourceId(container.resource_id or "")]
    standbys.step_aside(draft, container)
    draft.release(launcher)
    _give_reason(draft, ReasonKind.OVERTAKEN, container)


def _retire(draft: Draft, container: ContainerState, *, keeps_process: bool) -> None:
    draft.cancel_timer(Timer(TimerKind.RETRY_DELAY, container.processor_id))
    _give_reason(draft, ReasonKind.RETIRED, container)
    if container.phase in LIVE:
        gone = replace(container, is_retired=True, has_gained=False, keeps_process=keeps_process)
        _stop(draft, draft.change(gone))
    else:
        draft.end_request(container)
        _remove(draft, draft.end_failover(container), StopCause.ORDERED)


def _remove(draft: Draft, container: ContainerState, cause: StopCause) -> None:
    """Remove the container; record its stop, since no later permit will show it."""
    draft.end_preparation(container)
    del draft.containers[container.processor_id]
    if container.is_temporary:
        draft.former = draft.former.set(container.processor_id, container.epoch)
    if container.epoch:
        draft.record(WriteStop(container.incarnation, cause.value))


def adopt_retired(draft: Draft, running: Incarnation, launcher: ResourceState) -> None:
    """Stop a running processor that the model does not have."""
    draft.retired -= {running}
    found = ContainerState(
        running.processor_id, epoch=running.epoch, is_retired=True, unfenced=(Predecessor(running),)
    )
    draft.containers[running.processor_id] = found
    allocator.adopt(draft, found, launcher)


def retired_stopped(draft: Draft, event: RetiredStopped) -> None:
    """Note the stop of an incarnation that an earlier driver left, and this one never held."""
    if event.incarnation not in draft.retired:
        draft.count_stale()
    draft.retired -= {event.incarnation}
    draft.record(WriteStop(event.incarnation, event.cause))


def stopped(
    draft: Draft, container: ContainerState, how: Trigger, launcher: ResourceState | None
) -> None:
    """Place the container again after an ordered stop, or end it.

    ``how``: reported by ``launcher``, or seen by the loss of the launcher, which is None then.
    """
    is_kept = launcher is not None and launcher.ended is None
    host = launcher.host if launcher else None
    draft.because(ReasonKind.STOPPED_AS_ORDERED, container, host, how.value)
    if launcher is not None and not is_kept:
        del draft.resources[launcher.resource_id]
    active = standbys.awaiting(draft, container)
    if container.is_retired or container.is_temporary:
        _remove(draft, container, StopCause.ORDERED if is_kept else StopCause.LEASE_LOST)
    elif draft.phase is not JobPhase.ACTIVE:
        draft.move(replace(container, resource_id=None), how, ContainerPhase.STOPPED)
    elif launcher is not None and is_kept and active is None and _may_stay(draft, container):
        draft.move(container, how, ContainerPhase.ASSIGNED)
        if not draft.is_leaving(container.processor_id):
            draft.because(ReasonKind.SAME_LAUNCHER, container, launcher.host)
        allocator.log_what_it_waits_for(draft, container, launcher)
    else:
        draft.move(replace(container, resource_id=None), how, ContainerPhase.QUEUED)
    if active is not None:
        standbys.way_is_clear(draft, active, launcher if is_kept else None)


def temporary_over(
    draft: Draft, standby: ContainerState, launcher: ResourceState | None, cause: StopCause
) -> None:
    """Remove a temporary standby that ended without an order; it is not charged.

    ``launcher``: the live one that reported the end; None: it is lost, too.
    """
    host = draft.host_of(standby) if launcher is not None else None
    draft.because(ReasonKind.WARM_UP_ENDED, standby, host, cause.value, other=standby.replica_of)
    _remove(draft, standby, cause)


def _may_stay(draft: Draft, container: ContainerState) -> bool:
    launcher = draft.resources.get(container.resource_id)
    if launcher is None or launcher.reserved_for is not None:
        return False
    return separation.may_stay(draft, container, launcher.host)
