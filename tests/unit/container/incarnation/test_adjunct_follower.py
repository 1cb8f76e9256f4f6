"""How a standby fills adjunct stores: real RocksDB, streams of a broker in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from confluent_kafka import Consumer
from small_jobs import KEYS, job_of, store_keys, task_of

from homeport.config.errors import StoreError
from homeport.container.container_job import ContainerJob
from homeport.container.host.executors import SameThread
from homeport.container.incarnation import adjunct_start
from homeport.container.incarnation import replicas as module
from homeport.container.incarnation.adjunct_start import adjunct_storage
from homeport.container.incarnation.replicas import AdjunctFollower, adjunct_follower
from homeport.container.kafka.head_watch import HeadPolls
from homeport.container.kafka.log_reader import LogReader
from homeport.container.processing.records import UndecodableError
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.follow import HeadPoll
from homeport.container.progress.input_position import InputPosition
from homeport.container.progress.restore import OffsetRange
from homeport.container.storage.adjunct.adjunct_storage import AdjunctStorage, StreamsNow
from homeport.container.storage.directory_lock import NO_WAIT
from homeport.container.storage.storage_engines import StorageEngines
from homeport.container.storage.task_store import passed
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition
from homeport.job_coordinator.status.container_report import AdjunctState, StoreLag
from homeport.testing.broker import Broker
from homeport.testing.clients import MemoryConsumer

_CONFIG = {
    **KEYS,
    "task.inputs": "kafka.in, kafka.planes",
    "task.broadcast.inputs": "kafka.airlines#0",
    "systems.kafka.streams.planes.samza.bootstrap": "true",
    **store_keys("planes", "string", adstore_input="kafka.planes"),
    **store_keys("airlines", "string", adstore_input="kafka.airlines"),
}
_ACTIVE, _STANDBY = ProcessorId("0"), ProcessorId("0-0")
_P0, _A0 = (SystemStreamPartition("kafka", name, 0) for name in ("planes", "airlines"))


def _never(_seconds: float) -> None:
    raise AssertionError("nothing waits")


def _job(more: dict[str, str], processor: ProcessorId) -> ContainerJob:
    """The view of one of the two: its tasks read their own planes and all airlines."""
    tasks = (task_of(number, "kafka.in", "kafka.planes") for number in (0, 1))
    both = [replace(t, system_stream_partitions=(_A0, *t.system_stream_partitions)) for t in tasks]
    return job_of({**_CONFIG, **more}, processor, *both)


class _Watch:
    """Sees the ends of the broker's partitions at each request. ``topic_id``: of each topic."""

    def __init__(self, case: _Case) -> None:
        self._case = case
        self._found: HeadPolls = {}

    def close(self) -> None:
        """It sees nothing more."""

    def ask(self) -> bool:
        self._found = {
            (ssp.stream, ssp.partition): HeadPoll(
                ClockReading(self._case.now_ms),
                self._case.oldest if ssp == _A0 else 0,
                self._case.head(ssp),
                self._case.topic_id,
            )
            for ssp in self._case.partitions()
        }
        return True

    def polled(self) -> HeadPolls:
        found, self._found = self._found, {}
        return found


