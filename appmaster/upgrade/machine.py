"""What an upgrade does next: the package of one processor after the other changes, there and back.

PURE. Theory. The record (``UpgradeState``) says with which package each processor is wanted; every
permit follows it. It is written before anything follows from it, and holds all that the next driver
needs: ``decide`` looks only at the record, the order, and at what is seen. What is seen to differ
from the record is put right by a restart, one container at a time, and only while all others run.

Forward, the processors get the package in the order of ``seen.in_order``:

1. while all run and nothing else goes on, the next one becomes the current one, and is given the
   package (record);
2. its launcher prepares the package while the container works on; then it is restarted. One that
   does not run takes the package with its next permit;
3. it is watched, without a failure, until its lag is no larger than before, or than a warm lag.

A failure of an incarnation that ran the package, a lag that does not shrink, a launcher that does
not prepare the package, or an order turn the upgrade back (``failed`` is what a failure changes;
its record is written with the failure's own).
Back, in reverse order: a processor is not wanted with the package any more (record), and is
restarted if it runs with it. Those that do not run with it need no restart, and are taken out at
once: they get the package from before with their next permit.

Decisions.

* *Retries.* A failure of the new package is charged like any other, once for each container: its
  next permit has the package from before. A container that has no retry left is not begun with.
* *A launcher that does not answer* has an unknown package: nothing is begun until it is heard. If
  its container fails first, it counts as having run what it was given.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from homeport.appmaster.upgrade.seen import ContainerSeen, Seen, in_order
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.upgrade import (
    UpgradeDirection,
    UpgradeOrder,
    UpgradePhase,
    UpgradeState,
)

PATIENCE = 10
"""So many times as long as it is watched a container may take until its lag is small again."""
PREPARATION_MS = 600_000
"""A launcher that has not prepared the package after this time never will: it cannot be unpacked
there, or the process that waits with it does not get ready."""
TAKEN_BACK_UNBEGUN = "taken back before it began"


@dataclass(frozen=True, slots=True)
class Next:
    """One step. ``state``: what the record must say before anything else; None: what it says.

    ``restart``: the processor whose incarnation is to be restarted; None: none. ``waits``: for what
    it waits, for people; empty: it does not.
    """

    state: UpgradeState | None = None
    restart: ProcessorId | None = None
    waits: str = ""


def is_due(state: UpgradeState | None, order: UpgradeOrder | None) -> bool:
    """Whether there may be a next step: an upgrade is under way, or an order is to be taken."""
    is_under_way = state is not None and not state.phase.is_final
    return is_under_way or (order is not None and is_new(state, order))


def is_new(state: UpgradeState | None, order: UpgradeOrder) -> bool:
    """Whether the order is not in the record yet."""
    if state is None or state.id != order.id:
        return True
    is_back = order.direction is UpgradeDirection.BACK
    return is_back and state.phase in {UpgradePhase.FORWARD, UpgradePhase.DONE}


def decide(state: UpgradeState | None, order: UpgradeOrder | None, seen: Seen) -> Next:
    """The next step of what is recorded and ordered.

    Args:
        state: what the record says; None: there is none.
        order: the last one for this run of the job.
        seen: the job now.
    """
    taken = None if order is None else _taken(state, order, seen)
    if taken is not None:
        return Next(taken)
    if state is None or state.phase.is_final:
        return Next()
    return _forward(state, seen) if state.phase is UpgradePhase.FORWARD else _back(state, seen)


def _taken(state: UpgradeState | None, order: UpgradeOrder, seen: Seen) -> UpgradeState | None:
    """What the order makes of the record; None: nothing, or not yet."""
    is_back = order.direction is UpgradeDirection.BACK
    if state is None or state.id != order.id:
        is_free = state is None or state.phase.is_final
        return _begun(state, order, is_back=is_back) if is_free else None
    reason = f"taken back by {order.by}" if order.by else "taken back"
    if is_back and state.phase is UpgradePhase.FORWARD:
        return _turned(state, reason)
    if is_back and state.phase is UpgradePhase.DONE:
        given = tuple(c.processor_id for c in in_order(seen.containers))
        return _turned(replace(state, given=given), reason)
    return None


def _begun(state: UpgradeState | None, order: UpgradeOrder, *, is_back: bool) -> UpgradeState:
    before = state.left if state is not None else None
    begun = UpgradeState(order.id, order.application, order.package, before, order.watch_ms)
    if is_back:
        return replace(begun, phase=UpgradePhase.GONE_BACK, reason=TAKEN_BACK_UNBEGUN)
    return begun


def _turned(state: UpgradeState, reason: str) -> UpgradeState:
    back = UpgradePhase.BACK
    return replace(state, phase=back, current=None, lag_before=None, reason=reason)


# --- forward


def _forward(state: UpgradeState, seen: Seen) -> Next:
    if state.current is None:
        return _next(state, seen)
    current = seen.find(state.current)
    if current is None:
        return Next(_without_current(state))
    if current.is_running and current.runs(state.package):
        return _watched(state, current, seen)
    is_unprepared = current.is_running and current.prepared != state.package
    if is_unprepared and seen.step_ms >= PREPARATION_MS:
        return Next(_turned(state, _unprepared(current)))
    return _restarted(current, state.package, seen)


def _unprepared(container: ContainerSeen) -> str:
    return (
        f"the launcher of processor {container.processor_id} has not prepared the package in "
        f"{PREPARATION_MS} ms: its log, and those of its spares, say why"
    )


def _without_current(state: UpgradeState) -> UpgradeState:
    return replace(state, current=None, lag_before=None)


def _next(state: UpgradeState, seen: Seen) -> Next:
    if seen.obstacle:
        return Next(waits=seen.obstacle)
    due = next((c for c in in_order(seen.containers) if c.processor_id not in state.given), None)
    if due is None:
        return Next(replace(state, phase=UpgradePhase.DONE))
    if 0 <= seen.retry_count <= due.failures:
        return Next(
            waits=f"processor {due.processor_id} has no retry left "
            f"({due.failures} failures, cluster-manager.container.retry.count is "
            f"{seen.retry_count}): its next failure would end it"
        )
    given = (*state.given, due.processor_id)
    return Next(replace(state, given=given, current=due.processor_id, lag_before=due.lag))


def _restarted(container: ContainerSeen, wanted: str | None, seen: Seen) -> Next:
    """The container, which runs another package, is restarted once that is of use and does no harm.

    ``wanted``: the package that it is to run.
    """
    name = container.processor_id
    if not container.is_running:
        return Next(waits=f"processor {name} does not run; its next start has the package")
    if seen.obstacle:
        return Next(waits=seen.obstacle)
    if wanted is not None and container.prepared != wanted:
        return Next(waits=f"the launcher of processor {name} prepares the package")
    if container.refusal:
        return Next(waits=f"the restart of processor {name} was refused: {container.refusal}")
    return Next(restart=name, waits=f"processor {name} restarts")


def _watched(state: UpgradeState, current: ContainerSeen, seen: Seen) -> Next:
    name = current.processor_id
    if current.watched_ms < state.watch_ms:
        return Next(waits=f"processor {name} is watched for {state.watch_ms} ms")
    limit = max(state.lag_before or 0, seen.warm_lag)
    if current.lag is None:
        is_well = state.lag_before is None
        lag = "a lag that is not known"
    else:
        is_well = current.lag <= limit
        lag = f"a lag of {current.lag} records"
    if is_well:
        return Next(_without_current(state))
    if current.watched_ms < PATIENCE * state.watch_ms:
        return Next(waits=f"processor {name} has {lag}; {limit} are waited for")
    reason = f"processor {name} has {lag} after {PATIENCE * state.watch_ms} ms, more than {limit}"
    return Next(_turned(state, reason))


# --- back


def _back(state: UpgradeState, seen: Seen) -> Next:
    kept = tuple(p for p in state.given if _runs_it(state, seen, p))
    if kept != state.given:
        dropped = next(p for p in reversed(state.given) if p not in kept)
        return Next(replace(state, given=kept, current=dropped))
    stray = next(_strays(state, seen), None)
    if stray is not None:
        return _restarted(stray, state.previous, seen)
    if seen.obstacle:
        return Next(waits=seen.obstacle)
    if state.given:
        return Next(replace(state, given=state.given[:-1], current=state.given[-1]))
    return Next(replace(_without_current(state), phase=UpgradePhase.GONE_BACK))


def _runs_it(state: UpgradeState, seen: Seen, processor_id: ProcessorId) -> bool:
    container = seen.find(processor_id)
    return container is not None and container.runs(state.package)


def _strays(state: UpgradeState, seen: Seen) -> Iterator[ContainerSeen]:
    """Those that run another package than they are wanted with."""
    for container in in_order(seen.containers):
        wanted = state.wanted(container.processor_id)
        if container.is_known and container.package != wanted:
            yield container


# --- failures


def failed(
    state: UpgradeState | None,
    processor_id: ProcessorId,
    ran: tuple[str | None] | None,
    story: str,
    last_line: str = "",
) -> UpgradeState | None:
    """What the record must say once an incarnation has failed; None: what it says.

    Args:
        state: what the record says.
        processor_id: of the incarnation.
        ran: the package that it ran with; None: not known, as its launcher was not heard.
        story: how it failed, for people.
        last_line: of its log; empty: none is known.
    """
    if state is None or state.phase.is_final:
        return None
    is_given = processor_id in state.given
    ran_it = is_given if ran is None else ran == (state.package,)
    if not ran_it:
        return None
    given = tuple(p for p in state.given if p != processor_id)
    if state.phase is UpgradePhase.FORWARD:
        turned = _turned(state, f"processor {processor_id} failed with the new package: {story}")
        return replace(turned, given=given, current=processor_id, last_line=last_line)
    return replace(state, given=given, current=processor_id) if is_given else None
