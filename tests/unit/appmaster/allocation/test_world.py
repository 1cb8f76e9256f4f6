"""The allocator in a world it does not see, searched exhaustively (small) and at random (large)."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from homeport.appmaster.allocation.job_state.state import ContainerPhase, JobPhase
from homeport.appmaster.allocation.protocol.events import ShutdownRequested
from tests.unit.appmaster.allocation.changing_world import (
    changed,
    changes,
    deaths_of_the_driver,
    faults_and_deaths,
    restarted,
)
from tests.unit.appmaster.allocation.cluster_world import (
    Assignment,
    Moves,
    World,
    calmed,
    deployed,
    faults,
    fed,
    poll_of,
    progress,
)

DRAWN = 2_000
DONE = {ContainerPhase.RUNNING, ContainerPhase.FINISHED}


def search(
    start: World,
    fault_count: int,
    *,
    may_shut_down: bool = False,
    suffered: Callable[[World], Moves] = faults,
    outermost: int | None = None,
) -> int:
    """How many worlds are within ``fault_count`` faults of ``start``; calm heals each of them.

    ``outermost``: of the worlds that the last fault leads to, so many drawn at random; None: all.
    """
    healed: set[World] = set()
    seen: set[World] = set()
    layer = {start.key()}
    for faults_left in reversed(range(fault_count + 1)):
        todo, following = list(layer), set[World]()
        reached: set[World] = set(layer)
        while todo:
            world = todo.pop()
            calmed(world, healed)
            for _, after in (*progress(world), *changes(world)):
                key = after.key()
                if key not in reached:
                    reached.add(key)
                    todo.append(key)
            if faults_left:
                following |= {after.key() for _, after in suffered(world)}
                if may_shut_down and world.result is None and not world.adopting:
                    following.add(fed(world, ShutdownRequested()).key())
        seen |= reached
        layer = following - seen
        if faults_left == 1 and outermost is not None:
            layer = set(random.sample(list(layer), min(outermost, len(layer))))
    return len(seen)


def test_calm_alone_brings_every_processor_home() -> None:
    """No fault: each runs on the host of its state, and nothing is left over."""
    world = calmed(deployed({"0": "b", "1": "a", "2": "b", "3": None}, ("a", "b", "c")))
    homes = [c.home for c in world.state.containers]
    assert homes == ["b", "a", "b", "c"]
    assert len(world.launchers) == 4


def test_a_late_check_in_after_the_drivers_death_is_given_nothing_that_runs_elsewhere() -> None:
    """Until 0@1 is accounted for, a launcher without a child is told to come later."""
    world = deployed({"0": "a", "1": "a"}, ("a",))
    for move in ("observe", "grant 1", "r1 polls", "grant 2"):
        world = dict(progress(world))[move]
    world = restarted(world)
    (late,) = (poll_of(x) for x in world.launchers if x.child is None)
    world = dict(progress(replace(world, late=late)))["late check-in"]
    assert world.late is None
    world = dict(progress(world))["r1 polls"]
    assert [c.epoch for c in world.state.containers] == [1, 0]
    calmed(world)


@pytest.mark.search
def test_every_world_of_one_processor_within_two_faults_is_safe_and_heals() -> None:
    """One processor, two hosts: all orders of events, any two faults, a shutdown at any time."""
    assert search(deployed({"0": "a"}, ("a", "b")), 2, may_shut_down=True) > 1000


@pytest.mark.search
def test_every_world_of_two_processors_within_one_fault_is_safe_and_heals() -> None:
    """Two processors with the same home, two hosts."""
    assert search(deployed({"0": "a", "1": "a"}, ("a", "b")), 1, may_shut_down=True) > 1000


@pytest.mark.search
def test_every_world_with_rests_within_two_faults_is_safe_and_heals() -> None:
    """Failed launches rest, and so does the last retry, after which the job may fail."""
    start = deployed(
        {"0": "a"}, ("a", "b"), retry_count=1, launch_retry_ms=1000, last_retry_delay_ms=5000
    )
    assert search(start, 2, may_shut_down=True) > 1000


SPREAD = (("0", "0"), ("1", "1"))
TOGETHER = (("0", "0"), ("1", "0"))
SWAPPED = (("0", "1"), ("1", "0"))


@pytest.mark.search
@pytest.mark.parametrize(
    "plan", [(TOGETHER, SPREAD), (SWAPPED, TOGETHER), (TOGETHER, SWAPPED)], ids=str
)
def test_every_world_with_two_changes_heals(plan: tuple[Assignment, ...]) -> None:
    """No fault: each change comes at every point of the one before, and all of the last one run."""
    assert search(deployed({"0": "a", "1": "b"}, ("a", "b"), plan), 0) > 1000


@pytest.mark.search
def test_every_world_in_which_a_task_moves_within_one_fault_is_safe_and_heals() -> None:
    """From 0, which is retired, to 1, which is new; drivers die too, at every point."""
    start = deployed({"0": "a"}, ("a", "b"), ((("0", "1"),),))
    assert search(start, 1, may_shut_down=True, suffered=faults_and_deaths) > 10_000


@pytest.mark.long
@pytest.mark.parametrize("planned", [TOGETHER, SWAPPED], ids=str)
def test_a_driver_may_die_at_any_point_of_a_change(planned: Assignment) -> None:
    """The next one finds what runs, stops whom the model has overtaken, and goes on."""
    start = deployed({"0": "a", "1": "b"}, ("a", "b"), (planned,))
    assert search(start, 1, suffered=deaths_of_the_driver) > 10_000


@pytest.mark.long
@pytest.mark.parametrize(
    ("homes", "fault_count"),
    [({"0": "a"}, 3), ({"0": "a", "1": "a"}, 2), ({"0": "a", "1": None}, 2)],
)
def test_every_world_within_more_faults_is_safe_and_heals(
    homes: dict[str, str | None], fault_count: int
) -> None:
    """The same, further out: all of them would take hours, so others are drawn in each run."""
    start = deployed(homes, ("a", "b"))
    assert search(start, fault_count, may_shut_down=True, outermost=DRAWN) > 10_000


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
        self._move(faults_and_deaths(self.world), choice)

    @precondition(lambda self: self.world.state.phase is JobPhase.ACTIVE)
    @precondition(lambda self: not self.world.adopting)
    @rule(processors=st.lists(st.sampled_from("0123456"), min_size=6, max_size=6))
    def change(self, processors: list[str]) -> None:
        """Each task is given to some processor, new ones among them."""
        assigned = tuple((str(task), p) for task, p in enumerate(processors))
        self.world = changed(self.world, assigned)

    @precondition(lambda self: self.world.state.phase is JobPhase.ACTIVE)
    @precondition(lambda self: not self.world.adopting)
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
TestLargeWorld.pytestmark = [pytest.mark.search]  # type: ignore[attr-defined] # for pytest
TestLargeWorld.settings = hypothesis_settings(
    max_examples=60, stateful_step_count=30, deadline=None, derandomize=True, database=None
)
