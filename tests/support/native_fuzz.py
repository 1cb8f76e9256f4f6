"""Compares the native path of input with the one in Python, on records of any form.

``python native_fuzz.py LIBRARY SEEDS``: the same with another build of the library, such as one
that sanitizers watch.
"""

from __future__ import annotations

import contextlib
import ctypes
import random
import sys
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from confluent_kafka import Producer
from mock_cluster import MockCluster, Record, mock_cluster

from homeport.config.config import Config
from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka.changelog_feed import KafkaChangelogFeed
from homeport.container.kafka.input_consumer import InputConsumer, MicroBatch, Reading
from homeport.container.kafka.log_reader import LogReader
from homeport.container.native import library
from homeport.container.native.bulk_producer import BulkProducer
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.transaction_plan import SendColumns, SendPairs
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


def system(cluster: MockCluster) -> SystemConfig:
    """Return the cluster as the system of a job."""
    keys = {"systems.kafka.consumer.bootstrap.servers": cluster.servers}
    return SystemConfig.of(Config(keys), "kafka")


def ssp(partition: int, topic: str = "in") -> SystemStreamPartition:
    """Return a partition of the cluster."""
    return SystemStreamPartition("kafka", topic, partition)


def source_of(
    cluster: MockCluster,
    starts: Mapping[TaskName, Mapping[SystemStreamPartition, int]],
    reading: Reading,
) -> InputConsumer:
    """Return the input of these tasks, to be read in this way."""
    return InputConsumer({"kafka": system(cluster)}, starts, reading=reading)


def rows_of(
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
        place = TaskName(row["task"]), ssp(row["partition"], row["stream"])
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


def compare(cluster: MockCluster, seed: int) -> None:
    """Assert that both paths bring the same rows of 500 records, however the batches are cut.

    Two tasks read the first partition, one of them from a later offset.
    """
    random_ = random.Random(seed)  # noqa: S311 - of a test
    topic = f"any-{seed}"
    records = [_any_record(random_) for _ in range(500)]
    cluster.send(topic, records)
    skipped = random_.choice((3, 70))
    starts = {
        TaskName("Partition 1"): {ssp(n, topic): 0 for n in range(PARTITIONS)},
        TaskName("Partition 0"): {ssp(0, topic): skipped},
    }
    count = len(records) + sum(r.partition == 0 for r in records) - skipped
    found = []
    for is_native in (True, False):
        reading = Reading(random_.choice((10, 2000, 1 << 20)), is_native)
        found.append(rows_of(source_of(cluster, starts, reading), count, random_))
    for native, python in zip(*found, strict=True):
        assert native == python
    _compare_changelogs(cluster, topic, sum(r.partition == 0 for r in records))


def _compare_changelogs(cluster: MockCluster, topic: str, count: int) -> None:
    """Assert that a restore and a standby have the same of both paths, to the head and no further.

    ``count``: of the records in the first partition.
    """
    restored, followed = [], []
    for native in (True, False):
        with contextlib.closing(LogReader(system(cluster), _go_on)) as reader:
            parts = list(reader.read_pairs(topic, 0, 2, count - 1, native=native))
        restored.append([row for part in parts for row in zip(*part, strict=True)])
        starts = {(topic, n): 1 for n in range(PARTITIONS)}
        feed = KafkaChangelogFeed(system(cluster), starts, _go_on, _clock, native=native)
        entries: dict[tuple[str, int], dict[bytes, bytes | None]] = {p: {} for p in starts}
        lasts, deadline = dict.fromkeys(starts, 0), time.monotonic() + DEADLINE_S
        while lasts[topic, 0] < count - 1:
            assert time.monotonic() < deadline
            for place, chunk in feed.poll(0.2).items():
                entries[place].update(chunk.entries)
                lasts[place] = max(lasts[place], chunk.last_offset)
        feed.close()
        followed.append(entries[topic, 0])
    assert restored[0] == restored[1]
    assert [offset for *_, offset in restored[0]] == list(range(2, count - 1))
    assert followed[0] == followed[1]


def _go_on(_seconds: float) -> None:
    """Let a reader go on."""


def _clock() -> ClockReading:
    return ClockReading(0)


def bring_back(cluster: MockCluster, seed: int) -> None:
    """Assert that records of any form that are put natively come back as they are."""
    random_ = random.Random(seed)  # noqa: S311 - of a test
    topic, count = f"put-{seed}", 3000
    keys, values = (random_.choices(_BYTES, k=count) for _ in range(2))
    client = Producer({"bootstrap.servers": cluster.servers})
    pairs = SendPairs(topic, None, 1)
    for pair in zip(keys, values, strict=True):
        pairs.flat += pair
    assert BulkProducer(client).produce(pairs, 0) == count
    columns = (pa.array([b"before", *own], pa.large_binary())[1:] for own in (keys, values))
    assert BulkProducer(client).produce(SendColumns(topic, None, *columns), 0) == count
    assert client.flush(DEADLINE_S) == 0
    starts = {TaskName("T"): {ssp(n, topic): 0 for n in range(PARTITIONS)}}
    found = rows_of(source_of(cluster, starts, Reading()), 2 * count)
    first, last = list(zip(keys, values, strict=True)), Counter(zip(keys, values, strict=True))
    own = [(row["key"], row["value"]) for row in found if row["partition"] == 1]
    assert own[:count] == first
    assert Counter((row["key"], row["value"]) for row in found) == last + last


def main() -> None:
    """Compare with the library of the first argument, by as many seeds as the second."""
    library.load = lambda: ctypes.CDLL(sys.argv[1])  # type: ignore[assignment] # its own build
    with mock_cluster(PARTITIONS) as cluster:
        for seed in range(int(sys.argv[2])):
            compare(cluster, seed)
            bring_back(cluster, seed)
        large = [(b"n%d" % n, b"v" * (n % 50)) for n in range(10_000)]
        cluster.send("large", [Record(0, b"k", b"v" * 4_000_000), Record(0, None, b"", large)])
        starts = {TaskName("T"): {ssp(0, "large"): 0}}
        assert len(rows_of(source_of(cluster, starts, Reading()), 2)) == 2


if __name__ == "__main__":
    main()
