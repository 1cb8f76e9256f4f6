"""The native path of input brings exactly what the one in Python brings, whatever records are."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from typing import Any

import confluent_kafka
import pytest
from mock_cluster import MockCluster, Record, mock_cluster

from homeport.config.config import Config
from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka import input_reader
from homeport.container.kafka.input_consumer import InputConsumer, MicroBatch, Reading
from homeport.container.kafka.input_reader import QueueReader
from homeport.container.native import input_queue, library
from homeport.container.native.input_queue import InputQueue
from homeport.container.native.library import NoLibraryError
from homeport.job_coordinator.kafka.clients import consumer
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

PARTITIONS = 4
DEADLINE_S = 30

_BYTES = (None, b"", b"\x00", b"a", b"value" * 10, bytes(range(256)))
_NAMES = (
    b"a",
    b"",
    "ü€😀".encode(),
    b"\xff",
    b"\xed\xa0\x80",
    b"\xc0\x80",
    b"\xf4\x90\x80\x80",
    b"x" * 300,
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[MockCluster]:
    """A broker of librdkafka in this process."""
    with mock_cluster(PARTITIONS) as made:
        yield made


def _system(cluster: MockCluster, **properties: str) -> SystemConfig:
    keys = {"systems.kafka.consumer.bootstrap.servers": cluster.servers}
    keys |= {f"systems.kafka.consumer.{k.replace('_', '.')}": v for k, v in properties.items()}
    return SystemConfig.of(Config(keys), "kafka")


def _ssp(partition: int, topic: str = "in") -> SystemStreamPartition:
    return SystemStreamPartition("kafka", topic, partition)


def _source(
    cluster: MockCluster,
    starts: Mapping[TaskName, Mapping[SystemStreamPartition, int]],
    reading: Reading,
) -> InputConsumer:
    return InputConsumer({"kafka": _system(cluster)}, starts, reading=reading)


def _rows(
    source: InputConsumer, count: int, rows: random.Random | None = None
) -> list[dict[str, Any]]:
    """Of each task and partition in order, however the batches were cut."""
    found: list[dict[str, Any]] = []
    deadline = time.monotonic() + DEADLINE_S
    while len(found) < count:
        assert time.monotonic() < deadline, (len(found), count)
        batch = source.poll(rows.choice((1, 7, 1000)) if rows else 100_000, 0.2)
        if batch is not None:
            _check(batch)
            found += batch.table.to_pylist()
    source.close()
    return sorted(found, key=lambda row: (row["task"], row["stream"], row["partition"]))


def _check(batch: MicroBatch) -> None:
    """The rows are sorted; the batch's offsets and its size are of its rows."""
    batch.table.validate(full=True)
    rows = batch.table.to_pylist()
    places = [(row["task"], row["stream"], row["partition"], row["offset"]) for row in rows]
    assert places == sorted(places)
    assert batch.size_bytes == sum(len(row["value"] or b"") for row in rows)
    first: dict[tuple[TaskName, SystemStreamPartition], int] = {}
    last = dict(first)
    for row in rows:
        place = TaskName(row["task"]), _ssp(row["partition"], row["stream"])
        first.setdefault(place, row["offset"])
        last[place] = row["offset"]
    assert first == {(t, ssp): o for t, own in batch.first.items() for ssp, o in own.items()}
    assert last == {(t, ssp): o for t, own in batch.processed.items() for ssp, o in own.items()}


def _any_record(random_: random.Random) -> Record:
    headers = [
        (random_.choice(_NAMES), random_.choice(_BYTES))
        for _ in range(random_.choice((0, 0, 1, 5)))
    ]
    return Record(
        random_.randrange(PARTITIONS),
        random_.choice(_BYTES),
        random_.choice(_BYTES),
        headers,
        random_.choice((0, 1, 1_700_000_000_000)),
    )


