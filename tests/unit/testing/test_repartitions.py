"""A job that counts by another key than its input has, in memory: what is sent comes back, once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from small_jobs import store_keys

from homeport.config.errors import ConfigError
from homeport.container.api import IncomingMessage, StreamTask, TaskContext
from homeport.container.callables import TaskFailedError
from homeport.testing import TestRunner, TestRunnerError

_KEYS: Mapping[str, str] = {
    "job.name": "flights",
    "job.default.system": "kafka",
    "task.inputs": "kafka.flights",
    "task.repartition.by-airport": "inputs",
    "systems.kafka.samza.key.serde": "string",
    "systems.kafka.samza.msg.serde": "json",
    "task.repartition.by-airport.msg.serde": "string",
    **store_keys("counts", "string", changelog="kafka.counts"),
    "stores.counts.msg.serde": "json",
}


class _Counts(StreamTask):
    """Sends each flight on by its airport, and counts what comes back."""

    def init(self, context: TaskContext) -> None:
        self.own = context.repartition("by-airport")
        self.counts = context.store("counts")
        with pytest.raises(KeyError, match="no repartition 'x' is configured; known: by-airport"):
            context.repartition("x")

    def process(self, message: IncomingMessage, context: TaskContext) -> None:
        if message.stream != self.own:
            airport = message.value and message.value["to"]
            context.send(
                "by-airport",
                message.value and message.value["tail"],
                airport or "nowhere",
                headers={"from": b"test"},
                timestamp=message.timestamp,
            )
            return
        assert message.headers == {"from": b"test"}
        count = self.counts.get(message.key) or 0
        self.counts.put(message.key, count + 1)
        context.send("totals", [message.value, count + 1, message.timestamp], message.key)


def _fly(runner: TestRunner, count: int) -> Counter[str]:
    right = Counter[str]()
    for number in range(count):
        airport = f"A{number % 7}"
        runner.send("kafka.flights", key=f"N{number}", value={"to": airport, "tail": f"N{number}"})
        right[airport] += 1
    return right


def _counted(runner: TestRunner) -> Counter[str]:
    found = Counter[str]()
    for task in runner.tasks:
        found += Counter(dict(runner.store("counts", task=task).all()))
    return found


def test_records_are_counted_by_the_key_with_which_they_were_sent_on() -> None:
    """Each key in one task, whichever task had sent it; nulls, times and headers come along."""
    with TestRunner(_KEYS, task=_Counts, partitions=4) as runner:
        right = _fly(runner, 100)
        runner.send("kafka.flights", key="N", value=None, timestamp=1_600_000_000_000)
        right["nowhere"] += 1
        assert runner.run() == 202
        assert _counted(runner) == right
        own = runner.output("by-airport")
        assert len(own) == 101
        assert {(record.key, record.partition) for record in own} == {
            (record.key, record.partition) for record in runner.output("totals")
        }, "a topic with as many partitions has the key in the same one"
        (null,) = (r for r in runner.output("totals") if r.key == "nowhere")
        assert null.value == [None, 1, 1_600_000_000_000]


@pytest.mark.parametrize("number", ["1", "3", "8"])
def test_the_number_of_partitions_may_be_another(number: str) -> None:
    """More make more tasks."""
    keys = {**_KEYS, "task.repartition.by-airport": number}
    with TestRunner(keys, task=_Counts, partitions=4) as runner:
        right = _fly(runner, 50)
        runner.run()
        assert _counted(runner) == right
        assert {record.partition for record in runner.output("by-airport")} <= {*range(int(number))}


def test_a_crash_at_each_step_of_a_commit_counts_nothing_twice() -> None:
    """What was sent on, and what was counted of it, are in one transaction each."""
    with TestRunner(_KEYS, task=_Counts, partitions=2) as runner:
        right = Counter[str]()
        for step in runner.commit_steps:
            right += _fly(runner, 20)
            runner.crash_before(step)
            runner.restart(same_host=step.endswith("commit"))
            runner.run()
            assert _counted(runner) == right, step
        assert len(runner.output("totals")) == sum(right.values())


def test_a_test_may_send_to_a_repartition_itself() -> None:
    """By its name; a record without a serde that fits is refused by the keys to set."""
    with TestRunner(_KEYS, task=_Counts) as runner:
        runner.send("by-airport", key="JFK", value="N1", headers={"from": b"test"})
        runner.run()
        assert _counted(runner) == {"JFK": 1}
    keys = {k: v for k, v in _KEYS.items() if "serde" not in k or k.startswith("stores.")}
    keys |= {"systems.kafka.streams.flights.samza.msg.serde": "json"}
    with TestRunner(keys, task=_Counts) as runner:
        runner.send("kafka.flights", key=b"N", value={"to": "JFK", "tail": "N1"})
        with pytest.raises(TaskFailedError, match=r"set task\.repartition\.by-airport\.key\.serde"):
            runner.run()


def test_a_job_in_a_test_is_checked_as_by_run_job() -> None:
    """With the same line."""
    with pytest.raises(ConfigError, match=r"task\.repartition\.flights = 'inputs': an input or an"):
        TestRunner({**_KEYS, "task.repartition.flights": "inputs"}, task=_Counts)


def test_a_job_with_a_repartition_is_not_drained() -> None:
    """As run-job refuses that: what tasks have just sent on would stay unread."""
    with TestRunner(_KEYS, task=_Counts) as runner:
        with pytest.raises(TestRunnerError, match="with a repartition is never drained"):
            runner.drain()
        right = _fly(runner, 1)
        runner.run()
        assert _counted(runner) == right


class _Circle(StreamTask):
    """Sends each record on under the key that it has, until its value is 0."""

    def process(self, message: IncomingMessage, context: TaskContext) -> None:
        left = int(message.value["left"] if isinstance(message.value, dict) else message.value)
        if left:
            context.send("by-airport", str(left - 1), message.key)


def test_a_circle_without_an_end_is_an_error_and_one_with_an_end_is_none() -> None:
    """A job on Kafka goes round for ever; a test ends, and can go on."""
    with TestRunner(_KEYS, task=_Circle) as runner:
        runner.send("kafka.flights", key="A", value={"left": 900})
        assert runner.run() == 901
        runner.send("kafka.flights", key="A", value={"left": 1500})
        with pytest.raises(TestRunnerError, match="still send to a repartition of their own after"):
            runner.run()
        assert runner.is_running
        assert runner.run() == 501
