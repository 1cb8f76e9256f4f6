"""The transition table, the state's values, and the guard on every move."""

from __future__ import annotations

from itertools import product

import pytest
from immutables import Map

from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.state import (
    ASKING,
    LIVE,
    TERMINAL,
    WAITING,
    ContainerPhase,
    ContainerState,
    initial_state,
)
from homeport.appmaster.allocation.job_state.transitions import TRANSITIONS, Trigger
from homeport.appmaster.allocation.protocol.events import (
    LauncherSilent,
    OlderModelsWanted,
    ResourceEnded,
    SettingsChanged,
    ShutdownRequested,
    describe,
    named,
)
from homeport.config.errors import InvariantViolation
from homeport.job_coordinator.model.ids import ProcessorId, RequestId, ResourceId
from tests.unit.appmaster.allocation.conftest import (
    SETTINGS,
    Machine,
    allocated,
    check_in,
    expired,
    inc,
    live,
    model,
    rest_over,
    started,
    stopped,
    window_over,
)


def test_every_phase_is_of_exactly_one_kind_and_has_a_row() -> None:
    """Waiting, live or at its end; asking is a way of waiting."""
    assert set(TRANSITIONS) == set(ContainerPhase)
    for phase in ContainerPhase:
        assert (phase in WAITING) + (phase in LIVE) + (phase in TERMINAL) == 1
    assert ASKING < WAITING
    ours = {Trigger.MODEL_CHANGED, Trigger.COMMANDED}
    assert all(set(TRANSITIONS[phase]) <= ours for phase in TERMINAL)


def test_every_phase_can_be_reached_and_every_other_one_can_end() -> None:
    """From QUEUED to all; from each a way to an end."""
    ways = {p: {q for to in TRANSITIONS[p].values() for q in to} for p in ContainerPhase}

    def reached(start: ContainerPhase) -> set[ContainerPhase]:
        seen: set[ContainerPhase] = set()
        todo = {start}
        while todo:
            seen.add(phase := todo.pop())
            todo |= ways[phase] - seen
        return seen

    assert reached(ContainerPhase.QUEUED) == set(ContainerPhase)
    assert all(reached(phase) & TERMINAL for phase in ContainerPhase)


@pytest.mark.parametrize(("phase", "trigger"), [*product(ContainerPhase, Trigger)])
def test_no_move_but_those_of_the_table_is_possible(
    phase: ContainerPhase, trigger: Trigger
) -> None:
    """Any other raises, with the story, and changes nothing."""
    container = ContainerState(ProcessorId("0"), phase=phase)
    draft = Draft(initial_state(SETTINGS), "the event")
    for to in set(ContainerPhase) - TRANSITIONS[phase].get(trigger, frozenset()):
        with pytest.raises(InvariantViolation, match=r"must not take .* after the event"):
            draft.move(container, trigger, to)
    assert draft.containers == {}


def test_a_missing_entry_of_the_state_is_none(machine: Machine) -> None:
    """Unknown processor, resource, holder."""
    machine.deploy({"0": "a"}, "a")
    machine.run("0", "r0", "a", 1)
    assert machine.state.container(ProcessorId("1")) is None
    assert machine.state.resource(ResourceId("r1")) is None
    assert machine.state.holder(ResourceId("r1")) is None
    assert machine.state.resource(ResourceId("r0")) is not None
    assert machine.state.holder(ResourceId("r0")) == machine.container("0")


def test_each_event_prints_as_one_short_line() -> None:
    """For logs, and as the cause of instructions."""
    stated = {
        describe(model({"0": "a"})): "JobModelPublished version 1, 1 processors",
        describe(live("b", "a")): "HostsObserved a, b",
        describe(live()): "HostsObserved none",
        describe(check_in("r0", "a", inc("0", 3))): "LauncherCheckedIn r0 on a running 0@3",
        describe(check_in("r0", "a")): "LauncherCheckedIn r0 on a running nothing",
        describe(allocated(1)): "ResourceAllocated request 1",
        describe(ResourceEnded(RequestId(1))): "ResourceEnded request 1",
        describe(ResourceEnded(RequestId(1), ResourceId("r0"))): "ResourceEnded r0",
        describe(LauncherSilent(ResourceId("r0"))): "LauncherSilent r0",
        describe(expired(1)): "TimerFired request-expiry:1",
        describe(window_over("0")): "TimerFired retry-window:0",
        describe(rest_over("0")): "TimerFired retry-delay:0",
        describe(started("0", 3)): "ContainerStarted 0@3",
        describe(stopped("0", 3)): "ContainerStopped 0@3 failed, exit code 1",
        describe(ShutdownRequested()): "ShutdownRequested KILLED",
        describe(SettingsChanged(SETTINGS)): "SettingsChanged",
        describe(OlderModelsWanted(Map())): "OlderModelsWanted none",
        describe(OlderModelsWanted(Map({ProcessorId("0"): 3}))): "OlderModelsWanted 0: 3",
        named(None): "nothing",
    }
    assert list(stated) == list(stated.values())