class _Case:
    """A job with one standby, and its Kafka in memory."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.broker = Broker(lambda topic: 1 if topic == "airlines" else 2, lambda: 0)
        self.now_ms = 1_000
        self.topic_id = "id"
        self.oldest = 0
        self.kept_ms: int | None = None
        self.more: dict[str, str] = {}
        self._open: list[AdjunctStorage] = []
        monkeypatch.setattr(adjunct_start, "topic_ids", self._topic_ids)
        monkeypatch.setattr(
            adjunct_start,
            "offset_ranges",
            lambda _, partitions: {p: OffsetRange(self.oldest, self.head(p)) for p in partitions},
        )
        monkeypatch.setattr(adjunct_start, "HeadWatch", lambda *_: _Watch(self))
        monkeypatch.setattr(
            module,
            "consumer",
            lambda *_: cast("Consumer", MemoryConsumer(self.broker, says_ends=True)),
        )

    def _topic_ids(self, _readers: object, streams: object) -> dict[object, str]:
        return dict.fromkeys(cast("list[object]", streams), self.topic_id)

    def streams(self) -> StreamsNow:
        ids = dict.fromkeys((_P0.system_stream, _A0.system_stream), self.topic_id)
        ranges = {p: OffsetRange(self.oldest, self.head(p)) for p in self.partitions()}
        kept = {} if self.kept_ms is None else dict.fromkeys(ids, self.kept_ms)
        return StreamsNow(self.clocks(), ids, ranges, kept)

    def clocks(self) -> ClockReading:
        return ClockReading(self.now_ms)

    def deletions_kept(self, names: list[str]) -> dict[str, int]:
        return {} if self.kept_ms is None else dict.fromkeys(names, self.kept_ms)

    def partitions(self) -> list[SystemStreamPartition]:
        return [_A0, _P0, SystemStreamPartition("kafka", "planes", 1)]

    def head(self, ssp: SystemStreamPartition) -> int:
        return self.broker.partitions(ssp.stream)[ssp.partition].head

    def storage(self, processor: ProcessorId) -> AdjunctStorage:
        job = _job(self.more, processor)
        root = self.folder / "logged"
        owner = job.active_processor or processor
        found = adjunct_storage(
            job, owner, (root, self.folder / "scratch"), self.clocks, SameThread()
        )
        assert found is not None
        found.open(StorageEngines(32 << 20, found.count), NO_WAIT, None)
        self._open.append(found)
        return found

    def standby(self) -> tuple[AdjunctFollower, AdjunctStorage]:
        storage = self.storage(_STANDBY)
        job = _job(self.more, _STANDBY)
        readers = cast("dict[str, LogReader]", {"kafka": self})
        follower = adjunct_follower(job, storage, readers, _never, self.clocks)
        assert follower is not None
        return follower, storage

    def held(self, storage: AdjunctStorage, store: str, task: str) -> dict[bytes, bytes]:
        return dict(storage.entries(store, TaskName(task)).scan())

    def close(self) -> None:
        for storage in self._open:
            storage.close()


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[_Case]:
    """Two planes and an airline are there before the standby is."""
    found = _Case(tmp_path, monkeypatch)
    found.broker.append("planes", b"N0", b"737", partition=0)
    found.broker.append("planes", b"N1", b"747", partition=1)
    found.broker.append("airlines", b"UA", b"United", partition=0)
    yield found
    found.close()


def _follow(follower: AdjunctFollower) -> int:
    """All that is there."""
    records = 0
    while came := follower.step(0):
        records += came
    return records


def test_a_standby_fills_the_stores_of_its_active_container(case: _Case) -> None:
    """Parts of tasks and what the container has, each record once; updates and deletions too."""
    follower, storage = case.standby()
    assert _follow(follower) == 3
    assert case.held(storage, "planes", "Standby-Partition 0-0") == {b"N0": b"737"}
    assert case.held(storage, "planes", "Standby-Partition 1-0") == {b"N1": b"747"}
    assert case.held(storage, "airlines", "Standby-Partition 1-0") == {b"UA": b"United"}
    case.broker.append("planes", b"N0", b"A320", partition=0)
    case.broker.append("airlines", b"UA", None, partition=0)
    case.broker.append("in", b"N0", b"", partition=0)
    assert _follow(follower) == 2
    assert case.held(storage, "planes", "Standby-Partition 0-0") == {b"N0": b"A320"}
    assert not case.held(storage, "airlines", "Standby-Partition 0-0")
    names = {str(p.relative_to(case.folder / "logged")) for p in case.folder.glob("logged/*/*")}
    assert names == {"planes/Partition_0", "planes/Partition_1", "airlines/container-0"}


def test_the_active_container_reads_the_tail_alone(case: _Case) -> None:
    """A failover needs no bootstrap: its position is that of the standby's last flush."""
    follower, storage = case.standby()
    _follow(follower)
    storage.flush(passed, passed)
    case.broker.append("planes", b"N0", b"A320", partition=0)
    storage.close()
    active = case.storage(_ACTIVE)
    starts = active.recover(case.streams(), lambda *_: InputPosition(0))
    offsets = {ssp: at.offset for own in starts.values() for ssp, at in own.items()}
    assert offsets == dict.fromkeys(case.partitions(), 1)
    assert case.held(active, "planes", "Partition 0") == {b"N0": b"737"}


