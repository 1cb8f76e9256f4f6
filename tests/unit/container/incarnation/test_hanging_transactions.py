"""What hangs is ended as its coordinator decided it, whatever happens meanwhile.

Over a broker that keeps Kafka's rules: the end of a transaction counts for all that its producer
has open in the partition, and a producer that initialises an id aborts what it has open.
``tests/integration/test_hanging_transactions.py`` has the same on a real one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import pytest
from own_records import write_permit
from stream_in_memory import InMemoryCoordinatorStream
from transaction_records import EMPTY, ONGOING, PREPARE_ABORT, PREPARE_COMMIT, key, plain

from homeport.config.config import Config
from homeport.config.errors import UnavailableError, WireError
from homeport.config.settings.sections import JobConfig, SystemConfig
from homeport.container.host.stop_flag import StopRequestedError
from homeport.container.incarnation.hanging_transactions import HangingTransactions, is_superseded
from homeport.container.kafka.client_properties import HangingTransactionError
from homeport.container.kafka.transactions_in_kafka import PartitionLeaders, TransactionsInKafka
from homeport.container.progress.transaction_state import (
    Batch,
    Ended,
    Outcome,
    Place,
    TransactionEnds,
)
from homeport.job_coordinator.metadata.epochs import EpochManager, FenceReport, ProcessorEpoch
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation, transactional_id

LOG, CHECKPOINTS, OUT = ("log", 0), ("checkpoints", 0), ("out", 3)
READ = (LOG, CHECKPOINTS)
X, Y = "x", "y"
STEPS = (
    "held 1",
    "written_ms 1",
    "ends 1",
    "first_batch 1",
    "fence 1",
    "ends 2",
    "write_marker 1",
    "held 2",
    "first_batch 2",
    "fence 2",
    "ends 3",
    "write_marker 2",
    "held 3",
)
CAUSE = HangingTransactionError("a cause")
DAY_MS = 86_400_000


class _Killed(BaseException):
    """The process is gone."""


@dataclass
class _Record:
    producer_id: int
    epoch: int
    at_ms: int
    text: str
    is_committed: bool | None = None


class _Broker:
    """Logs, the state of each id, and what the coordinators have recorded."""

    def __init__(self) -> None:
        self.logs: dict[Place, list[_Record]] = {}
        self.epochs: dict[str, int] = {}
        self.open: dict[str, set[Place]] = {}
        self.states: list[tuple[str, bytes, int]] = []
        self.now_ms = 0

    def _record(self, name: str, status: int, places: Iterable[Place]) -> None:
        self.now_ms += 1
        producer = (len(name), self.epochs[name])
        value = plain(status, sorted(places), producer, self.now_ms)
        self.states.append((name, value, self.now_ms))

    def initialise(self, name: str) -> None:
        self.epochs[name] = self.epochs.get(name, -1) + 1
        if name in self.open:
            self.end(name, Outcome.ABORTED)
        self._record(name, EMPTY, ())

    def begin(self, name: str, text: str, *places: Place) -> None:
        self.open.setdefault(name, set()).update(places)
        self._record(name, ONGOING, self.open[name])
        self.now_ms += 1
        for place in places:
            record = _Record(len(name), self.epochs[name], self.now_ms, text)
            self.logs.setdefault(place, []).append(record)

    def end(self, name: str, outcome: Outcome, *, but: Iterable[Place] = ()) -> None:
        """Its markers reach all partitions but these (KAFKA-20734)."""
        is_commit = outcome is Outcome.COMMITTED
        places = self.open.pop(name)
        self._record(name, PREPARE_COMMIT if is_commit else PREPARE_ABORT, places)
        for place in places.difference(but):
            self.mark(place, len(name), self.epochs[name], is_commit=is_commit)

    def mark(self, place: Place, producer_id: int, epoch: int, *, is_commit: bool) -> None:
        own = [r for r in self.logs[place] if r.producer_id == producer_id]
        if any(r.epoch > epoch for r in own):
            raise UnavailableError("an old epoch")
        for record in own:
            if record.is_committed is None:
                record.is_committed = is_commit

    def committed(self, place: Place) -> list[str]:
        return [r.text for r in self.logs[place] if r.is_committed]

    def stable(self, place: Place) -> int:
        undecided = (n for n, r in enumerate(self.logs[place]) if r.is_committed is None)
        return next(undecided, len(self.logs[place]))


class _Kafka(TransactionsInKafka):
    """One container's view of the broker; at each step something may happen."""

    def __init__(self, broker: _Broker, at: Mapping[str, Callable[[], None]] | None = None) -> None:
        self.broker = broker
        self.system = _system()
        self.fenced: list[str] = []
        self.why: str | None = None
        self.loses_markers = False
        self._at = at or {}
        self._counts: dict[str, int] = {}

    def _done(self, step: str) -> None:  # type: ignore[override]  # of the class below it
        self._counts[step] = self._counts.get(step, 0) + 1
        self._at.get(f"{step} {self._counts[step]}", lambda: None)()

    def refusal(self) -> str | None:
        return self.why

    def heads(self, places: Collection[Place]) -> dict[Place, int]:
        return {p: len(self.broker.logs[p]) for p in places if p in self.broker.logs}

    def held(
        self, places: Collection[Place], heads: Mapping[Place, int] | None = None
    ) -> dict[Place, int]:
        ends = self.heads(places) if heads is None else heads
        stable = {p: self.broker.stable(p) for p in places if p in ends}
        self._done("held")
        return {p: at for p, at in stable.items() if at < ends[p]}

    def written_ms(self, held: Mapping[Place, int]) -> int:
        assert held
        self._done("written_ms")
        return 0

    def ends(self, since_ms: int, ids: AbstractSet[str] | None = None) -> TransactionEnds:
        found = TransactionEnds()
        for name, value, at_ms in self.broker.states:
            if at_ms >= since_ms and (ids is None or name in ids):
                found.take(key(name), value, 0)
        self._done("ends")
        return found

    def first_batch(self, place: Place, offset: int) -> Batch | None:
        record = self.broker.logs[place][offset]
        self._done("first_batch")
        return Batch(record.producer_id, record.epoch, record.at_ms)

    def fence(self, transactional_id: str) -> None:
        self.broker.initialise(transactional_id)
        self.fenced.append(transactional_id)
        self._done("fence")

    def write_marker(self, place: Place, ended: Ended) -> None:
        is_commit = ended.outcome is Outcome.COMMITTED
        if not self.loses_markers:
            self.broker.mark(place, ended.producer_id, ended.producer_epoch, is_commit=is_commit)
        self._done("write_marker")


