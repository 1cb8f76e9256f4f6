"""RunLoop on a clock of its own: when transactions, commits and windows come, and what ends it."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from homeport.config.errors import ConfigError
from homeport.config.settings.tuning import Tuning
from homeport.container.host.stop_flag import StopFlag
from homeport.container.kafka.input_consumer import MicroBatch
from homeport.container.processing import open_transaction, run_loop
from homeport.container.processing.loop_parts import LoopParts, LoopSettings, Pipeline
from homeport.container.processing.run_loop import RunLoop
from homeport.container.processing.stream_task_instance import Requests
from homeport.container.processing.task_instance import Outputs
from homeport.container.progress.transaction_plan import Send, StoreId
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

A, B = TaskName("A"), TaskName("B")
PARTITION = SystemStreamPartition("kafka", "in", 0)
NEVER_MS = 600_000
_MOST_POLLS = 10_000


class _Clock:
    """In the place of the module ``time``: goes on only where a stand-in lets it."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def ms(self) -> int:
        return round(self.now * 1000)


class _Source:
    """Input that arrives at its times; the container is ordered to stop when ``end_s`` has come."""

    def __init__(
        self, clock: _Clock, stop: StopFlag, arrivals: Mapping[float, int], end_s: float
    ) -> None:
        self._clock, self._stop, self._end_s = clock, stop, end_s
        self._coming = sorted(arrivals.items())
        self._offset = 0
        self.patience: list[float] = []

    def poll(self, _max_rows: int, timeout_s: float) -> MicroBatch | None:
        self.patience.append(timeout_s)
        assert len(self.patience) < _MOST_POLLS, "it polls without end"
        if self._clock.now >= self._end_s:
            self._stop.set()
            return None
        until = self._clock.now + max(timeout_s, 1e-6)
        if not self._coming or self._coming[0][0] > until:
            self._clock.now = until
            return None
        at, rows = self._coming.pop(0)
        self._clock.now = max(self._clock.now, at)
        first, self._offset = self._offset, self._offset + rows
        table = pa.table({"task": [A] * rows})
        return MicroBatch(
            table, 40 * rows, {A: {PARTITION: first}}, {A: {PARTITION: self._offset - 1}}
        )

    def is_caught_up(self) -> bool:
        return True

    def lag(self) -> int:
        return 7


class _Task:
    """Notes what it is called for, and does what the test says."""

    def __init__(self, case: _Case, name: TaskName) -> None:
        self._case, self._name = case, name

    def process_batch(self, _rows: pa.Table) -> None:
        self._case.on_batch()

    def end_transaction(self) -> None:
        pass

    def window(self) -> None:
        self._case.note(f"window {self._name}")
        self._case.on_window()

    def end_of_stream(self) -> None:
        self._case.note(f"end of {self._name}")
        self._case.on_end()

    def close(self) -> None:
        pass


class _Storage:
    """In the place of the stores: two of them move with each flush."""

    def __init__(self) -> None:
        self.size_bytes = 0

    def ids(self) -> tuple[list[StoreId], list[StoreId]]:
        return [], []

    def changes(self) -> list[Any]:
        return []

    def drop(self) -> None:
        self.size_bytes = 0

    def has_first_changes(self) -> bool:
        return False

    def flush(self, _reached: object) -> int:
        return 2


class _Producer:
    """In the place of Kafka's: takes everything."""

    def __init__(self) -> None:
        self.sent: list[Send] = []

    def await_brokers(self, *_: object) -> None:
        pass

    def begin(self) -> None:
        pass

    def send(self, sends: Sequence[Send]) -> None:
        self.sent.extend(sends)

    def deliver(self) -> None:
        pass

    def commit(self) -> dict[tuple[str, int], int]:
        return {}


class _Plain:
    """In the place of the producers of outputs that leave at once."""

    def __init__(self, case: _Case) -> None:
        self._case = case

    def send(self, sends: Sequence[Send]) -> None:
        for send in sends:
            self._case.note(f"sent to {send.topic}")

    def settle(self, _pause: object) -> None:
        pass


class _Topics:
    def check(self) -> None:
        pass


class _Foreign:
    """A pipeline whose rows belong to no task of the container."""

    def run(self, table: pa.Table) -> pa.Table:
        return pa.table({"task": ["elsewhere"] * table.num_rows})


def _nothing() -> None:
    pass


