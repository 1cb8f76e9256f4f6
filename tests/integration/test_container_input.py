"""Input policies in a stream container: starts, losses, calls that block, whole records."""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import time

import pytest
from compacted_topics import delete_before
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from stream_containers import DEADLINE_S, Job, Make
from topic_records import alter

from homeport.config.config import Config
from homeport.config.settings.sections import SystemConfig
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import NOTHING
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.status.container_report import ContainerReport

LARGE = 10_000_000
NO_REPORT = ContainerReport()

ECHO = """
from homeport.container.api import BatchTask

class Counter(BatchTask):
    def process_batch(self, table, collector):
        for row in table.to_pylist():
            collector.send("out", row["key"])
"""


JOBS = {"code": ECHO}
"""Of ``make``: a job from the code of its task and further keys."""


def _configure(job: Job, **more: str) -> None:
    of = f"systems.kafka.streams.{job.topic('in')}."
    keys = {of + key.replace("_", "."): value for key, value in more.items()}
    job.config = Config({**job.config, **keys})
    inputs = {SystemStream("kafka", job.topic("in")): 2}
    job.model = job.served.backend.model = calculate_job_model(job.config, inputs, NOTHING)


def _echoed(job: Job) -> list[bytes | None]:
    return sorted((value for _, value in job.read(job.topic("out"))), key=str)


def _put_at_times(job: Job) -> list[int]:
    """Six records, a second apart, all in the last minute; their times.

    Kafka counts the age of older ones by these times, and would soon delete them.
    """
    first_ms = time.time_ns() // 1_000_000 - 60_000
    times = [first_ms + n * 1000 for n in range(6)]
    producer = Producer({"bootstrap.servers": job.servers})
    for n, at_ms in enumerate(times):
        producer.produce(job.topic("in"), b"", b"%d" % n, partition=0, timestamp=at_ms)
    assert producer.flush(DEADLINE_S) == 0
    return times


def test_a_start_at_a_time(make: Make) -> None:
    """Of the first record of that time or later; a partition without one begins at its end."""
    job = make()
    times = _put_at_times(job)
    at = dt.datetime.fromtimestamp(times[4] / 1000, dt.UTC)
    _configure(job, start_time=at.isoformat(timespec="milliseconds"))
    first = job.start(1)
    job.until(lambda: _echoed(job) == [b"4", b"5"], first)
    assert first.stop() == 143


@pytest.mark.long
def test_a_reset_begins_at_each_start(make: Make) -> None:
    """Whatever the checkpoint says; without one, once."""
    job = make()
    times = _put_at_times(job)
    _configure(job, start_time=str(times[4]))
    first = job.start(1)
    job.until(lambda: _echoed(job) == [b"4", b"5"], first)
    assert first.stop() == 143
    _configure(job, start_time=str(times[3]))
    second = job.start(2, [1])
    job.produce([(0, b"6", b"")])
    job.until(lambda: b"6" in _echoed(job), second)
    assert second.stop() == 143
    assert _echoed(job) == [b"4", b"5", b"6"]
    _configure(job, samza_reset_offset="true")
    third = job.start(3, [2])
    job.until(lambda: _echoed(job) == [b"3", b"4", b"4", b"5", b"5", b"6", b"6"], third)
    (reset,) = job.history("input-reset")
    place = f"kafka.{job.topic('in')}.0"
    assert (reset["input"], reset["first"], reset["next"]) == (place, 7, 3)
    assert third.stop() == 143


def test_lost_input_fails_the_start_or_is_reported(make: Make) -> None:
    """By default one line, and nothing is read; by the key the rest is, and the gap is noted."""
    job = make()
    job.produce([(0, b"%d" % n, b"") for n in range(2)])
    first = job.start(1)
    job.until(lambda: len(_echoed(job)) == 2, first)
    assert first.stop() == 143
    job.produce([(0, b"%d" % n, b"") for n in range(2, 8)])
    delete_before(job, "in", 5)
    assert job.fails(2, [1]).startswith(
        f"error: kafka.{job.topic('in')} partition 0: the next offset to read is 2, but Kafka has "
        "5 to 8: it has deleted 3 offsets that were not read, by retention; set "
    )
    assert len(_echoed(job)) == 2
    _configure(job, input_lost="earliest")
    third = job.start(3, [2])
    job.until(lambda: _echoed(job) == [b"0", b"1", b"5", b"6", b"7"], third)
    (gap,) = job.history("input-lost")
    place_text = f"kafka.{job.topic('in')}.0"
    assert (gap["input"], gap["first"], gap["next"], gap["lost"]) == (place_text, 2, 5, 3)
    job.until(lambda: (third.memory.last_report() or NO_REPORT).input_lost == 3, third)
    assert "offsets 2 to 4 (3) were not read" in third.log.read_text(encoding="utf-8")
    assert third.stop() == 143


