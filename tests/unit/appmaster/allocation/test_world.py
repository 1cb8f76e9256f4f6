"""The allocator in a world it does not see: YARN, launchers, children, lost and late messages.

The world is an immutable value, so that it can be searched exhaustively (small) and at random
(large). Safety is judged there: no processor ever has two live children. After the faults, calm:
everything must heal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from homeport.appmaster.allocation.container_process_manager import step
from homeport.appmaster.allocation.events import (
    ContainerStarted,
    ContainerStopped,
    Event,
    LauncherCheckedIn,
    LauncherSilent,
    ResourceEnded,
    ShutdownRequested,
    TimerFired,
    describe,
)
from homeport.appmaster.allocation.instructions import (
    CancelRequest,
    EndJob,
    JobResult,
    LauncherOrder,
    PermitContainer,
    ReleaseResource,
    RequestResource,
    order_for,
)
from homeport.appmaster.allocation.invariants import check_step
from homeport.appmaster.allocation.observation import (
    SkeinContainer,
    SkeinContainerState,
    Snapshot,
    events_between,
)
from homeport.appmaster.allocation.state import (
    AllocatorState,
    ContainerPhase,
    JobPhase,
    initial_state,
)
from homeport.job_coordinator.http.messages import StopCause
from homeport.job_coordinator.model.ids import Host, RequestId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from tests.unit.appmaster.allocation.conftest import SETTINGS, model

DONE = {ContainerPhase.RUNNING, ContainerPhase.FINISHED}


@dataclass(frozen=True)
class Launcher:
    """A launcher process. ``ran``: all it has run or refused; ``report``: not delivered yet."""

    resource_id: ResourceId
    host: Host
    request_id: RequestId
    child: Incarnation | None = None
    is_started: bool = False
    ran: tuple[tuple[Incarnation, StopCause], ...] = ()
    report: ContainerStopped | None = None
    has_checked_in: bool = False


@dataclass(frozen=True)
class World:
    """Everything there is. ``dead``: launchers that are gone, and the shell has not said so."""

    state: AllocatorState
    all_hosts: tuple[Host, ...]
    live: frozenset[Host]
    pending: tuple[tuple[RequestId, Host | None], ...] = ()
    launchers: tuple[Launcher, ...] = ()
    dead: tuple[ResourceId, ...] = ()
    seen: Snapshot | None = None
    late: LauncherCheckedIn | None = None
    result: JobResult | None = None

    def key(self) -> World:
        """The world without the counter that only grows."""
        return replace(self, state=replace(self.state, stale_events=0))

    def snapshot(self) -> Snapshot:
        """What a poll of Skein and of the RM would see."""
        asked = [
            SkeinContainer(f"r{r}", r, SkeinContainerState.REQUESTED, h) for r, h in self.pending
        ]
        runs = [
            SkeinContainer(x.resource_id, x.request_id, SkeinContainerState.RUNNING, x.host)
            for x in self.launchers
        ]
        return Snapshot(tuple(asked + runs), tuple(sorted(self.live)))

    def with_launcher(self, launcher: Launcher) -> World:
        """The launcher as it now is; no processor may have two live children."""
        others = [x for x in self.launchers if x.resource_id != launcher.resource_id]
        everyone = sorted([*others, launcher], key=lambda x: x.resource_id)
        children = [x.child.processor_id for x in everyone if x.child]
        assert len(children) == len(set(children)), f"two live children of one processor: {self}"
        return replace(self, launchers=tuple(everyone))

    def without_launcher(self, launcher: Launcher) -> World:
        """The launcher is gone, its child with it."""
        dead = (launcher.resource_id,) if launcher.has_checked_in else ()
        return replace(
            self,
            launchers=tuple(x for x in self.launchers if x.resource_id != launcher.resource_id),
            dead=tuple(sorted({*self.dead, *dead})),
        )


def fed(world: World, *events: Event) -> World:
    """The world after the shell has handed in these events and carried out what follows."""
    for event in events:
        world, _ = _fed(world, event)
    return world


def _fed(world: World, event: Event) -> tuple[World, LauncherOrder | None]:
    before = world.state
    decision = step(before, event)
    check_step(before, decision.state, describe(event))
    permits = [i for i in decision.instructions if isinstance(i, PermitContainer)]
    raised = {(r.processor_id, r.epoch, r.fence) for r in decision.records}
    for p in permits:
        is_repeated = before.container(p.incarnation.processor_id) == decision.state.container(
            p.incarnation.processor_id
        )
        known = (p.incarnation.processor_id, p.incarnation.epoch, p.fence)
        assert is_repeated or known in raised, "a permit has its record"
    world = replace(world, state=decision.state)
    for instruction in decision.instructions:
        if isinstance(instruction, RequestResource):
            asked = (instruction.request_id, instruction.host)
            world = replace(world, pending=(*world.pending, asked))
        elif isinstance(instruction, CancelRequest):
            world = _cancelled(world, instruction.request_id)
        elif isinstance(instruction, EndJob):
            assert world.result is None, "a job ends once"
            assert not any(x.child for x in world.launchers), "nothing runs when the job ends"
            world = replace(world, result=instruction.result)
    if isinstance(event, LauncherCheckedIn):
        return world, order_for(decision.instructions, event.resource_id)
    return world, None


def _cancelled(world: World, request_id: RequestId) -> World:
    world = replace(world, pending=tuple(p for p in world.pending if p[0] != request_id))
    for launcher in world.launchers:
        if launcher.request_id == request_id:
            world = world.without_launcher(launcher)
    return world


def obeyed(world: World, launcher: Launcher, order: LauncherOrder | None) -> World:
    """The launcher has done what it was told, as the contract of ``instructions`` says."""
    if order is None:
        return world
    if isinstance(order, ReleaseResource):
        return world.without_launcher(launcher)
    wanted, ran = order.incarnation, dict(launcher.ran)
    if isinstance(order, PermitContainer) and wanted not in ran:
        assert launcher.child is None, "a permit is not for a launcher with a child"
        assert all(wanted not in dict(x.ran) for x in world.launchers), "one child per incarnation"
        return world.with_launcher(replace(launcher, child=wanted, is_started=False))
    if launcher.child == wanted:
        return _child_stopped(world, launcher, StopCause.ORDERED)
    cause = ran.get(wanted, StopCause.ORDERED)
    refused = launcher.ran if wanted in ran else (*launcher.ran, (wanted, cause))
    report = ContainerStopped(wanted, cause, 0)
    return world.with_launcher(replace(launcher, ran=refused, report=report))


def _child_stopped(world: World, launcher: Launcher, cause: StopCause) -> World:
    assert launcher.child is not None
    return world.with_launcher(
        replace(
            launcher,
            child=None,
            is_started=False,
            ran=(*launcher.ran, (launcher.child, cause)),
            report=ContainerStopped(launcher.child, cause, 1),
        )
    )


def poll_of(launcher: Launcher) -> LauncherCheckedIn:
    """What it would say now."""
    return LauncherCheckedIn(
        launcher.resource_id, launcher.host, launcher.child, launcher.request_id
    )


def polled(world: World, launcher: Launcher, *, is_answer_lost: bool = False) -> World:
    """A report if there is one, then the check-in and what comes of its answer."""
    if launcher.report is not None:
        world = fed(world, launcher.report)
        launcher = replace(launcher, report=None)
    launcher = replace(launcher, has_checked_in=True)
    world, order = _fed(world.with_launcher(launcher), poll_of(launcher))
    if is_answer_lost or launcher not in world.launchers:
        return world
    return obeyed(world, launcher, order)


Moves = Iterator[tuple[str, World]]


def progress(world: World) -> Moves:
    """What happens by itself, without any fault."""
    if world.result is not None:
        return
    if world.snapshot() != world.seen:
        now = world.snapshot()
        yield "observe", fed(replace(world, seen=now), *events_between(world.seen, now))
    for resource_id in world.dead:
        left = tuple(r for r in world.dead if r != resource_id)
        yield f"{resource_id} silent", fed(replace(world, dead=left), LauncherSilent(resource_id))
    for request in world.pending:
        request_id, host = request
        for granted in sorted(world.live if host is None else world.live & {host}):
            launcher = Launcher(ResourceId(f"r{request_id}"), granted, request_id)
            rest = tuple(p for p in world.pending if p != request)
            yield f"grant {request_id}", replace(world, pending=rest).with_launcher(launcher)
    for launcher in world.launchers:
        if launcher.child and not launcher.is_started:
            ready = world.with_launcher(replace(launcher, is_started=True))
            yield f"{launcher.child} starts", fed(ready, ContainerStarted(launcher.child))
        yield f"{launcher.resource_id} polls", polled(world, launcher)
    if world.late is not None:
        yield "late check-in", _late(replace(world, late=None), world.late)


def _late(world: World, check_in: LauncherCheckedIn) -> World:
    """The shell watches a launcher from each of its check-ins: it tells of its end once more."""
    alive = [x for x in world.launchers if x.resource_id == check_in.resource_id]
    for launcher in alive:
        world = world.with_launcher(replace(launcher, has_checked_in=True))
    if not alive:
        world = replace(world, dead=tuple(sorted({*world.dead, check_in.resource_id})))
    return fed(world, check_in)


def _isolated(world: World, launcher: Launcher) -> World:
    """A launcher without answers has killed its child, and is thought gone; it may come back."""
    if launcher.child is not None:
        world = _child_stopped(world, launcher, StopCause.LEASE_LOST)
    return fed(world, LauncherSilent(launcher.resource_id))


def timers(world: World) -> Moves:
    """Timers that run out: by themselves when nothing else happens, else too early."""
    if world.result is None:
        for timer in sorted(world.state.timers, key=str):
            yield f"{timer}", fed(world, TimerFired(timer))


def faults(world: World) -> Moves:
    """What may go wrong."""
    if world.result is not None:
        return
    for launcher in world.launchers:
        yield f"{launcher.resource_id} dies", world.without_launcher(launcher)
        yield "answer lost", polled(world, launcher, is_answer_lost=True)
        yield "check-in delayed", replace(world, late=poll_of(launcher))
        yield "Skein errs", fed(world, ResourceEnded(request_id=launcher.request_id))
        if launcher.has_checked_in:
            yield f"{launcher.resource_id} isolated", _isolated(world, launcher)
        if launcher.report is not None:
            yield "report twice", fed(world, launcher.report)
        if launcher.child is not None:
            for cause in (StopCause.FAILED, StopCause.SIGNALLED, StopCause.FINISHED):
                yield f"{launcher.child} {cause.value}", _child_stopped(world, launcher, cause)
    for host in world.all_hosts:
        if host in world.live:
            lost = replace(world, live=world.live - {host})
            for launcher in world.launchers:
                lost = lost.without_launcher(launcher) if launcher.host == host else lost
            yield f"{host} lost", lost
        else:
            yield f"{host} back", replace(world, live=world.live | {host})
    yield from timers(world)
    yield "observe anew", replace(world, seen=None)


def calmed(world: World, known: set[World] | None = None) -> World:
    """The world after calm: hosts are back, and things happen by themselves until all is well.

    The bound: each container needs a handful of moves per round of asking, and a round has at most
    as many requests as there are hosts and ``any``.
    """
    world = replace(world, live=frozenset(world.all_hosts))
    path: list[World] = []
    for _ in range(100 + 40 * len(world.state.containers)):
        if is_well(world) or (known is not None and world.key() in known):
            break
        path.append(world.key())
        moved = (w for _, w in progress(world) if w.key() != world.key())
        world = next(moved, None) or next((w for _, w in timers(world)), world)
    else:
        raise AssertionError(f"calm did not heal {world}")
    if known is not None:
        known.update(path)
    return world


def is_well(world: World) -> bool:
    """All that shall run runs, really, and nothing is left over; or the job has ended."""
    if world.result is not None:
        return True
    if any(True for _ in _unsettled(world)):
        return False
    children = {x.child for x in world.launchers if x.is_started}
    return all(
        c.phase is ContainerPhase.FINISHED
        or (c.phase is ContainerPhase.RUNNING and c.incarnation in children)
        for c in world.state.containers
    )


def _unsettled(world: World) -> Iterator[str]:
    if world.dead or world.pending or world.late or world.snapshot() != world.seen:
        yield "news that nobody told"
    for launcher in world.launchers:
        if launcher.report is not None or launcher.child is None:
            yield f"{launcher.resource_id} has no use"


def deployed(
    homes: Mapping[str, str | None], hosts: tuple[str, ...], **changes: bool | int
) -> World:
    """A world in which this job was just submitted."""
    everywhere = tuple(Host(h) for h in hosts)
    state = initial_state(replace(SETTINGS, **changes))  # type: ignore[arg-type] # by field name
    return fed(World(state, everywhere, frozenset(everywhere)), model(homes))


def search(start: World, fault_count: int, *, may_shut_down: bool = False) -> int:
    """How many worlds are within ``fault_count`` faults of ``start``; calm heals each of them."""
    healed: set[World] = set()
    seen: set[World] = set()
    layer = {start.key()}
    for faults_left in reversed(range(fault_count + 1)):
        todo, following = list(layer), set[World]()
        reached: set[World] = set(layer)
        while todo:
            world = todo.pop()
            calmed(world, healed)
            for _, after in progress(world):
                key = after.key()
                if key not in reached:
                    reached.add(key)
                    todo.append(key)
            if faults_left:
                following |= {after.key() for _, after in faults(world)}
                if may_shut_down and world.result is None:
                    following.add(fed(world, ShutdownRequested()).key())
        seen |= reached
        layer = following - seen
    return len(seen)


def test_calm_alone_brings_every_processor_home() -> None:
    """No fault: each runs on the host of its state, and nothing is left over."""
    world = calmed(deployed({"0": "b", "1": "a", "2": "b", "3": None}, ("a", "b", "c")))
    homes = [c.home for c in world.state.containers]
    assert homes == ["b", "a", "b", "c"]
    assert len(world.launchers) == 4


def test_every_world_of_one_processor_within_two_faults_is_safe_and_heals() -> None:
    """One processor, two hosts: all orders of events, any two faults, a shutdown at any time."""
    assert search(deployed({"0": "a"}, ("a", "b")), 2, may_shut_down=True) > 1000


def test_every_world_of_two_processors_within_one_fault_is_safe_and_heals() -> None:
    """Two processors with the same home, two hosts."""
    assert search(deployed({"0": "a", "1": "a"}, ("a", "b")), 1, may_shut_down=True) > 1000


def test_every_world_with_rests_within_two_faults_is_safe_and_heals() -> None:
    """Failed launches rest, and so does the last retry, after which the job may fail."""
    start = deployed(
        {"0": "a"}, ("a", "b"), retry_count=1, launch_retry_ms=1000, last_retry_delay_ms=5000
    )
    assert search(start, 2, may_shut_down=True) > 1000


@pytest.mark.long
@pytest.mark.parametrize(
    ("homes", "fault_count"),
    [({"0": "a"}, 3), ({"0": "a", "1": "a"}, 2), ({"0": "a", "1": None}, 2)],
)
def test_every_world_within_more_faults_is_safe_and_heals(
    homes: dict[str, str | None], fault_count: int
) -> None:
    """The same, further out: some hundred thousand worlds each."""
    assert search(deployed(homes, ("a", "b")), fault_count, may_shut_down=True) > 100_000


class LargeWorld(RuleBasedStateMachine):
    """Random clusters, random schedules, random faults; then calm, and all must run."""

    world: World

    @initialize(
        homes=st.lists(st.sampled_from(["a", "b", "c", "d", "gone", None]), min_size=1, max_size=6),
        hosts=st.sampled_from([("a",), ("a", "b"), ("a", "b", "c", "d")]),
        affinity=st.booleans(),
        retry_count=st.sampled_from([-1, 1000]),
        launch_retry_ms=st.sampled_from([0, 1000]),
    )
    def deploy(
        self,
        homes: list[str | None],
        hosts: tuple[str, ...],
        retry_count: int,
        launch_retry_ms: int,
        *,
        affinity: bool,
    ) -> None:
        """A job is submitted."""
        named = {str(i): home for i, home in enumerate(homes)}
        self.world = deployed(
            named,
            hosts,
            retry_count=retry_count,
            launch_retry_ms=launch_retry_ms,
            host_affinity_enabled=affinity,
        )

    def _move(self, moves: Moves, choice: int) -> None:
        worlds = [world for _, world in moves]
        if worlds:
            self.world = worlds[choice % len(worlds)]

    @rule(choices=st.lists(st.integers(0, 1000), min_size=1, max_size=12))
    def go_on(self, choices: list[int]) -> None:
        """Some things happen by themselves, in any order."""
        for choice in choices:
            self._move(progress(self.world), choice)

    @rule(choice=st.integers(0, 1000))
    def suffer(self, choice: int) -> None:
        """Something goes wrong."""
        self._move(faults(self.world), choice)

    @precondition(lambda self: self.world.state.phase is JobPhase.ACTIVE)
    @rule(very_rarely=st.integers(0, 20))
    def shut_down(self, very_rarely: int) -> None:
        """Somebody ends the job."""
        if very_rarely == 20:
            self.world = fed(self.world, ShutdownRequested())

    def teardown(self) -> None:
        """Calm: all run or have finished, on launchers that are all in use; or the job ended."""
        if hasattr(self, "world"):
            self.world = calmed(self.world)
            if self.world.result is None:
                assert {c.phase for c in self.world.state.containers} <= DONE


TestLargeWorld = LargeWorld.TestCase
TestLargeWorld.settings = hypothesis_settings(
    max_examples=60, stateful_step_count=30, deadline=None, derandomize=True, database=None
)
