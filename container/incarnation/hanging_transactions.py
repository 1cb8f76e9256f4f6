"""Ends transactions that hang in a partition which a container reads, or has written.

Kafka may leave the end of a transaction out of a partition for ever (KAFKA-20734: if the partition
has no leader at that moment, as when a single broker comes back). The records of the transaction
coordinators have its outcome; the leader of the partition writes that end, on the request that the
coordinator would have sent. No transaction is opened for it. So every outcome stays as it was
decided, even if a container dies at any step, or two containers do the same.

An end counts for all that its producer has open in the partition. So it is written only for the
last transaction of a superseded incarnation (safety I3), after its id was fenced: a later
transaction of that id would be seen.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterator
from collections.abc import Set as AbstractSet
from contextlib import closing, contextmanager
from functools import partial

from confluent_kafka import KafkaException

from homeport.config.errors import HomeportError, UnavailableError, WireError
from homeport.config.settings.sections import JobConfig
from homeport.container.container_job import ContainerJob
from homeport.container.host.stop_flag import StopRequestedError
from homeport.container.kafka.client_properties import (
    HangingTransactionError,
    longest_transaction_s,
)
from homeport.container.kafka.transactions_in_kafka import TransactionsInKafka
from homeport.container.progress.transaction_state import Ended, Outcome, Place, TransactionEnds
from homeport.job_coordinator.clocks import wall_ms
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.kafka.clients import error_of
from homeport.job_coordinator.kafka.open_transactions import abort_command, how_to_end
from homeport.job_coordinator.metadata.epochs import EpochManager
from homeport.job_coordinator.model.incarnation import STATE_TOPIC, incarnation_of

_LOG = logging.getLogger(__name__)

_MOST_TOLD = 3
_LOOK_S = 5.0
_DAY_MS = 86_400_000
_CLOCKS_MS = 3_600_000
"""By how much the clocks of writers and coordinators may differ."""
_LOOKING = "looking for transactions of fenced incarnations that hang"


class _MovedOnError(UnavailableError):
    """What was known of an id is out of date."""


class _NotEndedError(UnavailableError):
    """The leader did not write an end; what is known of it, and what an operator can do."""


@contextmanager
def ending_what_hangs(
    job: ContainerJob, stream: CoordinatorStream, pause: Callable[[float], None]
) -> Iterator[None]:
    """End a hanging transaction that the block meets, if its outcome is known.

    ``stream``: the coordinator stream, read. ``pause``: waits the seconds given; raises to stop.

    UnavailableError: the block met one, which is no failure of this container's: the next start
    goes on. StopRequestedError: the order to stop came meanwhile.
    """
    try:
        yield
    except HangingTransactionError as error:
        _LOG.warning("%s", error)
        with closing(TransactionsInKafka(job.transaction_system, pause)) as kafka:
            hanging = HangingTransactions(kafka, partial(is_superseded, job.job, stream))
            raise hanging.end(error, _places(job)) from None


def end_of_fenced(
    job: ContainerJob, fenced: AbstractSet[str], pause: Callable[[float], None]
) -> None:
    """End transactions of ``fenced`` ids that hang in any partition, for its readers.

    No container reads an output, so nothing else meets them there. It returns when all that was
    written at the call is decided; the log has what was ended, and what could not be.

    ``pause``: waits the seconds given, and raises to stop.
    """
    last_s = time.monotonic() + longest_transaction_s(job.transaction_system)
    try:
        pause(_LOOK_S)  # the start of the tasks comes first
        while True:
            try:
                with closing(TransactionsInKafka(job.transaction_system, pause)) as kafka:
                    hanging = HangingTransactions(kafka, fenced.__contains__)
                    return hanging.end_written(fenced, pause, wall_ms())
            except (UnavailableError, KafkaException) as error:
                if time.monotonic() > last_s:
                    raise
                _LOG.info("%s: %s: waiting for it", _LOOKING, _why(error))
            pause(_LOOK_S)
    except StopRequestedError:
        return None
    except (HomeportError, KafkaException) as error:
        names = ", ".join(sorted(fenced))
        _LOG.warning("%s: %s: no later start looks for those of %s", _LOOKING, _why(error), names)


def is_superseded(job: JobConfig, stream: CoordinatorStream, transactional_id: str) -> bool:
    """Return whether an id is that of an incarnation of the job that may not run any more.

    The stream has no permits of standalone processors: of these it is one that a successor fenced.
    """
    own = incarnation_of(job.name, job.id, transactional_id)
    if own is None:
        return False
    epochs = EpochManager(stream)
    newest = epochs.read_processor_epochs().get(own.processor_id)
    if newest is not None and own.epoch < newest.epoch:
        return True
    return any(own in report.fenced for report in epochs.read_fenced().values())


class HangingTransactions:
    """Finds transactions that hang in partitions, and ends those of ids that are superseded."""

    def __init__(self, kafka: TransactionsInKafka, is_superseded: Callable[[str], bool]) -> None:
        self._kafka = kafka
        self._is_superseded = is_superseded

    def end(self, cause: HangingTransactionError, places: Collection[Place]) -> UnavailableError:
        """End what hangs there, and elsewhere of the same transactions, if its outcome is known.

        Return the error to raise for it, which is no failure of this container's: the next start
        goes on. StopRequestedError: the order to stop came meanwhile.
        """
        reported: list[str] = []
        try:
            self._end_all(places, reported)
        except StopRequestedError:
            raise
        except _MovedOnError as error:
            reported.append(str(error))
        except (HomeportError, KafkaException) as error:
            reported.append(f"it could not be ended here: {_why(error)}")
        return UnavailableError(
            "; ".join([str(cause), *(reported or ["by now it is over: start again"])])
        )

    def end_written(
        self,
        ids: AbstractSet[str],
        pause: Callable[[float], None],
        now_ms: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """End what hangs where these ids wrote in the last day, below the present heads.

        A partition that another producer's transaction holds up, or that has no leader, is looked
        at again, for as long as one of the job's transactions can be open.

        ``ids``: those of superseded incarnations. ``clock``: measures how long one is held up.
        """
        since_ms = max(0, now_ms - _DAY_MS)
        ends = self._kafka.ends(since_ms, ids)
        heads = self._kafka.heads(ends.places())
        since: dict[tuple[Place, int], float] = {}
        while held := self._kafka.held(heads.keys(), heads) if heads else {}:
            since = {at: since.get(at, clock()) for at in held.items()}
            late_s = clock() - longest_transaction_s(self._kafka.system)
            heads = {place: heads[place] for place in held}
            for place, stable in held.items():
                why = self._left_below(place, stable, heads[place], ends, since_ms)
                if why and since[place, stable] <= late_s:
                    _LOG.warning("%s: %s, offset %d: %s", _LOOKING, _shown(place), stable, why)
                    why = None
                if why is None:
                    heads.pop(place)
            if heads:
                pause(_LOOK_S)

    def _left_below(
        self, place: Place, stable: int, head: int, ends: TransactionEnds, since_ms: int
    ) -> str | None:
        """End what hangs from ``stable`` on; return why something is left below ``head``."""
        at: int | None = stable
        try:
            while at is not None and at < head:
                refused = self._kafka.refusal() is not None
                batch = None if refused else self._kafka.first_batch(place, at)
                # What an older batch belongs to may have ended before what was read.
                is_older = batch and since_ms and batch.written_ms < since_ms + _CLOCKS_MS
                if batch is None or is_older:
                    return how_to_end(self._kafka.system, *place, at)
                found = [e for e in ends.in_place(place) if e.began_with(batch, place)]
                if not found:
                    return how_to_end(self._kafka.system, *place, at)
                at = self._end_found(found[0], place, at, since_ms)
        except _MovedOnError as error:
            _LOG.warning("%s: %s", _LOOKING, error)
        except (_NotEndedError, UnavailableError, WireError, KafkaException) as error:
            return _why(error)
        return None

    def _end_all(self, places: Collection[Place], reported: list[str]) -> None:
        looked: set[Place] = set()
        while todo := sorted(set(places) - looked):
            looked.update(todo)
            held = self._kafka.held(todo)
            if not held:
                break
            since_ms = self._kafka.written_ms(held)
            ends = self._kafka.ends(since_ms)
            found = {
                place: [e for e in ends.in_place(place) if self._is_superseded(e.transactional_id)]
                for place in held
            }
            for place, stable in held.items():
                at: int | None = stable
                while at is not None:
                    at = self._end_in(place, at, found[place], since_ms, reported)
            places = {p for each in found.values() for ended in each for p in ended.places}

    def _end_in(
        self, place: Place, at: int, known: list[Ended], since_ms: int, reported: list[str]
    ) -> int | None:
        """End what hangs at the offset, if it is known; return where the next one does there."""
        refusal = self._kafka.refusal()
        batch = self._kafka.first_batch(place, at) if refusal is None else None
        found = [e for e in known if refusal or (batch and e.began_with(batch, place))]
        if not found:
            reported.append(
                f"{_shown(place)}, offset {at}: {STATE_TOPIC} has no end of one of this job's in "
                "it that is certain to be of what is open there"
            )
            return None
        if refusal is not None:
            reported += [self._story(e, place, at, refusal) for e in found[:_MOST_TOLD]]
            return None
        try:
            left = self._end_found(found[0], place, at, since_ms)
        except _NotEndedError as error:
            reported.append(str(error))
            return None
        reported.append(f"by now {_done(found[0], place)}: start again")
        return left

    def _end_found(self, ended: Ended, place: Place, at: int, since_ms: int) -> int | None:
        """Do as ``_end_one``; _NotEndedError: the leader did not write it."""
        try:
            left = self._end_one(ended, place, at, since_ms)
        except (StopRequestedError, _MovedOnError):
            raise
        except (HomeportError, KafkaException) as error:
            raise _NotEndedError(self._story(ended, place, at, _why(error))) from error
        _LOG.warning("%s", _done(ended, place))
        return left

    def _end_one(self, ended: Ended, place: Place, at: int, since_ms: int) -> int | None:
        """Write the end that is missing at the offset; return where the next one hangs there."""
        kafka, name = self._kafka, ended.transactional_id
        kafka.fence(name)
        if ended not in kafka.ends(since_ms, {name}).in_place(place):
            raise _MovedOnError(
                f"{name} has begun or ended another transaction in {_shown(place)} meanwhile: "
                "start again"
            )
        kafka.write_marker(place, ended)
        left = kafka.held([place]).get(place)
        if left == at:
            raise UnavailableError("its end was written there, and the last stable offset stays")
        return left

    def _story(self, ended: Ended, place: Place, at: int, why: str) -> str:
        known = (
            f"{ended.transactional_id} (producer {ended.producer_id}, epoch "
            f"{ended.producer_epoch}) was {ended.outcome.value}; if its end is what is missing in "
            f"{_shown(place)}, it could not be written there: {why}; "
        )
        if ended.outcome is Outcome.COMMITTED:
            return (
                f"{known}it must not be aborted, that would lose what it committed: a start that "
                "reads the partition writes its end, once it can"
            )
        command = abort_command(self._kafka.system, *place, at)
        return f"{known}`{command}` ends it, if describe-producers names that producer there"


def _places(job: ContainerJob) -> set[Place]:
    places = {
        (store.changelog.stream, task.changelog_partition)
        for store in job.stores
        for task in job.tasks
        if store.changelog is not None
    }
    return places | ({(job.task.checkpoint_topic, 0)} if job.task.checkpoint_enabled else set())


def _done(ended: Ended, place: Place) -> str:
    name, outcome = ended.transactional_id, ended.outcome.value
    return f"{name}, which was {outcome}, has its end in {_shown(place)}"


def _shown(place: Place) -> str:
    return f"{place[0]} partition {place[1]}"


def _why(error: HomeportError | KafkaException) -> str:
    return error_of(error).str() if isinstance(error, KafkaException) else str(error)
