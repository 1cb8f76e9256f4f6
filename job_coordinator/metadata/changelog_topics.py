"""Which topic holds the state of which store, in the coordinator stream; whether it still does.

A topic that is deleted takes the state along, and one that is created in its place looks like one
of a new job. The brokers give it another id: the id that a changelog had when the job first wrote
to it is kept here, and no process goes on with another topic, or makes one, without an error.

Source: HA-YARN, "restores the state store"; safety S3.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError, WireError
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.coordinator_stream.reading import RecordManager, read_all
from homeport.job_coordinator.metadata.state_reset import OPTION

_TYPE = MessageType.SET_CHANGELOG_TOPIC


@dataclass(frozen=True)
class ChangelogTopicRecord:
    """The topic with the id ``topic_id`` holds the state of ``store``."""

    topic_id: str
    store: str


class ChangelogTopicManager(RecordManager):
    """Which topics hold the job's state: set-changelog-topic."""

    def read(self) -> dict[SystemStream, ChangelogTopicRecord]:
        """{changelog: what is known of it}, as of the last catch-up."""
        found = read_all(self._stream, _TYPE, _record)
        topics = {SystemStream.parse(key): record for key, record in found.items()}
        return {topic: record for topic, record in topics.items() if topic is not None}

    def write(self, records: Mapping[SystemStream, ChangelogTopicRecord]) -> None:
        """The stream says ``records``, whatever it said of these topics; others stay."""
        known = self.read()
        self._stream.write(
            [
                wire.set_topic(_TYPE, str(topic), record.topic_id, store=record.store)
                for topic, record in sorted(records.items())
                if known.get(topic) != record
            ]
        )


def lost_state(
    changelog: SystemStream, record: ChangelogTopicRecord | None, topic_id: str | None
) -> ConfigError | None:
    """What there is to say where ``changelog`` is not the topic any more that holds the state.

    Args:
        changelog: of a store.
        record: what the stream says of it; None: no state is known of.
        topic_id: the broker's id of the topic now; None: there is no such topic.
    """
    if record is None or record.topic_id == topic_id:
        return None
    what = (
        "the topic does not exist any more, and it held the state of the job"
        if topic_id is None
        else f"the topic was deleted and recreated (its id is {topic_id}, it was "
        f"{record.topic_id}), and the one before held the state of the job"
    )
    return ConfigError(
        keys.STORE_CHANGELOG.named(record.store),
        str(changelog),
        what,
        f"bring its records back and submit the job again, or begin from nothing by run-job "
        f"{OPTION}",
    )


def left_behind(
    known: Mapping[SystemStream, ChangelogTopicRecord], used: Collection[SystemStream]
) -> Iterator[str]:
    """Yield a line for each topic that holds state, and that no store of the job has any more.

    ``used``: the changelogs of its stores.
    """
    for changelog, record in sorted(known.items()):
        if changelog not in used:
            yield (
                f"changelog {changelog} holds the state of store {record.store}, and no store has "
                "it any more: that state stays behind; where the store has another name now, name "
                f"this topic in {keys.STORE_CHANGELOG.named('<its name now>')}"
            )


def _record(message: CoordinatorStreamMessage) -> ChangelogTopicRecord:
    topic_id, store = message.value("topic-id"), message.value("store")
    if not topic_id or not store:
        raise WireError(f"{message.type} {message.key!r}: topic-id or store is missing")
    return ChangelogTopicRecord(topic_id, store)
