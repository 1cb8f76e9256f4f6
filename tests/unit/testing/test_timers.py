"""Timers under the TestRunner: when a task is called, and what a crash makes of it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from small_jobs import store_keys

from homeport.config.errors import ConfigError
from homeport.container.api import (
    BatchTask,
    IncomingMessage,
    KeyValueStore,
    MessageCollector,
    StreamTask,
    TaskContext,
    TaskCoordinator,
    Timer,
)
from homeport.container.callables import TaskFailedError
from homeport.testing import Record, TestRunner
from homeport.testing.runner import START_MS
from tests.unit.testing.counting_job import config, feed

TIMERS = {
    "task.timers.store": "timers",
    **store_keys("timers", "string", msg_serde="long", changelog="kafka.timers-changelog"),
}
EVENTS = {"task.watermark.lateness.ms": "100"}


class _Quiet(StreamTask):
    """Counts per key; says the sum once a key has been quiet for a second."""

    def init(self, context: TaskContext) -> None:
        self.counts: KeyValueStore = context.store("counts")
        self.scheduler = context.scheduler

    def process(
        self,
        message: IncomingMessage,
        collector: MessageCollector,  # noqa: ARG002 - sends later
        coordinator: TaskCoordinator,  # noqa: ARG002 - not used
    ) -> None:
        key = message.key
        self.counts.put(key, (self.counts.get(key) or 0) + 1)
        self.scheduler.schedule("quiet", key, after_ms=1000)

    def on_timer(
        self,
        timer: Timer,
        collector: MessageCollector,
        coordinator: TaskCoordinator,  # noqa: ARG002 - not used
    ) -> None:
        collector.send("out", str(self.counts.get(timer.key)).encode(), timer.key.encode())
        self.counts.delete(timer.key)


class _Alarm(StreamTask):
    """Schedules what its messages say, and sends each call with the time of its timer."""

    def init(self, context: TaskContext) -> None:
        self.scheduler = context.scheduler

    def process(
        self, message: IncomingMessage, collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:
        del collector, coordinator
        request: dict[str, Any] = message.value
        if "cancel" in request:
            self.scheduler.cancel(request["cancel"])
        if "event" in request:
            self.scheduler.schedule_event(request["event"], at_ms=request["at"])
        if "clock" in request:
            self.scheduler.schedule(request["clock"], at_ms=request["at"])

    def on_timer(
        self, timer: Timer, collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:
        collector.send("out", f"{timer.name} at {timer.at_ms}".encode())
        if timer.name == "last":
            coordinator.shutdown()
        if timer.name == "cancels":
            self.scheduler.cancel("cancelled")
        if timer.name == "again":
            self.scheduler.schedule("again", after_ms=400)


def _said(runner: TestRunner) -> list[str]:
    return [record.value.decode() for record in runner.output("kafka.out")]


@pytest.mark.parametrize("more", [{}, TIMERS])
def test_a_timer_comes_at_its_time_and_a_new_time_replaces_it(more: dict[str, str]) -> None:
    """Its writes are committed as those of a message are, without any input."""
    with TestRunner(config(), task=_Quiet, overrides=more) as runner:
        feed(runner, key="a", value={})
        runner.advance(900)
        feed(runner, key="a", value={})
        runner.advance(900)
        assert runner.output("kafka.out") == []
        runner.advance(1200)
        assert runner.output("kafka.out") == [Record(b"a", b"2")]
        assert runner.output("kafka.out")[0].timestamp - START_MS <= 900 + 1000 + 1000
        assert runner.changelog("counts") == {}
        runner.advance(5000)
        assert len(runner.output("kafka.out")) == 1


def test_timers_in_a_store_are_there_after_a_restart_and_others_are_not() -> None:
    """Those whose time has passed meanwhile come first; without a store there are none."""
    for more, expected in ((TIMERS, [Record(b"a", b"1")]), ({}, [])):
        with TestRunner(config(), task=_Quiet, overrides=more) as runner:
            feed(runner, key="a", value={})
            runner.restart(same_host=False)
            runner.advance(2500)
            assert runner.output("kafka.out") == expected


@pytest.mark.parametrize("same_host", [True, False])
def test_a_crash_before_any_step_calls_each_timer_once(*, same_host: bool) -> None:
    """The timer is gone with the transaction that has what its call did, and not before."""
    keys = {**config("rocksdb", task__transaction__ms=1), **TIMERS}
    with TestRunner(keys, task=_Quiet) as runner:
        for number, step in enumerate(runner.commit_steps, start=1):
            runner.send("kafka.in", key=f"k{number}", value={})
            runner.crash_before(step)
            runner.restart(same_host=same_host)
            runner.run()
            runner._clock.move(2000)
            runner.crash_before(step)
            runner.restart(same_host=same_host)
            runner.run()
            assert len(runner.output("kafka.out")) == number
            assert runner.changelog("timers") == {}
            assert runner.changelog("counts") == {}


def test_timers_of_event_time_come_with_the_watermark() -> None:
    """In the turn in which a record brings the time on, behind by the lateness."""
    with TestRunner(config(), task=_Alarm, overrides=EVENTS) as runner:
        for name, at in (("b", 1000), ("a", 1000), ("c", 1001)):
            feed(runner, value={"event": name, "at": at}, timestamp=500)
        runner.send("kafka.in", value={}, timestamp=1099)
        runner.advance(100_000)
        assert _said(runner) == []
        feed(runner, value={}, timestamp=1100)
        assert _said(runner) == ["a at 1000", "b at 1000"]
        feed(runner, value={}, timestamp=900)
        assert len(_said(runner)) == 2


def test_the_slowest_partition_holds_event_time_back_until_it_is_idle() -> None:
    """Of all partitions of the task, also one that has brought nothing so far."""
    keys = config(job__systemstreampartition__grouper__factory="group-by-partition")
    keys |= {"task.inputs": "kafka.in,kafka.too", **EVENTS, "task.watermark.idle.ms": "10000"}
    keys |= {"systems.kafka.streams.too.samza.msg.serde": "json"}
    with TestRunner(keys, task=_Alarm) as runner:
        feed(runner, value={"event": "x", "at": 1000}, timestamp=5000)
        assert _said(runner) == []
        feed(runner, "kafka.too", value={}, timestamp=1050)
        assert _said(runner) == []
        runner.advance(6000)
        feed(runner, value={}, timestamp=5001)
        assert _said(runner) == []
        runner.advance(5000)
        assert _said(runner) == ["x at 1000"]


def test_timers_are_called_in_the_order_of_their_times_unless_taken_back() -> None:
    """One that a call before it cancels is not called; one in the past is called at once."""
    with TestRunner(config(), task=_Alarm) as runner:
        now = runner.now_ms
        for name, at in (("later", 7), ("cancels", 2), ("cancelled", 3), ("past", -5), ("x", 4)):
            runner.send("kafka.in", value={"clock": name, "at": now + at})
        feed(runner, value={"cancel": "x"})
        assert _said(runner) == [f"past at {now - 5}"]
        runner._clock.move(10)
        runner.run()
        assert _said(runner)[1:] == [f"cancels at {now + 2}", f"later at {now + 7}"]


def test_a_timer_that_schedules_itself_comes_again_at_each_time() -> None:
    """And one may end the job."""
    with TestRunner(config(), task=_Alarm) as runner:
        start = runner.now_ms
        runner.send("kafka.in", value={"clock": "again", "at": start + 400})
        feed(runner, value={"clock": "last", "at": start + 1300})
        runner.advance(5000)
        assert not runner.is_running
        times = [400, 800, 1200]
        expected = [*(f"again at {start + t}" for t in times), f"last at {start + 1300}"]
        assert _said(runner) == expected


class _LateBatch(BatchTask):
    """Sends the number of its rows a second after the first one."""

    def init(self, context: TaskContext) -> None:
        self.scheduler = context.scheduler
        self.partitions = context.partitions
        self.rows = 0
        self.sent = b""

    def process_batch(self, table: pa.Table, collector: MessageCollector) -> None:  # noqa: ARG002 - sends later
        self.rows += table.num_rows
        if self.scheduler.scheduled("flush") is None:
            self.scheduler.schedule("flush", after_ms=1000)

    def on_timer(self, timer: Timer, collector: MessageCollector) -> None:  # noqa: ARG002 - sends at the end
        self.sent = f"{self.rows} of {self.partitions} at {timer.at_ms}".encode()

    def end_transaction(self, collector: MessageCollector) -> None:
        if self.sent:
            collector.send("out", self.sent)
            self.sent = b""


def test_a_batch_task_has_timers_and_a_last_chance_to_send_after_one() -> None:
    """With the partitions that its context says."""
    with TestRunner(config(), task=_LateBatch) as runner:
        now = runner.now_ms
        feed(runner, key="a", value={})
        runner.advance(600)
        feed(runner, key="a", value={})
        runner.advance(2400)
        assert _said(runner) == [f"2 of (('kafka', 'in', 0),) at {now + 1000}"]


class _NoHook(StreamTask):
    def init(self, context: TaskContext) -> None:
        self.context = context

    def process(
        self, message: IncomingMessage, collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:
        del collector, coordinator
        scheduler = self.context.scheduler
        getattr(scheduler, message.value["call"])(*message.value["of"], **message.value["with"])


@pytest.mark.parametrize(
    ("call", "arguments", "expected"),
    [
        ("schedule", {"after_ms": 1}, r"on_timer of 'x': .*_NoHook has no on_timer: define it"),
        ("schedule", {}, "needs one of at_ms and after_ms"),
        ("schedule", {"at_ms": 1, "after_ms": 1}, "needs one of at_ms and after_ms"),
        ("schedule", {"after_ms": 0}, "after_ms=0, it must be at least 1"),
        ("schedule_event", {"at_ms": 1}, r"set task\.watermark\.lateness\.ms"),
        ("schedule a/b", {"at_ms": 1}, "'a/b' has a '/': use another sign"),
    ],
)
def test_a_wrong_timer_fails_the_task_in_one_line(
    call: str, arguments: dict[str, int], expected: str
) -> None:
    """Which names the timer and the remedy; a slash would not come back from the store."""
    call, _, name = call.partition(" ")
    with TestRunner(config(), task=_NoHook) as runner:
        runner.send("kafka.in", value={"call": call, "of": [name or "x"], "with": arguments})
        with pytest.raises(TaskFailedError, match=expected):
            runner.advance(10)


def test_a_store_that_cannot_hold_timers_is_refused_at_submission() -> None:
    """In one line, before anything runs."""
    with pytest.raises(ConfigError, match="it must name a store of the job; it has counts, timers"):
        TestRunner({**config(), **TIMERS, "task.timers.store": "nix"}, task=_Quiet)
