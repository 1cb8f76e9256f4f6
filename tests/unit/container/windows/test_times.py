"""Windows of odd times: before 1970, beyond all calendars, ahead of the clock."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from homeport.container.api import BatchTask, MessageCollector, TaskContext
from homeport.container.callables import TaskFailedError
from homeport.container.windows import Aggregate, Hopping, Session, Tumbling, Windows
from homeport.container.windows.window_store import Place, WindowStore
from homeport.testing import TestRunner
from tests.unit.container.windows.window_jobs import KEPT, WindowTask, config

_DAY = 86_400_000
_BATCH_SUM = Aggregate(init=int, add=lambda total, row: total + row["n_sum"])


class _Births(BatchTask):
    """Windows of a column of timestamps with parts of a millisecond."""

    def init(self, context: TaskContext) -> None:
        """Makes the windows."""
        kept = {"span": Tumbling(_DAY), **KEPT}
        self.windows = Windows(context, "windows", kept.pop("span"), _BATCH_SUM, **kept)

    def process_batch(self, table: pa.Table, collector: MessageCollector) -> None:
        """All rows of a table."""
        rows = [json.loads(value) for value in table.column("value").to_pylist()]
        born = [datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=r["us"]) for r in rows]
        table = table.append_column("n", pa.array([row["n"] for row in rows], pa.int64()))
        table = table.append_column("born", pa.array(born, pa.timestamp("us", "UTC")))
        for result in self.windows.add_table(table, collector, [("n", "sum")], at="born"):
            lines = [result.start_ms, result.end_ms, result.value]
            collector.send("out", json.dumps(lines).encode(), result.key.encode())


def _ten_ms(job: dict[str, str]) -> None:
    """The job gets one record, and its clock goes on."""
    with TestRunner(job, task=WindowTask) as runner:
        runner.send("kafka.in", key="a", value={"n": 1, "at": 5})
        runner.run()
        runner.advance(20)


def _sent(runner: TestRunner, *times: int) -> list[list[Any]]:
    for at in times:
        runner.send("kafka.in", key="a", value={"n": 1, "at": at})
    runner.run()
    return [json.loads(record.value)[:3] for record in runner.output("kafka.out")]


@pytest.mark.parametrize("same_host", [True, False])
def test_windows_before_1970_are_as_those_after(*, same_host: bool) -> None:
    """In the order of their ends, over a restart too."""
    KEPT.update(span=Tumbling(_DAY))
    with TestRunner(config(), task=WindowTask) as runner:
        assert _sent(runner, -_DAY - 1, -_DAY, -1) == [[-2 * _DAY, -_DAY, 1]]
        runner.restart(same_host=same_host)
        assert _sent(runner, 0, _DAY)[1:] == [[-_DAY, 0, 2], [0, _DAY, 1]]


def test_hopping_windows_and_sessions_lie_across_1970() -> None:
    """And a window that a time before it closes is not found open again."""
    KEPT.update(span=Hopping(20, 10))
    with TestRunner(config(), task=WindowTask) as runner:
        assert _sent(runner, -5, 5, 100) == [[-20, 0, 1], [-10, 10, 2], [0, 20, 1]]
    KEPT.update(span=Session(10), lateness_ms=30)
    with TestRunner(config(), task=WindowTask) as runner:
        _sent(runner, -25, -9, -17)
        runner.restart(same_host=False)
        assert _sent(runner, 0, 100) == [[-25, 10, 4]]


def test_a_table_has_times_before_1970_too() -> None:
    """A part of a millisecond before 1970 is not in it."""
    with TestRunner(config(), task=_Births) as runner:
        for us in (-1, -_DAY * 1000, 0, _DAY * 1000):
            runner.send("kafka.in", key="a", value={"n": 1, "us": us})
        runner.run()
        found = [json.loads(record.value) for record in runner.output("kafka.out")]
        assert found == [[-_DAY, 0, 2], [0, _DAY, 1]]


class _Store(dict[str, Any]):
    """A store in memory, in the order of its keys' bytes."""

    def put_all(self, pairs: dict[str, Any]) -> None:
        """Each key has its value."""
        self.update(pairs)

    def range(self, start: str, end: str) -> Any:  # noqa: ANN401 - as a store's
        """Pairs in the order of bytes."""
        keys = sorted(k for k in self if start.encode() <= k.encode() < end.encode())
        return _Pairs([(key, self[key]) for key in keys])