@dataclass
class _Case:
    """A container of two tasks, of which A has input; by default no time or size ends anything."""

    monkeypatch: pytest.MonkeyPatch
    clock: _Clock = field(default_factory=_Clock)
    stop: StopFlag = field(default_factory=StopFlag)
    requests: Requests = field(default_factory=Requests)
    outputs: Outputs = field(default_factory=lambda: Outputs({"kafka"}, {"kafka"}, "kafka"))
    storage: Any = field(default_factory=_Storage)
    producer: Any = field(default_factory=_Producer)
    topics: Any = field(default_factory=_Topics)
    plain: Any = None
    pipeline: Pipeline | None = None
    max_bytes: int = 1 << 30
    max_ms: int = NEVER_MS
    window_ms: int | None = None
    commit_ms: int = NEVER_MS
    on_batch: Callable[[], None] = _nothing
    on_window: Callable[[], None] = _nothing
    on_end: Callable[[], None] = _nothing
    source: Any = None
    notes: list[tuple[int, str]] = field(default_factory=list)
    history: list[tuple[int, str, Mapping[str, Any]]] = field(default_factory=list)

    def note(self, what: str) -> None:
        """It happens now."""
        self.notes.append((self.clock.ms(), what))

    def tuning(self) -> Tuning:
        """What is in force now."""
        return Tuning(self.commit_ms, self.max_ms, self.max_bytes, self.window_ms)

    def run(self, arrivals: Mapping[float, int], end_s: float) -> bool:
        """The loop's own answer. Shapes: ``arrivals`` {second: rows of 40 bytes each}."""
        self.source = _Source(self.clock, self.stop, arrivals, end_s)
        parts = LoopParts(
            self.source,
            self.pipeline,
            {B: _Task(self, B), A: _Task(self, A)},
            self.requests,
            self.outputs,
            self.storage,
            self.producer,
            {A: {}, B: {}},
            lambda event, **story: self.history.append((self.clock.ms(), event, story)),
            lambda _topic: 1 << 20,
            self.topics,
            self.tuning,
            self.plain,
        )
        settings = LoopSettings(1000, "G", None, has_windows=True)
        for module in (run_loop, open_transaction):
            self.monkeypatch.setattr(module, "time", self.clock)
        return RunLoop(parts, settings, self.stop).run()

    def times(self, event: str) -> list[int]:
        """When the history has that event, in ms."""
        return [at for at, name, _ in self.history if name == event]


@pytest.fixture
def case(monkeypatch: pytest.MonkeyPatch) -> _Case:
    """A container before its first poll."""
    return _Case(monkeypatch)


def test_an_idle_container_soon_sees_that_it_is_to_stop(case: _Case) -> None:
    """No poll waits for longer than half a second, nor does it poll without a pause."""
    assert not case.run({}, 10)
    assert min(case.source.patience) > 0
    assert max(case.source.patience) <= 0.5
    assert (case.notes, case.history) == ([], [])


def test_the_first_batch_of_a_container_is_not_held_back(case: _Case) -> None:
    """Its transaction ends at once; the next one ends by its age."""
    case.max_ms = 10_000
    assert not case.run({1: 1, 2: 1, 3: 1}, 20)
    assert case.times("transaction-committed") == [1000, 12_000]


def test_a_transaction_ends_on_time_though_nothing_more_arrives(case: _Case) -> None:
    """A poll waits no longer than the open transaction may live."""
    case.max_ms = 250
    case.run({1: 1, 2: 1}, 5)
    assert case.times("transaction-committed") == [1000, 2250]


def test_input_outputs_and_changes_together_end_a_transaction(case: _Case) -> None:
    """The bytes of all three count; what the transaction before had does not."""

    def writes() -> None:
        case.outputs.send("out", b"x" * 400)
        case.storage.size_bytes += 400

    case.on_batch = writes
    case.max_bytes = 1200 * 2
    case.run({1: 10, 2: 10, 3: 10, 4: 10}, 5)
    assert case.times("transaction-committed") == [1000, 3000]


def test_the_history_has_the_first_record_once(case: _Case) -> None:
    """The history has it with the last offsets of its batch, and no batch after that."""
    case.run({1: 5, 2: 5, 3: 5}, 5)
    found = [(at, story) for at, event, story in case.history if event == "first-record"]
    assert found == [(1000, {"offsets": {A: {"kafka.in.0": 4}}})]


def test_a_row_of_a_task_elsewhere_is_the_pipeline_s_fault(case: _Case) -> None:
    """The error names the key, the task and the remedy."""
    case.pipeline = _Foreign()
    with pytest.raises(ConfigError, match=r"task\.pipeline\.class.*'elsewhere'.*keep the column"):
        case.run({1: 1}, 5)
    assert case.times("transaction-committed") == []