def test_a_standby_says_how_far_it_is_behind(case: _Case) -> None:
    """Of each store at the last look; one of the container by its writer."""
    follower, _ = case.standby()
    _follow(follower)
    for number in range(3):
        case.broker.append("airlines", b"A%d" % number, b"name", partition=0)
    case.now_ms = 5_000
    follower.poll_heads()
    own = TaskName("Standby-Partition 0-0")
    assert follower.lags()[0] == StoreLag("airlines", own, 0, 0.0)
    follower.step(0)
    assert {lag.store for lag in follower.lags()} == {"planes", "airlines"}
    assert follower.lags()[0].records == 0
    case.broker.append("airlines", b"open", b"name", transaction=case.broker.begin("w", _id(case)))
    case.now_ms = 9_000
    follower.poll_heads()
    follower.step(0)
    assert follower.lags()[0] == StoreLag("airlines", own, 1, 4.0)


def _id(case: _Case) -> int:
    return case.broker.take_over("w")


def test_a_standby_says_what_its_stores_hold(case: _Case) -> None:
    """Records, bytes on the disk and positions; age is that of the newest record."""
    follower, _ = case.standby()
    case.now_ms = 3_000
    case.broker.append("planes", b"N0", b"A320", partition=0, timestamp_ms=1_000)
    _follow(follower)
    follower.poll_heads()
    follower.step(0)
    airlines, planes, _ = follower.states()
    assert planes.bytes
    assert replace(planes, bytes=None) == AdjunctState(
        "planes",
        TaskName("Standby-Partition 0-0"),
        "kafka.planes",
        "partitioned",
        records=2,
        positions={"0": 2},
        lag=0,
        age_seconds=2.0,
    )
    assert (airlines.kind, airlines.records, airlines.positions) == ("broadcast", 1, {"0": 1})


def test_a_standby_builds_the_versions_of_a_data_set(case: _Case) -> None:
    """As its active container does: the one that is whole is what a successor's tasks see."""
    case.more = {
        "stores.airlines.adstore.version.marker.header": "version",
        "systems.kafka.streams.airlines.samza.bootstrap": "true",
    }
    follower, storage = case.standby()
    _follow(follower)
    case.now_ms += 2 * 86_400_000
    assert follower.step(0) == 0
    assert not case.held(storage, "airlines", "Standby-Partition 0-0")
    case.broker.append("airlines", None, None, partition=0, headers=[("version", b"end")])
    case.broker.append("airlines", b"AA", b"American", partition=0)
    _follow(follower)
    assert case.held(storage, "airlines", "Standby-Partition 0-0") == {b"UA": b"United"}
    (airlines, *_) = follower.states()
    assert (airlines.version, airlines.records, airlines.positions) == (1, 1, {"0": 3})


def test_a_stream_that_was_recreated_ends_the_standby(case: _Case) -> None:
    """In one line; the next start finds another topic id and fills the store again."""
    follower, storage = case.standby()
    _follow(follower)
    case.topic_id = "other"
    follower.poll_heads()
    expected = (
        r"^adjunct store airlines cannot follow its stream kafka.airlines partition 0 any more: it "
        r"was recreated: its topic id was id, it is other; the next start fills it again$"
    )
    with pytest.raises(StoreError, match=expected):
        follower.step(0)
    storage.close()
    follower, storage = case.standby()
    assert _follow(follower) == 3


