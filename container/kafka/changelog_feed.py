"""KafkaChangelogFeed: the committed records of changelogs as they come, and the changelogs' ends.

One consumer reads all partitions; they are assigned by hand.
"""

from collections.abc import Callable, Mapping

from confluent_kafka import KafkaError, TopicPartition

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
from homeport.container.kafka.record_reader import PAIRS, reader_of
from homeport.container.native.record_queue import FOR_CALLBACKS
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.storage.changelog_reader import Chunk
from homeport.container.storage.task_store import Position
from homeport.job_coordinator.kafka.clients import consumer, is_end

_MOST, _MOST_BYTES = 1000, 4 * 1024 * 1024
_DELETED = "the changelog was deleted while it was followed; the next start looks for it"
_LOST = frozenset(
    {
        KafkaError.OFFSET_OUT_OF_RANGE,
        KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001 - a public name of the library, written so by it
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
        *,
        native: bool,
    ) -> None:
        self._system = system
        self._consumer = consumer(system, follow_properties(system))
        know_topics(self._consumer, system, sorted({topic for topic, _ in starts}))
        places = {place: place for place in starts}
        self._reader = reader_of(self._consumer, places, PAIRS, native=native)
        self._consumer.assign([TopicPartition(*place, start) for place, start in starts.items()])
        self._reader.assigned(places)
        self._watch = HeadWatch(system, list(starts), pause, clocks, _DELETED)

    def poll(self, seconds: float) -> dict[Position, Chunk]:
        """Return the records that have come, a thousand at most, after ``seconds`` at most.

        Raises:
            PartitionError: a partition cannot be read any more.
        """
        taken = self._reader.take(_MOST, _MOST_BYTES, seconds)
        # Markers of transactions take offsets: only the ends show that they are passed.
        passed = {run.place: run.last for run in taken.runs}
        for place, offset, error in taken.faults:
            if place is None or not is_end(error):
                self._require_passing(place, error)
            else:
                passed[place] = max(passed.get(place, -1), offset - 1)
        chunks = {place: Chunk({}, 0, at) for place, at in passed.items()}
        end = 0
        for run in taken.runs:
            begin, end = end, end + run.rows
            if taken.rows is not None:
                chunks[run.place] = chunk_of(taken.rows.part(begin, end), passed[run.place])
        return chunks

    def ask(self) -> bool:
        """Begin a poll of the heads; return False while an earlier poll is under way."""
        return self._watch.ask()

    def polled(self) -> HeadPolls:
        """Return the outcome of the last poll, as ``HeadWatch.polled``."""
        return self._watch.polled()

    def close(self) -> None:
        """End the reading."""
        self._watch.close()
        self._reader.close()
        self._consumer.close()

    def _require_passing(self, place: Position | None, error: KafkaError) -> None:
        what = "following {} partition {}".format(*place) if place else "following changelogs"
        if error.code() in FOR_CALLBACKS:
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
