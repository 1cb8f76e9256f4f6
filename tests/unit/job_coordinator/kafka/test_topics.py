"""Topics: what the job's own must look like, and what brokers answer of any of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    ClusterMetadata,
    ConfigResource,
    ListOffsetsResultInfo,
    NewTopic,
    PartitionMetadata,
    TopicMetadata,
)

from homeport.config.config import Config
from homeport.config.errors import ConfigError, UnavailableError
from homeport.config.settings.sections import JobConfig, SystemConfig, TaskConfig
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.kafka import clients
from homeport.job_coordinator.kafka import topics as topics_module
from homeport.job_coordinator.kafka.clients import error_of
from homeport.job_coordinator.kafka.connection import Connection
from homeport.job_coordinator.kafka.in_sync import await_writable, shortage
from homeport.job_coordinator.kafka.topics import (
    StreamMetadataCache,
    TopicAdmin,
    checkpoint_topic_spec,
    coordinator_topic_spec,
    reported_offset,
)

_CONFIG = Config({"job.name": "my_job", "job.default.system": "kafka"})


def test_coordinator_topic() -> None:
    """One compacted partition, segments of 25 MiB unless configured, replication 3."""
    spec = coordinator_topic_spec(JobConfig.of(_CONFIG))
    assert (spec.name, spec.partitions, spec.replication) == ("__samza_coordinator_my-job_1", 1, 3)
    assert spec.config == {"cleanup.policy": "compact", "segment.bytes": "26214400"}
    assert spec.cleanup_policy == "compact"
    other = _CONFIG.merged({"systems.kafka.default.stream.segment.bytes": "1000"})
    assert coordinator_topic_spec(JobConfig.of(other)).config["segment.bytes"] == "1000"


def test_checkpoint_topic() -> None:
    """One compacted partition, with the largest message that Samza allows."""
    spec = checkpoint_topic_spec(TaskConfig.of(_CONFIG))
    assert (spec.partitions, spec.replication) == (1, 3)
    assert spec.config == {
        "cleanup.policy": "compact",
        "segment.bytes": "26214400",
        "max.message.bytes": "1000012",
    }


class Admin:
    """An admin client; its brokers answer with each of ``errors`` first, and then as they should.

    As the library, it answers late, by the futures in a map of its own.
    """

    def __init__(self) -> None:
        self.errors: list[int] = []
        self.listed: list[dict[str, int]] = []
        self.asked = 0

    def list_topics(self, timeout: float = 0) -> SimpleNamespace:
        """What the next of the brokers lists: topics, each with so many partitions."""
        del timeout
        found = {
            name: SimpleNamespace(error=None, partitions=range(count))
            for name, count in self.listed.pop(0).items()
        }
        return SimpleNamespace(topics=found)

    def describe_topics(self, names: TopicCollection, **_: object) -> Mapping[str, Future[Any]]:
        """Topics with an id."""
        return self._later(
            {name: SimpleNamespace(topic_id=f"id-{name}") for name in names.topic_names}
        )

    def describe_configs(
        self, resources: list[ConfigResource], **_: object
    ) -> Mapping[ConfigResource, Future[Any]]:
        """One property."""
        return self._later({r: {"a": SimpleNamespace(value="1")} for r in resources})

    def _later(self, answers: Mapping[Any, Any]) -> Mapping[Any, Future[Any]]:
        found = {name: _Late() for name in answers}
        self.asked += 1
        error = self.errors.pop() if self.errors else None

        def answer() -> None:
            for name, future in found.items():
                if error is None:
                    future.set_result(answers[name])
                else:
                    future.set_exception(KafkaException(KafkaError(error)))

        for future in found.values():
            future.answer = answer
        return found


class _Late(Future[Any]):
    """A future with its answer at the first call."""

    answer: Callable[[], None]

    def result(self, timeout: float | None = None) -> Any:  # noqa: ANN401 - as the library
        """What the brokers answer."""
        if not self.done():
            self.answer()
        if not self.done():
            raise TimeoutError
        return super().result(timeout)


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Admin:
    """What every admin client asks."""
    admin = Admin()
    monkeypatch.setattr(clients, "admin", lambda _: admin)
    return admin


SYSTEM = SystemConfig.of(Config({"systems.k.consumer.bootstrap.servers": "b:1"}), "k")


def test_a_request_with_a_transient_error_is_repeated(brokers: Admin) -> None:
    """A cluster whose controller changes refuses for a moment only."""
    topics = TopicAdmin(SYSTEM)
    brokers.errors = [KafkaError.NOT_CONTROLLER, KafkaError.LEADER_NOT_AVAILABLE]
    assert topics.topic_ids(["a"]) == {"a": "id-a"}
    brokers.errors = [KafkaError.REQUEST_TIMED_OUT]
    assert topics.topic_config("a") == {"a": "1"}
    assert brokers.asked == 5


def test_properties_of_several_topics_are_requested_together(brokers: Admin) -> None:
    """Each that meets a transient error is requested again alone; of no topic nothing is."""
    topics = TopicAdmin(SYSTEM)
    assert topics.topic_configs(["a", "b", "a"]) == {"a": {"a": "1"}, "b": {"a": "1"}}
    assert topics.topic_configs([]) == {}
    brokers.asked, brokers.errors = 0, [KafkaError.NOT_CONTROLLER]
    assert topics.topic_configs(["a", "b"]) == {"a": {"a": "1"}, "b": {"a": "1"}}
    assert brokers.asked == 3


def test_an_error_that_is_not_transient_is_reported(brokers: Admin) -> None:
    """At once, or when the time is over; a topic that is not there is none."""
    brokers.errors = [KafkaError.TOPIC_AUTHORIZATION_FAILED]
    with pytest.raises(UnavailableError, match=r"asking for topic 'a': .*; grant the rights"):
        TopicAdmin(SYSTEM).topic_ids(["a"])
    brokers.errors = [KafkaError.NOT_CONTROLLER]
    with pytest.raises(UnavailableError, match=r"configuration of topic 'a': .*[Cc]ontroller"):
        TopicAdmin(SYSTEM, -1).topic_config("a")
    brokers.errors = [KafkaError.UNKNOWN_TOPIC_OR_PART]
    assert TopicAdmin(SYSTEM).existing_ids(["a"]) == {}


def test_a_broker_that_does_not_know_a_new_topic_is_behind(
    brokers: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each request may reach another broker; an earlier request reached one that knew the topic."""
    monkeypatch.setattr(topics_module, "_MADE", {("b:1", "a"): time.monotonic()})
    brokers.errors = [KafkaError.UNKNOWN_TOPIC_OR_PART] * 2
    assert TopicAdmin(SYSTEM).topic_config("a") == {"a": "1"}
    brokers.errors = [KafkaError.UNKNOWN_TOPIC_OR_PART]
    assert TopicAdmin(SYSTEM).existing_ids(["a"]) == {"a": "id-a"}
    brokers.listed = [{}, {"a": 2}]
    assert TopicAdmin(SYSTEM).partition_counts(["a", "b"]) == {"a": 2}
    monkeypatch.setattr(topics_module, "_MADE", {("b:1", "a"): time.monotonic() - 60})
    brokers.errors = [KafkaError.UNKNOWN_TOPIC_OR_PART]
    assert TopicAdmin(SYSTEM).existing_ids(["a"]) == {}


