"""Topics of repartitions: partitions, form and faults."""

from __future__ import annotations

import pytest
from stream_in_memory import InMemoryCoordinatorStream

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.settings.sections import repartitions
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.kafka import repartition_topics
from homeport.job_coordinator.kafka.repartition_topics import (
    RepartitionTopics,
    internal_topics,
    repartition_topic_spec,
    topic_fault,
    with_repartitions,
)
from homeport.job_coordinator.kafka.topics import FoundTopic
from homeport.job_coordinator.metadata.topics import InputTopicManager
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_A, _B, _CODES = (SystemStream("kafka", name) for name in ("a", "b", "codes"))
_BASE = {
    "job.name": "j",
    "job.default.system": "kafka",
    "task.inputs": "kafka.a,kafka.b,kafka.codes",
    "systems.kafka.consumer.bootstrap.servers": "localhost:9092",
    "stores.codes.factory": "rocksdb",
    "stores.codes.key.serde": "string",
    "stores.codes.msg.serde": "json",
    "stores.codes.adstore.input": "kafka.codes",
}
_OWN = SystemStream("kafka", "__homeport_repartition_j_1_x")


def _config(number: str) -> Config:
    return Config({**_BASE, "task.repartition.x": number})


def test_a_topic_that_is_not_there_gets_the_most_partitions_of_the_inputs_of_tasks() -> None:
    """A stream that fills a store decides nothing, unless there is no other."""
    counts = {_A: 2, _B: 3, _CODES: 8}
    assert with_repartitions(_config("inputs"), counts) == {**counts, _OWN: 3}
    assert with_repartitions(_config("inputs"), {_CODES: 8}) == {_CODES: 8, _OWN: 8}
    assert with_repartitions(_config("inputs"), {}) == {}
    assert with_repartitions(_config("5"), {}) == {_OWN: 5}
    assert with_repartitions(Config(_BASE), counts) == counts


def test_a_topic_that_is_there_keeps_its_partitions_unless_a_number_is_written() -> None:
    """The check compares the number with it; inputs that grow move no key."""
    counts = {_A: 16, _OWN: 8}
    assert with_repartitions(_config("inputs"), counts) == counts
    assert with_repartitions(_config("4"), counts)[_OWN] == 4


def test_nothing_in_the_topic_is_deleted_by_age_or_size() -> None:
    """Only containers delete, what they have committed."""
    (own,) = repartitions(_config("4"))
    spec = repartition_topic_spec(own, 4)
    assert (spec.name, spec.partitions, spec.replication, spec.is_default) == (
        _OWN.stream,
        4,
        2,
        True,
    )
    assert spec.config["retention.ms"] == spec.config["retention.bytes"] == "-1"
    assert internal_topics(_config("4")) == (_OWN,)
    replicas = {**_BASE, "task.repartition.x": "4", "task.repartition.x.replication.factor": "3"}
    (own,) = repartitions(Config(replicas))
    spec = repartition_topic_spec(own, 4)
    assert (spec.replication, spec.is_default) == (3, False)


@pytest.mark.parametrize(
    ("partitions", "config", "rule"),
    [
        (8, {}, "topic '__homeport_repartition_j_1_x' has 8 partitions"),
        (4, {"cleanup.policy": "compact"}, "its cleanup.policy is 'compact'"),
        (4, {"cleanup.policy": "compact,delete"}, "its cleanup.policy is 'compact,delete'"),
        (4, {"retention.ms": "1000"}, "its retention.ms is '1000'"),
        (4, {"message.timestamp.type": "LogAppendTime"}, "its message.timestamp.type"),
        (4, {"retention.ms": "-1", "segment.bytes": "1"}, None),
    ],
)
def test_a_topic_of_another_form_is_refused(
    partitions: int, config: dict[str, str], rule: str | None
) -> None:
    """In one line, with what would be right."""
    (own,) = repartitions(_config("4"))
    fault = topic_fault(own, 4, FoundTopic("id", partitions, 1, config))
    if rule is None:
        assert fault is None
    else:
        assert rule in str(fault)


def test_a_repartition_that_the_job_has_no_more_is_named_once_it_has_been_read() -> None:
    """Its topic may hold what no task has read; topics of other jobs are other inputs."""
    stream = InMemoryCoordinatorStream()
    others = (_A, SystemStream("kafka", "__homeport_repartition_other_1_x"))
    InputTopicManager(stream, 1).write(dict.fromkeys((_OWN, *others), "id"))
    stream.catch_up()
    (line,) = RepartitionTopics(Config(_BASE), stream).check()
    assert f"topic {_OWN} is of the repartition 'x', which the job has no more" in line


class _Admin:
    """Brokers with the topic alone, whose partitions end at ``ends``."""

    def __init__(self, ends: tuple[int, ...]) -> None:
        self._ends = ends

    def described(self, names: list[str]) -> dict[str, FoundTopic]:
        found = FoundTopic("id", len(self._ends), 1, {})
        return dict.fromkeys(names, found) if self._ends else {}

    def end_offset(self, _name: str, partition: int) -> int:
        return self._ends[partition]


@pytest.mark.parametrize("ends", [(0, 3), (0, 0), ()])
def test_a_repartition_that_comes_back_with_records_is_refused(
    monkeypatch: pytest.MonkeyPatch, ends: tuple[int, ...]
) -> None:
    """Positions in it went with it: what was counted and not deleted would be counted again."""
    monkeypatch.setattr(repartition_topics, "TopicAdmin", lambda _system: _Admin(ends))
    topics = RepartitionTopics(_config("inputs"), InMemoryCoordinatorStream())
    reading = frozenset({SystemStreamPartition(_OWN.system, _OWN.stream, 0)})
    topics.require_unread({TaskName("t"): reading})
    if not any(ends):
        topics.require_unread({})
        return
    with pytest.raises(ConfigError, match="has records of an earlier time") as refused:
        topics.require_unread({})
    assert "give the repartition another name" in str(refused.value)
