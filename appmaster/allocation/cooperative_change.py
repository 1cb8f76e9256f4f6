"""When a container that a JobModel has overtaken lets go of its tasks.

PURE. Theory. A task must not wait for a container that has yet to be placed, nor for Python and
Spark to start there. So an overtaken container works on, under the model that it has, until each
next owner of its tasks is *at hand*: it runs, or its launcher has a process ready for its permit. A
container that only gains tasks works on until their former owners have let go. Then the container
ends its incarnation in order, which is the evidence that its successors wait for (safety P1). Its
process goes on, and its launcher gives it the next permit (safety C4).

No wait is a circle: one that only gains waits for owners that run, and for them it is at hand.

Decisions.

* *An owner whose successor finds no place* works on. Its tasks are better off with it than alone;
  status and reasons show what it waits for.
* *A process that is not ready in time* counts as ready: it may lack the memory for it.
* *The next driver* lets processes end, as it does not know which keys the change has changed.
* *One that starts* stops at once: its start would find that it is overtaken (safety I3).
"""

from collections.abc import Set as AbstractSet
from dataclasses import replace

from homeport.appmaster.allocation.job_end import order_stop
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.state import (
    LIVE,
    ContainerPhase,
    Containers,
    ContainerState,
    JobPhase,
    Preparation,
)
from homeport.appmaster.allocation.job_state.transitions import Trigger
from homeport.appmaster.allocation.protocol.events import Timer, TimerKind
from homeport.appmaster.allocation.protocol.instructions import PrepareProcess
from homeport.appmaster.allocation.protocol.reasons import ReasonKind
from homeport.job_coordinator.model.ids import ProcessorId

_AT_HAND = LIVE | {ContainerPhase.FINISHED, ContainerPhase.STOPPED}


def settle(draft: Draft) -> None:
    """Let each overtaken container go on, or let go, as its successors require.

    A step calls it before and after containers are placed: what lets go gives its place away, and
    what is placed has a launcher that may prepare a process.
    """
    if draft.phase is not JobPhase.ACTIVE:
        return
    begins = draft.before.phase is not JobPhase.ACTIVE
    changed = None if begins else draft.containers.changed
    for container in due(draft, draft.before.containers, changed):
        for successor in successors(draft, container):
            if successor.phase is ContainerPhase.ASSIGNED:
                _prepare(draft, successor)
        awaited = awaited_by(draft, container)
        if awaited is None:
            let_go(draft, container)
        elif _is_new(draft, container):
            host = draft.host_of(container)
            draft.because(ReasonKind.WORKS_ON, container, host, awaited.phase.value, other=awaited)


def due(
    draft: Draft, before: Containers, changed: AbstractSet[ProcessorId] | None
) -> list[ContainerState]:
    """Return the overtaken containers whose wait the changed rows may have ended, by id.

    A container waits for those that list it and for those that it lists, before the change or after
    it. ``changed`` is None where each row may differ from ``before``.
    """
    overtaken = draft.containers.indexed(Containers.DUE, value=True)
    if changed is None or not overtaken:
        return [draft.containers[key] for key in sorted(overtaken)]
    concerned = set(changed)
    for key in changed:
        concerned.update(draft.containers.indexed(Containers.LISTS, key))
        for row in (before.get(key), draft.containers.get(key)):
            if row is not None:
                concerned.update(p.incarnation.processor_id for p in row.unfenced)
    return [draft.containers[key] for key in sorted(concerned) if key in overtaken]


def _is_new(draft: Draft, container: ContainerState) -> bool:
    own = container.processor_id
    if any(r.kind is ReasonKind.WORKS_ON and r.processor_id == own for r in draft.reasons):
        return False
    before = draft.before.containers.get(own)
    return before is None or not before.is_overtaken or before.phase is not container.phase


def let_go(draft: Draft, container: ContainerState) -> None:
    """Order the container to stop; end its failover, if any."""
    left = draft.end_failover(container)
    stopping = draft.move(left, Trigger.MODEL_CHANGED, ContainerPhase.STOPPING)
    order_stop(draft, stopping)
    process = "its process goes on" if stopping.keeps_process else "its process ends"
    draft.because(ReasonKind.LETS_GO, stopping, draft.host_of(stopping), process)


def awaited_by(draft: Draft, container: ContainerState) -> ContainerState | None:
    """Return the container for whose sake the overtaken one works on; None: it lets go now."""
    following = successors(draft, container)
    for successor in following:
        if not _is_at_hand(successor):
            return successor
    return None if following else _former_owner(draft, container)


def successors(draft: Draft, container: ContainerState) -> list[ContainerState]:
    """Return the other containers whose next permits list its incarnation, by id."""
    own = container.incarnation
    listing = draft.containers.rows(Containers.LISTS, container.processor_id)
    return [c for c in listing if any(p.incarnation == own for p in c.unfenced)]


def _is_at_hand(container: ContainerState) -> bool:
    if container.phase is ContainerPhase.ASSIGNED:
        return container.preparation is Preparation.DONE
    return container.phase in _AT_HAND


def _former_owner(draft: Draft, container: ContainerState) -> ContainerState | None:
    for incarnation in (predecessor.incarnation for predecessor in container.unfenced):
        owner = draft.containers.get(incarnation.processor_id)
        if owner is None or owner.processor_id == container.processor_id:
            continue
        if owner.phase in LIVE and owner.incarnation == incarnation:
            return owner
    return None


def _prepare(draft: Draft, container: ContainerState) -> None:
    if container.preparation is not Preparation.NONE or container.resource_id is None:
        return
    draft.change(replace(container, preparation=Preparation.ORDERED))
    timer = Timer(TimerKind.PREPARATION, container.processor_id)
    draft.set_timer(timer, draft.settings.spark_timeout_ms)
    draft.instruct(PrepareProcess(container.resource_id, container.processor_id))
    draft.because(ReasonKind.PREPARES, container, draft.host_of(container))


def prepared(draft: Draft, container: ContainerState) -> None:
    """Note that the process at the container's launcher is ready, or is waited for no more."""
    draft.end_preparation(container)
    draft.change(replace(container, preparation=Preparation.DONE))


def time_is_over(draft: Draft, processor_id: ProcessorId) -> None:
    """Wait no more for a process that was not ready in time."""
    draft.change(replace(draft.containers[processor_id], preparation=Preparation.DONE))