def test_a_standby_that_may_lack_deletions_is_filled_again(
    case: _Case, caplog: pytest.LogCaptureFixture
) -> None:
    """By the start in its place: what it has flushed does not count as more than it is."""
    case.kept_ms = 60_000
    follower, storage = case.standby()
    _follow(follower)
    follower.poll_heads()
    follower.step(0)
    storage.flush(passed, passed)
    case.now_ms += 30_000
    follower.poll_heads()
    follower.step(0)
    storage.flush(passed, passed)
    case.now_ms += 59_999
    for value in (b"A319", b"A320"):
        case.broker.append("planes", b"N0", value, partition=0)
    assert _follow(follower) == 2
    storage.flush(passed, passed)
    follower.poll_heads()
    follower.step(0)
    case.now_ms += 60_000
    for value in (b"A321", b"A322"):
        case.broker.append("planes", b"N0", value, partition=0)
    assert _follow(follower) == 2
    follower.poll_heads()
    assert follower.step(0) == 0
    expected = (
        "planes/Partition_0 may keep keys that were deleted, until a start fills it again: part"
    )
    assert caplog.text.count(expected) == 1
    storage.flush(passed, passed)
    storage.close()
    case.now_ms += 1
    case.broker.append("planes", b"N0", b"A318", partition=0)
    case.broker.append("planes", b"N0", b"A317", partition=0)
    active = case.storage(_ACTIVE)
    starts = active.recover(case.streams(), lambda *_: InputPosition(0))
    own = {ssp: at.offset for o in starts.values() for ssp, at in o.items()}
    assert (own[_P0], own[_A0]) == (0, 1)


def test_versions_of_a_standby_go_on_behind_a_gap(case: _Case) -> None:
    """The one that it cuts is not served, and what was served stays; a look finds no fault."""
    case.more = {"stores.airlines.adstore.version.marker.header": "version"}
    follower, storage = case.standby()
    end = [("version", b"end")]
    case.broker.append("airlines", None, None, partition=0, headers=end)
    case.broker.append("airlines", b"AA", b"American", partition=0)
    _follow(follower)
    case.oldest = 6
    source = follower._source
    assert source._lost is not None
    source._lost(_A0, InputPosition(6, 3))
    for value in (b"Lost", b"Lost", b"Lost", b"Alaska"):
        case.broker.append("airlines", value[:1], value, partition=0)
    follower.poll_heads()
    follower.step(0)
    case.broker.append("airlines", None, None, partition=0, headers=end)
    _follow(follower)
    assert case.held(storage, "airlines", "Standby-Partition 0-0") == {b"UA": b"United"}
    case.broker.append("airlines", b"DL", b"Delta", partition=0)
    case.broker.append("airlines", None, None, partition=0, headers=end)
    _follow(follower)
    assert case.held(storage, "airlines", "Standby-Partition 0-0") == {b"DL": b"Delta"}


def test_a_gap_ends_the_standby(case: _Case) -> None:
    """Whatever the job does behind a gap of its input, the store would lack what was in it."""
    follower, _ = case.standby()
    _follow(follower)
    source = follower._source
    assert source._lost is not None
    with pytest.raises(StoreError, match="partition 0 any more: 7 records were deleted before"):
        source._lost(_P0, InputPosition(9, 7))
    assert set(case.partitions()) == source._stored.partitions


@pytest.mark.parametrize("drops", [False, True])
def test_a_record_that_cannot_be_stored_is_dropped_where_the_job_says_so(
    case: _Case, *, drops: bool
) -> None:
    """As in the active container, which has the dead letters."""
    if drops:
        case.more = {
            "task.dead.letter.stream": "kafka.dead",
            "task.drop.deserialization.errors": "true",
        }
    follower, storage = case.standby()
    case.broker.append("planes", None, b"of no plane", partition=0)
    case.broker.append("planes", b"N2", b"757", partition=0)
    if not drops:
        with pytest.raises(UndecodableError, match=r"planes partition 0 offset 1"):
            _follow(follower)
        return
    assert _follow(follower) == 5
    held = case.held(storage, "planes", "Standby-Partition 0-0")
    assert held == {b"N0": b"737", b"N2": b"757"}


def test_a_job_without_adjunct_stores_has_no_follower(case: _Case) -> None:
    """Changelogs are all that it follows."""
    job = _job({}, _STANDBY)
    assert adjunct_follower(job, None, {}, _never, lambda: ClockReading(case.now_ms)) is None