@pytest.mark.parametrize(
    "recreated", [False, pytest.param(True, marks=pytest.mark.long)], ids=["deleted", "recreated"]
)
def test_an_input_that_goes_ends_its_container(make: Make, recreated: bool) -> None:  # noqa: FBT001 - a parameter of the table
    """Kafka says nothing to a reader of a topic that is gone, and hands out another one's records.

    It is noticed at the next task.commit.ms.
    """
    job = make(task_commit_ms="200")
    job.produce([(0, b"a", b"")])
    container = job.start(1)
    job.until(lambda: _echoed(job) == [b"a"], container)
    if recreated:
        # A look between the two steps would find it deleted.
        os.killpg(container.process.pid, signal.SIGSTOP)
        job.make_anew("in", [])
        os.killpg(container.process.pid, signal.SIGCONT)
    else:
        admin = AdminClient({"bootstrap.servers": job.servers})
        admin.delete_topics([job.topic("in")])[job.topic("in")].result(DEADLINE_S)
    assert container.process.wait(DEADLINE_S) == 1
    stream = f"kafka.{job.topic('in')}"
    what = "deleted and recreated (its id is " if recreated else "deleted, "
    assert container.last_line().startswith(
        f"error: while the container ran, task.inputs = '{stream}': the input was {what}"
    )


BLOCKS = """
import threading
from homeport.container.api import StreamTask

class Counter(StreamTask):
    def process(self, message, collector, coordinator):
        threading.Event().wait()  # as a call without a time limit does
"""


def test_a_task_that_blocks_for_ever_fails_its_container(make: Make) -> None:
    """The line says which, and where it stands; the log has its stack; nothing is committed."""
    job = make(BLOCKS, task_callback_timeout_ms="1500")
    job.produce([(0, b"a", b"")])
    container = job.start(1)
    assert container.process.wait(DEADLINE_S) == 1
    line = container.last_line()
    assert line.startswith(
        "error: task 'Partition 0', in its batch of 1 rows, has not returned within "
        "task.callback.timeout.ms (1500); it stands at "
    )
    assert line.endswith(
        "user_job.py:7 in process; give what it waits for a time limit, or raise the key"
    )
    log = container.log.read_text(encoding="utf-8")
    assert "threading.Event().wait()  # as a call without a time limit does" in log
    assert job.processed() == 0


COLUMNS = """
import json
from homeport.container.api import BatchTask, StreamTask

def seen(collector, key, value, timestamp, headers, offset):
    text = [None if key is None else key.decode(),
            None if value is None else len(value), timestamp,
            {k: v and v.decode() for k, v in dict(headers or {}).items()}]
    collector.send("out", json.dumps(text).encode(), b"%d" % offset, headers=headers)

class Counter(StreamTask):
    def process(self, m, collector, coordinator):
        seen(collector, m.key, m.value, m.timestamp, m.headers, m.offset)

class Rows(BatchTask):
    def process_batch(self, table, collector):
        for r in table.to_pylist():
            seen(collector, r["key"], r["value"], r["timestamp"], r["headers"], r["offset"])

class FromPipeline(StreamTask):
    def process(self, m, collector, coordinator):
        row = m.value
        seen(collector, row["key"], row["value"], row["timestamp"], row["headers"], row["offset"])

def same(frame):
    return frame
"""


@pytest.mark.parametrize(
    ("task", "pipeline"),
    [
        ("Counter", ""),
        pytest.param("Rows", "", marks=pytest.mark.long),
        pytest.param("Rows", "user_job:same", marks=pytest.mark.long),
        pytest.param("FromPipeline", "user_job:same", marks=pytest.mark.long),
    ],
)
def test_headers_times_and_nulls_reach_the_task(make: Make, task: str, pipeline: str) -> None:
    """Of records with all, with none and with 10 MB; the time is the record's, or the broker's.

    Headers that the task passes on leave as they came, also two of one name.
    """
    more = {"task_pipeline_class": pipeline} if pipeline else {}
    job = make(COLUMNS, task_class=f"user_job:{task}", **more)
    topic, limit = job.topic("in"), str(LARGE + 1000)
    alter(job.servers, topic, {"max.message.bytes": limit})
    admin = TopicAdmin(SystemConfig.of(job.config, "kafka"))
    job.until(lambda: admin.topic_config(topic)["max.message.bytes"] == limit)
    producer = Producer({"bootstrap.servers": job.servers, "message.max.bytes": LARGE + 1000})
    headers: list[tuple[str, str | bytes | None]]
    headers = [("a", b"0"), ("n", None), ("a", b"1"), ("last", b"2")]
    at_ms = time.time_ns() // 1_000_000 - 60_000  # Kafka deletes by age what is much older
    producer.produce(topic, b"v", b"k", partition=0, timestamp=at_ms + 1, headers=headers)
    producer.produce(topic, None, None, partition=0, timestamp=at_ms + 2)
    producer.produce(topic, b"", b"", partition=0, timestamp=at_ms + 3)
    producer.produce(topic, b"v" * LARGE, b"large", partition=0, timestamp=at_ms + 4)
    assert producer.flush(DEADLINE_S) == 0
    container = job.start(1)
    job.until(lambda: len(job.table("out")) == 4, container)
    assert {k: json.loads(v or b"") for k, v in job.table("out").items()} == {
        "0": ["k", 1, at_ms + 1, {"a": "1", "n": None, "last": "2"}],
        "1": [None, None, at_ms + 2, {}],
        "2": ["", 0, at_ms + 3, {}],
        "3": ["large", LARGE, at_ms + 4, {}],
    }
    sent = {message.key(): message.headers() for message in job.messages(job.topic("out"))}
    assert sent == {b"0": headers, b"1": None, b"2": None, b"3": None}
    assert container.stop() == 143
