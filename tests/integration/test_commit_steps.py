"""A stream container dies between any two steps of a transaction and of a flush.

On a real broker, with a process that kills itself there; the next incarnation goes on exactly.
"""

from __future__ import annotations

import signal
from functools import partial

import pytest
from counted_words import counts, has_processed, is_exact, local_state, successor, words
from stopped_container import write_plan
from stream_containers import DEADLINE_S, Job, Make

from homeport.container.progress.transaction_plan import (
    StoreId,
    StoreProgress,
    flush_plan,
    transaction_plan,
)
from homeport.job_coordinator.model.ids import TaskName

STORES = [StoreId("counts", TaskName(f"Partition {p}")) for p in (0, 1)]
WORDS_AT_ONCE = 20


def points(*, outputs_at_once: bool) -> list[str]:
    """Every step after which something else is done."""
    moved = StoreProgress(1, None, keeps_meta=True, is_meta_due=False)
    plan = transaction_plan(STORES, STORES, outputs_at_once=outputs_at_once, checkpoints=True)
    flushes = [step for store in STORES for step in flush_plan(store, moved)]
    return [str(step) for step in (*plan, *flushes)]


def die_at_each(job: Job, deaths: list[str]) -> None:
    """One incarnation after the other dies after the step named, and its successor is exact."""
    outputs_once = job.config["task.exactly.once"] == "true"
    plan = job.folder / "plan"
    total, epoch = WORDS_AT_ONCE, 1
    container = successor(job, epoch)
    job.produce(words(total))
    job.until(lambda: bool(job.history("commit")) and job.processed() == WORDS_AT_ONCE, container)
    for death in deaths:
        write_plan(plan, death, "kill")
        job.produce(words(WORDS_AT_ONCE, total))
        total += WORDS_AT_ONCE
        assert container.process.wait(DEADLINE_S) == -signal.SIGKILL, death
        plan.unlink()
        epoch += 1
        container = successor(job, epoch)
        job.until(partial(has_processed, job, total), container)
        is_exact(job, total, outputs_once=outputs_once)
    assert container.stop() == 143
    assert local_state(job) == counts(total)


def test_a_container_may_die_between_any_two_steps(make: Make) -> None:
    """State, changelog, checkpoints and outputs are exact, and in the directories too."""
    job = make(task_exactly_once="true", task_commit_ms="1")
    die_at_each(job, points(outputs_at_once=False))


@pytest.mark.parametrize(
    "deaths",
    [
        ["settle-outputs", "commit", f"apply {STORES[0]}", f"flush {STORES[0]}"],
        pytest.param(points(outputs_at_once=True), marks=pytest.mark.long),
    ],
    ids=["some", "all"],
)
def test_with_outputs_at_once_it_may_die_at_any_step(make: Make, deaths: list[str]) -> None:
    """State, changelog and checkpoints are exact; outputs come at least once."""
    die_at_each(make(task_exactly_once="false", task_commit_ms="1"), deaths)
