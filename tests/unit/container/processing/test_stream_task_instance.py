"""Which exceptions of a StreamTask ``task.ignored.exceptions`` can skip: its own, and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException

from homeport.config.config import Config
from homeport.config.errors import HomeportError
from homeport.config.settings.records_section import ALL_EXCEPTIONS
from homeport.config.settings.stores_section import StoreConfig
from homeport.container.api import (
    IncomingMessage,
    KeyValueStore,
    MessageCollector,
    StreamTask,
    TaskContext,
    TaskCoordinator,
)
from homeport.container.callables import TaskFailedError
from homeport.container.classes import load_serde
from homeport.container.engine.storage_engine import DamagedStoreError
from homeport.container.host.disk_space import DiskError, DiskFullError
from homeport.container.host.stop_flag import OvertakenError, StopFlag, StopRequestedError
from homeport.container.processing.call_watch import CallWatch
from homeport.container.processing.stream_task_instance import StreamTaskInstance, StreamTaskParts
from homeport.container.processing.task_instance import Context, Outputs, Requests
from homeport.container.storage.overlay import Overlay
from homeport.container.storage.storage_engines import StorageEngines
from homeport.container.storage.typed_store import TypedStore, ValueGuard
from homeport.job_coordinator.model.ids import TaskName

TASK = TaskName("Partition 0")
STORE = StoreConfig.of(
    Config(
        {
            "stores.s.factory": "rocksdb",
            "stores.s.key.serde": "string",
            "stores.s.msg.serde": "string",
            "stores.s.disallow.large.messages": "true",
            "stores.s.changelog.max.message.size.bytes": "10",
        }
    ),
    "s",
)
Step = Callable[[KeyValueStore, MessageCollector], Any]


class _Task(StreamTask):
    """Does what the test says."""

    step: Step

    def init(self, context: TaskContext) -> None:
        self.store = context.store("s")

    def process(
        self, _message: IncomingMessage, collector: MessageCollector, _coordinator: TaskCoordinator
    ) -> None:
        type(self).step(self.store, collector)

    def window(self, collector: MessageCollector, _coordinator: TaskCoordinator) -> None:
        type(self).step(self.store, collector)

    def end_of_stream(self, collector: MessageCollector, _coordinator: TaskCoordinator) -> None:
        type(self).step(self.store, collector)


def _messages(_rows: pa.Table) -> Iterator[IncomingMessage]:
    yield IncomingMessage("kafka", "in", 0, 7, None, None, 0, {})


class _Failing:
    """In the place of RocksDB: every call fails."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def get(self, _key: object) -> NoReturn:
        raise self._error

    def items(self, **_: object) -> NoReturn:
        raise self._error

    def close(self) -> None:
        """Nothing is open."""


class _Case:
    """One task with one store, whose engine is RocksDB, and with every exception ignored."""

    def __init__(self, folder: Path) -> None:
        self.engines = StorageEngines(1 << 24, 1)
        self.engine: Any = self.engines.open(STORE, folder)
        overlay = Overlay(self.engine)
        serde = load_serde("stores.s.key.serde", "string")
        store = TypedStore(overlay, serde, serde, ValueGuard.of(STORE, TASK))
        self.outputs = Outputs({"kafka"}, {"kafka"}, "kafka")
        ignored = frozenset({ALL_EXCEPTIONS})
        parts = StreamTaskParts(
            self.outputs, Requests(), _messages, ignored, StopFlag(), CallWatch(None)
        )
        self.task = StreamTaskInstance(_Task, Context(TASK, {}, {"s": store}), parts)

    def breaks(self, error: Exception) -> None:
        """From now on RocksDB fails so."""
        self.engine.close()
        self.engine._db = _Failing(error)

    def run(self, step: Step) -> None:
        """The task does ``step`` for a message."""
        _Task.step = staticmethod(step)
        self.task.process_batch(pa.table({}))


@pytest.fixture
def case(tmp_path: Path) -> _Case:
    """A task whose every exception is ignored, if it may be."""
    return _Case(tmp_path / "store")


def _raises(error: BaseException) -> Step:
    def step(_store: KeyValueStore, _collector: MessageCollector) -> None:
        raise error

    return step


OWN: list[Step] = [
    lambda _store, _collector: int("no number"),
    lambda _store, _collector: dict[str, str]()["nothing"],
    _raises(RuntimeError("of the user's")),
    _raises(OSError(24, "Too many open files")),
]


@pytest.mark.parametrize("step", OWN)
def test_a_record_at_which_the_task_raises_is_skipped(case: _Case, step: Step) -> None:
    """In its own code, or below it in a library of its own."""
    case.run(step)
    case.task.window()
    case.task.end_of_stream()
    assert case.task.ignored == 3


def test_a_refusal_that_the_task_has_caught_is_its_own_affair(case: _Case) -> None:
    """Nothing was done, and it knows: what it raises then, or goes on with, is its own."""

    def step(store: KeyValueStore, _collector: MessageCollector) -> None:
        try:
            store.put("key", "longer than allowed")
        except ValueError:
            raise LookupError("too long for us") from None

    case.run(step)
    assert case.task.ignored == 1
    case.engines.require_sound()