def _system(**more: str) -> SystemConfig:
    keys = {f"systems.kafka.consumer.{k.replace('_', '.')}": v for k, v in more.items()}
    servers = {"systems.kafka.consumer.bootstrap.servers": "h:1"}
    return SystemConfig.of(Config(servers | keys), "kafka")


def _end(kafka: _Kafka, *names: str) -> str:
    """What is said of an attempt to end what hangs; without names of superseded ids: of all."""
    hanging = HangingTransactions(kafka, lambda name: not names or name in names)
    return str(hanging.end(CAUSE, READ))


def _hanging(outcome: Outcome, name: str = X, *, places: Iterable[Place] = READ) -> _Broker:
    """Three partitions have a transaction, whose end has not reached ``places``."""
    broker = _Broker()
    broker.initialise(name)
    broker.begin(name, "whole", LOG, CHECKPOINTS, OUT)
    broker.end(name, outcome, but=places)
    return broker


@pytest.mark.parametrize("outcome", Outcome)
def test_a_hanging_transaction_is_ended_as_it_was_decided(outcome: Outcome) -> None:
    """In what the container reads, and in the output of the same transaction."""
    broker = _hanging(outcome, places=(LOG, CHECKPOINTS, OUT))
    line = _end(_Kafka(broker))
    for place in (LOG, CHECKPOINTS, OUT):
        assert broker.stable(place) == 1
        assert broker.committed(place) == (["whole"] if outcome is Outcome.COMMITTED else [])
        has_end = f"x, which was {outcome.value}, has its end in {place[0]} partition {place[1]}"
        assert f"by now {has_end}: start again" in line
    assert line.startswith("a cause; ")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("outcome", Outcome)
def test_two_that_end_the_same_at_once_end_it_as_it_was_decided(
    outcome: Outcome, step: str
) -> None:
    """One stands still after any step while the other does all of it."""
    broker = _hanging(outcome)
    reached: list[str] = []
    _end(_Kafka(broker, {step: lambda: reached.append(_end(_Kafka(broker)))}))
    assert reached
    for place in (LOG, CHECKPOINTS, OUT):
        assert broker.stable(place) == 1
        assert broker.committed(place) == (["whole"] if outcome is Outcome.COMMITTED else [])


