"""One job on YARN, standalone, and on YARN again: the same stores, and the exact result."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from adjunct_planes import OF_EACH, has_all, has_planes, kept_by, logs_of
from standalone_jobs import on_zookeeper
from standby_jobs import standby_job
from yarn_jobs import PARTITIONS, Job, wait_for
from zookeeper_server import ZooKeeperServer

from homeport.appmaster.job_model.migration import Migration
from homeport.appmaster.job_model.takeover import stream_of
from homeport.appmaster.lease.fencing import fence_all
from homeport.cli.yarn import job as yarn_job
from homeport.config.config import Config
from homeport.config.errors import FencedError
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.metadata.epochs import (
    EpochManager,
    ProcessorEpoch,
    processor_epoch_message,
)
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.zookeeper.handover_nodes import handover_nodes

LIMIT_S = 120
FIRST, SECOND, THIRD = 600, 300, 300


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """The one line of a command that is refused."""
    assert done.returncode == 1, done.stdout + done.stderr
    line = done.stderr.strip().splitlines()[-1]
    assert "Traceback" not in done.stderr
    return line


def answer(done: subprocess.CompletedProcess[str]) -> str:
    """What a command prints that is done."""
    assert done.returncode == 0, done.stderr
    return done.stdout


def start_processor(job: Job, node: str, host: str, name: str) -> subprocess.Popen[bytes]:
    """A processor where the job's container ran, on the state that is there."""
    command = job.cluster.command("homeport.cli.main")
    folder = job.path.parent
    with (folder / f"{name}.log").open("ab") as log:
        return subprocess.Popen(
            [
                *(*command, "run-processor", f"--config-path={job.path}", f"--processor-id={name}"),
                *(f"--config=job.location-id={host}", f"--work-dir={folder / 'work'}"),
            ],
            env={**os.environ, "LOGGED_STORE_BASE_DIR": str(job.cluster.state_dir(node))},
            stdout=log,
            stderr=log,
        )


def restored(job: Job) -> list[dict[str, Any]]:
    """What was read of changelogs at every start so far, one line for each store and task."""
    return job.history("restore-finished")


def cut_off(job: Job, to: str) -> int:
    """Migrations, each of which ends after one step more than the one before; how many.

    The last step is left.
    """
    done: set[str] = set()
    while _is_cut_off(job, to, done):
        pass
    return len(done)


def _is_cut_off(job: Job, to: str, done: set[str]) -> bool:
    """Whether a migration has done a step that is not among ``done``, after which it ended."""
    config = Config(job.values)
    with (
        handover_nodes(config, 20) as nodes,
        CoordinatorStreamStore.of(config, source=yarn_job.SOURCE) as store,
    ):
        store.bootstrap()
        migration = Migration(config, store, nodes, lambda found: fence_all(config, found))
        for step in migration.steps(to)[:-1]:
            step.do()
            if step.text not in done:
                done.add(step.text)
                return True
    return False


def newest(job: Job) -> tuple[int, int]:
    """(the newest version in ZooKeeper, the highest number in the stream)."""
    config = Config(job.values)
    with (
        handover_nodes(config, 20) as nodes,
        CoordinatorStreamStore.of(config, source=yarn_job.SOURCE) as store,
    ):
        store.bootstrap()
        return nodes.read().version, EpochManager(store).highest()


def goes_to_zookeeper(job: Job) -> tuple[int, int]:
    """The job is migrated, cut off after each step before; the numbers after that."""
    shown = answer(job.operator("migrate", "--to=zookeeper", "--dry-run"))
    assert [line[:2] for line in shown.splitlines()] == [f"{n}." for n in range(1, 8)], shown
    assert answer(job.operator("migrate", "--to=zookeeper", "--dry-run")) == shown
    assert cut_off(job, "zookeeper") == 5
    line = refusal(job.call("run"))
    assert "a migration of the job has begun, and is not finished; finish it by" in line
    assert answer(job.operator("migrate", "--to=zookeeper")) == "the job may run by zookeeper now\n"
    found = newest(job)
    assert found[0] >= found[1]
    assert answer(job.operator("migrate", "--to=zookeeper")).startswith("nothing to change")
    assert newest(job) == found
    assert "run homeport migrate --to=yarn" in refusal(job.call("run"))
    return found


def goes_to_yarn(job: Job) -> tuple[int, int]:
    """The same the other way."""
    assert cut_off(job, "yarn") == 4
    assert "is not finished; finish it by" in refusal(job.call("run"))
    assert answer(job.operator("migrate", "--to=yarn")) == "the job may run by yarn now\n"
    found = newest(job)
    assert answer(job.operator("migrate", "--to=yarn")).startswith("nothing to change")
    assert newest(job) == found
    return found


def works_standalone(job: Job, node: str, host: str) -> None:
    """A processor takes the stores of the job's container, and counts on."""
    before = len(restored(job))
    job.produce(SECOND, FIRST)
    process = start_processor(job, node, host, "p1")
    try:
        job.counts_all()
        found = restored(job)[before:]
        assert [line["records"] for line in found] == [0] * PARTITIONS, found
        assert "are registered in ZooKeeper: p1" in refusal(job.operator("migrate", "--to=yarn"))
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT_S) == 0


def standalone_keys(zookeeper: ZooKeeperServer) -> dict[str, str]:
    """What processors need."""
    return {
        **on_zookeeper(zookeeper.connect),
        "cluster-manager.jobcoordinator.url.host": "127.0.0.1",
    }


