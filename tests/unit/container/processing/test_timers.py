"""Timers of one task: memory, order, and what a pipeline leaves of event time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest

from homeport.config.config import Config
from homeport.config.settings.timers_section import TimersConfig
from homeport.config.system_stream import SystemStream
from homeport.container.api import Timer
from homeport.container.processing.timers import Timers, partitions_of, timers_of
from homeport.container.progress.watermark import Watermark
from homeport.job_coordinator.clocks import wall_ms
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition, TaskModel

if TYPE_CHECKING:
    from homeport.container.api import KeyValueStore


def test_timers_that_are_scheduled_again_and_again_take_no_more_memory() -> None:
    """What is left of the times before is cleared away."""
    timers = Timers(lambda: 0)
    for at_ms in range(10_000):
        timers.schedule("x", at_ms=at_ms)
    assert len(timers._timers) == 1
    assert len(timers._heaps[False]) < 200
    assert [t.at_ms for t in timers.due(10)] == []
    assert timers.wait_s() == 9.999


def test_at_most_so_many_are_due_at_once() -> None:
    """The clock's before those of event time; the rest comes next."""
    mark = Watermark(["a"], 0, None, 0)
    mark.saw("a", 100, 0)
    timers = Timers(lambda: 50, mark)
    timers.schedule_event("e", at_ms=1)
    timers.schedule("b", at_ms=2)
    timers.schedule("a", at_ms=2)
    timers.schedule("later", at_ms=51)
    assert [t.name for t in timers.due(2)] == ["a", "b"]
    found = timers.due(9)
    assert [t.name for t in found] == ["a", "b", "e"]
    assert all(timers.take(timer) for timer in found)
    assert not timers.take(found[0])
    assert [t.name for t in timers.due(9)] == []
    assert timers.wait_s() == pytest.approx(0.001)
    timers.cancel("later")
    timers.cancel("never")
    assert timers.wait_s() == math.inf


def test_a_timer_is_of_one_kind_at_a_time() -> None:
    """Scheduled for the other kind of time, it is only that."""
    mark = Watermark(["a"], 0, None, 0)
    timers = Timers(lambda: 1000, mark)
    timers.schedule("x", at_ms=1)
    timers.schedule_event("x", at_ms=1)
    assert timers.due(9) == []
    assert timers.wait_s() == math.inf
    mark.saw("a", 1, 0)
    assert timers.wait_s() == 0
    assert [t.is_event_time for t in timers.due(9)] == [True]


class _Store:
    """Keeps what is put, and notes each call."""

    def __init__(self) -> None:
        self.entries: dict[str, int] = {}
        self.calls: list[str] = []

    def put(self, key: str, value: int) -> None:
        self.entries[key] = value
        self.calls.append(f"put {key}")

    def delete(self, key: str) -> None:
        del self.entries[key]
        self.calls.append(f"delete {key}")

    def all(self) -> list[tuple[str, int]]:
        return sorted(self.entries.items())


def test_a_store_has_each_timer_once() -> None:
    """Under its newest kind and time; what changes nothing is not written."""
    store = _Store()
    timers = Timers(lambda: 0, Watermark(["a"], 0, None, 0), cast("KeyValueStore", store))
    timers.schedule("x", "k", at_ms=1)
    timers.schedule("x", "k", at_ms=1)
    assert len(store.calls) == 1
    timers.schedule("x", "k", at_ms=2)
    assert list(store.entries.values()) == [2]
    timers.schedule_event("x", "k", at_ms=3)
    assert list(store.entries.values()) == [3]
    timers.cancel("never", "k")
    timers.cancel("x", "k")
    assert store.entries == {}


def test_event_time_is_that_of_the_inputs_that_a_task_sees() -> None:
    """Without a lateness the job has none."""
    places = [SystemStreamPartition("kafka", name, 0) for name in ("in", "planes")]
    task = TaskModel(TaskName("t"), tuple(places), 0)
    unseen = [SystemStream("kafka", "planes")]
    assert partitions_of(task, unseen) == (("kafka", "in", 0),)
    bare = Config({"task.watermark.lateness.ms": "5"})
    timers = timers_of(TimersConfig.of(bare), task, {}, lambda: 0, unseen)
    rows = {"system": ["kafka"], "stream": ["in"], "partition": [0], "timestamp": [9]}
    timers.saw(pa.table(rows))
    assert timers.watermark_ms == 4
    without = timers_of(TimersConfig.of(Config({})), task, {}, lambda: 0, unseen)
    with pytest.raises(ValueError, match="one of event time, of which the job has none"):
        without.schedule_event("x", at_ms=1)


