"""A RunLoop on a clock of its own, with stand-ins for all that it works with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from homeport.config.settings.tuning import Tuning
from homeport.container.api import Timer
from homeport.container.host.executors import complete
from homeport.container.host.stop_flag import StopFlag
from homeport.container.kafka.drain import Drain
from homeport.container.kafka.input_consumer import MicroBatch
from homeport.container.processing import run_loop
from homeport.container.processing.loop_dependencies import LoopDependencies, LoopSettings, Pipeline
from homeport.container.processing.run_loop import RunLoop
from homeport.container.processing.task_instance import Outputs, Requests
from homeport.container.progress.transaction_plan import Send, StoreId
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

A, B = TaskName("A"), TaskName("B")
PARTITION = SystemStreamPartition("kafka", "in", 0)
NEVER_MS = 600_000
_MOST_POLLS = 10_000


class _Clock:
    """A clock that goes on only where a stand-in lets it."""

    def __init__(self) -> None:
        self._now = 0.0
        self._coming: list[tuple[float, Callable[[], None]]] = []

    @property
    def now(self) -> float:
        return self._now

    @now.setter
    def now(self, now: float) -> None:
        while self._coming and self._coming[0][0] <= now:
            self._now, action = self._coming.pop(0)
            action()
            now = max(now, self._now)
        self._now = now

    def at(self, when_s: float, action: Callable[[], None]) -> None:
        """``action`` is done as soon as that time has come."""
        self._coming.append((when_s, action))
        self._coming.sort(key=lambda entry: entry[0])

    def monotonic(self) -> float:
        return self.now

    def pass_s(self, seconds: float) -> None:
        self.now += max(seconds, 1e-6)

    def ms(self) -> int:
        return round(self.now * 1000)


class _Source:
    """Input that arrives at its times; the container is ordered to stop when ``end_s`` has come."""

    def __init__(self, case: LoopCase, arrivals: Mapping[float, int], end_s: float) -> None:
        self._case, self._clock, self._end_s = case, case.clock, end_s
        self._coming = sorted(arrivals.items())
        self._offset = 0
        self.patience: list[float] = []
        self.wanted: list[int] = []

    def poll(self, max_rows: int, timeout_s: float) -> MicroBatch | None:
        self.patience.append(timeout_s)
        self.wanted.append(max_rows)
        assert len(self.patience) < _MOST_POLLS, "it polls without end"
        if self._clock.now >= self._end_s:
            self._case.stop.set()
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
            table,
            self._case.row_bytes * rows,
            {A: {PARTITION: first}},
            {A: {PARTITION: self._offset - 1}},
        )

    def is_caught_up(self) -> bool:
        return True

    def is_at_end(self) -> bool:
        """Whether nothing has arrived and waits, if that is known."""
        return self._case.knows_end and not (self._coming and self._coming[0][0] <= self._clock.now)

    def lag(self) -> int:
        """Always the same, unless it is to be what has arrived and waits."""
        if not self._case.counts_waiting:
            return self._case.lag
        return sum(rows for at, rows in self._coming if at <= self._clock.now)


class _Task:
    """Notes what it is called for, and does what the test says."""

    def __init__(self, case: LoopCase, name: TaskName) -> None:
        self._case, self._name = case, name

    def process_batch(self, rows: pa.Table) -> None:
        self._case.seen += rows.num_rows
        self._case.on_batch()

    def end_transaction(self) -> None:
        pass

    def on_timer(self, timer: Timer) -> None:
        self._case.note(f"{timer.name} {self._name}")

    def window(self) -> None:
        self._case.note(f"window {self._name}")
        self._case.on_window()

    def end_of_stream(self) -> None:
        self._case.note(f"end of {self._name}")
        self._case.on_end()

    def close(self) -> None:
        pass


class _Flush:
    """In the place of one store's."""

    has_moved = True

    def run(self, *_steps: object) -> None:
        """It costs what the thread of flushes costs."""


