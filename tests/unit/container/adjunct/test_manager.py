"""What fills which store, as layers that are written as a whole, and what is left for the tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pytest

from homeport.config.settings.adjunct_section import VersionMarkers
from homeport.container.adjunct.extractor import KeyAndValue, Serdes
from homeport.container.adjunct.manager import (
    BuiltInManager,
    Intake,
    Layer,
    TableManager,
    markers_in,
)
from homeport.container.adjunct.steps import flush_steps
from homeport.container.adjunct.versions import Marker, MarkerKind, Progress, Run
from homeport.job_coordinator.model.job_model import SystemStreamPartition
from tests.unit.container.adjunct.adjuncts import PLANES, adjunct
from tests.unit.container.adjunct.tables import Sink, Storage, table

_AIRLINES = adjunct("airlines", is_broadcast=True)
_BARE = Serdes(None, None)
_END, _BEGIN = Marker(MarkerKind.END), Marker(MarkerKind.BEGIN, 7)


def _refuse(_row: Mapping[str, object], reason: str) -> None:
    raise AssertionError(reason)


def _place(stream: str, number: int) -> SystemStreamPartition:
    return SystemStreamPartition("kafka", stream, number)


class _Parts:
    """A manager over the stores of one task and of its container."""

    def __init__(self, *, is_writer: bool = True, markers: VersionMarkers | None = None) -> None:
        self.airlines, self.planes = Sink(), Sink()
        stores = {"airlines": _AIRLINES, "planes": replace(PLANES, markers=markers)}
        self.manager: TableManager = BuiltInManager(
            stores,
            [Storage({"airlines": self.airlines})] * is_writer + [Storage({"planes": self.planes})],
            {name: KeyAndValue(name, _BARE, _BARE, _refuse) for name in stores},
        )


_FLIGHTS = table([(b"f", b"1"), (b"g", b"2")], "flights")
_ROWS = pa.concat_tables(
    [
        table([(b"UA", b"United")], "airlines"),
        _FLIGHTS,
        table([(b"N1", b"x"), (b"N2", None)], "planes", 0, first=5),
        table([(b"N3", b"z")], "planes", 3),
    ]
)


def test_what_is_stored_is_not_left_for_the_task() -> None:
    """Each store has the records of its stream, partition by partition; the rest is unchanged."""
    parts = _Parts()
    assert parts.manager.process_table(_ROWS).equals(_FLIGHTS)
    assert parts.airlines.taken == [(Run(_place("airlines", 0), [0], [0]), [b"UA"], [b"United"])]
    assert parts.planes.taken == [
        (Run(_place("planes", 0), [5, 6], [5000, 6000]), [b"N1", b"N2"], [b"x", None]),
        (Run(_place("planes", 3), [0], [0]), [b"N3"], [b"z"]),
    ]


def test_what_another_task_stores_is_for_no_task() -> None:
    """A broadcast record comes by the name of every task, and is stored by one."""
    parts = _Parts(is_writer=False)
    assert parts.manager.process_table(_ROWS).equals(_FLIGHTS)
    assert parts.airlines.taken == []
    assert len(parts.planes.taken) == 2
    assert parts.manager.process_table(_FLIGHTS[:0]).num_rows == 0


@pytest.mark.parametrize(
    ("rows", "taken"),
    [
        (
            [table([(b"k", b"x")], "planes", (3, 0)[n % 2], first=n) for n in range(4)],
            [(0, [1, 3]), (3, [0, 2])],
        ),
        (
            [table([(b"k", b"x")] * 2, "planes", n, first=n) for n in (1, 2, 3)],
            [(1, [1, 2]), (2, [2, 3]), (3, [3, 4])],
        ),
        (
            [table([(b"k", b"x")], "planes", n, first=n) for n in (3, 2, 1)],
            [(1, [1]), (2, [2]), (3, [3])],
        ),
    ],
    ids=["they alternate", "one after the other", "backwards"],
)
def test_partitions_are_taken_one_after_the_other(
    rows: list[pa.Table], taken: list[tuple[int, list[int]]]
) -> None:
    """Each in the order of its offsets, from where it begins to where the next one does."""
    parts = _Parts()
    parts.manager.process_table(pa.concat_tables(rows))
    assert [(run.partition.partition, run.offsets) for run, *_ in parts.planes.taken] == taken
    assert all(len(run.offsets) == len(keys) for run, keys, _ in parts.planes.taken)


_BY_HEADER, _BY_KEY = VersionMarkers(header="version"), VersionMarkers(key="#")


def test_markers_reach_the_store_beside_its_entries() -> None:
    """No extractor sees them, and they are no entries."""
    parts = _Parts(markers=_BY_KEY)
    parts.manager.process_table(table([(b"a", b"1"), (b"#", b"end"), (b"b", b"2"), (b"#", b"?")]))
    ((run, keys, values),) = parts.planes.taken
    assert run.markers == {1: _END, 3: None}
    assert (keys, values) == ([b"a", None, b"b", None], [b"1", None, b"2", None])


def test_a_header_or_a_key_marks_a_record() -> None:
    """Of headers of a name the last counts; other headers and keys, and a null, say nothing."""
    headers: dict[int, list[tuple[str, bytes | None]]] = {
        1: [("version", b"end")],
        2: [("other", b"end")],
        3: [("version", b"end"), ("version", b"begin 7")],
        4: [("version", None)],
    }
    rows = table([(b"a", b"1")] * 5, headers=headers)
    assert markers_in(rows, _BY_HEADER) == {1: _END, 3: _BEGIN, 4: None}
    assert markers_in(table([(b"a", b"1")]), _BY_HEADER) == {}
    rows = table([(None, b"end"), (b"#", b"end"), (b"a", b"end")])
    assert markers_in(rows, _BY_KEY) == {1: _END}
    assert markers_in(rows, None) == {}


_P0, _P1 = (SystemStreamPartition("kafka", "planes", number) for number in (0, 1))


def _run(partition: SystemStreamPartition, *offsets: int) -> Run:
    return Run(partition, offsets, [0] * len(offsets))


def test_a_layer_has_the_last_value_of_each_key_and_where_that_leaves_the_store() -> None:
    """Of all partitions since the layer before; a record without key only moves the position."""
    intake = Intake({_P0: Progress(5), _P1: Progress(0)})
    assert intake.sealed() is None
    intake.take(_run(_P0, 5, 6, 9), [b"a", b"b", b"a"], [b"1", b"2", None])
    intake.take(_run(_P1, 0), [None], [b"x"])
    assert intake.sealed() == Layer(
        {b"a": None, b"b": b"2"}, {_P0: Progress(10, 3), _P1: Progress(1, 1)}
    )
    assert intake.sealed() is None
    intake.take(_run(_P1, 3), [b"c"], [b"4"])
    assert intake.sealed() == Layer({b"c": b"4"}, {_P0: Progress(10, 3), _P1: Progress(4, 2)})


def test_what_is_read_again_changes_nothing() -> None:
    """A record below the store's position is passed over, one at it is not."""
    intake = Intake({_P0: Progress(5, 2)})
    intake.take(_run(_P0, 2, 4), [b"a", b"a"], [b"old", b"old"])
    assert intake.sealed() is None
    intake.take(_run(_P0, 4, 5), [b"a", b"b"], [b"old", b"1"])
    assert intake.sealed() == Layer({b"b": b"1"}, {_P0: Progress(6, 3)})


def test_a_flush_of_what_did_not_move_makes_it_younger() -> None:
    """And is all that there is to do."""
    steps = flush_steps("planes/Partition_0", has_moved=True)
    assert [str(step) for step in steps] == [
        "flush-adjunct planes/Partition_0",
        "touch-adjunct planes/Partition_0",
    ]
    assert flush_steps("planes/Partition_0", has_moved=False) == steps[1:]
