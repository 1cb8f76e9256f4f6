"""Ends transactions that hang in a partition which a container has to read.

Kafka may leave the end of a transaction out of a partition, for ever (KAFKA-20734: where it has no
leader at that moment, as when a single broker comes back). What the transaction coordinators have
written says how it ended; the same end is written once more, by its own id: what that id writes
next in the partition, and how it ends that, ends what it had left open there.

Only ids of superseded incarnations are used, whom nobody permits any more (safety I3): whoever of
them wakes up is fenced by it, as their successors have fenced them already.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager

from confluent_kafka import KafkaException

from homeport.config.errors import HomeportError, UnavailableError
from homeport.container.kafka.clients import HangingTransactionError, producer_properties
from homeport.container.kafka.log_reader import LogReader
from homeport.container.kafka.transactional_producer import fence
from homeport.container.progress import checkpoint
from homeport.container.progress.transaction_state import (
    STATE_TOPIC,
    Ended,
    Outcome,
    Place,
    TransactionEnds,
)
from homeport.container.runtime.job import ContainerJob
from homeport.job_coordinator.kafka.clients import error_of, producer
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.metadata.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.metadata.epochs import EpochManager
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.incarnation import incarnation_of

_LOG = logging.getLogger(__name__)

END_KEY = b"\x00homeport.transaction-end"
"""Key of the record, a deletion, by which a committed transaction is ended in a changelog."""
END_KIND = "homeport-transaction-end"
"""Kind of the record by which one is ended in the checkpoint topic; readers pass it over."""

_LIMIT_S = 30.0
_HOUR_MS = 3_600_000


@contextmanager
def ending_what_hangs(
    job: ContainerJob, stream: CoordinatorStream, pause: Callable[[float], None]
) -> Iterator[None]:
    """Where a transaction that hangs is met in the block, it is ended as far as that can be known.

    ``stream``: the coordinator stream, read. ``pause``: waits the seconds given; raises to stop.

    Raises:
        UnavailableError: one was met; the next start goes on. No failure of this container's.
    """
    try:
        yield
    except HangingTransactionError as error:
        _LOG.warning("%s", error)
        with closing(HangingTransactions(job, stream, pause)) as hanging:
            raise hanging.end(error) from None


class HangingTransactions:
    """What hangs in the partitions that a container reads at its start.

    Args:
        job: the container's.
        stream: the coordinator stream, read.
        pause: waits the seconds given, and raises to stop.
    """

    def __init__(
        self, job: ContainerJob, stream: CoordinatorStream, pause: Callable[[float], None]
    ) -> None:
        self._job = job
        self._stream = stream
        self._pause = pause
        self._system = job.transaction_system
        self._reader = LogReader(self._system, pause, {"isolation.level": "read_uncommitted"})
        self._changelogs = {store.changelog.stream for store in job.stores if store.changelog}

    def close(self) -> None:
        """Nothing is read any more."""
        self._reader.close()

    def end(self, cause: HangingTransactionError) -> UnavailableError:
        """What hangs is ended as far as that can be known; what is to be said of it.

        It is no failure of this container's, whose next start goes on.

        Raises:
            StopRequestedError: told to stop meanwhile.
        """
        try:
            ended = self._end_all()
        except (HomeportError, KafkaException) as error:
            why = error_of(error).str() if isinstance(error, KafkaException) else str(error)
            return UnavailableError(f"{cause}; it could not be ended here: {why}")
        if not ended:
            return UnavailableError(
                f"{cause}; {STATE_TOPIC} has no end of one of this job's in it that could be "
                "written once more"
            )
        return UnavailableError(f"{cause}; by now {', '.join(ended)}: start again")

    def _end_all(self) -> list[str]:
        places = [
            (store.changelog.stream, task.changelog_partition)
            for store in self._job.stores
            for task in self._job.tasks
            if store.changelog is not None
        ]
        if self._job.task.checkpoint_enabled:
            places.append((self._job.task.checkpoint_topic, 0))
        held = self._held(places)
        ends = self._ends(held)
        ended: list[str] = []
        for place in held:
            for candidate in ends.in_place(place):
                if place in self._held([place]) and self._is_superseded(candidate):
                    ended += self._end(candidate, place)
        return ended

    def _held(self, places: list[Place]) -> dict[Place, int]:
        """{place: last stable offset} of those that are not stable up to their heads."""
        heads = self._reader.ends(places)
        stable = self._reader.stable_ends(places)
        return {place: at for place, at in stable.items() if at < heads[place].head}

    def _ends(self, held: Mapping[Place, int]) -> TransactionEnds:
        """How transactions ended since an hour before what hangs was written."""
        since_ms = min(self._written_ms(place, at) for place, at in held.items())
        ends = TransactionEnds()
        count = TopicAdmin(self._system).partition_counts([STATE_TOPIC])[STATE_TOPIC]
        places = [(STATE_TOPIC, partition) for partition in range(count)]
        for place, found in self._reader.ends(places).items():
            start = self._reader.offset_at(*place, since_ms)
            if start is None:
                continue
            for records in self._reader.read(*place, start, found.head):
                for record in records:
                    ends.take(record.key() or b"", record.value())
        return ends

    def _written_ms(self, place: Place, at: int) -> int:
        """Before the record at the offset was written; its time is its writer's, the log's is not.

        Where a compaction has removed the record, from the beginning.
        """
        for records in self._reader.read(*place, at, at + 1):
            return max(0, records[0].timestamp()[1] - _HOUR_MS)
        return 0

    def _is_superseded(self, candidate: Ended) -> bool:
        """Whether it is an incarnation's that may not run any more."""
        own = incarnation_of(self._job.job.name, self._job.job.id, candidate.transactional_id)
        if own is None:
            return False
        newest = EpochManager(self._stream).read_processor_epochs().get(own.processor_id)
        return newest is not None and own.epoch < newest.epoch

    def _end(self, candidate: Ended, place: Place) -> list[str]:
        """The candidate's end is where it may be missing; in words, where that was so."""
        is_commit = candidate.outcome is Outcome.COMMITTED
        held = self._held(sorted(candidate.places))
        told = sorted(p for p in held if not is_commit or self._can_take(p))
        if place not in told:
            return []
        self._write_end(candidate, told)
        if self._held([place]).get(place) == held[place]:
            return []
        done = f"{candidate.transactional_id}, which was {candidate.outcome.value}, has its end"
        _LOG.warning("%s in %s", done, ", ".join(f"{t} partition {p}" for t, p in told))
        left = sorted(set(held).difference(told))
        if left:
            _LOG.error(
                "%s was committed and has no end in %s: no record of ours may come there, so that "
                "who reads committed records only waits before offset %s",
                candidate.transactional_id,
                ", ".join(f"{t} partition {p}" for t, p in left),
                ", ".join(str(held[p]) for p in left),
            )
        return [f"{done} in {place[0]} partition {place[1]}"]

    def _write_end(self, candidate: Ended, places: Sequence[Place]) -> None:
        """The candidate's id has ended one more transaction in the places as it ended its last."""
        name = candidate.transactional_id
        writer = producer(self._system, producer_properties(self._system, name))
        try:
            writer.init_transactions(_LIMIT_S)
            writer.begin_transaction()
            for topic, partition in places:
                writer.produce(topic, None, self._end_key(topic), partition)
            if writer.flush(_LIMIT_S):
                raise UnavailableError(f"records of {name} were not delivered")
            if candidate.outcome is Outcome.COMMITTED:
                writer.commit_transaction(_LIMIT_S)
            else:
                writer.abort_transaction(_LIMIT_S)
        finally:
            writer.close()
        # Waits until the markers are written.
        fence(self._system, name)

    def _can_take(self, place: Place) -> bool:
        """Whether a record of ours may be committed there: nobody takes it for one of a user's."""
        return place[0] in self._changelogs or place[0] == self._job.task.checkpoint_topic

    def _end_key(self, topic: str) -> bytes:
        if topic != self._job.task.checkpoint_topic:
            return END_KEY
        grouper = self._job.job.ssp_grouper_factory
        return checkpoint.encode_key(checkpoint.CheckpointKey(grouper, TaskName("none"), END_KIND))
