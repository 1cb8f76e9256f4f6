"""What a micro-batch brings to adjunct stores, when tasks see it, and what the history has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from homeport.config.config import Config
from homeport.config.settings.sections import SystemConfig
from homeport.config.settings.stores_section import StorageConfig
from homeport.container.adjunct.extractor import KeyAndValue, Serdes
from homeport.container.adjunct.frames import EntryColumns, FrameError, StoreFrames
from homeport.container.adjunct.manager import BuiltInManager
from homeport.container.adjunct.store_plan import plan_stores
from homeport.container.adjunct.version_text import PARTS_KEY, parts_text
from homeport.container.adjunct.versions import PartitionEnd, Progress
from homeport.container.engine.in_memory_store import InMemoryStore
from homeport.container.host.executors import SameThread
from homeport.container.kafka.input_consumer import InputConsumer, MicroBatch
from homeport.container.processing.adjunct_feed import NOTHING, AdjunctFeed, RefusedRecords
from homeport.container.processing.loop_dependencies import LoopDependencies, spans
from homeport.container.processing.prefetch import Prefetch, Prefetched
from homeport.container.processing.records import BadRecords
from homeport.container.processing.task_instance import Outputs
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.follow import HeadPoll
from homeport.container.progress.input_position import InputPosition, LostInputError
from homeport.container.progress.input_schedule import StoredInputs
from homeport.container.progress.restore import OffsetRange
from homeport.container.storage.adjunct.adjunct_frames import AdjunctFrames
from homeport.container.storage.adjunct.adjunct_storage import AdjunctStorage, StreamsNow
from homeport.container.storage.adjunct.stream_ends import StreamEnds
from homeport.container.storage.directory_lock import NO_WAIT
from homeport.container.storage.storage_engines import StorageEngines
from homeport.container.storage.task_store import passed
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition, TaskModel
from homeport.testing.broker import Broker
from homeport.testing.clients import MemoryConsumer, event
from tests.unit.container.adjunct.adjuncts import adjunct
from tests.unit.container.adjunct.tables import table

_TASK = TaskName("Partition 0")
_PLANES = replace(adjunct("planes", is_broadcast=False), is_kept=False)
_SSP, _FLIGHTS = (SystemStreamPartition("kafka", name, 0) for name in ("planes", "flights"))
_CONFIG = Config(
    {
        "stores.planes.factory": "in-memory",
        "stores.planes.key.serde": "string",
        "stores.planes.msg.serde": "string",
        "stores.planes.adstore.input": "kafka.planes",
    }
)


_SYSTEMS = {
    "kafka": SystemConfig.of(
        Config({"systems.kafka.consumer.bootstrap.servers": "none:9092"}), "kafka"
    )
}
_FORM = pa.schema({"key": pa.binary(), "value": pa.binary()})


def _binary(data: Sequence[bytes]) -> pa.Array:
    return pa.array(data, pa.binary())


class _Case:
    """One task with one store in memory, and the pipeline that its rows pass."""

    def __init__(self, folder: Path) -> None:
        plan = plan_stores([_PLANES], [TaskModel(_TASK, (_SSP,), 0)], ProcessorId("0"))
        configs, now = StorageConfig.of(_CONFIG).stores, ClockReading(0)
        self.storage = AdjunctStorage(plan, configs, folder, folder, lambda: now)
        self.storage.open(StorageEngines(1, 1), NO_WAIT, None)
        streams = StreamsNow(now, {_PLANES.stream: "id"}, {_SSP: OffsetRange(0, 0)})
        self.storage.recover(streams, lambda *_: InputPosition(0))
        self.outputs = Outputs(["kafka"], ["kafka"], "kafka")
        refused = RefusedRecords()
        bare = Serdes(None, None)
        manager = BuiltInManager(
            {"planes": _PLANES},
            [self.storage.of_task(_TASK)],
            {"planes": KeyAndValue("planes", bare, bare, refused.met)},
        )
        bad = BadRecords(self.outputs, "kafka.dead", drop=True)
        form = EntryColumns("planes", _FORM, _binary, _binary)
        frames = AdjunctFrames(self.storage, {"planes": form}, 1000)
        self.feed = AdjunctFeed(self.storage, {_TASK: manager}, refused, bad, frames)
        self.prefetched: list[pa.Table] = []
        self.frames: list[StoreFrames] = []
        self.ahead = Prefetch(self, SameThread(), adjuncts=self.feed)

    def run(self, rows: pa.Table, stores: StoreFrames) -> pa.Table:
        """The pipeline."""
        self.prefetched.append(rows)
        self.frames.append(stores)
        return rows

    def taken(self) -> Prefetched:
        """The batch that is through the pipeline."""
        prefetched = self.ahead.take(0)
        assert prefetched is not None
        return prefetched

    def show(self) -> Prefetched:
        """The tasks see what the next batch has brought."""
        prefetched = self.taken()
        self.feed.show(prefetched.brought, passed, passed)
        return prefetched

    def planes(self) -> Mapping[bytes, bytes]:
        """What the task sees."""
        return dict(self.storage.entries("planes", _TASK).scan())


@pytest.fixture
def case(tmp_path: Path) -> Iterator[_Case]:
    """A container before its first batch."""
    found = _Case(tmp_path)
    yield found
    found.storage.close()


def _batch(*tables: pa.Table) -> MicroBatch:
    rows = pa.concat_tables(tables)
    last: dict[SystemStreamPartition, int] = {}
    for stream, offset in zip(
        *(rows[name].to_pylist() for name in ("stream", "offset")), strict=True
    ):
        last[SystemStreamPartition("kafka", stream, 0)] = offset
    return MicroBatch(rows, rows.nbytes, {_TASK: last}, {_TASK: last})


def _planes(value: bytes, first: int) -> pa.Table:
    return table([(b"N1", value)], "planes", first=first)


def test_tasks_see_what_a_batch_brings_at_its_turn_and_not_before(case: _Case) -> None:
    """However many batches are on their way behind it."""
    for n, value in enumerate((b"737", b"747", b"757")):
        case.ahead.add(_batch(table([(b"f", b"")], "flights", first=n), _planes(value, n)))
    before: Mapping[bytes, bytes] = {}
    for value in (b"737", b"747", b"757"):
        assert case.planes() == before
        prefetched = case.show()
        assert case.planes() == (before := {b"N1": value})
        assert prefetched.rows["stream"].to_pylist() == ["flights"]


def test_the_pipeline_sees_no_reference_data(case: _Case) -> None:
    """A batch of it alone does not pass the pipeline, and one without it is untouched."""
    case.ahead.add(_batch(_planes(b"737", 0)))
    assert case.prefetched == []
    prefetched = case.taken()
    assert prefetched.rows.num_rows == 0
    assert len(prefetched.brought.layers) == 1
    flights = _batch(table([(b"f", b"")], "flights"))
    case.ahead.add(flights)
    assert case.prefetched == [flights.table]
    prefetched = case.taken()
    assert prefetched.brought is NOTHING


def test_the_pipeline_gets_stores_as_the_tasks_of_its_batch_find_them(case: _Case) -> None:
    """Before they are written; the same rows, by the same number, where nothing has changed."""
    for n, value in enumerate((b"737", b"747", None)):
        more = [_planes(value, n)] if value else []
        case.ahead.add(_batch(table([(b"f", b"")], "flights", first=n), *more))
    first, second, third = (frames["planes"] for frames in case.frames)
    assert case.planes() == {}
    assert first.rows.to_pydict() == {"key": [b"N1"], "value": [b"737"]}
    assert second.rows.to_pydict() == {"key": [b"N1"], "value": [b"747"]}
    assert third is second
    assert second.number > first.number
    for seen in case.frames:
        case.show()
        rows = seen["planes"].rows.to_pydict()
        assert case.planes() == dict(zip(rows["key"], rows["value"], strict=True))


def test_a_version_is_waited_for_where_a_pipeline_takes_stores(
    case: _Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It works ahead, and has to know which batch is the first that reads the version."""
    waited: list[bool] = []
    monkeypatch.setattr(
        case.storage, "switch_versions", lambda *_, waits=False: waited.append(waits)
    )
    bare = AdjunctFeed(case.storage, {}, RefusedRecords(), cast("BadRecords", None))
    case.feed.show(NOTHING, passed, passed)
    bare.show(NOTHING, passed, passed)
    bare.show(NOTHING, passed, passed, waits=True)
    assert waited == [True, False, True]


