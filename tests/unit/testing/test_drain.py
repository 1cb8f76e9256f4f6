"""Draining under the TestRunner: up to where, what tasks get at the end, and what comes after."""

from __future__ import annotations

import pyarrow as pa
import pytest

from homeport.container.api import BatchTask, MessageCollector
from homeport.container.kafka.drain import Drain
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition
from homeport.testing import Record, TestRunner, TestRunnerError
from homeport.testing.broker import Outcome, Transaction
from tests.unit.testing.counting_job import Count, config


def test_a_drained_job_has_processed_its_input_and_goes_on_where_it_stopped() -> None:
    """L9: a commit follows the end of the stream. Nothing is read twice after it."""
    with TestRunner(config("rocksdb"), task=Count, partitions=2, batch_rows=1) as runner:
        for partition in (0, 0, 0, 1):
            runner.send("kafka.in", key="a", value={"n": 1}, partition=partition)
        runner.drain()
        assert not runner.is_running
        assert len(runner.output("kafka.out")) == 4
        assert runner.output("kafka.windows") == [Record(None, b"over")] * 2
        assert runner.checkpoint(partition=0) == {"kafka.in.0": 2}
        runner.send("kafka.in", key="a", value={"n": 5}, partition=0)
        runner.restart()
        assert runner.run() == 1
        assert runner.output("kafka.out")[-1] == Record(b"a", b"8")
        assert runner.restored("counts", partition=0).records == 0


class _Sums(BatchTask):
    """Keeps rows back until its transaction ends."""

    rows = 0
    has_ended = False

    def process_batch(self, table: pa.Table, collector: MessageCollector) -> None:  # noqa: ARG002 - at the end
        self.rows += table.num_rows

    def end_of_stream(self, collector: MessageCollector) -> None:
        self.has_ended = True
        collector.send("out", b"over")

    def end_transaction(self, collector: MessageCollector) -> None:
        if self.has_ended:
            collector.send("out", b"%d" % self.rows)


def test_a_batch_task_gets_the_end_and_then_the_last_chance() -> None:
    """Also where nothing came for it."""
    for records in (3, 0):
        with TestRunner(config(), task=_Sums) as runner:
            for _ in range(records):
                runner.send("kafka.in", key="a", value={})
            runner.drain()
            expected = [Record(None, b"over"), Record(None, b"%d" % records)]
            assert runner.output("kafka.out") == expected


def test_a_job_may_drain_by_its_own_configuration() -> None:
    """What is there at its start is all that it processes."""
    with TestRunner(config(job__drain="true"), task=Count) as runner:
        runner.stop()
        runner.send("kafka.in", key="a", value={"n": 1})
        runner.restart()
        runner.run()
        assert not runner.is_running
        assert len(runner.output("kafka.out")) == 1


def test_ends_of_transactions_are_no_records_to_wait_for() -> None:
    """The last offsets of the input; one that is open may become records."""
    with TestRunner(config(), task=Count) as runner:
        broker = runner._around.brokers["kafka"]
        partition = broker.partitions("in")[0]
        epoch = broker.take_over("other")
        runner.send("kafka.in", key="a", value={"n": 1})
        broker.append("in", b"a", b'{"n":9}', transaction=broker.begin("other", epoch))
        broker.end("other", epoch, Outcome.ABORTED)
        assert partition.head == 3
        runner.drain()
        assert len(runner.output("kafka.out")) == 1
        runner.restart()
        opened: Transaction = broker.begin("other", epoch)
        broker.append("in", b"a", b'{"n":2}', transaction=opened)
        with pytest.raises(TestRunnerError, match="an open transaction holds up the input"):
            runner.drain()
        broker.end("other", epoch, Outcome.COMMITTED)
        runner.drain()
        assert runner.output("kafka.out")[-1] == Record(b"a", b"3")


class _Drain(Drain):
    """Two partitions; of the second the last offset is no record."""

    def __init__(self) -> None:
        super().__init__({}, lambda _: None)
        self.asked = 0
        self.is_closed = False

    def heads(self, partitions: object) -> dict[SystemStreamPartition, int]:
        del partitions
        self.asked += 1
        return {_P0: 5, _P1: 3}

    def holds_nothing(self, partition: SystemStreamPartition, start: int, head: int) -> bool:
        return (partition, start, head) == (_P1, 2, 3)

    def close(self) -> None:
        self.is_closed = True


_P0, _P1 = (SystemStreamPartition("kafka", "in", p) for p in (0, 1))
_A, _B = TaskName("A"), TaskName("B")


def test_the_heads_of_the_first_question_count() -> None:
    """What comes later is not waited for; of tasks that share a partition the slowest counts."""
    drain = _Drain()
    assert not drain.is_done({_A: {_P0: 4, _P1: -1}, _B: {_P0: 3}}, is_quiet=True)
    assert not drain.is_done({_A: {_P0: 9, _P1: 1}, _B: {_P0: 4}}, is_quiet=False)
    assert not drain.is_done({_A: {_P0: 9, _P1: 0}, _B: {_P0: 4}}, is_quiet=True)
    assert drain.is_done({_A: {_P0: 9, _P1: 1}, _B: {_P0: 4}}, is_quiet=True)
    assert drain.asked == 1
    assert drain.is_closed
