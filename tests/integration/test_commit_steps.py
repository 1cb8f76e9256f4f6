"""A stream container dies between any two steps of a transaction and of a commit.

On a real broker, with a process that kills itself there; the next incarnation goes on exactly.
"""

from __future__ import annotations

import signal
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from stopped_container import PLAN_VARIABLE, write_plan
from stream_containers import COUNTER, DEADLINE_S, Job, Running, make_job

from homeport.container.progress.commit import (
    StoreId,
    StoreProgress,
    commit_plan,
    transaction_plan,
)
from homeport.container.rocksdb.rocksdb_store import RocksDbMemory, RocksDbStore
from homeport.job_coordinator.http.messages import RestoreKind
from homeport.job_coordinator.model.ids import TaskName

Make = Callable[..., Job]

STORES = [StoreId("counts", TaskName(f"Partition {p}")) for p in (0, 1)]
WORDS_AT_ONCE = 20
PROGRAM = "stopped_container"


@pytest.fixture
def make(kafka: str, tmp_path: Path) -> Iterator[Make]:
    """Makes a job that counts words, from further keys, dots written as underscores."""
    made: list[Job] = []

    def make_one(**more: str) -> Job:
        keys = {key.replace("_", "."): value for key, value in more.items()}
        made.append(make_job(kafka, tmp_path, COUNTER, keys))
        made[-1].environment[PLAN_VARIABLE] = str(tmp_path / "plan")
        return made[-1]

    yield make_one
    for job in made:
        job.close()


def words(count: int, first: int = 0) -> list[tuple[int, bytes | None, bytes | None]]:
    """Words that are each of one partition only."""
    return [(i % 2, b"p%d-w%d" % (i % 2, i % 7), b"") for i in range(first, first + count)]


def counts(count: int) -> dict[str, int]:
    """The counts of the first ``count`` words."""
    return dict(Counter((key or b"").decode() for _, key, _ in words(count)))


def is_exact(job: Job, total: int, *, outputs_once: bool = True) -> None:
    """Changelog, checkpoints and outputs say the first ``total`` words, none lost, none twice.

    Where outputs may come again, each says what the state said at some time, and the last one of
    each word what it says now.
    """
    right = counts(total)
    assert job.processed() == total
    assert job.table("changelog") == {w: n.to_bytes(8, "big") for w, n in right.items()}
    told = defaultdict(list)
    for key, value in job.read(job.topic("out")):
        told[(key or b"").decode()].append(int(value or b"0"))
    assert {word: max(seen) for word, seen in told.items()} == right
    for word, seen in told.items():
        if outputs_once:
            assert seen == sorted(set(seen)), (word, seen)
        assert seen[-1] == right[word], (word, seen)


def has_processed(job: Job, total: int) -> bool:
    """Whether checkpoints say that many records."""
    return job.processed() == total


def local_state(job: Job) -> dict[str, int]:
    """What the two directories hold, once nobody has them open."""
    found: dict[str, int] = {}
    for folder in sorted((job.folder / "stores").glob("*/counts/*")):
        store = RocksDbStore(folder, RocksDbMemory(1 << 23, 1))
        found |= {key.decode(): int.from_bytes(value, "big") for key, value in store.scan()}
        store.close()
    return found


def points(*, outputs_at_once: bool) -> list[str]:
    """Every step after which something else is done."""
    moved = StoreProgress(1, None, keeps_meta=True, is_meta_due=False)
    plan = transaction_plan(STORES, STORES, outputs_at_once=outputs_at_once, checkpoints=True)
    commits = [step for store in STORES for step in commit_plan(store, moved)]
    return [str(step) for step in (*plan, *commits)]


def successor(job: Job, epoch: int) -> Running:
    """The next incarnation, started, with what it had at home and no more than a tail to read."""
    started = job.start(epoch, fence=[epoch - 1] if epoch > 1 else [], program=PROGRAM)
    report = job.report(started, epoch)
    if epoch > 1:
        kinds = {how.kind for how in report.restored["counts"].values()}
        assert kinds <= {RestoreKind.NONE, RestoreKind.TAIL}, report.restored
    return started


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
def test_so_may_one_whose_outputs_leave_at_once(make: Make, deaths: list[str]) -> None:
    """State, changelog and checkpoints are exact; outputs come at least once."""
    die_at_each(make(task_exactly_once="false", task_commit_ms="1"), deaths)
