"""Timers, windows, concurrency and outputs of a StreamTask, against a real broker."""

from __future__ import annotations

import signal
from collections import Counter

import pytest
from confluent_kafka import Producer
from stream_containers import DEADLINE_S, Job, Make

SERDES = {"systems.kafka.samza.key.serde": "string", "systems.kafka.samza.msg.serde": "json"}
TIMERS = """
import threading
from homeport.container.api import StreamTask

FOUR = threading.Barrier(4)

def by_last_digit(key, partitions):
    return key[-1] % partitions

class Counter(StreamTask):
    def init(self, context):
        self.scheduler = context.scheduler

    def process(self, message, collector, coordinator):
        if message.value["first"]:
            FOUR.wait(30)  # raises where no four calls are under way at once
        collector.send(
            "out", None if message.value["null"] else b"at once", message.key.encode(),
            partition=by_last_digit, headers={"h": b"1"}, timestamp=1234567890123,
        )
        self.scheduler.schedule("later", message.key, after_ms=4000)

    def on_timer(self, timer, collector, coordinator):
        collector.send("out", b"later", timer.key.encode(), partition=0)
"""
WINDOWS = """
import asyncio, json
from homeport.container.api import StreamTask
from homeport.container.windows import Aggregate, Tumbling, Windows

SUM = Aggregate(init=int, add=lambda total, value: total + value["n"])

class Counter(StreamTask):
    def init(self, context):
        self.windows = Windows(context, "counts", Tumbling(1000), SUM, lateness_ms=500)

    async def process(self, message, collector, coordinator):
        await asyncio.sleep(0)
        for result in self.windows.add(message, collector, at_ms=message.value["at"]):
            collector.send("out", b"%d %d" % (result.start_ms, result.value), result.key.encode())
"""


JOBS = {"common": SERDES}
"""Of ``make``: a job from the code of its task and further keys."""


def _values(job: Job) -> list[bytes | None]:
    return [value for _, value in job.read(job.topic("out"))]


def _json(value: bool) -> bytes:  # noqa: FBT001 - a value of JSON
    return b"true" if value else b"false"


def test_timers_survive_sigkill_and_outputs_go_where_the_task_says(make: Make) -> None:
    """Each timer is called once, whichever container it is; four calls are under way at once."""
    job = make(TIMERS, task_timers_store="counts", task_max_concurrency="4")
    names = [f"k{n}" for n in range(20)]
    values = [b'{"first": %s, "null": %s}' % (_json(n < 4), _json(n % 5 == 0)) for n in range(20)]
    records = [(0, name.encode(), value) for name, value in zip(names, values, strict=True)]
    job.produce(records[:4])
    container = job.start(1)
    job.until(lambda: job.processed() == 4, container)
    job.produce(records[4:])
    job.until(lambda: job.processed() == 20, container)
    container.stop(signal.SIGKILL)
    after = job.start(2, [1])

    def shown() -> str:
        """What there is of each timer, where one is late."""
        left = sorted(key for key, at in job.table("changelog").items() if at is not None)
        return f"{Counter(job.read(job.topic('out')))}; scheduled: {left}; {job.positions()}"

    job.until(lambda: _values(job).count(b"later") == 20, after, shown)
    assert after.stop() == 143
    found = job.messages(job.topic("out"))
    later = Counter(m.key() for m in found if m.value() == b"later")
    assert later == {name.encode(): 1 for name in names}
    at_once = [m for m in found if m.value() != b"later"]
    assert sorted(m.key() or b"" for m in at_once) == sorted(name.encode() for name in names)
    for message in at_once:
        key = message.key() or b"?"
        assert message.partition() == key[-1] % 2
        assert message.timestamp()[1] == 1234567890123
        assert message.headers() == [("h", b"1")]
        assert (message.value() is None) == (int(key[1:]) % 5 == 0)
    assert set(job.table("changelog").values()) == {None}