class _Storage:
    """In the place of the stores: two of them move with each flush."""

    def __init__(self) -> None:
        self.size_bytes = 0
        self.logged = ()

    def ids(self) -> tuple[list[StoreId], list[StoreId]]:
        return [], []

    def changes(self) -> list[Any]:
        self.size_bytes = 0
        return []

    def drop(self) -> None:
        self.size_bytes = 0

    def first_flushes(self) -> Iterator[_Flush]:
        return iter(())

    def due_flushes(self) -> Iterator[_Flush]:
        return iter([_Flush(), _Flush()])

    def flush_adjuncts(self, _reached: object, _begins: object) -> int:
        return 0

    def require_sound(self) -> None:
        pass

    def flush(self, _reached: object, _begins: object) -> int:
        return 2


class _Producer:
    """In the place of Kafka's: takes everything."""

    def __init__(self) -> None:
        self.sent: list[Send] = []
        self.on_commit: Callable[[], None] = _nothing

    def await_brokers(self, *_: object) -> None:
        pass

    def begin(self) -> None:
        pass

    def send(self, sends: Sequence[Send]) -> None:
        self.sent.extend(sends)

    def deliver(self) -> None:
        pass

    def commit(self) -> dict[tuple[str, int], int]:
        self.on_commit()
        return {}


class Plain:
    """In the place of the producers of outputs that leave at once."""

    def __init__(self, case: LoopCase) -> None:
        self._case = case

    def send(self, sends: Sequence[Send]) -> None:
        """Notes where each record goes."""
        for send in sends:
            self._case.note(f"sent to {send.topic}")

    def deliver(self, _pause: object) -> None:
        """All have arrived."""


class _Topics:
    def check(self) -> None:
        pass


class Passing:
    """A pipeline that fails over one of its batches, if any."""

    def __init__(self, fails_at: int | None = None) -> None:
        self._fails_at = fails_at
        self.batches = 0

    def run(self, table: pa.Table, _stores: object = None) -> pa.Table:
        """The rows as they are; the time goes by elsewhere (``_SideWork``)."""
        self.batches += 1
        if self.batches == self._fails_at:
            raise ValueError("the pipeline has failed")
        return table


class _SideWork:
    """In the place of a thread: works on one call after another while the clock goes on.

    The thread that waits for it is ordered to stop when ``end_s`` has come.
    """

    def __init__(
        self, clock: _Clock, stop: StopFlag, end_s: float, cost_s: Callable[[], float]
    ) -> None:
        self._clock, self._stop, self._end_s, self._cost_s = clock, stop, end_s, cost_s
        self._free_s = 0.0
        self._ends: list[float] = []
        self.most = 0
        """So many calls were waiting or being made at once."""

    def submit(self, function: Callable[[], Any]) -> Future[Any]:
        """The call will be done when its time has gone by, after those before it."""
        cost_s = self._cost_s()
        self._free_s = max(self._free_s, self._clock.now) + cost_s
        call = Future[Any]()
        self._ends = [*(end for end in self._ends if end > self._clock.now), self._free_s]
        self.most = max(self.most, len(self._ends))
        if cost_s:
            self._clock.at(self._free_s, partial(complete, call, function))
        else:
            complete(call, function)
        return call

    def wait(self, call: Future[Any], timeout_s: float) -> None:
        """Time goes by until the next call is done, or the time is over."""
        assert not call.done()
        until = self._clock.now + max(timeout_s, 1e-6)
        self._clock.now = min([until, *(end for end in self._ends if end > self._clock.now)])
        if self._clock.now >= self._end_s:
            self._stop.set()

    def close(self) -> None:
        """What is being made goes on."""


class Ends(Drain):
    """A drain whose input holds so many records, and nothing but records."""

    def __init__(self, records: int, clock: _Clock) -> None:
        super().__init__({}, clock.pass_s)
        self._records, self._clock = records, clock
        self.looks: list[int] = []
        """When ``holds_nothing`` was called, in milliseconds."""

    def heads(
        self, partitions: Collection[SystemStreamPartition]
    ) -> dict[SystemStreamPartition, int]:
        """Behind the last one."""
        return dict.fromkeys(partitions, self._records)

    def holds_nothing(self, partition: SystemStreamPartition, start: int, head: int) -> bool:
        """Whether there is no record from ``start`` on."""
        del partition
        self.looks.append(self._clock.ms())
        return start >= head

    def close(self) -> None:
        """It is not asked any more."""


