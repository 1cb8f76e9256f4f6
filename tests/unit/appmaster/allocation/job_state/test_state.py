"""The transition table, the state's values, and the guard on every move."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from itertools import product

import pytest
from immutables import Map

from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.occupancy import OccupancyEdit, counted, occupancy_of
from homeport.appmaster.allocation.job_state.state import (
    ASKING,
    LIVE,
    TERMINAL,
    WAITING,
    ContainerPhase,
    Containers,
    ContainerState,
    EarlyPhase,
    EarlyRequest,
    Resources,
    ResourceState,
    initial_state,
)
from homeport.appmaster.allocation.job_state.table import Edit, IndexValues, PersistentSet, Table
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
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
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
    machine.at_home({"0": "a"})
    assert machine.state.container(ProcessorId("1")) is None
    assert machine.state.resources.get(ResourceId("r1")) is None
    assert machine.state.holder(ResourceId("r1")) is None
    assert machine.state.resources.get(ResourceId("r0")) is not None
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


# --- tables that share what did not change, and what is derived from them


@dataclass(frozen=True)
class Row:
    """A row with two indexes."""

    name: str
    colour: str | None = None
    size: int | None = None


class Rows(Table[str, Row]):
    """Rows by name, found by colour and size."""

    index_count = 2
    COLOUR, SIZE = range(index_count)

    @staticmethod
    def key_of(row: Row) -> str:
        """Its name."""
        return row.name

    @staticmethod
    def index_values_of(row: Row) -> IndexValues:
        """Colour and size."""
        return (row.colour, row.size)


RED, BLUE = Row("b", "red", 1), Row("a", "blue", 1)


def test_rows_are_in_the_order_of_their_keys_and_found_by_their_indexes() -> None:
    """However they were handed in; None is under nothing."""
    table = Rows([RED, BLUE, Row("c")])
    assert [row.name for row in table] == ["a", "b", "c"]
    assert len(table) == 3
    assert table.get("b") == RED
    assert table.get("z") is table.get(None) is None
    assert sorted(table.indexed(Rows.SIZE, 1)) == ["a", "b"]
    assert sorted(table.values_of(Rows.COLOUR)) == ["blue", "red"]
    assert not table.indexed(Rows.SIZE, None)
    assert repr(Rows([BLUE])) == "Rows([Row(name='a', colour='blue', size=1)])"


def test_tables_are_equal_by_their_rows_whatever_became_of_them_before() -> None:
    """And of one hash; another kind of table is not equal."""
    edit: Edit[str, Row, Rows] = Edit(Rows([RED]))
    edit["a"] = Row("a", "green")
    edit["a"] = BLUE
    made = edit.freeze()
    assert (made, hash(made)) == (Rows([BLUE, RED]), hash(Rows([BLUE, RED])))
    assert made != Rows([BLUE])
    assert Rows() != Containers()
    assert edit.changed == {"a"}


def test_an_edit_is_a_mapping_and_leaves_the_table_as_it_was() -> None:
    """What changed nothing gives the same object."""
    table = Rows([RED, BLUE])
    edit: Edit[str, Row, Rows] = Edit(table)
    assert edit.freeze() is table
    del edit["b"]
    assert ("b" in edit, len(edit), list(edit), edit.get("b")) == (False, 1, ["a"], None)
    assert edit.first(Rows.COLOUR, "red") is None
    assert edit.rows(Rows.SIZE, 1) == [BLUE]
    assert edit.first(Rows.SIZE, 1) == edit["a"] == BLUE
    assert edit.freeze() == Rows([BLUE])
    assert table == Rows([RED, BLUE])


def test_random_edits_keep_every_index_true() -> None:
    """As a table made of the same rows does."""
    draws = random.Random(3)  # noqa: S311 - a test's dice, not a secret
    table, rows = Rows(), dict[str, Row]()
    for _ in range(300):
        edit: Edit[str, Row, Rows] = Edit(table)
        for _ in range(draws.randrange(4)):
            name = draws.choice("abcdef")
            if name in rows and draws.random() < 0.3:
                del edit[name], rows[name]
            else:
                size = draws.choice([None, 1, 2])
                edit[name] = rows[name] = Row(name, draws.choice([None, "red", "blue"]), size)
        table = edit.freeze()
        assert table.has_sound_indexes()
        assert list(table) == sorted(rows.values(), key=Rows.key_of)


def test_a_bag_is_a_set_that_shares_what_did_not_change() -> None:
    """Equal to any set of its elements; what changes nothing gives the same object."""
    one = PersistentSet([1])
    two = one.having(2)
    assert one == {1}
    assert two == PersistentSet([2, 1])
    assert hash(two) == hash(PersistentSet([2, 1]))
    assert two.having(2) is two
    assert two.without(3) is two
    assert two.without(2) == one
    assert (1 in two, len(two), repr(one)) == (True, 2, "PersistentSet(['1'])")


def test_random_edits_keep_the_idle_launchers_and_the_load_of_each_host() -> None:
    """As a look at every row counts them, also where a launcher goes before its container."""
    draws = random.Random(5)  # noqa: S311 - a test's dice, not a secret
    state = initial_state(SETTINGS)
    hosts = [Host(h) for h in "abc"]
    for _ in range(400):
        edit = OccupancyEdit(state)
        processor = ProcessorId(draws.choice("0123"))
        resource = ResourceId("r" + draws.choice("012345"))
        known = edit.resources.get(resource)
        holder = edit.containers.first(Containers.RESOURCE, resource)
        if known is None:
            edit.resources[resource] = ResourceState(resource, draws.choice(hosts), None)
        elif holder is not None:
            if draws.random() < 0.5:
                del edit.resources[resource]
            edit.containers[holder.processor_id] = replace(
                holder, phase=ContainerPhase.QUEUED, resource_id=None
            )
        elif draws.random() < 0.4:
            ended = ResourceEnded() if draws.random() < 0.5 else None
            edit.resources[resource] = replace(known, is_released=ended is None, ended=ended)
        else:
            edit.containers[processor] = ContainerState(
                processor, phase=ContainerPhase.RUNNING, resource_id=resource
            )
        wanting = ProcessorId("w" + draws.choice("01"))
        edit.containers[wanting] = ContainerState(
            wanting, requested_host=draws.choice([*hosts, None])
        )
        containers, resources = edit.containers.freeze(), edit.resources.freeze()
        state = replace(
            state,
            containers=containers,
            resources=resources,
            occupancy=edit.freeze(containers, resources, state.early),
        )
        assert occupancy_of(state) is state.occupancy
        assert state.occupancy == counted(state)


def test_a_state_with_other_tables_is_counted_again() -> None:
    """What was kept belongs to the tables that it names."""
    state = initial_state(SETTINGS)
    state = replace(state, occupancy=counted(state))
    launcher = ResourceState(ResourceId("r0"), Host("a"), None)
    other = replace(state, resources=Resources([launcher]))
    assert list(occupancy_of(other).idle) == ["r0"]


# --- questions that a draft answers about its hosts


A, B, C = Host("a"), Host("b"), Host("c")
ZERO = ContainerState(ProcessorId("0"))
EARLY = EarlyRequest(ZERO.processor_id, RequestId(1), B)


@pytest.fixture
def draft() -> Draft:
    """Of a state without anything but two excluded hosts, of which ``b`` may be probed."""
    draft = Draft(initial_state(SETTINGS), "a test")
    draft.exclusions = Map({A: False, B: True})
    return draft


def closed(draft: Draft) -> list[Host]:
    """Those of the three hosts that no container may request."""
    return [h for h in (A, B, C) if draft.is_closed(h)]


def test_an_excluded_host_is_closed_unless_a_probe_may_be_sent(draft: Draft) -> None:
    """One probe: while it is requested or granted, early or not, no other request may follow."""
    assert closed(draft) == [A]
    for phase in (ContainerPhase.REQUESTED, ContainerPhase.ALLOCATED):
        draft.containers[ZERO.processor_id] = replace(ZERO, phase=phase, requested_host=B)
        assert closed(draft) == [A, B]
    del draft.containers[ZERO.processor_id]
    draft.early[ZERO.processor_id] = EARLY
    assert closed(draft) == [A, B]
    draft.early[ZERO.processor_id] = replace(EARLY, phase=EarlyPhase.OVER)
    assert closed(draft) == [A]