@pytest.mark.long
def test_windows_of_an_async_task_are_exact_after_sigkills(make: Make) -> None:
    """Each closes once, with every record in it, through four deaths of its container."""
    job = make(WINDOWS, task_max_concurrency="8")
    expected: Counter[tuple[str, int]] = Counter()
    for epoch in range(1, 6):
        container = job.start(epoch, list(range(1, epoch)))
        records = []
        for number in range((epoch - 1) * 600, epoch * 600):
            key, at = f"p{number % 2}k{number % 3}", number * 10
            expected[key, at // 1000 * 1000] += number % 7
            value = b'{"n": %d, "at": %d}' % (number % 7, at)
            records.append((number % 2, key.encode(), value))
        job.produce(records)
        job.until(lambda least=epoch * 600 - 400: job.processed() > least, container)  # type: ignore[misc]  # of this turn
        if epoch < 5:
            container.stop(signal.SIGKILL)
    job.produce([(p, b"end", b'{"n": 0, "at": 99000}') for p in (0, 1)])
    job.until(lambda: job.processed() == 3002, container)
    assert container.stop() == 143
    found = [(k.decode(), *map(int, v.split())) for k, v in job.read(job.topic("out")) if k and v]
    assert sorted(found) == sorted((key, start, n) for (key, start), n in expected.items())


def test_windows_of_another_span_are_refused_by_what_the_changelog_has(make: Make) -> None:
    """On another host's empty disk too; with the old span the job goes on there."""
    job = make(WINDOWS)
    first = job.start(1)
    job.produce([(p, b"a", b'{"n": 1, "at": 100}') for p in (0, 1)])
    job.until(lambda: job.processed() == 2, first)
    assert first.stop() == 143
    module = job.folder / "package" / "user_job.py"
    code = module.read_text(encoding="utf-8")
    module.write_text(code.replace("Tumbling(1000)", "Tumbling(50_000)"), encoding="utf-8")
    for epoch, stores in ((2, "stores"), (3, "elsewhere")):
        other = job.start(epoch, list(range(1, epoch)), stores=stores)
        assert other.process.wait(DEADLINE_S) == 1
        assert (
            "with windows of 1000 ms every 1000 ms, and now has windows of 5" in other.last_line()
        )
    module.write_text(code, encoding="utf-8")
    last = job.start(4, [1, 2, 3], stores="elsewhere")
    job.produce([(p, b"a", b'{"n": 1, "at": 1700}') for p in (0, 1)])
    job.until(lambda: job.processed() == 4, last)
    assert last.stop() == 143
    assert job.read(job.topic("out")) == [(b"a", b"0 1")] * 2


ENDS = """
from homeport.container.api import BatchTask

class Counter(BatchTask):
    rows = 0

    def process_batch(self, table, collector):
        self.rows += table.num_rows

    def end_of_stream(self, collector):
        collector.send("out", b"%d" % self.rows, b"rows", partition=0)
"""


def test_a_drained_container_ends_behind_what_its_input_held(make: Make) -> None:
    """Ends of transactions and aborted records are nothing to wait for; it goes on after that."""
    job = make(ENDS, job_drain="true")
    producer = Producer({"bootstrap.servers": job.servers, "transactional.id": job.topic("t")})
    producer.init_transactions(DEADLINE_S)
    for is_kept in (True, True, False, False):
        producer.begin_transaction()
        for partition in (0, 1):
            producer.produce(job.topic("in"), b"v", b"k", partition=partition)
        if is_kept:
            producer.commit_transaction(DEADLINE_S)
        else:
            producer.abort_transaction(DEADLINE_S)
    for epoch in (1, 2):
        container = job.start(epoch, list(range(1, epoch)))
        assert container.process.wait(DEADLINE_S) == 0
        assert container.memory.is_finished
        assert "its input is drained: finished" in container.log.read_text(encoding="utf-8")
    assert job.read(job.topic("out")) == [(b"rows", b"2")] * 2 + [(b"rows", b"0")] * 2


@pytest.mark.long
def test_a_topic_that_is_not_there_has_no_partitions(make: Make) -> None:
    """An own partitioner needs their number: one line says what is missing."""
    code = TIMERS.replace('"out", None', '"nowhere", None')
    job = make(code)
    job.produce([(0, b"k1", b'{"first": false, "null": false}')])
    container = job.start(1)
    assert container.process.wait(DEADLINE_S) == 1
    assert "no such topic in Kafka: 'nowhere'; create it" in container.last_line()