def test_a_commit_that_a_task_asks_for_comes_at_once_and_once(case: _Case) -> None:
    """The open transaction ends with it; without a request neither happens so early."""

    def asks() -> None:
        case.requests.commit = case.clock.now == 3

    case.on_batch = asks
    case.run({1: 1, 2: 1, 3: 1, 4: 1}, 6)
    assert case.times("transaction-committed") == [1000, 3000]
    found = [(at, story) for at, event, story in case.history if event == "commit"]
    assert found == [(3000, {"stores": 2})]


def test_windows_come_at_a_fixed_rate(case: _Case) -> None:
    """Every task has its window each time, the first after one whole period."""
    case.window_ms = 2000
    case.run({}, 7)
    held = [(at, f"window {task}") for at in (2000, 4000, 6000) for task in (A, B)]
    assert case.notes == held


def test_the_loop_takes_the_tuning_of_its_turn(case: _Case) -> None:
    """Transactions, flushes and windows keep to new values from the next turn on."""

    def retuned() -> None:
        case.commit_ms, case.max_ms, case.window_ms = 1500, 500, 2000

    case.on_batch = retuned
    case.run({1: 1, 2: 1, 4: 1}, 8)
    # The first batch ends its transaction; the next two wait for 500 ms of age.
    assert case.times("transaction-committed") == [1000, 2500, 4500]
    flushes = case.times("commit")
    assert flushes
    assert all(b - a < 2000 for a, b in itertools.pairwise([0, *flushes]))
    assert [at for at, what in case.notes if what == f"window {A}"] == [3000, 5000, 7000]


def test_windows_that_were_missed_are_not_made_up_for(case: _Case) -> None:
    """After a batch that takes several periods one window comes, and the next in its turn."""

    def takes_long() -> None:
        case.clock.now = 7.5

    case.window_ms = 2000
    case.on_batch = takes_long
    case.run({1: 1}, 11)
    assert [at for at, what in case.notes if what == f"window {A}"] == [7500, 8000, 10_000]


def test_output_of_a_window_is_committed_without_any_input(case: _Case) -> None:
    """It opens a transaction; a window that sends nothing opens none."""

    def sends() -> None:
        if case.clock.now < 1.5:
            case.outputs.send("out", b"1")

    case.window_ms, case.max_ms = 1000, 250
    case.on_window = sends
    case.run({}, 4)
    assert case.times("transaction-committed") == [1250]
    assert [send.topic for send in case.producer.sent] == ["out", "out"]


def test_outputs_of_a_window_leave_at_once_where_they_may(case: _Case) -> None:
    """Where they are no part of the transaction, they do not wait for its end."""
    case.plain = _Plain(case)
    case.window_ms, case.max_ms = 1000, 500
    case.on_window = lambda: case.outputs.send("out", b"1")
    case.run({}, 1.75)
    assert [at for at, what in case.notes if what == "sent to out"] == [1000, 1000]
    assert case.times("transaction-committed") == [1500]


def test_a_container_finishes_when_every_task_has_voted(case: _Case) -> None:
    """Each task hears of the end, and what the tasks send then is committed."""
    case.on_batch = lambda: case.requests.votes.update({A, B})
    case.on_end = lambda: case.outputs.send("out", b"last")
    assert case.run({1: 1}, 5)
    assert case.notes == [(1000, f"end of {A}"), (1000, f"end of {B}")]
    assert case.times("transaction-committed") == [1000]
    assert [send.value for send in case.producer.sent] == [b"last", b"last"]


def test_a_stop_at_the_end_of_the_stream_holds_for_the_other_tasks(case: _Case) -> None:
    """No further task is called, and nothing is committed: the container has not finished."""
    case.on_batch = lambda: case.requests.votes.update({A, B})
    case.on_end = case.stop.set
    assert not case.run({1: 1}, 5)
    assert case.notes == [(1000, f"end of {A}")]
    assert case.times("transaction-committed") == []


def test_the_log_says_every_few_seconds_how_much_was_read(
    case: _Case, caplog: pytest.LogCaptureFixture
) -> None:
    """Each line counts what was read since the line before, with the rate and what still waits."""
    caplog.set_level(logging.INFO, run_loop.__name__)
    case.run(dict.fromkeys(range(1, 13), 10), 13)
    found = [record.message for record in caplog.records if "lag" in record.message]
    assert found == ["50 records in 5.0 s (10/s), lag 7"] * 2