@pytest.mark.parametrize("step", STEPS)
def test_a_container_that_dies_after_any_step_aborts_nothing(step: str) -> None:
    """No transaction is open that Kafka would abort; the next one goes on."""
    broker = _hanging(Outcome.COMMITTED)

    def die() -> None:
        raise _Killed

    with pytest.raises(_Killed):
        _end(_Kafka(broker, {step: die}))
    assert broker.open == {}
    _end(_Kafka(broker))
    for place in (LOG, CHECKPOINTS, OUT):
        assert broker.committed(place) == ["whole"]


def test_two_transactions_of_one_id_end_each_as_it_was_decided() -> None:
    """Each partition has the end of the last one there."""
    broker = _hanging(Outcome.ABORTED, places=[LOG])
    broker.begin(X, "second", CHECKPOINTS)
    broker.end(X, Outcome.COMMITTED, but=[CHECKPOINTS])
    _end(_Kafka(broker))
    assert broker.committed(LOG) == []
    assert broker.committed(CHECKPOINTS) == ["second"]


def test_transactions_of_two_ids_in_one_partition_end_each_as_it_was_decided() -> None:
    """One after the other; the end of one is none of the other's."""
    broker = _hanging(Outcome.ABORTED)
    other = "other"
    broker.initialise(other)
    broker.begin(other, "second", LOG)
    broker.end(other, Outcome.COMMITTED, but=[LOG])
    _end(_Kafka(broker))
    assert broker.committed(LOG) == ["second"]
    assert broker.stable(LOG) == 2


def test_nothing_is_done_if_either_of_two_transactions_may_hang() -> None:
    """A committed one may, under the end of an aborted one of the same producer."""
    broker = _hanging(Outcome.COMMITTED)
    broker.begin(X, "second", LOG)
    broker.end(X, Outcome.ABORTED, but=[LOG])
    kafka = _Kafka(broker)
    line = _end(kafka)
    assert broker.stable(LOG) == 0
    assert "log partition 0, offset 0: __transaction_state has no end of one of this job's" in line
    assert broker.committed(CHECKPOINTS) == ["whole"]


def test_an_open_transaction_is_none_that_hangs() -> None:
    """Its coordinator will end it; no producer is fenced."""
    broker = _hanging(Outcome.COMMITTED)
    broker.begin(X, "second", *READ)
    kafka = _Kafka(broker)
    _end(kafka)
    assert kafka.fenced == []
    assert broker.stable(LOG) == 0


def test_only_ids_of_superseded_incarnations_are_touched() -> None:
    """Whatever else hangs is left, and its id is not fenced."""
    broker = _hanging(Outcome.COMMITTED)
    kafka = _Kafka(broker)
    line = _end(kafka, Y)
    assert kafka.fenced == []
    assert broker.stable(LOG) == 0
    assert "has no end of one of this job's" in line


def test_a_transaction_that_goes_on_meanwhile_is_left() -> None:
    """The producer that woke up wrote before its fence: Kafka's own end of that counts there."""
    broker = _hanging(Outcome.COMMITTED)
    kafka = _Kafka(broker, {"first_batch 1": lambda: broker.begin(X, "late", CHECKPOINTS)})
    line = _end(kafka)
    assert "x has begun or ended another transaction in checkpoints partition 0 meanwhile" in line
    assert "abort" not in line


def test_a_producer_that_begins_after_its_fence_keeps_its_open_transaction() -> None:
    """It has a newer epoch, in which Kafka takes no end of an older one."""
    broker = _hanging(Outcome.COMMITTED, places=[LOG])

    def wake_up() -> None:
        broker.initialise(X)
        broker.begin(X, "late", LOG)

    assert "an old epoch" in _end(_Kafka(broker, {"ends 2": wake_up}))
    assert broker.committed(LOG) == []
    assert broker.stable(LOG) == 0


def test_an_end_that_the_leader_does_not_accept_is_reported() -> None:
    """A committed one must not be aborted; an aborted one can be, by the command; others go on."""

    def refuse() -> None:
        raise UnavailableError("Cluster authorization failed")

    broker = _hanging(Outcome.COMMITTED)
    line = _end(_Kafka(broker, {"fence 1": refuse}))
    assert "x (producer 1, epoch 0) was committed; if its end is what is missing in chec" in line
    assert "Cluster authorization failed; it must not be aborted, that would lose" in line
    assert "abort --topic" not in line
    assert broker.committed(LOG) == ["whole"]

    line = _end(_Kafka(_hanging(Outcome.ABORTED), {"fence 1": refuse}))
    command = "kafka-transactions.sh --bootstrap-server h:1 abort --topic checkpoints --partition 0"
    assert f"`{command} --start-offset 0` ends it" in line


