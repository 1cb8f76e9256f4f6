"""References and windows of a job in Python, run by TestRunner as its container runs them."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pyarrow as pa
import pytest

from homeport import Job, StreamTask, TaskContext
from homeport.config.errors import ConfigError
from homeport.config.settings.validation import validate
from homeport.container.api import IncomingMessage
from homeport.container.callables import TaskFailedError
from homeport.container.windows import Aggregate, Late, Tumbling, WindowResult, Windows
from homeport.job.handles import OutsideOfCallError, Reference
from homeport.job.windows import Window
from homeport.testing import Record, TestRunner

joins = Job("joins", kafka="k:1")
joins.each(joins.input("flights"))(lambda _message: None)
joins.reference("planes", key=str, value=str, topic="fleet", versions="version")
joins.reference("airlines", key=str, value=str, broadcast=3, bootstrap=False)


def _keys(job: Job, *beginnings: str) -> dict[str, str]:
    return {key: value for key, value in job.config.items() if key.startswith(beginnings)}


def _windows(name: str, **given: Any) -> tuple[Job, Any, Window[Any, Any]]:  # noqa: ANN401 - as of job.window
    job = Job(name, kafka="k:1")
    source = job.input("in", key=str, value=float)
    target = job.output("out", key=str, value=object)
    window = job.window("spans", **{"value": float, **given})

    @job.closed(window)
    def closed(key: str, value: object, found: WindowResult) -> None:
        target.send(key, [found.start_ms, found.end_ms, value])

    return job, source, window


def test_a_reference_is_the_keys_of_an_adjunct_store() -> None:
    """Of parts by default; its topic needs no function."""
    assert _keys(joins, "stores.", "task.", "systems.kafka.streams.") == {
        "stores.airlines.adstore.input": "kafka.airlines",
        "stores.airlines.factory": "rocksdb",
        "stores.airlines.key.serde": "string",
        "stores.airlines.msg.serde": "string",
        "stores.planes.adstore.input": "kafka.fleet",
        "stores.planes.adstore.version.marker.header": "version",
        "stores.planes.factory": "rocksdb",
        "stores.planes.key.serde": "string",
        "stores.planes.msg.serde": "string",
        "systems.kafka.streams.airlines.samza.key.serde": "string",
        "systems.kafka.streams.airlines.samza.msg.serde": "string",
        "systems.kafka.streams.fleet.samza.bootstrap": "true",
        "systems.kafka.streams.fleet.samza.key.serde": "string",
        "systems.kafka.streams.fleet.samza.msg.serde": "string",
        "systems.kafka.streams.flights.samza.key.serde": "bytes",
        "systems.kafka.streams.flights.samza.msg.serde": "bytes",
        "task.broadcast.inputs": "kafka.airlines#[0-2]",
        "task.class": f"{__name__}:joins",
        "task.inputs": "kafka.flights,kafka.fleet",
    }
    assert validate(joins.config) == ()


def test_functions_read_a_reference_as_they_read_a_store() -> None:
    """A part and the whole, newest values, deletions; nothing writes to it."""
    job = Job("reads", kafka="k:1")
    flights = job.input("flights", key=str, value=str)
    planes = job.reference("planes", key=str, value=str)
    airlines = job.reference("airlines", key=str, value=dict, broadcast=1)
    seen: list[object] = []

    @job.each(flights)
    def read(tail: str, airline: str) -> None:
        seen.append((planes.get(tail, "unknown"), tail in planes, airlines[airline]))
        seen.append((planes.get_all([tail]), dict(planes.all()), dict(planes.range("N1", "N2"))))
        seen.append((dict(planes.prefix("N1")), planes.get_arrow(pa.array([tail])).to_pylist()))

    with TestRunner(job) as runner:
        runner.send("planes", key="N1", value="737")
        runner.send("planes", key="N2", value="A320")
        runner.send("planes", key="N2", value=None)
        runner.send("airlines", key="UA", value={"name": "United"})
        runner.send("flights", key="N1", value="UA")
        runner.run()
        assert seen == [
            ("737", True, {"name": "United"}),
            ({"N1": "737"}, {"N1": "737"}, {"N1": "737"}),
            ({"N1": "737"}, ["737"]),
        ]
    assert repr(airlines) == "Reference('airlines', key=str, value=dict)"
    assert isinstance(planes, Reference)
    assert not hasattr(planes, "put")
    with pytest.raises(OutsideOfCallError, match="the store planes of the job 'reads' is used"):
        planes.get("N1")


def test_windows_close_once_whatever_dies() -> None:
    """Each value is in one window; a crash before any step of a commit changes nothing."""
    job, source, window = _windows("per-minute", size=60_000, late=1_000)

    @job.each(source)
    def add(_key: str, miles: float, message: IncomingMessage) -> None:
        window.add(message, miles)

    with TestRunner(job) as runner:
        for number, step in enumerate(runner.commit_steps):
            runner.send("in", key="a", value=2, timestamp=number)
            runner.crash_before(step)
            runner.restart()
            runner.run()
        runner.send("in", key="a", value=5, timestamp=60_999)
        runner.run()
        assert runner.output("out") == []
        runner.send("in", key="a", value=1, timestamp=61_000)
        runner.run()
        (record,) = runner.output("out")
        assert (record.key, record.value) == ("a", [0, 60_000, 2.0 * (number + 1)])
    assert repr(window) == "Window('spans', windows of 60000 ms every 60000 ms)"
    with pytest.raises(OutsideOfCallError, match="the window spans of the job 'per-minute' is"):
        window.advance()


@pytest.mark.parametrize(
    ("given", "times", "expected"),
    [
        ({"size": 10}, (1, 5, 12, 40), [[0, 10, 2.0], [10, 20, 1.0]]),
        (
            {"size": 10, "step": 5},
            (1, 7, 40),
            [[-5, 5, 1.0], [0, 10, 2.0], [5, 15, 1.0]],
        ),
        ({"gap": 10}, (1, 5, 14, 40), [[1, 24, 3.0]]),
        ({"gap": 10, "emit": "update"}, (1, 5), [[1, 11, 1.0], [1, 15, 2.0]]),
        (
            {"gap": 10, "value": list, "add": lambda own, more: [*own, more],
             "merge": lambda older, newer: older + newer, "late": 30},
            (1, 19, 10, 90),
            [[1, 29, [1.0, 1.0, 1.0]]],
        ),
        ({"gap": 10, "merge": max, "late": 30}, (1, 19, 10, 90), [[1, 29, 2.0]]),
        (
            {"size": 10, "value": dict, "add": lambda own, more: {"n": own["n"] + more},
             "init": lambda: {"n": 100.0}, "meaning": "counts"},
            (1, 2, 40),
            [[0, 10, {"n": 102.0}]],
        ),
    ],
)  # fmt: skip
def test_each_kind_of_window(
    given: dict[str, Any], times: tuple[int, ...], expected: list[object]
) -> None:
    """Tumbling, hopping, sessions, updates, and sums of the job's own."""
    job, source, window = _windows("kinds", **given)

    @job.each(source)
    def add(_key: str, miles: float, message: IncomingMessage) -> None:
        window.add(message, miles)

    with TestRunner(job) as runner:
        for time in times:
            runner.send("in", key="a", value=1, timestamp=time)
        runner.run()
        assert [record.value for record in runner.output("out")] == expected


