"""KafkaChangelogFeed: the committed records of changelogs as they come, and the changelogs' ends.

One consumer reads all partitions; they are assigned by hand.
"""

from collections.abc import Callable, Mapping

from confluent_kafka import KafkaError, Message, TopicPartition

from homeport.config.errors import UnavailableError
from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka.client_properties import (
    PartitionError,
    follow_properties,
    know_topics,
    unread,
)
from homeport.container.kafka.head_watch import HeadPolls, HeadWatch
from homeport.container.kafka.log_reader import chunk_of
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.storage.changelog_reader import Chunk
from homeport.container.storage.task_store import Position
from homeport.job_coordinator.kafka.clients import consumer, is_end

_MOST = 1000
_DELETED = "the changelog was deleted while it was followed; the next start looks for it"
_GONE = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - public names of the library, written so by it
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 - as above
    }
)
_LOST = frozenset(
    {
        KafkaError.OFFSET_OUT_OF_RANGE,
        KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001 - as above
    }
)


class KafkaChangelogFeed:
    """``homeport.container.storage.changelog_follower.ChangelogFeed`` on one system's brokers.

    ``starts`` {(topic, partition): the next offset}. UnavailableError: Kafka does not answer.
    """

    def __init__(
        self,
        system: SystemConfig,
        starts: Mapping[Position, int],
        pause: Callable[[float], None],
        clocks: Callable[[], ClockReading],
    ) -> None:
        self._system = system
        self._consumer = consumer(system, follow_properties(system))
        know_topics(self._consumer, system, sorted({topic for topic, _ in starts}))
        self._consumer.assign([TopicPartition(*place, start) for place, start in starts.items()])
        self._watch = HeadWatch(system, list(starts), pause, clocks, _DELETED)

    def poll(self, seconds: float) -> dict[Position, Chunk]:
        """Return the records that have come, a thousand at most, after ``seconds`` at most.

        Raises:
            PartitionError: a partition cannot be read any more.
        """
        batch = self._consumer.consume(1, seconds)
        batch += self._consumer.consume(_MOST - 1, 0) if batch else []
        records: dict[Position, list[Message]] = {}
        passed: dict[Position, int] = {}
        for message in batch:
            place = (message.topic() or "", message.partition() or 0)
            error = message.error()
            if error is None:
                records.setdefault(place, []).append(message)
                passed[place] = message.offset() or 0
            elif is_end(error):
                # Markers of transactions take offsets: only this shows that they are passed.
                passed[place] = (message.offset() or 0) - 1
            else:
                self._require_passing(message, error)
        return {place: chunk_of(records.get(place, ()), at) for place, at in passed.items()}

    def ask(self) -> bool:
        """Begin a poll of the heads; return False while an earlier poll is under way."""
        return self._watch.ask()

    def polled(self) -> HeadPolls:
        """Return the outcome of the last poll, as ``HeadWatch.polled``."""
        return self._watch.polled()

    def close(self) -> None:
        """End the reading."""
        self._watch.close()
        self._consumer.close()

    def _require_passing(self, message: Message, error: KafkaError) -> None:
        what = f"following {message.topic()} partition {message.partition()}"
        if error.code() in _GONE:
            raise PartitionError(f"system {self._system.name!r}: {what}: {_DELETED}")
        if error.code() in _LOST:
            raise PartitionError(
                f"system {self._system.name!r}: {what}: the broker does not have the next offset, "
                f"the topic was recreated or cut off ({error.str()}); the next start restores it"
            )
        if not error.retriable():
            fault = unread(self._system, what, error)
            if not isinstance(fault, UnavailableError):
                raise fault
