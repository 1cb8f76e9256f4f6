"""The native path of input brings exactly what the one in Python brings, whatever records are."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import native_fuzz
import pytest
from confluent_kafka import TopicPartition
from mock_cluster import MockCluster, Record, mock_cluster
from native_fuzz import PARTITIONS, compare, rows_of, source_of, ssp, system
from sanitized_builds import run_sanitized

from homeport.container.kafka import record_reader
from homeport.container.kafka.arrow_records import ARROW
from homeport.container.kafka.input_consumer import Reading
from homeport.container.kafka.record_reader import QueueReader, Taken, reader_of
from homeport.container.native import library, record_queue
from homeport.container.native.library import NoLibraryError
from homeport.container.native.record_queue import Polled, RecordQueue
from homeport.job_coordinator.kafka.clients import consumer
from homeport.job_coordinator.model.ids import TaskName

DEADLINE_S = 30


@pytest.fixture(scope="module")
def cluster() -> Iterator[MockCluster]:
    """A broker of librdkafka in this process."""
    with mock_cluster(PARTITIONS) as made:
        yield made


@pytest.mark.parametrize("seed", range(6))
def test_both_paths_bring_the_same_rows(
    cluster: MockCluster, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Null and empty keys, values and headers, names that are no text, any time, any cut."""
    compare(cluster, seed)
    lines = [m for m in caplog.messages if "are left out" in m]
    assert len(set(lines)) * 2 <= len(lines), "each path warns of each record"


def test_no_memory_is_misused(tmp_path: Path) -> None:
    """The same, and large records, by a build that two sanitizers of the compiler watch."""
    run_sanitized(native_fuzz, tmp_path, "2")


def test_large_records_and_many_headers(cluster: MockCluster) -> None:
    """4 MB in one value (the broker's limit here), and 10,000 headers."""
    headers = [(b"name-%d" % n, b"v" * (n % 50)) for n in range(10_000)]
    large = Record(0, b"k", b"v" * 4_000_000), Record(1, None, b"", headers), Record(2, b"", None)
    cluster.send("large", large)
    starts = {TaskName("T"): {ssp(n, "large"): 0 for n in range(3)}}
    native, python = (
        rows_of(source_of(cluster, starts, Reading(is_native=is_native)), 3)
        for is_native in (True, False)
    )
    assert native == python
    assert len(native[0]["value"]) == 4_000_000
    assert len(native[1]["headers"]) == 10_000


def test_batches_keep_to_both_bounds(cluster: MockCluster) -> None:
    """No record is lost between them, and none comes twice."""
    cluster.send("bounds", [Record(0, None, b"v" * 100) for _ in range(300)])
    source = source_of(cluster, {TaskName("T"): {ssp(0, "bounds"): 0}}, Reading(1000))
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
    client = consumer(system(cluster), statistics)
    own = "before", 0
    reader = QueueReader(client, {own: own}, ARROW)
    client.assign([TopicPartition("before", 0, 0)])
    values: list[bytes] = []
    deadline = time.monotonic() + DEADLINE_S
    while len(values) < 50 or not called:
        assert time.monotonic() < deadline
        taken = reader.take(10, 1000, 0.2)
        if taken.rows is not None:
            values += taken.rows["value"].to_pylist()
        if len(values) == 20:
            reader.assigned([own])
    assert values == [b"%d" % n for n in range(50)]
    reader.close()
    client.close()


def test_a_client_is_read_from_one_incarnation_to_the_next(cluster: MockCluster) -> None:
    """The end of an assignment, which may come late, takes no record from the next one."""
    cluster.send("again", [Record(0, None, b"%d" % n) for n in range(20)])
    client, own = consumer(system(cluster), {}), ("again", 0)
    for round_ in range(9):
        reader = reader_of(client, {own: own}, ARROW, native=True)
        assert isinstance(reader, QueueReader)
        client.assign([TopicPartition("again", 0, 0)])
        reader.assigned([own])
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
        client = consumer(system(cluster), {"enable.partition.eof": True})
        own = "ends", 0
        reader = reader_of(client, {own: own}, ARROW, native=native)
        client.assign([TopicPartition("ends", 0, 0)])
        reader.assigned([own])
        faults: list[record_reader.Fault[tuple[str, int]]] = []
        deadline = time.monotonic() + DEADLINE_S
        while not faults:
            assert time.monotonic() < deadline
            faults += reader.take(10, 1000, 0.2).faults
        found.append([(f.place, f.offset, f.error.code(), f.error.str()) for f in faults])
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
    monkeypatch.setattr(record_reader, "_SAID", set())
    record_queue._native.cache_clear()
    cluster.send("none", [Record(0, None, b"v")])
    for _ in range(2):
        source = source_of(cluster, {TaskName("T"): {ssp(0, "none"): 0}}, Reading())
        assert len(rows_of(source, 1)) == 1
    record_queue._native.cache_clear()
    (line,) = [m for m in caplog.messages if "Python objects" in m]
    assert "made without a C++ compiler; install a C++ compiler (on Debian g++)" in line


def test_a_client_of_an_unknown_layout_is_refused(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its handle is another address: not readable, or not one of a client."""
    client = consumer(system(cluster), {})
    for address in (0, 1, 1 << 62, (1 << 64) - 1, id(client)):
        monkeypatch.setattr(record_queue, "_first_member", lambda _client, a=address: a)
        with pytest.raises(NoLibraryError, match="in a place that is not known"):
            RecordQueue(client, [("in", 0)])
    client.close()


@pytest.mark.parametrize(("topic", "partition"), [("in", 9), ("never", 0)])
def test_errors_for_callbacks_are_no_faults(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch, topic: str, partition: int
) -> None:
    """As in Python; and no callback is called where none may be: it would end the process."""
    client = consumer(system(cluster), {"topic.metadata.propagation.max.ms": 1})
    own = topic, partition
    reader = QueueReader(client, {own: own}, ARROW)
    codes: list[int] = []
    take = RecordQueue.take

    def polled(queue: RecordQueue, *bounds: Any) -> Polled:  # noqa: ANN401 - as they come
        found = take(queue, *bounds)
        codes.extend(fault.code for fault in found.faults)
        return found

    monkeypatch.setattr(RecordQueue, "take", polled)
    # Before the assignment, too: an error that comes between both goes to the client's own queue.
    reader.assigned([own])
    client.assign([TopicPartition(topic, partition, 0)])
    reader.assigned([own])
    deadline = time.monotonic() + DEADLINE_S
    while not codes:
        assert time.monotonic() < deadline
        assert reader.take(10, 1000, 0.2) == Taken(None, [], [])
    assert set(codes) <= record_queue.FOR_CALLBACKS
    reader.close()
    client.close()
