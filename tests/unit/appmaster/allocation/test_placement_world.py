"""Operators' commands in a world that the allocator does not see: any order, faults, deaths."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from homeport.appmaster.allocation.job_state.state import JobPhase
from homeport.appmaster.allocation.protocol.events import PlacementRequested
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.placement import (
    ANY_HOST,
    FORCE_RESTART_LAST_SEEN,
    LAST_SEEN,
    PlacementRequest,
)
from tests.unit.appmaster.allocation.changing_world import restarted
from tests.unit.appmaster.allocation.cluster_world import (
    Moves,
    World,
    calmed,
    deployed,
    faults,
    fed,
)
from tests.unit.appmaster.allocation.test_world import DONE, LargeWorld, search

ENOUGH = 3
"""Commands that are not ended; calm has no time for many more."""
DESTINATIONS = ("a", "b", "c", ANY_HOST, LAST_SEEN, FORCE_RESTART_LAST_SEEN)


def commanded(world: World, processor: str, to: str, number: int = 1) -> World:
    """An operator asks."""
    request = PlacementRequest(f"u{number}", "run", ProcessorId(processor), to, None, number)
    return fed(world, PlacementRequested(request))


def restarted_in_commands(world: World) -> World:
    """The driver is killed; the next one reads the answers that are not final."""
    under_way = world.state.placements
    world = restarted(world)
    for placement in under_way:
        found = PlacementRequested(placement.request, is_resumed=True, source=placement.source)
        world = fed(world, found)
    return world


def what_befalls(world: World) -> Moves:
    """Faults, the driver's death, and a command to somebody."""
    yield from faults(world)
    if world.result is not None or world.state.phase is not JobPhase.ACTIVE:
        return
    yield "driver restarts", restarted_in_commands(world)
    if not world.state.placements:
        for to in ("b", FORCE_RESTART_LAST_SEEN):
            yield f"to {to}", commanded(world, "0", to)


@pytest.mark.search
def test_a_command_and_a_fault_at_any_time_are_safe_and_heal() -> None:
    """One processor, two hosts: moved and restarted anywhere, with a fault or a death anywhere."""
    assert search(deployed({"0": "a"}, ("a", "b")), 2, suffered=what_befalls) > 1000


def test_commands_alone_are_carried_out() -> None:
    """Without faults: each where it was told to go, in the order of the commands."""
    world = calmed(deployed({"0": "a", "1": "b"}, ("a", "b", "c")))
    for number, to in enumerate(("c", "b", "c", FORCE_RESTART_LAST_SEEN)):
        world = commanded(world, "0", to, number)
    world = calmed(world)
    assert world.state.placements == ()
    assert [c.home for c in world.state.containers] == ["c", "b"]
    assert [c.epoch for c in world.state.containers] == [5, 1]


class CommandedWorld(LargeWorld):
    """The random world, with commands in it."""

    number = 0

    @rule(choice=st.integers(0, 1000))
    def suffer(self, choice: int) -> None:
        """Something goes wrong; the driver dies with what it was told to do."""
        died: Moves = iter(())
        if self.world.result is None and self.world.state.phase is JobPhase.ACTIVE:
            died = iter([("driver restarts", restarted_in_commands(self.world))])
        self._move(chain(faults(self.world), died), choice)

    @precondition(lambda self: len(self.world.state.placements) < ENOUGH)
    @rule(processor=st.sampled_from("0123456"), to=st.sampled_from(DESTINATIONS))
    def command(self, processor: str, to: str) -> None:
        """An operator asks for something, possible or not."""
        self.number += 1
        self.world = commanded(self.world, processor, to, self.number)

    def teardown(self) -> None:
        """Calm: all run, and every command was answered."""
        super().teardown()
        if hasattr(self, "world"):
            assert self.world.state.placements == ()


class CommandedPairs(CommandedWorld):
    """Pairs of an active and its standby, on hosts that are hardly enough, with commands."""

    @initialize(hosts=st.sampled_from([("a", "b"), ("a", "b", "c"), ("a", "b", "c", "d")]))
    def deploy(self, hosts: tuple[str, ...]) -> None:
        """A job with hot standby is submitted."""
        homes = {"0": "a", "0-0": "b", "1": "b", "1-0": None}
        standbys = {"0-0": "0", "1-0": "1"}
        self.world = deployed(homes, hosts, standbys=standbys, retry_count=1000)

    @precondition(lambda _: False)
    @rule()
    def change(self) -> None:
        """The model stays."""

    @precondition(lambda self: len(self.world.state.placements) < ENOUGH)
    @rule(processor=st.sampled_from(("0", "0-0", "1", "1-0")), to=st.sampled_from(DESTINATIONS))
    def command(self, processor: str, to: str) -> None:
        """An operator asks for something, possible or not."""
        self.number += 1
        self.world = commanded(self.world, processor, to, self.number)

    def teardown(self) -> None:
        """Calm: all actives run; a standby may wait for the only host that is left to it."""
        if hasattr(self, "world"):
            self.world = calmed(self.world)
            if self.world.result is None:
                actives = [c for c in self.world.state.containers if c.replica_of is None]
                assert {c.phase for c in actives} <= DONE


TestCommandedPairs = CommandedPairs.TestCase
TestCommandedPairs.settings = hypothesis_settings(
    max_examples=50, stateful_step_count=40, deadline=None, derandomize=True, database=None
)
TestCommandedPairs.pytestmark = [pytest.mark.search]  # type: ignore[attr-defined] # for pytest

TestCommandedWorld = CommandedWorld.TestCase
TestCommandedWorld.pytestmark = [pytest.mark.search]  # type: ignore[attr-defined] # for pytest
TestCommandedWorld.settings = hypothesis_settings(
    max_examples=40, stateful_step_count=40, deadline=None, derandomize=True, database=None
)