def test_late_records_have_a_function_too() -> None:
    """It gets key and value, and may send; open windows can be read."""
    job, source, window = _windows("late", size=10, keep=1_000)
    lost = job.output("lost", key=str, value=float)
    seen: list[object] = []

    @job.late(window)
    def late(key: str, value: float, found: Late) -> None:
        lost.send(key, value + found.at_ms)

    @job.each(source)
    def add(_key: str, miles: float, message: IncomingMessage) -> None:
        window.add(message, miles, key="all", at_ms=message.timestamp * 10)
        seen.append([found.value for found in window.at("all", 0)])

    with TestRunner(job) as runner:
        for time in (0, 4, 0):
            runner.send("in", key="a", value=1, timestamp=time)
        runner.run()
        assert [(r.key, r.value) for r in runner.output("lost")] == [("all", 1.0)]
        assert [(r.key, r.value) for r in runner.output("out")] == [("all", [0, 10, 1.0])]
    assert seen == [[1.0], [1.0], [1.0]]


def test_windows_of_input_that_rests_are_closed_by_themselves() -> None:
    """Idle partitions hold no other back; a call advances event time too."""
    job, source, window = _windows("rests", size=10)

    @job.each(source)
    def add(_key: str, miles: float, message: IncomingMessage) -> None:
        window.add(message, miles)
        if miles < 0:
            window.advance(1_000)

    with TestRunner(job, partitions=1, overrides={"task.watermark.idle.ms": "5000"}) as runner:
        runner.send("in", key="a", value=-1, timestamp=3)
        runner.run()
        assert [r.value for r in runner.output("out")] == [[0, 10, -1.0]]
    two = Job("two", kafka="k:1")
    first, second = two.input("a", key=str, value=float), two.input("b", key=str, value=float)
    spans = two.window("spans", value=float, size=10)
    out = two.output("out", key=str, value=float)
    two.each(first)(lambda _key, value, message: spans.add(message, value))
    two.each(second)(lambda _key, value, message: spans.add(message, value))
    two.closed(spans)(out.send)
    with TestRunner(two, overrides={"task.watermark.idle.ms": "5000"}) as runner:
        runner.send("b", key="x", value=1, timestamp=1)
        runner.run()
        for time in (3, 100):
            runner.send("a", key="x", value=1, timestamp=time)
        runner.run()
        assert runner.output("out") == []
        runner.advance(4_000)
        runner.send("a", key="x", value=1, timestamp=101)
        runner.run()
        runner.advance(2_000)
        runner.run()
        assert [(r.key, r.value) for r in runner.output("out")] == [("x", 2.0)]


