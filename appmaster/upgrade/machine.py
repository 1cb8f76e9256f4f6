"""The next step of an upgrade: it gives one processor after the other a package, or takes it back.

PURE. Theory. The record (``UpgradeState``) has the package that each processor is wanted with, and
every permit follows it. The record is written before anything follows from it, and has all that the
next driver needs: ``decide`` reads only the record, the orders, and what is seen. A container that
differs from the record is restarted, one at a time.

Forward the processors get the package in the order of ``observed.in_order``:

1. While all containers run and nothing else goes on, the next processor becomes the current one,
   and is given the package (record).
2. Its launcher prepares the package while the container works; then the container is restarted. A
   container that does not run gets the package with its next permit.
3. It is watched until it has worked after the watch without a failure, and its lag is no larger
   than before, or than a warm lag. The next step also waits for those that were watched before, so
   that a hang is seen before all have the package.

These turn the upgrade back: a failure of an incarnation that ran the package (``failed``; written
with the record of the failure), one that does no work, a lag that does not shrink, a processor that
does not get the package, or an order. Back, in reverse order, each processor is wanted with the
package from before (record), and is restarted if it runs the new one. The others need no restart:
they get the package from before with their next permit, and are taken out of the record at once. A
container without a launcher only holds up its own group.

Decisions.

* *One upgrade at a time.* An order forward is refused while another upgrade is under way.
* *After DONE* nothing goes back by itself: a later failure is one of the job's code.
* *A package from before that a launcher cannot prepare* is waited for while its container works,
  for ``PREPARATION_MS``; then the restart follows all the same. If the launcher cannot get the
  package then, it reports that, and the container goes to another host.
* *Retries.* A failure of the new package is charged like any other, once for each container: its
  next permit has the package from before. A container without a retry left does not get the
  package.
* *A launcher that does not answer* has an unknown package: nothing begins until it checks in. If
  its container fails first, it counts as having run the package that it was given.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from homeport.appmaster.upgrade.observed import ContainerSeen, Seen, in_order, unheard
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.upgrade import (
    UpgradeOrder,
    UpgradeOrders,
    UpgradePhase,
    UpgradeState,
)

PATIENCE = 10
"""A container's lag must be small again after so many times the watch."""
PREPARATION_MS = 600_000
"""After this time a processor without the package never gets it: its launcher cannot unpack it, its
spare does not get ready, its restart was refused, or it has no host."""
QUIET_MS = 10_000
"""An active container that has done nothing for so long may hang."""
HANG_MS = 60_000
"""One that has done nothing for so long hangs, if that is ``PATIENCE`` times the watch, too."""
UNDER_WAY = "another upgrade is under way: wait for it, or take it back by homeport upgrade --undo"
TAKEN_BACK_UNBEGUN = "taken back before it began"


@dataclass(frozen=True, slots=True)
class Next:
    """One step. ``state``: the record to write before anything else; None: unchanged.

    ``restart``: the processor whose incarnation is to be restarted; None: none. ``refused``: why
    the order forward is refused; empty: it is not, or there is none. ``waits``: what the upgrade
    waits for, for people; empty: nothing.
    """

    state: UpgradeState | None = None
    restart: ProcessorId | None = None
    refused: str = ""
    waits: str = ""


def is_due(state: UpgradeState | None, orders: UpgradeOrders) -> bool:
    """Return whether a next step may come: an upgrade is under way, or an order waits."""
    is_under_way = state is not None and not state.phase.is_final
    return is_under_way or orders.is_new(state) or orders.takes_back(state)


def decide(state: UpgradeState | None, orders: UpgradeOrders, seen: Seen) -> Next:
    """Return the next step.

    ``state``: None: there is no record. ``orders``: those for this run of the job.
    """
    if state is not None and orders.back is not None and orders.takes_back(state):
        return Next(_take_back(state, orders.back, seen))
    if orders.forward is not None and orders.is_new(state):
        if state is not None and not state.phase.is_final:
            return Next(refused=UNDER_WAY)
        return Next(_begin(state, orders.forward, is_back=orders.cancels(state)))
    if state is None or state.phase.is_final:
        return Next()
    return _forward(state, seen) if state.phase is UpgradePhase.FORWARD else _back(state, seen)


