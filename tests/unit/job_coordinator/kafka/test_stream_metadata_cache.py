"""Partition counts of input streams; Kafka itself stands behind a dictionary here."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.settings.sections import SystemConfig
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.kafka.stream_metadata_cache import StreamMetadataCache

CONFIG = Config(
    {
        "systems.one.consumer.bootstrap.servers": "localhost:1",
        "systems.two.consumer.bootstrap.servers": "localhost:2",
    }
)


class Topics:
    """The topics of two clusters, and the requests they received."""

    def __init__(self) -> None:
        """Cluster one has a and b, cluster two has a."""
        self.counts = {"one": {"a": 8, "b": 2}, "two": {"a": 3}}
        self.asked: list[tuple[str, list[str]]] = []
        self.made: list[str] = []

    def admin_of(self, system: SystemConfig) -> Asked:
        """The client of one cluster."""
        self.made.append(system.name)
        return Asked(self, system.name)


class Asked:
    """One cluster's client."""

    def __init__(self, topics: Topics, system: str) -> None:
        """Nothing asked yet."""
        self._topics = topics
        self._system = system

    def partition_counts(self, streams: Collection[str]) -> Mapping[str, int]:
        """Those that there are."""
        self._topics.asked.append((self._system, list(streams)))
        counts = self._topics.counts[self._system]
        return {stream: counts[stream] for stream in streams if stream in counts}


def test_each_system_is_queried_once_for_all_its_streams() -> None:
    """Streams of one name on two systems stay apart; one that does not exist is absent."""
    topics = Topics()
    cache = StreamMetadataCache(CONFIG, topics.admin_of)
    streams = [
        SystemStream("two", "a"),
        SystemStream("one", "b"),
        SystemStream("one", "a"),
        SystemStream("one", "b"),
        SystemStream("two", "gone"),
    ]
    assert cache.partition_counts(streams) == {
        SystemStream("one", "a"): 8,
        SystemStream("one", "b"): 2,
        SystemStream("two", "a"): 3,
    }
    assert topics.asked == [("one", ["a", "b"]), ("two", ["a", "gone"])]


def test_counts_are_those_of_now_and_clients_are_kept() -> None:
    """A stream that grows is seen at the next call, through the same client."""
    topics = Topics()
    cache = StreamMetadataCache(CONFIG, topics.admin_of)
    stream = SystemStream("one", "a")
    assert cache.partition_counts([stream]) == {stream: 8}
    topics.counts["one"]["a"] = 16
    assert cache.partition_counts([stream]) == {stream: 16}
    assert topics.made == ["one"]


def test_a_system_without_description_is_refused() -> None:
    """The message names the key that is missing."""
    cache = StreamMetadataCache(CONFIG, Topics().admin_of)
    with pytest.raises(ConfigError, match=r"systems\.three\.consumer\.bootstrap\.servers"):
        cache.partition_counts([SystemStream("three", "a")])