def test_rows_bring_event_time_on_as_far_as_they_say_where_they_are_from() -> None:
    """Without places they are of every partition; without timestamps of none."""
    sources = [("kafka", "in", 0), ("kafka", "in", 1)]
    timers = Timers(lambda: 0, Watermark(sources, 0, None, 0))
    timers.saw(pa.table({"value": ["x"]}))
    places = {"system": ["kafka"] * 3, "stream": ["in"] * 3, "partition": [0, 0, 1]}
    timers.saw(pa.table({**places, "timestamp": [7, 3, -1]}))
    reached = [timers.watermark_ms]
    timers.saw(pa.table({**places, "timestamp": [6, 3, 5]}))
    reached.append(timers.watermark_ms)
    timers.saw(pa.table({"timestamp": [20, None]}))
    reached.append(timers.watermark_ms)
    assert reached == [None, 5, 20]
    assert Timers().watermark_ms is None


def test_the_clock_is_the_calendar_s() -> None:
    """Milliseconds since 1970."""
    assert Timers().now_ms == pytest.approx(wall_ms(), abs=10_000)
    assert wall_ms() > 1_700_000_000_000


class _Text(str):
    """Text of a class of its own."""

    __slots__ = ()


@pytest.mark.parametrize(
    ("name", "key", "at_ms", "error", "expected"),
    [
        ("x", b"ann", 1, TypeError, "the key of a timer must be str, not bytes: decode"),
        ("x", 5, 1, TypeError, "the key of a timer must be str, not int: give text"),
        ("x", None, 1, TypeError, "str, not NoneType: give text of its own, such as"),
        ("x", ("ann", 1), 1, TypeError, "the key of a timer must be str, not tuple"),
        (b"x", "k", 1, TypeError, "the name of a timer must be str, not bytes"),
        ("a/b", "k", 1, ValueError, "has a '/': use another sign"),
        ("x", "\ud83d", 1, ValueError, "half a surrogate pair"),
        ("x", "k", "5", TypeError, "give ms since 1970 as int"),
        ("x", "k", True, TypeError, "give ms since 1970 as int"),
        ("x", "k", 1 << 63, ValueError, "must fit into 64 bits"),
        ("x", "k", math.nan, ValueError, "must fit into 64 bits"),
    ],
)
@pytest.mark.parametrize("is_event_time", [True, False])
def test_a_timer_that_a_store_cannot_carry_is_refused_before_anything_is_written(
    name: Any,  # noqa: ANN401 - also what is wrong
    key: Any,  # noqa: ANN401 - as above
    at_ms: Any,  # noqa: ANN401 - as above
    error: type[Exception],
    expected: str,
    *,
    is_event_time: bool,
) -> None:
    """With a store and without, of both kinds; one of the other kind stays as it was."""
    for store in (None, _Store()):
        mark = Watermark(["a"], 0, None, 0)
        timers = Timers(lambda: 0, mark, cast("KeyValueStore | None", store))
        timers.schedule("x", "k", at_ms=7)
        timers.schedule_event("y", "k", at_ms=7)
        calls = [] if store is None else list(store.calls)
        schedule = timers.schedule_event if is_event_time else timers.schedule
        with pytest.raises(error, match=expected):
            schedule(name, key, at_ms=at_ms)
        assert len(timers._timers) == 2
        assert timers.scheduled("x", "k") == Timer("x", "k", 7)
        assert store is None or store.calls == calls
        if error is TypeError and at_ms == 1 and at_ms is not True:
            for call in (timers.scheduled, timers.cancel):
                with pytest.raises(error, match=expected):
                    call(name, key)


def test_a_timer_is_the_same_after_a_restart() -> None:
    """Whatever text its key is, and times before 1970 and parts of a millisecond."""
    store = _Store()
    keys = ["", "/", "a/b/c", "é\U0001f600", "\x00", " ", _Text("own"), "clock/x/k"]
    for number, key in enumerate(keys):
        timers = Timers(lambda: 0, None, cast("KeyValueStore", store))
        timers.schedule("x", key, at_ms=-number - 0.5)  # type: ignore[arg-type]  # as time() gives
    again = Timers(lambda: 0, None, cast("KeyValueStore", store))
    assert [again.scheduled("x", key) for key in keys] == [
        Timer("x", key, -number) for number, key in enumerate(keys)
    ]


@pytest.mark.parametrize("entry", ["", "clock", "clock/x", "other/x/k"])
def test_a_store_that_something_else_has_written_is_no_store_of_timers(entry: str) -> None:
    """In one line."""
    store = _Store()
    store.put(entry, 5)
    with pytest.raises(ValueError, match="needs a store that nothing else has written"):
        Timers(lambda: 0, None, cast("KeyValueStore", store))


def test_a_time_far_ahead_of_the_clock_brings_event_time_no_further() -> None:
    """Nor one that no record has; times before 1970 do."""
    place = ("kafka", "in", 0)
    timers = Timers(lambda: 1000, Watermark([place], 0, None, 0), None, ahead_ms=10)
    for times, reached in (([-1], None), ([-7, -1], -7), ([1010, 1011], 1010), ([2000], 1010)):
        timers.saw(pa.table({"timestamp": pa.array(times, pa.int64())}))
        assert timers.watermark_ms == reached