def test_a_batch_adds_whole_tables() -> None:
    """Arrow sums them up; the job's own timers are called beside."""
    job = Job("batches", kafka="k:1")
    source = job.input("in", key=str, value=float)
    out = job.output("out", key=str, value=float)
    spans: Any = job.window(
        "spans", value=float, add=lambda own, part: own + part["offset_sum"], size=10
    )
    timers: list[str] = []

    @job.batch(source)
    def add(table: pa.Table) -> None:
        rows = table.set_column(1, "key", table.column("key").cast(pa.string()))
        spans.add_table(rows, [("offset", "sum")])
        job.scheduler.schedule("own", after_ms=10)

    @job.closed(spans)
    def closed(key: str, value: float) -> None:
        out.send(key, value)

    job.on_timer(lambda timer: timers.append(timer.name))
    with TestRunner(job) as runner:
        for time in (1, 2, 3, 44):
            runner.send("in", key="a", value=1, timestamp=time)
        runner.run()
        assert runner.output("out") == [
            Record("a", 3.0, offset=0, timestamp=runner.now_ms, partition=0, headers={})
        ]
        runner.advance(5_000)
        assert timers == ["own"]


def test_what_a_function_of_windows_raises_fails_the_task() -> None:
    """Nothing of the transaction is kept."""
    job, source, window = _windows("raises", size=10)
    job.late(window)(lambda _late: 1 / 0)
    job.each(source)(lambda _key, value, message: window.add(message, value))
    with TestRunner(job) as runner:
        runner.send("in", key="a", value=1, timestamp=50)
        runner.send("in", key="a", value=1, timestamp=1)
        with pytest.raises(TaskFailedError, match="ZeroDivisionError"):
            runner.run()


def test_dead_letters_are_two_keys() -> None:
    """Records that a serde cannot read go there."""
    job = Job("letters", kafka="k:1")
    source = job.input("in", key=str, value=float)
    job.dead_letters("bad")
    job.each(source)(lambda _message: None)
    with TestRunner(job) as runner:
        runner.send_bytes("in", key=b"a", value=b"no double")
        runner.run()
        (record,) = runner.output("bad")
        assert record.value == b"no double"
        assert {"homeport.reason", "homeport.source.offset"} <= {*record.headers}


def test_a_message_without_a_system_is_of_the_partition_with_its_number() -> None:
    """As rows of a pipeline, which have the other columns by themselves; others hold it back."""
    job = Job("places", kafka="k:1")
    first, second = job.input("a", key=str, value=float), job.input("b", key=str, value=float)
    spans = job.window("spans", value=float, size=10)
    out = job.output("out", key=str, value=float)
    job.closed(spans)(out.send)

    def add(_key: str, value: float, message: IncomingMessage) -> None:
        spans.add(message._replace(system=""), value)

    job.each(first)(add)
    job.each(second)(add)
    with TestRunner(job) as runner:
        for stream, time in (("a", 1), ("a", 50), ("b", 9)):
            runner.send(stream, key="x", value=1, timestamp=time)
        runner.run()
        assert runner.output("out") == []
        runner.send("b", key="x", value=1, timestamp=10)
        runner.run()
        assert [record.value for record in runner.output("out")] == [2.0]


