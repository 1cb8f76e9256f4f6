"""Bootstrap streams, priorities and starting points under the TestRunner."""

from __future__ import annotations

from homeport.testing import TestRunner
from homeport.testing.runner import START_MS
from tests.unit.testing.counting_job import feed, task_of

KEYS = {
    "job.name": "ordered",
    "job.default.system": "kafka",
    "task.inputs": "kafka.in,kafka.table",
    "systems.kafka.consumer.bootstrap.servers": "none:1",
    "systems.kafka.samza.offset.default": "oldest",
}
TABLE = "systems.kafka.streams.table"


_Echo = task_of(lambda message, collector: collector.send("out", message.value))


def _values(runner: TestRunner) -> list[bytes]:
    return [record.value for record in runner.output("out")]


def test_a_bootstrap_stream_goes_first() -> None:
    """At each start to its end, whatever else waits, and later whenever it has records."""
    keys = {**KEYS, f"{TABLE}.samza.bootstrap": "true"}
    with TestRunner(keys, task=_Echo, batch_rows=2) as runner:
        runner.run()
        for n in range(3):
            runner.send("kafka.in", value=b"in%d" % n)
        for n in range(3):
            runner.send("kafka.table", value=b"table%d" % n)
        runner.restart()
        runner.run()
        first = [b"table0", b"table1", b"table2", b"in0", b"in1", b"in2"]
        assert _values(runner) == first
        runner.send("kafka.in", value=b"in3")
        feed(runner, "kafka.table", value=b"table3")
        assert _values(runner)[6:] == [b"table3", b"in3"]


def test_a_bootstrap_stream_may_end_with_a_transaction() -> None:
    """The end of one takes an offset, and is no record: the others begin."""
    keys = {**KEYS, f"{TABLE}.samza.bootstrap": "true", "task.inputs": "kafka.in,kafka.out"}
    keys = {k.replace("streams.table", "streams.out"): v for k, v in keys.items()}
    of_input = task_of(lambda m, to: to.send("out", m.value) if m.stream == "in" else None)
    with TestRunner(keys, task=of_input, partitions=1) as runner:
        feed(runner, value=b"a")
        runner.restart()
        feed(runner, value=b"b")
        assert b"b" in _values(runner)


def test_a_priority_goes_first() -> None:
    """Among what is at hand."""
    keys = {**KEYS, f"{TABLE}.samza.priority": "1"}
    with TestRunner(keys, task=_Echo, batch_rows=1) as runner:
        for n in range(2):
            runner.send("kafka.in", value=b"in%d" % n)
            runner.send("kafka.table", value=b"table%d" % n)
        runner.run()
        assert _values(runner) == [b"table0", b"table1", b"in0", b"in1"]


def test_a_start_at_a_time_and_a_reset_at_each_start() -> None:
    """The job's first start reads from that time on; one with a reset, each."""
    at = {f"{TABLE}.start.time": str(START_MS + 1000)}
    for reset, again in ((False, []), (True, [b"new"])):
        keys = {**KEYS, **at, f"{TABLE}.samza.reset.offset": str(reset).lower()}
        runner = TestRunner(keys, task=_Echo)
        runner.send("kafka.table", value=b"old", timestamp=START_MS)
        runner.send("kafka.table", value=b"new", timestamp=START_MS + 1000)
        with runner:
            runner.run()
            assert _values(runner) == [b"new"]
            runner.restart()
            runner.run()
            assert _values(runner) == [b"new", *again]