def test_a_store_that_is_too_large_for_a_frame_ends_the_container(case: _Case) -> None:
    """In one line; while it is only filled, nothing asks for its rows."""
    large = table([(b"N2", b"x" * 2000)], "planes")
    case.ahead.add(_batch(large))
    with pytest.raises(
        FrameError, match=r"^adstore\.frames\.max\.bytes = 1000: .*planes takes more"
    ):
        case.ahead.add(_batch(table([(b"f", b"")], "flights", first=1)))


def test_what_cannot_be_stored_leaves_with_the_batch_that_had_it(case: _Case) -> None:
    """Not before its turn: the dead letter is of the transaction in which its offset moves."""
    case.ahead.add(_batch(table([(None, b"x"), (b"N2", b"y")], "planes")))
    assert not case.outputs.sends
    case.show()
    assert [send.topic for send in case.outputs.sends] == ["dead"]
    assert case.planes() == {b"N2": b"y"}


def test_a_shared_partition_is_handed_out_once_with_offsets_for_all() -> None:
    """Its records come by the name of the one task that stores them."""
    broker = Broker(lambda _topic: 1, lambda: 0)
    for topic in ("planes", "planes", "flights"):
        broker.append(topic, b"k", b"v", partition=0)
    other = TaskName("Partition 1")
    starts = {_TASK: {_SSP: 0}, other: {_SSP: 0, _FLIGHTS: 0}}
    stored = StoredInputs(frozenset({_SSP}), {_SSP: _TASK})
    client = cast("Consumer", MemoryConsumer(broker))
    source = InputConsumer(_SYSTEMS, starts, lambda *_: client, stored=stored)
    batch = source.poll(10, 0)
    assert batch is not None
    places = zip(*(batch.table[name].to_pylist() for name in ("task", "stream")), strict=True)
    assert list(places) == [(_TASK, "planes"), (_TASK, "planes"), (other, "flights")]
    assert batch.processed == {_TASK: {_SSP: 1}, other: {_SSP: 1, _FLIGHTS: 0}}
    source.close()