def ran_on_yarn(job: Job, zookeeper: ZooKeeperServer) -> tuple[str, str]:
    """The job has counted on YARN, and has stopped: (node, host) of its one container."""
    job.values |= {"job.container.count": "1", **standalone_keys(zookeeper)}
    job.produce(FIRST)
    job.run()
    host = job.wait_until_running()["0"]["host"]
    job.counts_all()
    assert "runs already as application_" in refusal(job.operator("migrate", "--to=zookeeper"))
    job.kill()
    states = {node: job.cluster.state_dir(node) / f"{job.name}-1" for node in job.cluster.nodes}
    return next(node for node, state in states.items() if state.exists()), host


def test_a_job_of_yarn_goes_on_standalone_on_its_stores(
    make_job: Callable[[str], Job], zookeeper: ZooKeeperServer
) -> None:
    """No old record of a changelog is read, and each record counts once."""
    job = make_job("moved")
    node, host = ran_on_yarn(job, zookeeper)
    with zombie_driver(job) as driver:
        moved = "the job may run by zookeeper now\n"
        assert answer(job.operator("migrate", "--to=zookeeper")) == moved
        with pytest.raises(FencedError):
            driver.write([processor_epoch_message(ProcessorId("0"), ProcessorEpoch(99, 1))])
    assert newest(job)[1] < 99
    works_standalone(job, node, host)
    job.judge_history()


@contextlib.contextmanager
def zombie_driver(job: Job) -> Iterator[CoordinatorStreamStore]:
    """Open the stream as a driver that lives on does: under the rank in the stream."""
    config = Config(job.values)
    with CoordinatorStreamStore.of(config, source="test") as store:
        store.bootstrap()
        last = EpochManager(store).read_am_epoch()
    assert last is not None
    with stream_of(config, last.rank) as driver:
        driver.fence()
        driver.bootstrap()
        yield driver


@pytest.mark.long
def test_a_job_goes_from_yarn_to_zookeeper_and_back_on_its_stores(
    make_job: Callable[[str], Job], zookeeper: ZooKeeperServer
) -> None:
    """Numbers only grow, no start is open in between, and a migration may end after any step."""
    job = make_job("handover")
    node, host = ran_on_yarn(job, zookeeper)
    early = start_processor(job, node, host, "early")
    assert early.wait(LIMIT_S) == 1
    log_text = (job.path.parent / "early.log").read_text(encoding="utf-8")
    assert "run homeport migrate --to=zookeeper, or give the job another job.id" in log_text
    handed = goes_to_zookeeper(job)
    works_standalone(job, node, host)
    back = goes_to_yarn(job)
    assert back[0] == back[1] > handed[0]

    before = len(restored(job))
    job.produce(THIRD, FIRST + SECOND)
    job.run()
    assert job.wait_until_running()["0"]["host"] == host
    job.counts_all()
    found = restored(job)[before:]
    assert [line["records"] for line in found] == [0] * PARTITIONS, found
    assert newest(job)[1] > back[1]
    job.judge_history()


def read_again(job: Job, before: int) -> list[int]:
    """Of each active task's store, the changelog records that starts have read since ``before``."""
    lines = restored(job)[before:]
    return [line["records"] for line in lines if line["task"].startswith("Partition ")]


def has_kept_planes(logs: list[str]) -> None:
    """Every task's store of planes was kept, and its stream is read on at its end."""
    kept = {place: offset for log in logs for place, offset in kept_by(log).items()}
    assert len(kept) == PARTITIONS, kept
    assert set(kept.values()) == {OF_EACH}


@pytest.mark.long
def test_standbys_and_adjunct_stores_go_to_zookeeper_and_back(
    make_job: Callable[[str], Job], zookeeper: ZooKeeperServer
) -> None:
    """Tasks go on where their containers were, each with its stores of both kinds, and standbys."""
    job = standby_job(make_job, "replicated")
    has_planes(job)
    # All processors are there when the first version is made.
    job.values |= {**standalone_keys(zookeeper), "job.debounce.time.ms": "8000"}
    job.produce(FIRST)
    job.run()
    job.wait_until_running()
    job.counts_all()
    wait_for(lambda: all(has_all(c) for c in job.containers().values()), job)
    homes = {p: c["host"] for p, c in job.containers().items() if c["role"] == "active"}
    job.kill()
    assert answer(job.operator("migrate", "--to=zookeeper")) == "the job may run by zookeeper now\n"

    before = len(restored(job))
    processors = [start_processor(job, host, host, f"on-{p}") for p, host in homes.items()]
    try:
        job.produce(SECOND, FIRST)
        job.counts_all()
        assert read_again(job, before) == [0] * PARTITIONS
        logs = [*job.path.parent.glob("work/processor-*/container-*.log")]
        has_kept_planes([log.read_text(encoding="utf-8") for log in logs])
        wait_for(lambda: len(following(job)) == PARTITIONS, job)
    finally:
        for process in processors:
            process.send_signal(signal.SIGTERM)
        assert [process.wait(LIMIT_S) for process in processors] == [0] * len(processors)
    assert answer(job.operator("migrate", "--to=yarn")) == "the job may run by yarn now\n"

    before = len(restored(job))
    job.produce(THIRD, FIRST + SECOND)
    job.run()
    after = job.wait_until_running()
    assert {p: after[p]["host"] for p in homes} == homes
    job.counts_all()
    assert read_again(job, before) == [0] * PARTITIONS
    has_kept_planes(logs_of(job, [f"container-{p}-{after[p]['epoch']}.log" for p in homes]))
    job.judge_history()


def following(job: Job) -> set[str]:
    """The standbys that processors have begun to follow."""
    return {name for line in job.history("standby-following") for name in line["replicas"]}
