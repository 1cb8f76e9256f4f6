"""A stream container whose pipeline, tasks and transactions overlap, killed again and again.

On a real broker, and in the long tests with a real Spark: what is committed is exact each time.
"""

from __future__ import annotations

import json
import os
import signal

import psutil
import pytest
from counted_words import has_processed, is_exact, local_state, words
from stream_containers import COUNTER, Job, Make, Running

PIPELINE = (
    COUNTER
    + """
def same(frame):
    return frame.select("task", "key", "stream", "partition", "offset")
"""
)
_CLASS = "task.pipeline.class"
TRANSACTION_PER_BATCH = {"task.transaction.max.bytes": "1"}
SMALL_BATCHES = {"task.batch.target.ms": "1"}
"""With the least target batches stay small, so that there are many of them."""


JOBS = {"common": {**TRANSACTION_PER_BATCH, **SMALL_BATCHES}}
"""Of ``make``: a job that counts words."""


def _killed_again_and_again(job: Job, total: int, kills: int) -> None:
    """One incarnation after the other is killed at its work; the last one comes to the end."""
    job.produce(words(total))
    for epoch in range(1, kills + 1):
        # A quarter of what is left, so that there is work to be killed at until the last one.
        before = job.processed()
        # All of it, where a slow machine let the last one come to the end before its kill.
        goal = min(total, before + max(1, (total - before) // 4))
        container = job.start(epoch, fence=[epoch - 1] if epoch > 1 else [])
        job.until(lambda goal=goal: job.processed() >= goal, container)  # type: ignore[misc]  # lambda
        assert container.stop(signal.SIGKILL) == -signal.SIGKILL
    last = job.start(kills + 1, fence=[kills])
    job.until(lambda: has_processed(job, total), last)
    # Where nothing was left for it, it may not even have begun to take signals.
    job.until(lambda: job.served.backend.reports[-1].incarnation.epoch == kills + 1, last)
    assert last.stop() == 143
    is_exact(job, total)
    held = {key.decode(): count for key, count in _right(total).items()}
    assert local_state(job) == held


def _right(total: int) -> dict[bytes, int]:
    found: dict[bytes, int] = {}
    for _, key, _ in words(total):
        found[key or b""] = found.get(key or b"", 0) + 1
    return found


def test_killed_while_a_transaction_is_on_its_way_it_goes_on_exactly(make: Make) -> None:
    """Tasks work on top of what is being sent: none of that is in Kafka before its own turn."""
    _killed_again_and_again(make(), 10_000, kills=3)


@pytest.mark.long
def test_killed_with_batches_in_the_pipeline_it_goes_on_exactly(make: Make) -> None:
    """Batches on their way to the tasks are read again."""
    _killed_again_and_again(make(PIPELINE, **{_CLASS: "user_job:same"}), 60_000, kills=4)


def _jvm_of(container: Running) -> int:
    (jvm,) = psutil.Process(container.process.pid).children()
    return jvm.pid


@pytest.mark.long
def test_a_jvm_that_dies_ends_its_container_and_a_stop_does_not_wait(make: Make) -> None:
    """Each in the middle of a backlog; what was committed is exact, and goes on exactly."""
    job = make(PIPELINE, **{_CLASS: "user_job:same"})
    total = 80_000
    job.produce(words(total))
    first = job.start(1)
    job.until(lambda: job.processed() > 0, first)
    os.kill(_jvm_of(first), signal.SIGKILL)
    assert first.process.wait(60) == 1
    assert first.last_line().startswith("error: ")
    is_exact(job, job.processed())
    second = job.start(2, fence=[1])
    before = job.processed()
    job.until(lambda: job.processed() > before, second)
    assert second.stop() == 143
    done = job.processed()
    is_exact(job, done)
    assert sum(local_state(job).values()) == done
    third = job.start(3, fence=[2])
    job.until(lambda: has_processed(job, total), third)
    assert third.stop() == 143
    is_exact(job, total)


def test_a_poisonous_record_does_not_undo_what_was_committed_before(make: Make) -> None:
    """Each incarnation fails at it, with all that came before it committed once."""
    job = make()
    job.produce(words(2000))
    job.produce([(0, b"poison", b"")])
    for epoch in (1, 2):
        container = job.start(epoch, fence=[epoch - 1] if epoch > 1 else [])
        assert container.process.wait(60) == 1
        assert "poison found" in container.last_line()
    ends = [json.dumps(line["offsets"]) for line in job.history("transaction-ending")]
    assert len(set(ends)) == len(ends)
    assert job.processed() > 0
    is_exact(job, job.processed())