@pytest.mark.parametrize("seed", range(6))
def test_both_paths_bring_the_same_rows(
    cluster: MockCluster, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Null and empty keys, values and headers, names that are no text, any time, any cut.

    Two tasks read the first partition, one of them from a later offset.
    """
    random_ = random.Random(seed)  # noqa: S311 - of a test
    topic = f"any-{seed}"
    records = [_any_record(random_) for _ in range(500)]
    cluster.send(topic, records)
    starts = {
        TaskName("Partition 1"): {_ssp(n, topic): 0 for n in range(PARTITIONS)},
        TaskName("Partition 0"): {_ssp(0, topic): random_.choice((3, 70))},
    }
    counts = [sum(r.partition == n for r in records) for n in range(PARTITIONS)]
    count = len(records) + counts[0] - starts[TaskName("Partition 0")][_ssp(0, topic)]
    found, said = [], []
    for is_native in (True, False):
        caplog.clear()
        reading = Reading(random_.choice((10, 2000, 1 << 20)), is_native)
        source = _source(cluster, starts, reading)
        found.append(_rows(source, count, random_))
        said.append(sorted(set(caplog.messages)))
    for a, b in zip(*found, strict=True):
        assert a == b, {name: (a[name], b[name]) for name in a if a[name] != b[name]}
    assert said[0] == said[1]


def test_large_records_and_many_headers(cluster: MockCluster) -> None:
    """4 MB in one value (the broker's limit here), and 10,000 headers."""
    headers = [(b"name-%d" % n, b"v" * (n % 50)) for n in range(10_000)]
    large = Record(0, b"k", b"v" * 4_000_000), Record(1, None, b"", headers), Record(2, b"", None)
    cluster.send("large", large)
    starts = {TaskName("T"): {_ssp(n, "large"): 0 for n in range(3)}}
    native, python = (
        _rows(_source(cluster, starts, Reading(is_native=is_native)), 3)
        for is_native in (True, False)
    )
    assert native == python
    assert len(native[0]["value"]) == 4_000_000
    assert len(native[1]["headers"]) == 10_000


def test_batches_keep_to_both_bounds(cluster: MockCluster) -> None:
    """No record is lost between them, and none comes twice."""
    cluster.send("bounds", [Record(0, None, b"v" * 100) for _ in range(300)])
    source = _source(cluster, {TaskName("T"): {_ssp(0, "bounds"): 0}}, Reading(1000))
    offsets: list[int] = []
    while len(offsets) < 300:
        batch = source.poll(7 if len(offsets) < 70 else 1000, 0.2)
        assert batch is not None
        assert batch.table.num_rows <= (7 if len(offsets) < 70 else 10)
        offsets += batch.table["offset"].to_pylist()
    assert offsets == list(range(300))
    source.close()


def test_callbacks_are_called_and_records_before_the_forward_come_first(
    cluster: MockCluster,
) -> None:
    """The client calls them from its own calls alone: they would end the process elsewhere."""
    cluster.send("before", [Record(0, None, b"%d" % n) for n in range(50)])
    called: list[str] = []
    statistics: dict[str, Any] = {"statistics.interval.ms": 10, "stats_cb": called.append}
    client = consumer(_system(cluster), statistics)
    ssp = _ssp(0, "before")
    reader = QueueReader(client, "kafka", [ssp])
    client.assign([confluent_kafka.TopicPartition("before", 0, 0)])
    values: list[bytes] = []
    deadline = time.monotonic() + DEADLINE_S
    while len(values) < 50 or not called:
        assert time.monotonic() < deadline
        taken = reader.take(10, 1000, 0.2)
        if taken.records is not None:
            values += taken.records["value"].to_pylist()
        if len(values) == 20:
            reader.assigned([ssp])
    assert values == [b"%d" % n for n in range(50)]
    reader.close()
    client.close()


def test_a_client_is_read_from_one_incarnation_to_the_next(cluster: MockCluster) -> None:
    """The end of an assignment, which may come late, takes no record from the next one."""
    cluster.send("again", [Record(0, None, b"%d" % n) for n in range(20)])
    client, ssp = consumer(_system(cluster), {}), _ssp(0, "again")
    for round_ in range(9):
        reader = input_reader.reader_of(client, "kafka", [ssp], native=True)
        assert isinstance(reader, QueueReader)
        client.assign([confluent_kafka.TopicPartition("again", 0, 0)])
        reader.assigned([ssp])
        count, deadline = 0, time.monotonic() + DEADLINE_S
        while count < 20 and round_ % 3:
            assert time.monotonic() < deadline
            count += sum(run.rows for run in reader.take(100, 1000, 0.2).runs)
        reader.close()
        client.unassign()
    client.close()


def test_the_end_of_a_partition_is_a_fault_with_its_place(cluster: MockCluster) -> None:
    """As a message with an error is in Python."""
    cluster.send("ends", [Record(0, None, b"v")])
    found = []
    for native in (True, False):
        client = consumer(_system(cluster), {"enable.partition.eof": True})
        reader = input_reader.reader_of(client, "kafka", [_ssp(0, "ends")], native=native)
        client.assign([confluent_kafka.TopicPartition("ends", 0, 0)])
        reader.assigned([_ssp(0, "ends")])
        faults: list[input_reader.Fault] = []
        deadline = time.monotonic() + DEADLINE_S
        while not faults:
            assert time.monotonic() < deadline
            faults += reader.take(10, 1000, 0.2).faults
        found.append([(f.ssp, f.offset, f.error.code(), f.error.str()) for f in faults])
        reader.close()
        client.close()
    assert found[0] == found[1]


def test_without_the_library_one_line_tells_why_and_input_is_read(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Once in a process, however many clients there are."""

    def none() -> None:
        raise NoLibraryError("this installation was made without a C++ compiler")

    monkeypatch.setattr(library, "load", none)
    monkeypatch.setattr(input_reader, "_SAID", set())
    input_queue._native.cache_clear()
    cluster.send("none", [Record(0, None, b"v")])
    for _ in range(2):
        source = _source(cluster, {TaskName("T"): {_ssp(0, "none"): 0}}, Reading())
        assert len(_rows(source, 1)) == 1
    input_queue._native.cache_clear()
    (line,) = [m for m in caplog.messages if "Python objects" in m]
    assert "made without a C++ compiler; install a C++ compiler (on Debian g++)" in line


def test_a_client_of_an_unknown_layout_is_refused(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its handle is another address: not readable, or not one of a client."""
    client = consumer(_system(cluster), {})
    for address in (0, 1, 1 << 62, (1 << 64) - 1, id(client)):
        monkeypatch.setattr(input_queue, "_first_member", lambda _client, a=address: a)
        with pytest.raises(NoLibraryError, match="in a place that is not known"):
            InputQueue(client, [("in", 0)])
    client.close()
