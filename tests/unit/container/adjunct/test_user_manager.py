"""What a manager of a job's own brings to the stores, record by record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from homeport.config.settings.adjunct_section import VersionMarkers
from homeport.container.adjunct.extractor import Serdes
from homeport.container.adjunct.user_manager import (
    ManagedStorage,
    ManagedStore,
    ManagerFailedError,
    StartOffsets,
    UserManager,
)
from homeport.container.adjunct.versions import Marker, MarkerKind, Run
from homeport.container.api import AdjunctDataStoreManager, IncomingMessage
from homeport.container.progress.checkpoint import NOTHING
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition
from tests.unit.container.adjunct.adjuncts import PLANES, adjunct
from tests.unit.container.adjunct.tables import Sink, Storage, message, table

_AIRLINES = adjunct("airlines", is_broadcast=True)
_BARE = Serdes(None, None)
_PLACE = SystemStreamPartition("kafka", "planes", 0)


class _Manager(AdjunctDataStoreManager):
    """Puts an entry for each letter of a key; "no" is left, "bad" fails."""

    def __init__(self, planes: ManagedStore) -> None:
        self.planes = planes

    def process(self, message: IncomingMessage) -> bool:
        if message.key == b"bad":
            raise ValueError("it is bad")
        if message.key == b"null":
            self.planes.put(None, b"")
        elif message.key == b"own":
            self.planes.put(b"\x00homeport.x", b"")
        elif message.key != b"no":
            for letter in message.key.decode():
                self.planes.put(letter.encode(), message.value)
        return bool(message.key != b"no")


class _Yielding:
    def process(self, message: IncomingMessage) -> Iterator[bool]:
        yield bool(message)


def _messages(rows: pa.Table) -> Iterable[IncomingMessage]:
    """A row whose value is "?" cannot be read."""
    for row in rows.to_pylist():
        if row["value"] != b"?":
            yield message(row["key"], row["value"], offset=row["offset"], stream=row["stream"])


class _Parts:
    def __init__(self, markers: VersionMarkers | None = None) -> None:
        stores = {"airlines": _AIRLINES, "planes": replace(PLANES, markers=markers)}
        self.sink = Sink()
        self.storage = Storage({"planes": self.sink}, [_PLACE])
        self.managed = {name: ManagedStore(store, _BARE) for name, store in stores.items()}
        self.manager = UserManager(
            stores,
            [self.storage],
            self.managed,
            _Manager(self.managed["planes"]),
            "my:Managers",
            dict.fromkeys(stores, _messages),
        )


def test_each_entry_stands_at_the_offset_of_its_record() -> None:
    """A record without entries moves the position; one that cannot be read does, too."""
    parts = _Parts()
    rows = [(b"ab", b"1"), (b"", b"2"), (b"c", b"?"), (b"d", None)]
    flights = table([(b"f", b"1")], "flights")
    others = table([(b"bad", b"")], "airlines")  # another task fills that store
    left = parts.manager.process_table(pa.concat_tables([flights, others, table(rows, first=5)]))
    assert left.equals(flights)
    assert parts.sink.taken == [
        (
            Run(_PLACE, [5, 5, 6, 7, 8], [5000, 5000, 6000, 7000, 8000]),
            [b"a", b"b", None, None, b"d"],
            [b"1", b"1", None, None, None],
        )
    ]


def test_markers_keep_their_place_behind_several_entries() -> None:
    """And reach no manager."""
    parts = _Parts(VersionMarkers(key="#"))
    parts.manager.process_table(table([(b"ab", b"1"), (b"#", b"end"), (b"c", b"2")]))
    ((run, keys, _),) = parts.sink.taken
    assert run.markers == {2: Marker(MarkerKind.END)}
    assert (run.offsets, keys) == ([0, 0, 1, 2], [b"a", b"b", None, b"c"])


@pytest.mark.parametrize(
    ("key", "story"),
    [
        (b"bad", "ValueError: it is bad"),
        (b"no", "process returned False, and a record of a store's stream is never a task's"),
        (b"null", "ManagerFailedError: store planes: a key may not be None"),
        (b"own", "ExtractorFailedError: store planes: the key is a reserved one"),
    ],
)
def test_what_goes_wrong_is_one_line_that_names_the_record(key: bytes, story: str) -> None:
    """And the factory."""
    with pytest.raises(ManagerFailedError) as caught:
        _Parts().manager.process_table(table([(b"a", b"1"), (key, b"")], first=3))
    assert str(caught.value).startswith(f"my:Managers: kafka.planes partition 0 offset 4: {story}")


@pytest.mark.parametrize("made", [None, _Manager, _Yielding(), object()])
def test_a_manager_that_would_never_run_is_refused_before_a_record(made: Any) -> None:  # noqa: ANN401 - of no kind
    """A factory that returns None, a class, or one whose ``process`` has a yield."""
    with pytest.raises(ManagerFailedError, match=r"my:Managers: process of .* is "):
        UserManager({}, [], {}, made, "my:Managers", {})


def test_entries_come_while_a_record_of_the_stream_is_processed() -> None:
    """No thread of the job's own puts some later, nor a record of another stream."""
    managed = _Parts().managed["airlines"]
    with pytest.raises(ManagerFailedError, match=r"records of kafka\.airlines alone fill it"):
        managed.put(b"a", b"1")
    managed.begin()
    managed.put(b"a", b"1")
    assert managed.end() == ((b"a", b"1"),)
    with pytest.raises(ManagerFailedError, match=r"records of kafka\.airlines alone fill it"):
        managed.put(b"a", b"2")


def test_a_storage_shows_the_stores_that_it_has() -> None:
    """Under their names; and the partitions that begin with nothing."""
    parts = _Parts()
    shown = ManagedStorage(parts.storage, parts.managed)
    assert shown.adjunct("planes") is parts.managed["planes"]
    assert shown.adjunct("airlines") is None
    assert list(shown.reset_partitions()) == [("kafka", "planes", 0)]


def test_offsets_are_those_before_the_first_record_of_a_task() -> None:
    """None before the first offset, and of what is not the task's."""
    offsets = StartOffsets({TaskName("t"): {_PLACE: 4}, TaskName("u"): {_PLACE: NOTHING}})
    planes = ("kafka", "planes", 0)
    assert offsets.last_processed("t", planes) == 4
    assert offsets.last_processed("u", planes) is None
    assert offsets.last_processed("v", planes) is None
    assert offsets.last_processed("t", ("kafka", "planes", 1)) is None