OURS: list[tuple[Step, str]] = [
    (lambda store, _: store.put("key", "longer than allowed"), "RecordTooLargeError"),
    (lambda store, _: store.put(None, "value"), "ValueError"),
    (lambda store, _: store.put("\x00homeport.position", "value"), "ValueError"),
    (lambda _, collector: collector.send("out", "text"), "TypeError"),
    (_raises(StopRequestedError("ordered to stop")), "StopRequestedError"),
    (_raises(OvertakenError("by epoch 2")), "OvertakenError"),
    (_raises(DiskFullError("/state: no room")), "DiskFullError"),
    (_raises(HomeportError("anything")), "HomeportError"),
    (_raises(MemoryError()), "MemoryError"),
    (_raises(KeyboardInterrupt()), "KeyboardInterrupt"),
]


@pytest.mark.parametrize(("step", "name"), OURS, ids=[name for _, name in OURS])
def test_an_error_of_homeports_own_calls_is_never_skipped(
    case: _Case, step: Step, name: str
) -> None:
    """Whatever is ignored: neither what a call refuses, nor what ends the container."""
    with pytest.raises(TaskFailedError, match=f"failed in process of in .*: {name}"):
        case.run(step)
    with pytest.raises(TaskFailedError, match="failed in window"):
        case.task.window()
    with pytest.raises(TaskFailedError, match="failed in end_of_stream"):
        case.task.end_of_stream()
    assert case.task.ignored == 0


def test_an_error_of_kafka_that_passes_the_collector_is_never_skipped(
    case: _Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library's own exception, from below a call of ours."""

    def fails(_outputs: Outputs, _stream: str) -> NoReturn:
        raise KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN))

    monkeypatch.setattr(Outputs, "_names", fails)
    with pytest.raises(TaskFailedError, match="KafkaException"):
        case.run(lambda _, collector: collector.send("out", b""))
    assert case.task.ignored == 0


BROKEN: list[tuple[Exception, type[HomeportError]]] = [
    (Exception("IO error: Too many open files: /state/000009.sst"), DiskError),
    (Exception("IO error: No space left on device: /state/000009.sst"), DiskFullError),
    (Exception("Corruption: block checksum mismatch"), DamagedStoreError),
    (MemoryError(), HomeportError),
]
READS: list[Step] = [lambda store, _: store.get("key"), lambda store, _: list(store.all())]


@pytest.mark.parametrize("step", READS, ids=["get", "all"])
@pytest.mark.parametrize(("error", "kind"), BROKEN, ids=[str(e) or "memory" for e, _ in BROKEN])
def test_a_store_that_fails_is_never_skipped(
    case: _Case, step: Step, error: Exception, kind: type[HomeportError]
) -> None:
    """Neither by ignoring all, nor by the task's own except: nothing can be committed any more."""
    case.breaks(error)
    with pytest.raises(TaskFailedError):
        case.run(step)

    def hides(store: KeyValueStore, collector: MessageCollector) -> None:
        try:
            step(store, collector)
        except Exception:  # noqa: BLE001 - what a user may write
            raise RuntimeError("of the user's") from None

    case.run(hides)
    assert case.task.ignored == 1
    with pytest.raises(kind):
        case.engines.require_sound()


class _Exacting(StreamTask):
    """Raises in init what the test says; asks for all that a task can ask for."""

    error: BaseException | None = None

    def init(self, _context: TaskContext) -> None:
        if self.error is not None:
            raise self.error

    def process(
        self, _message: IncomingMessage, _collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:
        coordinator.commit()
        coordinator.shutdown()


def _exacting(requests: Requests) -> StreamTaskInstance:
    outputs = Outputs({"kafka"}, {"kafka"}, "kafka")
    ignored = frozenset({ALL_EXCEPTIONS})
    parts = StreamTaskParts(outputs, requests, _messages, ignored, StopFlag(), CallWatch(None))
    return StreamTaskInstance(_Exacting, Context(TASK, {}, {}), parts)


def test_a_task_asks_its_container_for_commits_and_the_end() -> None:
    """There is no request before; the vote is the task's own, and ends nothing alone."""
    requests = Requests()
    task = _exacting(requests)
    assert requests == Requests(votes=set(), commit=False)
    task.process_batch(pa.table({}))
    assert requests.commit
    assert requests.has_all_of([TASK])
    assert not requests.has_all_of([TASK, "Partition 1"])


@pytest.mark.parametrize("error", [RuntimeError("no init"), SystemExit("no init")])
def test_a_task_whose_init_raises_fails_whatever_is_ignored(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The container fails with task, step and cause in one line: it has no task to go on with."""
    monkeypatch.setattr(_Exacting, "error", error)
    with pytest.raises(
        TaskFailedError, match=r"'Partition 0' failed in init: \w+: no init"
    ) as failed:
        _exacting(Requests())
    assert failed.value.__cause__ is error