class _Ends:
    """A watch of the one partition, which ends at ``head``, of the topic ``topic_id``."""

    def __init__(self, head: int, topic_id: str = "id") -> None:
        self.head, self.topic_id, self.asked, self.is_closed = head, topic_id, 0, False

    def ask(self) -> bool:
        self.asked += 1
        return True

    def polled(self) -> dict[tuple[str, int], HeadPoll]:
        look = HeadPoll(ClockReading(5_000 * self.asked), 0, self.head, self.topic_id)
        return {(_SSP.stream, 0): look} if self.asked else {}

    def close(self) -> None:
        self.is_closed = True


def test_an_active_container_looks_at_the_heads_of_compacted_streams(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its tasks go on with a store that may lack deletions, and the log has a warning."""
    plan = plan_stores([_PLANES], [TaskModel(_TASK, (_SSP,), 0)], ProcessorId("0"))
    now = [ClockReading(1_000)]
    configs = StorageConfig.of(_CONFIG).stores
    storage = AdjunctStorage(plan, configs, tmp_path, tmp_path, lambda: now[0])
    storage.open(StorageEngines(1, 1), NO_WAIT, None)
    stream = _PLANES.stream
    streams = StreamsNow(now[0], {stream: "id"}, {_SSP: OffsetRange(0, 9)}, {stream: 60_000})
    storage.recover(streams, lambda *_: InputPosition(0))
    ends = _Ends(9)
    watch = StreamEnds(storage.followed, {"kafka": ends})
    feed = AdjunctFeed(storage, {}, RefusedRecords(), cast("BadRecords", None), ends=watch)
    feed.poll_heads(0.0, {_SSP: 9})
    feed.poll_heads(5.9, {_SSP: 9})
    assert (ends.asked, storage.followed[_SSP].at_head) == (1, ClockReading(1_000))
    feed.poll_heads(6.0, {_SSP: 9})
    assert (ends.asked, storage.followed[_SSP].at_head) == (2, ClockReading(5_000))
    now[0] = ClockReading(10_000 + 60_000)
    feed.poll_heads(60.0, {_SSP: 11})
    expected = (
        "adjunct store planes/Partition_0 may keep keys that were deleted, until a start fills"
    )
    assert expected in caplog.text
    ends.topic_id = "other"
    for at in (90.0, 120.0):
        feed.poll_heads(at, None)
    assert caplog.text.count(expected) == 1
    assert storage.poll_interval_s(30.0) == 6.0
    feed.close()
    assert ends.is_closed
    storage.close()
    bare = AdjunctFeed(storage, {}, RefusedRecords(), cast("BadRecords", None))
    bare.poll_heads(0.0, None)
    bare.close()


class _BehindOldest(MemoryConsumer):
    """Its first answer is that the offset is not there; the partition begins at 7."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self.placed: list[int] = []

    def consume(self, _count: int, _timeout: float) -> list[Message]:
        self.consumed += 1
        return [event("planes", 0, 2, KafkaError._AUTO_OFFSET_RESET)] if self.consumed == 1 else []

    def get_watermark_offsets(
        self, place: TopicPartition, timeout: float = 0.0, *, cached: bool = False
    ) -> tuple[int, int]:
        del place, cached, timeout
        return 7, 9

    def incremental_unassign(self, _places: object) -> None:
        """It is read elsewhere."""

    def incremental_assign(self, places: Sequence[TopicPartition]) -> None:
        self.placed += [place.offset for place in places]


@pytest.mark.parametrize("is_stored", [True, False])
def test_the_stream_of_a_store_is_read_on_at_its_oldest_record(*, is_stored: bool) -> None:
    """The store knows what it lacks, and decides; of other inputs the policy does."""
    client = _BehindOldest(Broker(lambda _topic: 1, lambda: 0))
    lost: list[tuple[SystemStreamPartition, InputPosition]] = []
    source = InputConsumer(
        _SYSTEMS,
        {_TASK: {_SSP: 2}},
        lambda *_: cast("Consumer", client),
        lost=lambda *gap: lost.append(gap),
        stored=StoredInputs(frozenset({_SSP} if is_stored else ())),
    )
    if is_stored:
        assert source.poll(10, 0) is None
        assert (lost, client.placed) == ([(_SSP, InputPosition(7, lost=5))], [7])
    else:
        with pytest.raises(LostInputError, match="it has deleted 5 offsets"):
            source.poll(10, 0)


def test_the_history_has_no_offsets_of_adjunct_streams(case: _Case) -> None:
    """They may go back, and forth: a store has a position of its own."""
    nothing: Any = None
    bare = LoopDependencies(
        *(nothing, nothing, nothing, nothing, nothing, nothing),
        *(nothing, nothing, nothing, nothing, nothing, nothing),
    )
    parts = replace(bare, adjuncts=case.feed)
    other = TaskName("Partition 1")
    offsets = {_TASK: {_SSP: 3, _FLIGHTS: 5}, other: {_SSP: 3}}
    assert parts.of_tasks(offsets) == {_TASK: {_FLIGHTS: 5}}
    first, last = {other: {_SSP: 1}}, {_TASK: {_FLIGHTS: 5}}
    assert spans(parts.of_tasks(first), parts.of_tasks(last)) == {_TASK: {"kafka.flights.0": 5}}
    assert bare.of_tasks(offsets) is offsets


class _Versions:
    """A store of one partition, whose tasks read ``engine``."""

    def __init__(self) -> None:
        self.name = "planes/container-0"
        self.topic_id = "t1"
        self.planned = SimpleNamespace(store=_PLANES, partitions=(_SSP,))
        self.version: int | None = None
        self.entries = SimpleNamespace(engine=InMemoryStore())

    def serve(self, version: int, following: int, end: PartitionEnd = PartitionEnd.ENDED) -> None:
        """Tasks read a version that stands there."""
        engine = InMemoryStore()
        engine.write({PARTS_KEY: parts_text({_SSP: Progress(following, end=end)}).encode()}, None)
        self.version, self.entries.engine = version, engine

    def facts(self) -> Any:  # noqa: ANN401 - of it the version alone
        return SimpleNamespace(version=self.version)


def test_each_other_version_is_said_once_with_the_batch_that_reads_it() -> None:
    """None where there is none; a switch within a batch is said with the same batch."""
    store, found = _Versions(), list[dict[str, Any]]()
    storage = SimpleNamespace(
        plan=SimpleNamespace(stores=()), bounded=lambda: [store], poll_interval_s=float
    )
    feed = AdjunctFeed(cast("Any", storage), {}, RefusedRecords(), cast("BadRecords", None))

    def note(batch: int) -> list[tuple[object, ...]]:
        found.clear()
        feed.note_reads(batch, lambda event, **fields: found.append({"event": event, **fields}))
        return [(e["event"], e["batch"], e["version"], e["parts"]) for e in found]

    assert note(1) == [("version-read", 1, None, {})]
    assert note(2) == []
    store.serve(1, 50)
    ended = {"kafka.planes.0": {"next": 50, "records": 0, "left": "ended"}}
    assert note(3) == [("version-read", 3, 1, ended)]
    assert found[0]["store"] == "planes/container-0"
    assert (found[0]["topic_id"], found[0]["partitions"]) == ("t1", ["kafka.planes.0"])
    store.serve(2, 70, PartitionEnd.OPEN)
    (event,) = note(3)
    assert event[1:3] == (3, 2)
    assert found[0]["parts"]["kafka.planes.0"]["left"] == "open"
