"""What a standby gets of its changelogs, natively and through messages."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from mock_cluster import MockCluster, Record, mock_cluster
from native_fuzz import DEADLINE_S, system

from homeport.container.kafka.changelog_feed import KafkaChangelogFeed
from homeport.container.kafka.client_properties import PartitionError
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.storage.changelog_reader import Chunk
from homeport.container.storage.task_store import Position


@pytest.fixture(scope="module")
def cluster() -> Iterator[MockCluster]:
    """A broker of librdkafka in this process."""
    with mock_cluster(2) as made:
        yield made


def _feed(cluster: MockCluster, starts: dict[Position, int], *, native: bool) -> KafkaChangelogFeed:
    return KafkaChangelogFeed(
        system(cluster), starts, lambda _: None, lambda: ClockReading(0), native=native
    )


def _polled(feed: KafkaChangelogFeed) -> dict[Position, Chunk]:
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        found = feed.poll(0.2)
        if found:
            return found
    raise AssertionError("nothing came")


@pytest.mark.parametrize("native", [True, False])
def test_a_chunk_has_the_last_value_of_each_key_and_no_record_without_one(
    cluster: MockCluster, *, native: bool
) -> None:
    """Each partition's; all records count, and the last of them is the chunk's end."""
    topic = f"last-{native}"
    pairs = [(b"a", b"1"), (None, b"no key"), (b"b", b"1"), (b"a", b"2"), (b"b", None)]
    cluster.send(topic, [Record(0, key, value) for key, value in pairs])
    cluster.send(topic, [Record(1, b"a", b"other")])
    feed = _feed(cluster, {(topic, 0): 1, (topic, 1): 0}, native=native)
    entries: dict[Position, dict[bytes, bytes | None]] = {}
    counts, lasts = dict[Position, int](), dict[Position, int]()
    while lasts != {(topic, 0): 4, (topic, 1): 0}:
        for place, chunk in _polled(feed).items():
            entries.setdefault(place, {}).update(chunk.entries)
            counts[place] = counts.get(place, 0) + chunk.records
            lasts[place] = chunk.last_offset
    assert entries == {(topic, 0): {b"a": b"2", b"b": None}, (topic, 1): {b"a": b"other"}}
    assert counts == {(topic, 0): 4, (topic, 1): 1}
    feed.close()


@pytest.mark.parametrize("native", [True, False])
def test_an_offset_that_the_broker_does_not_have_ends_the_feed(
    cluster: MockCluster, *, native: bool
) -> None:
    """The topic was recreated or cut off: the next start restores the store."""
    topic = f"short-{native}"
    cluster.send(topic, [Record(0, b"a", b"1")])
    feed = _feed(cluster, {(topic, 0): 9}, native=native)
    with pytest.raises(PartitionError, match="the broker does not have the next offset"):
        _polled(feed)
    feed.close()
