"""Which topics hold the job's state, and what is said where they no longer do."""

from __future__ import annotations

import logging

import pytest

from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import MessageType
from homeport.job_coordinator.metadata.state_reset import state_removed
from homeport.job_coordinator.metadata.topics import (
    ChangelogTopicManager,
    ChangelogTopicRecord,
    left_behind,
    lost_state,
)

LOG, OTHER = SystemStream("kafka", "my.log"), SystemStream("kafka", "other")
RECORD = ChangelogTopicRecord("id-1", "s")


def test_topics_are_read_as_they_were_written(stream: InMemoryCoordinatorStream) -> None:
    """With dots in their names; what is written of one says nothing of others."""
    manager = ChangelogTopicManager(stream)
    assert manager.read() == {}
    manager.write({LOG: RECORD})
    stream.catch_up()
    manager.write({OTHER: ChangelogTopicRecord("id-2", "t")})
    stream.catch_up()
    manager.write({LOG: ChangelogTopicRecord("id-3", "s")})
    stream.catch_up()
    found = {LOG: ChangelogTopicRecord("id-3", "s"), OTHER: ChangelogTopicRecord("id-2", "t")}
    assert manager.read() == found
    manager.write(found)
    assert stream.catch_up() == ()


def test_a_reset_takes_them_away(stream: InMemoryCoordinatorStream) -> None:
    """The topics are recreated, and nothing is missed of those before."""
    manager = ChangelogTopicManager(stream)
    manager.write({LOG: RECORD})
    stream.catch_up()
    stream.write(state_removed(stream))
    stream.catch_up()
    assert manager.read() == {}


def test_a_record_that_cannot_be_read_says_nothing(
    stream: InMemoryCoordinatorStream, caplog: pytest.LogCaptureFixture
) -> None:
    """It is reported, and the topic is accepted as it is; so is one without a system."""
    for topic, topic_id in ((str(LOG), ""), ("no-system", "id-1")):
        message_type = MessageType.SET_CHANGELOG_TOPIC
        stream.write([wire.set_topic(message_type, topic, topic_id, store="s")])
    stream.catch_up()
    with caplog.at_level(logging.WARNING):
        assert ChangelogTopicManager(stream).read() == {}
    assert "topic-id or store is missing" in caplog.text


def test_only_the_topic_that_is_known_holds_the_state() -> None:
    """Of one that nothing is known of none is missed; a missing and another one are reported."""
    assert lost_state(LOG, None, None) is None
    assert lost_state(LOG, None, "id-1") is None
    assert lost_state(LOG, RECORD, "id-1") is None
    assert str(lost_state(LOG, RECORD, None)) == (
        "stores.s.changelog = 'kafka.my.log': the topic does not exist any more, and it held the "
        "state of the job; bring its records back and submit the job again, or begin from nothing "
        "by run-job --reset-state"
    )
    assert str(lost_state(LOG, RECORD, "id-2")) == (
        "stores.s.changelog = 'kafka.my.log': the topic was deleted and recreated (its id is id-2, "
        "it was id-1), and the one before held the state of the job; bring its records back and "
        "submit the job again, or begin from nothing by run-job --reset-state"
    )


def test_state_that_no_store_has_any_more_is_named() -> None:
    """One line for each topic; what is used is no such one."""
    known = {OTHER: ChangelogTopicRecord("id-2", "t"), LOG: RECORD}
    assert list(left_behind(known, [LOG, OTHER])) == []
    first, second = left_behind(known, [])
    assert first.startswith("changelog kafka.my.log holds the state of store s, and no store has")
    assert second.startswith("changelog kafka.other holds the state of store t, and no store has")
    assert list(left_behind(known, [LOG])) == [second]