class Foreign:
    """A pipeline whose rows belong to no task of the container."""

    def run(self, table: pa.Table, _stores: object = None) -> pa.Table:
        """As many rows of a task that the container does not have."""
        return pa.table({"task": ["elsewhere"] * table.num_rows})


def _nothing() -> None:
    pass


@dataclass
class LoopCase:
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
    calls: Any = None
    drain: Any = None
    pipeline: Pipeline | None = None
    max_bytes: int = 1 << 30
    max_ms: int = NEVER_MS
    window_ms: int | None = None
    commit_ms: int = NEVER_MS
    idle_ms: int | None = None
    linger_ms: int = 0
    batch_target_ms: int = 500
    knows_end: bool = True
    commit_s: float = 0.0
    overlaps: bool = False
    pipeline_s: Callable[[], float] = float
    sending_s: Callable[[], float] = float
    flushing_s: Callable[[], float] = float
    counts_waiting: bool = False
    row_bytes: int = 40
    lag: int = 7
    seen: int = 0
    on_commit: Callable[[], None] = _nothing
    on_batch: Callable[[], None] = _nothing
    on_window: Callable[[], None] = _nothing
    on_end: Callable[[], None] = _nothing
    source: Any = None
    sides: Mapping[str, _SideWork] = field(default_factory=dict)
    notes: list[tuple[int, str]] = field(default_factory=list)
    history: list[tuple[int, str, Mapping[str, Any]]] = field(default_factory=list)

    def note(self, what: str) -> None:
        """It happens now."""
        self.notes.append((self.clock.ms(), what))

    def takes(self, seconds: float) -> Callable[[], None]:
        """For ``on_batch``: each batch takes so long, and is noted at its end."""

        def work() -> None:
            self.clock.now += seconds
            self.note("batch")

        return work

    def batches(self) -> list[int]:
        """When each batch ended that was noted, in milliseconds."""
        return [at for at, what in self.notes if what == "batch"]

    def tuning(self) -> Tuning:
        """What is in force now."""
        return Tuning(
            self.commit_ms,
            self.max_ms,
            self.max_bytes,
            self.window_ms,
            self.idle_ms,
            self.linger_ms,
            self.batch_target_ms,
            drains=self.drain is not None,
        )

    def run(self, arrivals: Mapping[float, int], end_s: float) -> bool:
        """The loop's own answer. Shapes: ``arrivals`` {second: rows of 40 bytes each}."""
        self.source = _Source(self, arrivals, end_s)
        costs = {
            "pipeline": self.pipeline_s,
            "sending": self.sending_s,
            "flushing": self.flushing_s,
        }
        self.sides = {n: _SideWork(self.clock, self.stop, end_s, c) for n, c in costs.items()}
        self.monkeypatch.setattr(run_loop, "OneThread", self.sides.__getitem__)
        self.producer.on_commit = self._commits
        self.monkeypatch.setattr(self.stop, "wait", self.clock.pass_s)
        parts = LoopDependencies(
            self.source,
            self.pipeline,
            {B: _Task(self, B), A: _Task(self, A)},
            self.requests,
            self.outputs,
            self.storage,
            self.producer,
            {A: {PARTITION: -1}, B: {}},
            lambda event, **story: self.history.append((self.clock.ms(), event, story)),
            lambda _content: None,
            self.topics,
            self.tuning,
            self.plain,
            clock=self.clock.monotonic,
            calls=self.calls,
            drain=self.drain,
        )
        settings = LoopSettings(1000, "G", None, has_windows=True, overlaps=self.overlaps)
        return RunLoop(parts, settings, self.stop).run()

    def _commits(self) -> None:
        self.clock.pass_s(self.commit_s)
        self.on_commit()

    def times(self, event: str) -> list[int]:
        """When the history has that event, in ms."""
        return [at for at, name, _ in self.history if name == event]
