"""OpenTransaction: what a transaction waits for, and which cause it names when it fails."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from homeport.config.errors import UnavailableError
from homeport.config.settings.tuning import Tuning
from homeport.config.system_stream import SystemStream
from homeport.container.host.stop_flag import StopFlag
from homeport.container.kafka.client_properties import TransactionError
from homeport.container.kafka.transactional_producer import RecordRefusedError, UndeliveredError
from homeport.container.processing.loop_dependencies import LoopSettings
from homeport.container.processing.open_transaction import OpenTransaction
from homeport.container.processing.task_instance import Outputs
from homeport.container.progress.topic_rules import TopicRules, story, topics
from homeport.container.progress.transaction_plan import Changes, Send, StoreId
from homeport.container.reporting.traces import NO_TRACES
from homeport.container.reporting.work_report import WorkReport
from homeport.job_coordinator.kafka.in_sync import OutputPlace
from homeport.job_coordinator.model.ids import TaskName

TASK = TaskName("Partition 0")
LIMIT = 1000
_RULES = TopicRules(LIMIT, batch_bytes=0)


class _Producer:
    """In the place of Kafka's: notes what is looked at, and fails where it is to.

    It fails to deliver, or with ``is_unknown`` to say how a commit has ended.
    """

    def __init__(self, fails: Exception | None, *, is_unknown: bool = False) -> None:
        self._fails, self._is_unknown = fails, is_unknown
        self.places: set[OutputPlace] = set()
        self.is_committed = False

    def await_brokers(
        self, places: Callable[[], Collection[OutputPlace]], _pause: Callable[[float], None]
    ) -> None:
        self.places = set(places())

    def begin(self) -> None:
        pass

    def send(self, sends: Iterable[Send]) -> None:
        list(sends)

    def send_changes(self, _changes: Changes) -> None:
        pass

    def deliver(self) -> None:
        if self._fails is not None and not self._is_unknown:
            raise self._fails

    def commit(self) -> dict[tuple[str, int], int]:
        if self._fails is not None:
            raise self._fails
        self.is_committed = True
        return {}


class _Storage:
    """Two stores with a changelog, one of them changed, and one without."""

    size_bytes = 2

    def __init__(self, producer: _Producer) -> None:
        self._producer = producer
        self.applied: list[tuple[str, bool]] = []
        """Which stores have got their changes, and whether these were committed then."""

    def ids(self) -> tuple[list[StoreId], list[StoreId]]:
        logged = [StoreId("changed", TASK), StoreId("idle", TASK)]
        return [*logged, StoreId("scratch", TASK)], logged

    def changes(self) -> list[Changes]:
        return [
            Changes(StoreId("changed", TASK), SystemStream("kafka", "log"), 3, {b"k": b"v"}),
            Changes(StoreId("idle", TASK), SystemStream("kafka", "log-of-idle"), 3, {}),
        ]

    def apply(self, store: StoreId, _positions: object) -> None:
        self.applied.append((store.store, self._producer.is_committed))

    def drop(self) -> None:
        pass


class _Case:
    """One transaction with an output of so many bytes."""

    def __init__(
        self,
        size: int = 1,
        checkpoint_topic: str | None = "cp",
        fails: Exception | None = None,
        *,
        is_unknown: bool = False,
    ) -> None:
        self.producer = _Producer(fails, is_unknown=is_unknown)
        self.storage = _Storage(self.producer)
        self.purged: list[bool] = []
        """Whether the transaction was committed, at each request to delete what it has read."""
        self.outputs = Outputs({"kafka"}, {"kafka"}, "kafka")
        self.outputs.send("out", b"x" * size, partition=5)
        parts: Any = SimpleNamespace(
            tasks={},
            processed={},
            outputs=self.outputs,
            storage=self.storage,
            producer=self.producer,
            plain=None,
            topics=SimpleNamespace(check=lambda: None),
            history=lambda _event, **_story: None,
            of_tasks=lambda offsets: offsets,
            refused=lambda content: story(content, dict.fromkeys(topics(content), _RULES), 0),
            on_step_done=lambda _step: None,
            on_step_begin=lambda _step: None,
            clock=time.monotonic,
            tuning=lambda: Tuning(1, 1, 1),
            source=SimpleNamespace(lag=int),
            report=WorkReport(),
            traces=NO_TRACES,
            purge=SimpleNamespace(
                committed=lambda _processed: self.purged.append(self.producer.is_committed)
            ),
        )
        settings = LoopSettings(1, "G", checkpoint_topic, has_windows=False, overlaps=False)
        self.open = OpenTransaction(parts, settings, StopFlag())
        self.parts = parts

    def end(self) -> None:
        """The transaction ends."""
        self.open.end()


@pytest.mark.parametrize(
    ("checkpoint_topic", "checkpoints"), [("cp", {("cp", None)}), (None, set())]
)
def test_a_transaction_waits_for_the_replicas_of_its_partitions(
    checkpoint_topic: str | None, checkpoints: set[OutputPlace]
) -> None:
    """These are outputs, changelogs of changed stores, and checkpoints where the job has any."""
    case = _Case(checkpoint_topic=checkpoint_topic)
    case.end()
    assert case.producer.places == {("out", 5), ("log", 3)} | checkpoints
    assert case.producer.is_committed


@pytest.mark.parametrize("close", [OpenTransaction.end, OpenTransaction.drop], ids=["end", "drop"])
def test_a_transaction_that_is_over_holds_nothing(close: Callable[[OpenTransaction], None]) -> None:
    """The next transaction begins without outputs, and its age counts from its own begin."""
    case = _Case()
    case.open.add_writes()
    assert math.isfinite(case.open.time_left_s())
    close(case.open)
    assert list(case.outputs.sends) == []
    assert math.isinf(case.open.time_left_s())
    assert not case.open.is_due(lambda: True)


def test_reports_and_traces_know_when_a_transaction_is_on_its_way_and_when_committed() -> None:
    """What comes in between is of the next one."""
    case, notes = _Case(), []

    def noting(name: str) -> SimpleNamespace:
        steps = ("ended", "committed", "dropped", "spent")
        return SimpleNamespace(
            **{step: lambda *_, step=step: notes.append(f"{name} {step}") for step in steps}
        )

    case.parts.report, case.parts.traces = noting("report"), noting("traces")
    case.end()
    case.open.finish()
    assert [note for note in notes if note != "report spent"] == [
        *("report ended", "traces ended"),
        *("traces committed", "report committed"),
    ]
    case.open.drop()
    assert notes[-1] == "traces dropped"


def test_a_transaction_ends_early_only_once_it_has_begun() -> None:
    """Before that a poll waits for input as long as it may."""
    case = _Case()
    case.open.tuning = Tuning(1, 1, 1, idle_ms=10)
    assert math.isinf(case.open.early_left_s())
    case.open.add_writes()
    assert math.isfinite(case.open.early_left_s())


def test_stores_get_their_changes_once_these_are_committed() -> None:
    """Those without a changelog too, which have no position in Kafka to wait for."""
    case = _Case()
    case.end()
    assert case.storage.applied == [("changed", True), ("idle", True), ("scratch", True)]
    assert case.purged == [True]


@pytest.mark.parametrize("is_unknown", [False, True])
def test_no_store_gets_changes_of_which_it_is_not_known_that_they_are_committed(
    *, is_unknown: bool
) -> None:
    """A store without a changelog would keep what its input brings once more (safety I7)."""
    case = _Case(fails=UnavailableError("away"), is_unknown=is_unknown)
    with pytest.raises(UnavailableError):
        case.end()
    case.open.drop()
    assert case.storage.applied == []
    assert case.purged == [], "its records may be needed once more"


FAILURES = [RecordRefusedError("sending: refused"), UndeliveredError("kafka: not in time")]


@pytest.mark.parametrize("error", FAILURES, ids=["refused", "undelivered"])
def test_a_record_that_is_too_large_is_named(error: Exception) -> None:
    """The operator reads stream, size and limit in place of what the library says."""
    case = _Case(2 * LIMIT, fails=error)
    with pytest.raises(TransactionError) as failed:
        case.end()
    message = str(failed.value)
    assert message.startswith("output stream out: a record of 2000 bytes exceeds the limit of 1000")
    assert message.endswith("; nothing of the transaction was committed")
    assert not case.producer.is_committed


@pytest.mark.parametrize("error", FAILURES, ids=["refused", "undelivered"])
def test_the_error_stays_unchanged_if_no_record_is_too_large(error: Exception) -> None:
    """The operator reads what the library says, as nothing more is known."""
    with pytest.raises(type(error)) as failed:
        _Case(fails=error).end()
    assert failed.value is error
