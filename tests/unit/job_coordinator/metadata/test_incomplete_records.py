"""Records that lack what ours have, or that have a name in common: what they mean all the same."""

from __future__ import annotations

import own_records
import pytest

from homeport.config.config import Config
from homeport.config.errors import WireError
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import (
    InMemoryCoordinatorStream,
    StreamState,
)
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata.configuration import WRITER_SOURCE, ConfigManager
from homeport.job_coordinator.metadata.lifecycle import FailoverManager, RecordedFailover
from homeport.job_coordinator.metadata.topics import ChangelogTopicManager
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.job_model import SystemStreamPartition

LOG = SystemStream("kafka", "log")
SSP = SystemStreamPartition("kafka", "in", 0)


def _written(stream: InMemoryCoordinatorStream, message_type: str, key: str, **values: str) -> None:
    stream.write([CoordinatorStreamMessage(message_type, key, values)])
    stream.catch_up()


def test_a_failover_without_cause_or_used_standbys_is_one(
    stream: InMemoryCoordinatorStream,
) -> None:
    """It has no cause that anybody could name, and has used none yet."""
    _written(stream, MessageType.SET_FAILOVER, "0", epoch="4", step="standby")
    expected = RecordedFailover(4, None, None, "standby")
    assert FailoverManager(stream).read() == {ProcessorId("0"): expected}


@pytest.mark.parametrize(("topic_id", "store"), [("id-1", ""), ("", "s")])
def test_a_changelog_record_needs_both_its_values(
    stream: InMemoryCoordinatorStream, topic_id: str, store: str
) -> None:
    """One of them alone cannot show a lost state: it says nothing."""
    stream.write([wire.set_topic(MessageType.SET_CHANGELOG_TOPIC, str(LOG), topic_id, store=store)])
    stream.catch_up()
    assert ChangelogTopicManager(stream).read() == {}


def test_a_null_of_the_writer_tool_overrides_no_file(stream: InMemoryCoordinatorStream) -> None:
    """A value that is no text is none: the deployment's own counts."""
    value = f'{{"source":"{WRITER_SOURCE}","values":{{"value":null}}}}'
    stream.log.append((b'[1,"set-config","a"]', value.encode()))
    stream.catch_up()
    assert stream.latest("set-config")["a"].source == WRITER_SOURCE
    assert ConfigManager(stream).written() == Config({})


def test_a_tombstone_has_no_value_of_any_name() -> None:
    """A tombstone returns no value for any name."""
    assert wire.tombstone(MessageType.SET_CONFIG, "a").value("value") is None


def test_a_task_may_be_named_like_a_processor() -> None:
    """Only records of locality can be late: the permit of processor 0 is none of task 0."""
    state = StreamState()
    for message in (
        own_records.set_processor_epoch("1", 9, 1, []),
        wire.set_task_container_assignment("0", "1"),
        own_records.set_processor_epoch("0", 4, 1, []),
    ):
        state.apply(message)
    assert list(state.latest(MessageType.SET_PROCESSOR_EPOCH)) == ["1", "0"]


def test_a_twin_that_is_written_itself_has_no_other_twin(stream: InMemoryCoordinatorStream) -> None:
    """A record in the document's form is written as it is: its own key is not deleted before it."""
    stream.log.append((b'["1","set-config","a"]', b'{"values":{"value":"old"}}'))
    stream.catch_up()
    stream.write([CoordinatorStreamMessage("set-config", "a", None, has_text_version=True)])
    assert stream.log[1:] == [(b'["1","set-config","a"]', None)]


def test_a_standby_of_an_unknown_epoch_says_where_it_is() -> None:
    """A failover uses it; no epoch of it is known, so no word of it can be of before."""
    state = StreamState()
    state.apply(own_records.set_failover("0", 4, "0-1", "nm2", step="standby"))
    state.apply(wire.set_container_host_assignment("0-1", "nm3", 1))
    (found,) = state.latest(MessageType.SET_CONTAINER_HOST).values()
    assert wire.host(found) == "nm3"


def test_a_partition_without_tasks_named_cannot_be_read() -> None:
    """It is said which record that is."""
    key = wire.set_task_partition_assignment(SSP, []).key
    record = CoordinatorStreamMessage(MessageType.SET_TASK_PARTITION, key, {})
    with pytest.raises(WireError, match="set-task-partition-assignment"):
        wire.task_partition(record)