def _take_back(state: UpgradeState, order: UpgradeOrder, seen: Seen) -> UpgradeState:
    reason = f"taken back by {order.by}" if order.by else "taken back"
    if state.phase is UpgradePhase.DONE:
        given = tuple(c.processor_id for c in in_order(seen.containers))
        return _turn_back(replace(state, given=given), reason)
    return _turn_back(state, reason)


def _begin(state: UpgradeState | None, order: UpgradeOrder, *, is_back: bool) -> UpgradeState:
    before = state.left if state is not None else None
    begun = UpgradeState(order.id, order.application, order.package, before, order.watch_ms)
    if is_back:
        return replace(begun, phase=UpgradePhase.GONE_BACK, reason=TAKEN_BACK_UNBEGUN)
    return begun


def _turn_back(state: UpgradeState, reason: str) -> UpgradeState:
    back = UpgradePhase.BACK
    return replace(state, phase=back, current=None, lag_before=None, reason=reason)


# --- forward


def _forward(state: UpgradeState, seen: Seen) -> Next:
    hangs = next((c for c in _quiet(state, seen) if c.quiet_ms >= _hang_ms(state)), None)
    if hangs is not None:
        return Next(_turn_back(state, f"{_quiet_text(hangs)}: a call of its code may hang"))
    if state.current is None:
        return _give_next(state, seen)
    current = seen.find(state.current)
    if current is None:
        return Next(_without_current(state))
    if current.is_running and current.runs(state.package):
        return _watch(state, current, seen)
    is_ready = current.is_running and current.prepared == state.package
    is_on_its_way = is_ready and not current.refusal
    if seen.step_ms >= PREPARATION_MS and not (is_on_its_way or current.runs(state.package)):
        return Next(_turn_back(state, _why_missing(current, state.subject)))
    return _restart(state, current, seen, seen.obstacle)


def _why_missing(container: ContainerSeen, subject: str) -> str:
    name = container.processor_id
    if not container.is_running:
        return f"processor {name} has not started with the {subject} in {PREPARATION_MS} ms"
    if container.refusal:
        return _refusal_text(container)
    why = container.unprepared or "its log, and those of its spares, say why"
    return (
        f"the launcher of processor {name} has not prepared the {subject} in {PREPARATION_MS} ms: "
        f"{why}"
    )


def _refusal_text(container: ContainerSeen) -> str:
    return f"the restart of processor {container.processor_id} was refused: {container.refusal}"


def _quiet(state: UpgradeState, seen: Seen) -> Iterator[ContainerSeen]:
    """Yield the containers that run the new package, and may hang."""
    for container in in_order(seen.containers):
        is_new = container.is_running and container.runs(state.package)
        if is_new and container.quiet_ms > QUIET_MS:
            yield container


def _hang_ms(state: UpgradeState) -> int:
    return max(PATIENCE * state.watch_ms, HANG_MS)


def _quiet_text(container: ContainerSeen) -> str:
    return (
        f"processor {container.processor_id} has committed nothing, and not found its input "
        f"empty, for {container.quiet_ms} ms"
    )


def _without_current(state: UpgradeState) -> UpgradeState:
    return replace(state, current=None, lag_before=None)


def _give_next(state: UpgradeState, seen: Seen) -> Next:
    if seen.obstacle:
        return Next(waits=seen.obstacle)
    # Not before the time of a watch: code with long batches must not hold up the upgrade.
    quiet = next((c for c in _quiet(state, seen) if c.quiet_ms > state.watch_ms), None)
    if quiet is not None:
        return Next(waits=_quiet_text(quiet))
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