class _Pairs:
    """Pairs that are let go."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self._pairs = pairs

    def __enter__(self) -> Any:  # noqa: ANN401 - as a store's
        return iter(self._pairs)

    def __exit__(self, *_error: object) -> None:
        pass


def test_the_order_of_entries_is_that_of_times() -> None:
    """By their bytes; those from 1970 on are written as they ever were."""
    store: Any = _Store()
    windows = WindowStore("w", store, has_sessions=False)
    ends = [-(10**15) + 1, -(10**14), -1001, -1000, -10, -9, -1, 0, 1, 9, 10, 10**14, 10**15 - 1]
    places = [Place(end, end - 1 if end > -(10**15) + 1 else end, "k/é") for end in ends]
    windows.put_all({place: place.end_ms for place in reversed(places)})
    assert list(windows.ends()) == ends
    assert windows.ending(-1000, 9) == [(p, p.end_ms) for p in places if -1000 <= p.end_ms <= 9]
    assert windows.ending(-(10**20), 10**20) == [(p, p.end_ms) for p in places]
    assert "w/000000000000009/000000000000008/k/é" in store


def test_a_time_beyond_all_calendars_is_late_and_ends_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Microseconds in the place of milliseconds; those that come after it count."""
    KEPT.update(late=True)
    with TestRunner(config(), task=WindowTask) as runner, caplog.at_level(logging.WARNING):
        assert _sent(runner, 1, 10**15, 1 << 62, -(10**15), 15) == [[0, 10, 1]]
        assert len(runner.output("kafka.late")) == 3
        assert "1 records were too far ahead of the clock for windows so far" in caplog.text


def test_a_time_too_far_ahead_of_the_clock_makes_no_other_late() -> None:
    """It is reported as what is late is, over restarts too."""
    keys = config(task__watermark__ahead__ms="1000")
    KEPT.update(late=True)
    with TestRunner(keys, task=WindowTask) as runner:
        now = runner.now_ms
        assert _sent(runner, now - 50, now + 1001) == []
        runner.restart()
        closed = _sent(runner, now + 1000)
        assert [end - start for start, end, _ in closed] == [10]
        (late,) = runner.output("kafka.late")
        assert json.loads(late.value) == [now + 1001, {"n": 1, "at": now + 1001}]


def test_rows_too_far_ahead_are_in_no_window_of_a_table() -> None:
    """They are counted, and what comes after them is not late."""
    KEPT.update(span=Tumbling(10))
    with TestRunner(config(task__watermark__ahead__ms="0"), task=_Births) as runner:
        late = (runner.now_ms + 10) * 1000
        for us in (1000, late, 15_000, 16_000):
            runner.send("kafka.in", key="a", value={"n": 1, "us": us})
        runner.run()
        found = [json.loads(record.value) for record in runner.output("kafka.out")]
        assert found == [[0, 10, 1]]
        (instance,) = runner._running()._parts.tasks.values()
        windows = instance._task.windows  # type: ignore[attr-defined]  # of the class above
        assert (windows.late, windows.ahead) == (0, 1)


@pytest.mark.parametrize("at", [1.5, True, "5"])
def test_a_time_that_is_no_whole_number_is_refused(at: object) -> None:
    """Before anything is written."""
    with TestRunner(config(), task=WindowTask) as runner:
        runner.send("kafka.in", key="a", value={"n": 1, "at": at})
        with pytest.raises(TaskFailedError, match="at_ms must be whole ms, not"):
            runner.run()


@pytest.mark.parametrize("wrong", [60_000.0, "60000", True])
@pytest.mark.parametrize("make", [Tumbling, Session, lambda ms: Hopping(60_000, ms)])
def test_a_span_of_no_whole_number_is_refused_when_it_is_made(
    make: Callable[[Any], object], wrong: object
) -> None:
    """No record has come by then."""
    with pytest.raises(TypeError, match=r"_ms must be whole ms, not \w+: give an int"):
        make(wrong)


@pytest.mark.parametrize("name", ["lateness_ms", "retention_ms", "to_ms", "time_ms"])
@pytest.mark.parametrize("wrong", [1e12, "5", False])
def test_other_times_of_windows_are_whole_too(
    name: str, wrong: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``time.time() * 1000`` is a float: nothing has been written where it is refused."""
    match = f"{name} must be whole ms, not {type(wrong).__name__}"
    if name in ("to_ms", "time_ms"):
        call: Any = Windows.advance if name == "to_ms" else lambda w, ms: Windows.at(w, "a", ms)
        monkeypatch.setattr(WindowTask, "window", lambda self, *_: call(self.windows, wrong))
    else:
        KEPT[name] = wrong
    with pytest.raises(TaskFailedError, match=match):
        _ten_ms(config(task__window__ms="10"))


def test_whole_numbers_of_numpy_are_ms_too() -> None:
    """As a column has them."""
    found = Hopping(np.int64(10), np.int64(5))  # type: ignore[arg-type]  # as said above
    assert (type(found.size_ms), found) == (int, Hopping(10, 5))