def test_without_a_reachable_leader_what_is_known_is_reported() -> None:
    """Nothing is done."""
    broker = _hanging(Outcome.COMMITTED)
    kafka = _Kafka(broker)
    kafka.why = "over PLAINTEXT only"
    line = _end(kafka)
    assert "was committed" in line
    assert "over PLAINTEXT only; it must not be aborted" in line
    assert kafka.fenced == []
    kafka.broker.states.clear()
    assert "has no end of one of this job's" in _end(kafka)
    assert PartitionLeaders(_system()).refusal() is None
    encrypted = PartitionLeaders(_system(security_protocol="SSL")).refusal()
    assert encrypted is not None
    assert "security.protocol=PLAINTEXT only, not SSL" in encrypted


def test_an_end_that_moves_nothing_is_reported() -> None:
    """As it may be where the leader changed."""
    broker = _hanging(Outcome.COMMITTED, places=[LOG])
    kafka = _Kafka(broker)
    kafka.loses_markers = True
    assert "the last stable offset stays" in _end(kafka)


def test_a_failure_before_is_reported() -> None:
    """Kafka went away again."""

    def fail() -> None:
        raise UnavailableError("away")

    kafka = _Kafka(_hanging(Outcome.COMMITTED), {"ends 1": fail})
    assert _end(kafka) == "a cause; it could not be ended here: away"


def test_the_next_start_goes_on_if_nothing_hangs_any_more() -> None:
    """Another container was first; no producer is fenced."""
    kafka = _Kafka(_hanging(Outcome.COMMITTED, places=[]))
    assert _end(kafka) == "a cause; by now it is over: start again"
    assert kafka.fenced == []


@pytest.mark.parametrize("step", ["held 1", "fence 1"])
def test_a_container_that_is_to_stop_stops(step: str) -> None:
    """Whatever it was doing."""

    def stop() -> None:
        raise StopRequestedError("stop")

    with pytest.raises(StopRequestedError):
        _end(_Kafka(_hanging(Outcome.COMMITTED), {step: stop}))


def _look_at_outputs(
    kafka: _Kafka, *pauses: Callable[[], object], ids: AbstractSet[str] = frozenset({X})
) -> int:
    """How often it waited; ``pauses``: what happens meanwhile. Each takes ten seconds."""
    waited: list[float] = []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) <= len(pauses):
            pauses[len(waited) - 1]()

    hanging = HangingTransactions(kafka, ids.__contains__)
    hanging.end_written(ids, pause, kafka.broker.now_ms, lambda: 10.0 * len(waited))
    return len(waited)


@pytest.mark.parametrize("outcome", Outcome)
def test_what_hangs_in_an_output_alone_is_ended_as_it_was_decided(outcome: Outcome) -> None:
    """No container reads it, so no restore meets it; nothing is waited for."""
    broker = _hanging(outcome, places=[OUT])
    assert _look_at_outputs(_Kafka(broker)) == 0
    assert broker.stable(OUT) == 1
    assert broker.committed(OUT) == (["whole"] if outcome is Outcome.COMMITTED else [])


def test_outputs_without_anything_that_hangs_cost_one_look() -> None:
    """The usual case; no producer is fenced."""
    kafka = _Kafka(_hanging(Outcome.COMMITTED, places=[]))
    assert _look_at_outputs(kafka, ids={X, "never-wrote"}) == 0
    assert kafka.fenced == []


def test_what_hangs_in_an_output_behind_an_open_transaction_is_ended_after_it() -> None:
    """And what begins there later is not waited for."""
    broker, other = _Broker(), "other"
    for name in (other, X):
        broker.initialise(name)
        broker.begin(name, name, OUT)
    broker.end(X, Outcome.COMMITTED, but=[OUT])

    def go_on() -> None:
        broker.end(other, Outcome.ABORTED)
        broker.begin(other, "next", OUT)

    assert _look_at_outputs(_Kafka(broker), lambda: None, go_on) == 2
    assert broker.committed(OUT) == [X]
    assert broker.stable(OUT) == 2