@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_job_keeps_nothing_of_a_runner_that_is_closed(calls: int, *, is_async: bool) -> None:
    """Neither its handles nor its windows: a notebook may start many."""
    job = Job("ended", keys={"task.max.concurrency": calls})
    source = job.input("in", key=str, value=int)
    kept = job.store("kept", key=str, value=int)
    summed = job.window("summed", value=int, size=1_000, late=0)

    def keep(message: IncomingMessage) -> None:
        kept[message.key] = message.value
        summed.add(message, message.value)

    async def later(message: IncomingMessage) -> None:
        keep(message)

    job.each(source)(later if is_async else keep)
    with TestRunner(job) as runner:
        runner.send("in", key="a", value=1)
        runner.run()
        stores = [weakref.ref(runner.store(name)) for name in ("kept", "summed")]
    del runner
    gc.collect()
    assert [store() for store in stores] == [None, None]


class _Summed(StreamTask):
    """Its windows have the lateness of the job."""

    on_late: Any = None

    def init(self, context: TaskContext) -> None:
        """Make them."""
        counts = Aggregate(int, lambda own, _more: own + 1)
        Windows(context, "counts", Tumbling(5), counts, on_late=self.on_late)

    def process(self, message: IncomingMessage, context: TaskContext) -> None:
        """Take nothing."""


_UNORDERED = (
    "task.max.concurrency = '2': records come in another order then, and the windows '{}' lose "
    "late ones; give late= to job.window or lateness_ms= to Windows, or set "
    "task.watermark.lateness.ms"
)


@pytest.mark.parametrize("is_async", [False, True])
def test_windows_of_concurrent_calls_need_a_lateness(*, is_async: bool) -> None:
    """Of their own or of the job, 0 as well: else they would lose records that are in time."""

    async def later(message: IncomingMessage) -> None:
        """Add nothing."""

    def runner(lateness: dict[str, str], **given: Any) -> TestRunner:  # noqa: ANN401 - as of job.window
        job = Job("unordered", keys={"task.max.concurrency": 2})
        job.window("ordered", value=int, size=5, late=0)
        job.window("spans", value=int, size=5, **given)
        job.each(job.input("in"))(later if is_async else repr)
        return TestRunner(job, overrides=lateness)

    with pytest.raises(ConfigError) as refused:
        runner({})
    assert str(refused.value) == _UNORDERED.format("spans")
    for lateness, given in (({}, {"late": 0}), ({"task.watermark.lateness.ms": "5"}, {})):
        with runner(lateness, **given):
            pass


def test_windows_of_a_class_need_a_lateness_too() -> None:
    """It is known where they are made."""
    keys = {
        "task.inputs": "kafka.in",
        "stores.counts.factory": "rocksdb",
        "stores.counts.key.serde": "string",
        "stores.counts.msg.serde": "long",
        "task.max.concurrency": "2",
    }
    with pytest.raises(TaskFailedError) as refused, TestRunner(keys, task=_Summed):
        pass
    assert str(refused.value).endswith(f"in init: ConfigError: {_UNORDERED.format('counts')}")
    with TestRunner({**keys, "task.watermark.lateness.ms": "0"}, task=_Summed):
        pass
    with TestRunner(keys, task=type("Late", (_Summed,), {"on_late": lambda *_: None})):
        pass


def test_windows_with_a_function_of_late_records_need_no_lateness() -> None:
    """They lose nothing."""
    job = Job("late", keys={"task.max.concurrency": 2})
    source = job.input("in", key=str, value=int)
    sums = job.window("sums", value=int, size=5)
    late: list[int] = []
    job.closed(sums)(repr)
    job.late(sums)(lambda lost: late.append(lost.value))
    job.each(source)(lambda message: sums.add(message, message.value))
    with TestRunner(job) as runner:
        for value, time in ((1, 1), (2, 90), (3, 2)):
            runner.send("in", key="k", value=value, timestamp=time)
            runner.run()
    assert late == [3]
