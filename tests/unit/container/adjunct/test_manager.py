"""What fills which store, and what is left for the tasks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import pyarrow as pa

from homeport.config.settings.adjunct_section import VersionMarkers
from homeport.container.adjunct.extractor import Bytes, KeyAndValue, Serdes
from homeport.container.adjunct.manager import BuiltInManager, TableManager
from homeport.container.adjunct.markers import markers_in
from homeport.container.adjunct.versions import Marker, MarkerKind, Run
from homeport.job_coordinator.model.job_model import SystemStreamPartition
from tests.unit.container.adjunct.adjuncts import PLANES, adjunct
from tests.unit.container.adjunct.tables import table

_AIRLINES = adjunct("airlines", is_broadcast=True)
_BARE = Serdes(None, None)
_END, _BEGIN = Marker(MarkerKind.END), Marker(MarkerKind.BEGIN, 7)


def _place(stream: str, number: int) -> SystemStreamPartition:
    return SystemStreamPartition("kafka", stream, number)


@dataclass
class _Sink:
    """Holds what it is handed, as it came."""

    taken: list[tuple[Run, Bytes, Bytes]] = field(default_factory=list)

    def take(self, run: Run, keys: Bytes, values: Bytes) -> None:
        self.taken.append((run, list(keys), list(values)))


@dataclass
class _Storage:
    sinks: dict[str, _Sink]

    def adjunct(self, store: str) -> _Sink | None:
        return self.sinks.get(store)

    def reset_partitions(self) -> Collection[SystemStreamPartition]:
        return ()


class _Parts:
    """A manager over the stores of one task and of its container."""

    def __init__(self, *, is_writer: bool = True, markers: VersionMarkers | None = None) -> None:
        self.airlines, self.planes = _Sink(), _Sink()
        stores = {"airlines": _AIRLINES, "planes": replace(PLANES, markers=markers)}
        self.manager: TableManager = BuiltInManager(
            stores,
            [_Storage({"airlines": self.airlines})] * is_writer
            + [_Storage({"planes": self.planes})],
            {name: KeyAndValue(name, _BARE, _BARE) for name in stores},
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


def test_a_batch_without_adjunct_records_is_left_as_it_is() -> None:
    """As most are."""
    parts = _Parts()
    assert parts.manager.process_table(_FLIGHTS).equals(_FLIGHTS)
    assert parts.manager.process_table(_FLIGHTS[:0]).num_rows == 0
    assert parts.planes.taken == []


def test_partitions_that_alternate_are_taken_one_after_the_other() -> None:
    """Each in the order of its offsets."""
    parts = _Parts()
    ones = [table([(b"k%d" % n, b"x")], "planes", (3, 0)[n % 2], first=n) for n in range(4)]
    parts.manager.process_table(pa.concat_tables(ones))
    assert [
        (run.partition.partition, run.offsets, keys) for run, keys, _ in parts.planes.taken
    ] == [(0, [1, 3], [b"k1", b"k3"]), (3, [0, 2], [b"k0", b"k2"])]


def test_a_partition_ends_where_the_next_one_begins() -> None:
    """Also where each partition is larger by its number, and where they come in reverse order."""
    parts, backwards = _Parts(), _Parts()
    ones = [table([(b"k%d" % n, b"x")] * 2, "planes", n, first=n) for n in (1, 2, 3)]
    parts.manager.process_table(pa.concat_tables(ones))
    backwards.manager.process_table(pa.concat_tables(one[:1] for one in reversed(ones)))
    assert [(run.offsets, keys) for run, keys, _ in parts.planes.taken] == [
        ([1, 2], [b"k1", b"k1"]),
        ([2, 3], [b"k2", b"k2"]),
        ([3, 4], [b"k3", b"k3"]),
    ]
    assert [run.offsets for run, _, _ in backwards.planes.taken] == [[1], [2], [3]]


_BY_HEADER, _BY_KEY = VersionMarkers(header="version"), VersionMarkers(key="#")


def test_markers_reach_the_store_beside_its_entries() -> None:
    """No extractor sees them, and they are no entries."""
    parts = _Parts(markers=_BY_KEY)
    parts.manager.process_table(table([(b"a", b"1"), (b"#", b"end"), (b"b", b"2"), (b"#", b"?")]))
    ((run, keys, values),) = parts.planes.taken
    assert run.markers == {1: _END, 3: None}
    assert (keys, values) == ([b"a", None, b"b", None], [b"1", None, b"2", None])


def test_a_header_marks_a_record_whatever_its_key() -> None:
    """The last of a name counts; other headers say nothing."""
    headers: dict[int, list[tuple[str, bytes | None]]] = {
        1: [("version", b"end")],
        2: [("other", b"end")],
        3: [("version", b"end"), ("version", b"begin 7")],
        4: [("version", None)],
    }
    rows = table([(b"a", b"1")] * 5, headers=headers)
    assert markers_in(rows, _BY_HEADER) == {1: _END, 3: _BEGIN, 4: None}
    assert markers_in(table([(b"a", b"1")]), _BY_HEADER) == {}


def test_a_null_key_is_no_marker() -> None:
    """Nor is any other."""
    rows = table([(None, b"end"), (b"#", b"end"), (b"a", b"end")])
    assert markers_in(rows, _BY_KEY) == {1: _END}
    assert markers_in(rows, None) == {}