@pytest.mark.parametrize("encrypted", [False, True])
def test_what_holds_up_an_output_for_too_long_is_reported_once(
    caplog: pytest.LogCaptureFixture, *, encrypted: bool
) -> None:
    """It is another job's, or behind a listener over which no leader can be asked."""
    broker, other = _hanging(Outcome.COMMITTED, "other", places=[OUT]), X
    broker.initialise(other)
    broker.begin(other, "second", OUT)
    broker.end(other, Outcome.COMMITTED)
    kafka = _Kafka(broker)
    kafka.why = "over PLAINTEXT only" if encrypted else None
    with caplog.at_level(logging.WARNING):
        assert 0 < _look_at_outputs(kafka) < 10
    (line,) = caplog.messages
    assert line.startswith(
        "looking for transactions of fenced incarnations that hang: out partition 3, offset"
    )
    assert "must not be aborted" in line
    assert kafka.fenced == []


def test_an_end_that_an_output_does_not_take_is_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What is known of it, and that it must not be aborted."""
    kafka = _Kafka(_hanging(Outcome.COMMITTED, places=[OUT]))
    kafka.loses_markers = True
    with caplog.at_level(logging.WARNING):
        assert 0 < _look_at_outputs(kafka) < 10
    (line,) = caplog.messages
    assert "x (producer 1, epoch 0) was committed" in line
    assert "the last stable offset stays" in line


def test_an_end_of_today_is_none_of_a_transaction_from_before_what_was_read() -> None:
    """What ended that one is not known: it may have been committed, under an id that goes on."""
    broker = _hanging(Outcome.COMMITTED, places=[OUT])
    broker.now_ms += 2 * DAY_MS
    broker.begin(X, "today", OUT)
    broker.end(X, Outcome.ABORTED, but=[OUT])
    assert 0 < _look_at_outputs(_Kafka(broker)) < 10
    assert broker.stable(OUT) == 0
    assert broker.committed(OUT) == []


@pytest.mark.parametrize("error", [UnavailableError("no leader"), WireError("odd")], ids=str)
def test_one_partition_that_fails_holds_up_no_other(error: Exception) -> None:
    """It is looked at again: a leader comes back."""
    broker = _hanging(Outcome.COMMITTED, places=[LOG, OUT])

    def fail() -> None:
        raise error

    assert _look_at_outputs(_Kafka(broker, {"first_batch 1": fail})) == 1
    assert broker.stable(LOG) == broker.stable(OUT) == 1


def test_a_transaction_that_goes_on_meanwhile_is_left_in_an_output() -> None:
    """The producer that woke up ends it; others are ended as ever."""
    broker = _hanging(Outcome.COMMITTED, places=[LOG, OUT])
    kafka = _Kafka(broker, {"first_batch 1": lambda: broker.begin(X, "late", LOG, OUT)})
    assert _look_at_outputs(kafka) == 0
    assert kafka.fenced != []


def test_superseded_is_an_incarnation_with_a_successor() -> None:
    """Not the newest incarnation, none of another job, and none of an unknown processor."""
    stream = InMemoryCoordinatorStream()
    job = JobConfig.of(Config({"job.name": "job", "job.default.system": "kafka"}))
    write_permit(EpochManager(stream), ProcessorId("0"), ProcessorEpoch(3, 1, ()))
    stream.catch_up()

    def superseded(processor: str, epoch: int, name: str = "job") -> bool:
        own = Incarnation(ProcessorId(processor), epoch)
        return is_superseded(job, stream, transactional_id(name, "1", own))

    assert superseded("0", 2)
    assert not superseded("0", 3)
    assert not superseded("0", 4)
    assert not superseded("1", 2)
    assert not superseded("0", 2, "another")
    assert not is_superseded(job, stream, "a-stranger")
    # Of standalone processors, which have no permits there.
    fenced = (Incarnation(ProcessorId("p"), 7),)
    EpochManager(stream).write_fenced(ProcessorId("q"), FenceReport(8, fenced))
    stream.catch_up()
    assert superseded("p", 7)
    assert not superseded("p", 6)
    assert not superseded("q", 8)
    # Of a job that YARN ran before: an id of both.
    EpochManager(stream).write_fenced(
        ProcessorId("q"), FenceReport(9, (Incarnation(ProcessorId("0"), 8),))
    )
    stream.catch_up()
    assert superseded("0", 8)
    assert not superseded("0", 9)