@pytest.mark.parametrize(
    ("alive", "replicas", "key", "wanted"),
    [
        ([1], [], None, 1),
        ([1], [1], None, 1),
        ([1], [1, 2], None, 3),
        ([1], [2], None, 3),
        ([1, 2], [1], None, 3),
        ([1], [1], "2", 2),
    ],
)
def test_one_replica_is_for_a_kafka_of_one_broker(
    monkeypatch: pytest.MonkeyPatch,
    alive: list[int],
    replicas: list[int],
    key: str | None,
    wanted: int,
) -> None:
    """Not for one whose other brokers are down: the job's state would stay without a copy."""
    given = {} if key is None else {"job.coordinator.replication.factor": key}
    spec = coordinator_topic_spec(JobConfig.of(_CONFIG.merged(given)))
    part = SimpleNamespace(replicas=replicas)
    topics = {"orders": SimpleNamespace(partitions={0: part} if replicas else {})}
    metadata = SimpleNamespace(brokers=dict.fromkeys(alive, "h:1"), topics=topics)
    asked: list[int] = []

    def refuse(topics: list[NewTopic], **_: object) -> Mapping[str, Future[None]]:
        asked.append(topics[0].replication_factor)
        future: Future[None] = Future()
        future.set_exception(KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)))
        return {topics[0].topic: future}

    admin = SimpleNamespace(list_topics=lambda timeout: metadata, create_topics=refuse)  # noqa: ARG005 - as the library
    monkeypatch.setattr(clients, "admin", lambda _: admin)
    with pytest.raises(UnavailableError):
        TopicAdmin(SYSTEM).ensure(spec)
    assert asked == [wanted]