def _restart(state: UpgradeState, container: ContainerSeen, seen: Seen, obstacle: str) -> Next:
    """Return the restart of a container with another package, if that does no harm.

    ``obstacle``: why it must not be stopped; empty: nothing.
    """
    name = container.processor_id
    wanted = state.package if state.phase is UpgradePhase.FORWARD else state.previous
    if not container.is_running:
        return Next(waits=f"processor {name} does not run; its next start has the {state.subject}")
    if obstacle:
        return Next(waits=obstacle)
    is_prepared = wanted is None or container.prepared == wanted
    if not is_prepared and seen.step_ms < PREPARATION_MS:
        why = f": {container.unprepared}" if container.unprepared else ""
        return Next(waits=f"the launcher of processor {name} prepares the package{why}")
    if container.refusal:
        return Next(waits=f"{_refusal_text(container)}; homeport restart {name} does it by hand")
    return Next(restart=name, waits=f"processor {name} restarts")


def _watch(state: UpgradeState, current: ContainerSeen, seen: Seen) -> Next:
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
    # Work before the end of the watch proves nothing: the code may hang since then.
    if is_well and current.quiet_ms > current.watched_ms - state.watch_ms:
        return Next(waits=_quiet_text(current))
    if is_well:
        return Next(_without_current(state))
    if current.watched_ms < PATIENCE * state.watch_ms:
        return Next(waits=f"processor {name} has {lag}; {limit} are waited for")
    reason = f"processor {name} has {lag} after {PATIENCE * state.watch_ms} ms, more than {limit}"
    return Next(_turn_back(state, reason))


# --- back


def _back(state: UpgradeState, seen: Seen) -> Next:
    kept = tuple(p for p in state.given if _runs_it(state, seen, p))
    if kept != state.given:
        dropped = next(p for p in reversed(state.given) if p not in kept)
        return Next(replace(state, given=kept, current=dropped))
    # A container that never comes up must not hold up its group for ever.
    is_late = seen.step_ms >= PREPARATION_MS
    obstacles = {c: seen.hindrance if is_late else seen.group_obstacle(c) for c in seen.containers}
    strays = list(_strays(state, seen))
    free = [c for c in strays if c.is_running and not (obstacles[c] or c.refusal)]
    made = [_restart(state, c, seen, "") for c in free]
    if made:
        return next((step for step in made if step.restart is not None), made[0])
    clear = {c.processor_id for c, obstacle in obstacles.items() if not obstacle}
    due = next((p for p in reversed(state.given) if p in clear), None)
    if due is not None:
        given = tuple(p for p in state.given if p != due)
        return Next(replace(state, given=given, current=due))
    waits = seen.hindrance
    if strays and not waits:
        stray = strays[0]
        waits = _restart(state, stray, seen, obstacles[stray]).waits
    if not waits and is_late:
        # A container that is down gets the package from before with its next permit.
        waits = unheard([c for c in seen.containers if not (c.is_known or c.is_down)])
    elif not waits:
        waits = seen.obstacle
    if waits:
        return Next(waits=waits)
    return Next(replace(_without_current(state), phase=UpgradePhase.GONE_BACK))


def _runs_it(state: UpgradeState, seen: Seen, processor_id: ProcessorId) -> bool:
    container = seen.find(processor_id)
    return container is not None and container.runs(state.package)


def _strays(state: UpgradeState, seen: Seen) -> Iterator[ContainerSeen]:
    """Yield the containers that run another package than the wanted one, in reverse order."""
    for container in reversed(in_order(seen.containers)):
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
    """Return the record after the failure of an incarnation; None: unchanged.

    ``ran``: the package that it ran with; None: not known, as its launcher has not checked in.
    ``last_line``: the last line of its log; empty: not known.
    """
    if state is None or state.phase.is_final:
        return None
    is_given = processor_id in state.given
    ran_it = is_given if ran is None else ran == (state.package,)
    if not ran_it:
        return None
    given = tuple(p for p in state.given if p != processor_id)
    if state.phase is UpgradePhase.FORWARD:
        turned = _turn_back(
            state, f"processor {processor_id} failed with the new {state.subject}: {story}"
        )
        return replace(turned, given=given, current=processor_id, last_line=last_line)
    return replace(state, given=given, current=processor_id) if is_given else None
