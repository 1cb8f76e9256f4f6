"""Where containers begin to read under ``upcoming``, Samza's default, on a real broker."""

from __future__ import annotations

import json
import signal

import pytest
from stream_containers import Job, Make

from homeport.config.settings.sections import TaskConfig
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.metadata.topics import set_input_partitions

ECHO = """
from homeport.container.api import BatchTask

class Counter(BatchTask):
    def process_batch(self, table, collector):
        for key in table.column("key").to_pylist():
            collector.send("out", b"", key)
"""


JOBS = {"code": ECHO, "common": {"systems.kafka.samza.offset.default": "upcoming"}}
"""Of ``make``: a job under ``upcoming`` whose task echoes keys."""


def _put(job: Job, partition: int, *keys: bytes) -> None:
    job.produce([(partition, key, b"") for key in keys])


def _checkpoints(job: Job) -> dict[int, int]:
    """{input partition: its last processed offset} by the newest checkpoints."""
    found = {}
    for _, value in job.read(TaskConfig.of(job.config).checkpoint_topic):
        entries = json.loads(value or b"{}").values()
        found.update({int(entry["partition"]): int(entry["offset"]) for entry in entries})
    return found


def _echoed(job: Job) -> set[bytes | None]:
    return {key for key, _ in job.read(job.topic("out"))}


@pytest.mark.parametrize("exactly_once", ["true", "false"])
def test_records_that_arrive_while_a_container_is_down_are_read(
    make: Make, exactly_once: str
) -> None:
    """It was killed before its first record; one of its partitions was empty, one was not.

    The empty one's checkpoint says -1, from which Samza 1.8 goes on at 0 as well. A start to which
    nothing is new commits nothing.
    """
    job = make(task_exactly_once=exactly_once)
    _put(job, 0, b"before")
    first = job.start(1)
    job.report(first, 1)
    assert _checkpoints(job) == {0: 0, 1: -1}
    first.stop(signal.SIGKILL)
    _put(job, 0, b"down0")
    _put(job, 1, b"down1")
    second = job.start(2, [1])
    job.until(lambda: _echoed(job) >= {b"down0", b"down1"}, second)
    assert _echoed(job) == {b"down0", b"down1"}
    assert second.stop() == 143
    records = len(job.read(TaskConfig.of(job.config).checkpoint_topic))
    third = job.start(3, [2])
    job.report(third, 3)
    assert third.stop() == 143
    assert len(job.read(TaskConfig.of(job.config).checkpoint_topic)) == records


def test_a_partition_that_the_input_has_grown_by_is_read_whole(make: Make) -> None:
    """The job began with one partition: the other's records are all the job's."""
    job = make()
    stream = job.coordinator_stream()
    stream.write([set_input_partitions(SystemStream("kafka", job.topic("in")), 1)])
    stream.close()
    _put(job, 0, b"before")
    _put(job, 1, b"new1", b"new2")
    container = job.start(1)
    job.until(lambda: _echoed(job) == {b"new1", b"new2"}, container)
    assert container.stop() == 143


def test_a_job_without_checkpoints_begins_by_its_default_each_time(make: Make) -> None:
    """There is nothing to commit, and nothing that could know what came while it was down."""
    job = make(task_checkpoint_factory="none")
    first = job.start(1)
    job.report(first, 1)
    first.stop(signal.SIGKILL)
    _put(job, 0, b"down0")
    second = job.start(2, [1])
    job.report(second, 2)

    def later() -> bool:
        _put(job, 0, b"later")  # what comes before it asks for the end is passed over
        return b"later" in _echoed(job)

    job.until(later, second)
    assert _echoed(job) == {b"later"}
    assert second.stop() == 143
    assert job.read(TaskConfig.of(job.config).checkpoint_topic) == []