def test_one_line_says_that_a_kafka_has_one_broker(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Of the first topic that is made there; the others are no news."""
    monkeypatch.setattr(topics_module, "_OF_ONE_BROKER", set[str]())
    metadata = SimpleNamespace(brokers={1: "h:1"}, topics={})
    monkeypatch.setattr(TopicAdmin, "_metadata", lambda _: metadata)
    spec = coordinator_topic_spec(JobConfig.of(_CONFIG))
    with caplog.at_level("INFO"):
        replicas = [TopicAdmin(SYSTEM)._replication(spec) for _ in range(3)]
    assert (replicas, len(caplog.messages)) == ([1, 1, 1], 1)
    assert caplog.messages[0] == (
        f"topics such as {spec.name} get one replica, not 3, as this Kafka has one broker; "
        "systems.k.default.stream.replication.factor sets their number"
    )


def answer(offset: int) -> Future[ListOffsetsResultInfo]:
    """The library's, with this offset."""
    future: Future[ListOffsetsResultInfo] = Future()
    future.set_result(ListOffsetsResultInfo(offset, -1, -1))
    return future


@pytest.mark.parametrize("offset", [0, 7, -1])
def test_an_offset_that_was_returned_is_the_offset(offset: int) -> None:
    """-1: there is no record of that time."""
    assert reported_offset(answer(offset)) == offset


def test_the_number_that_means_no_answer_is_an_error() -> None:
    """One that Kafka's absence is known by."""
    with pytest.raises(KafkaException) as caught:
        reported_offset(answer(-1001))
    assert error_of(caught.value).code() == KafkaError._TIMED_OUT


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

    def admin_of(self, system: SystemConfig) -> SimpleNamespace:
        """The client of one cluster."""
        self.made.append(system.name)

        def partition_counts(streams: Collection[str]) -> Mapping[str, int]:
            self.asked.append((system.name, list(streams)))
            counts = self.counts[system.name]
            return {stream: counts[stream] for stream in streams if stream in counts}

        return SimpleNamespace(partition_counts=partition_counts)


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> Topics:
    """The clusters of all clients."""
    made = Topics()
    monkeypatch.setattr(topics_module, "TopicAdmin", made.admin_of)
    return made


def test_each_system_is_queried_once_for_all_its_streams(topics: Topics) -> None:
    """Streams of one name on two systems stay apart; one that does not exist is absent."""
    cache = StreamMetadataCache(CONFIG)
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


def test_counts_are_those_of_now_and_clients_are_kept(topics: Topics) -> None:
    """A stream that grows is seen at the next call, through the same client."""
    cache = StreamMetadataCache(CONFIG)
    stream = SystemStream("one", "a")
    assert cache.partition_counts([stream]) == {stream: 8}
    topics.counts["one"]["a"] = 16
    assert cache.partition_counts([stream]) == {stream: 16}
    assert topics.made == ["one"]


def test_a_system_without_description_is_refused() -> None:
    """The message names the key that is missing."""
    cache = StreamMetadataCache(CONFIG)
    with pytest.raises(ConfigError, match=r"systems\.three\.consumer\.bootstrap\.servers"):
        cache.partition_counts([SystemStream("three", "a")])


class Client:
    """A producer whose brokers know one topic, of these partitions: (leader, replicas, in sync)."""

    def __init__(self, *partitions: tuple[int, list[int], list[int]]) -> None:
        self.metadata = ClusterMetadata()
        topic = TopicMetadata()
        for number, (leader, replicas, in_sync) in enumerate(partitions):
            found = PartitionMetadata()
            found.id, found.leader = number, leader
            found.replicas, found.isrs = replicas, in_sync
            topic.partitions[number] = found
        self.metadata.topics["t"] = topic
        self.failures = 0

    def poll(self, _timeout: float) -> int:
        """Nothing is heard."""
        return 0

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """What they know, after so many failures."""
        del topic, timeout
        if self.failures:
            self.failures -= 1
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer"))
        return self.metadata


@pytest.fixture
def needs_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record needs two replicas in sync."""
    monkeypatch.setattr(TopicAdmin, "topic_config", lambda *_: {"min.insync.replicas": "2"})


_SHORT = [(1, [1, 2, 3], [1]), (2, [1, 2, 3], [1, 2])]


@pytest.mark.usefixtures("needs_two")
@pytest.mark.parametrize(
    ("partitions", "written", "story"),
    [
        (_SHORT, ("t", 1), None),
        (_SHORT, ("absent", None), None),
        (
            _SHORT,
            ("t", None),
            (
                "topic 't' partition 0 has 1 of 3 replicas in sync, and its min.insync.replicas is "
                "2: start the brokers 2, 3, or lower min.insync.replicas"
            ),
        ),
        ([(1, [1], [1])], ("t", 0), None),
        (
            [(-1, [2, 1], [1, 2])],
            ("t", 0),
            "topic 't' partition 0 has no leader: start the brokers 1, 2",
        ),
    ],
    ids=["enough", "no topic", "too few", "no more replicas than there are", "no leader"],
)
def test_a_partition_that_is_written_to_needs_replicas_in_sync(
    partitions: list[tuple[int, list[int], list[int]]],
    written: tuple[str, int | None],
    story: str | None,
) -> None:
    """As Kafka itself reads min.insync.replicas; of another partition nothing is needed."""
    assert shortage(SYSTEM, Client(*partitions), {written}) == story


@pytest.mark.usefixtures("needs_two")
def test_kafka_that_goes_away_meanwhile_is_waited_for() -> None:
    """As a replica is."""
    client = Client((1, [1], [1]))
    client.failures = 2
    with pytest.raises(UnavailableError, match="asking for replicas in sync: no answer"):
        shortage(SYSTEM, client, {("t", 0)})
    waited: list[float] = []
    await_writable(SYSTEM, Connection(), client, {("t", 0)}, waited.append)
    assert len(waited) == 1


class Heads:
    """An admin client: its broker answers with each of ``errors``, then with the offset 3."""

    def __init__(self, *errors: int) -> None:
        self.errors = list(errors)

    def list_offsets(
        self, asked: Mapping[TopicPartition, object], **_: object
    ) -> dict[TopicPartition, Future[SimpleNamespace]]:
        """An error, or the offset."""
        found: Future[SimpleNamespace] = Future()
        if self.errors:
            found.set_exception(KafkaException(KafkaError(self.errors.pop(0))))
        else:
            found.set_result(SimpleNamespace(offset=3))
        return dict.fromkeys(asked, found)

    def list_topics(self, *_: object) -> None:
        """No broker answers this one."""
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))


def test_the_head_is_read_again_while_the_leader_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until a new leader knows its high watermark, within the time limit (safety K1)."""
    changing = [KafkaError.NOT_LEADER_FOR_PARTITION] + [KafkaError.OFFSET_NOT_AVAILABLE] * 2
    monkeypatch.setattr(clients, "admin", lambda _: Heads(*changing))
    monkeypatch.setattr(topics_module, "_METADATA_POLL_S", 0)
    assert TopicAdmin(SYSTEM, 5).end_offset("t", 0) == 3
    with pytest.raises(UnavailableError, match="asking the end of topic 't': "):
        TopicAdmin(SYSTEM, 0).end_offset("t", 0)
