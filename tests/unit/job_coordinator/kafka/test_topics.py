"""What the job's own topics must look like."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import ConfigResource

from homeport.config.config import Config
from homeport.config.errors import UnavailableError
from homeport.config.settings.sections import JobConfig, SystemConfig, TaskConfig
from homeport.job_coordinator.kafka import clients
from homeport.job_coordinator.kafka import topics as topics_module
from homeport.job_coordinator.kafka.topics import (
    TopicAdmin,
    checkpoint_topic_spec,
    coordinator_topic_spec,
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
