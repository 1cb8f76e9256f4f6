"""Tables that share what did not change, and what is derived from them."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from homeport.appmaster.allocation.job_state.occupancy import OccupancyEdit, counted, occupancy_of
from homeport.appmaster.allocation.job_state.state import (
    ContainerPhase,
    Containers,
    ContainerState,
    Resources,
    ResourceState,
    initial_state,
)
from homeport.appmaster.allocation.job_state.table import Edit, IndexValues, PersistentSet, Table
from homeport.appmaster.allocation.protocol.events import ResourceEnded
from homeport.job_coordinator.model.ids import Host, ProcessorId, ResourceId
from tests.unit.appmaster.allocation.conftest import SETTINGS


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
    assert ("b" in edit, len(edit), list(edit), edit.get("b", "none")) == (False, 1, ["a"], "none")
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
