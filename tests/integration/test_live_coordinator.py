"""A job on a real YARN cluster that is changed while it runs, by the key that its user writes."""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from am_attempts import APPLICATION_MASTER, job_of_attempt, programs
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from standby_jobs import standing_still
from yarn_jobs import PARTITIONS, Job, alive, parent_of, pids_of, wait_for

from homeport.config.loading.loader import load
from homeport.config.settings.sections import JobConfig, SystemConfig
from homeport.container.host.exit_codes import EXIT_OVERTAKEN
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import MessageType
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.metadata.configuration import WRITER_SOURCE
from homeport.job_coordinator.metadata.state_facts import ChangelogPartitionManager

WRITER = "homeport.cli.job.coordinator_stream_writer"
COUNT = "job.container.count"
DROP = "task.drop.deserialization.errors"
DRIVER = ".application_master"
CATCH_UP_MS = 1000

log = logging.getLogger("figures")


def writing(
    job: Job, key: str, *value: str, kind: str = MessageType.SET_CONFIG.value
) -> subprocess.Popen[str]:
    """``coordinator-stream-writer`` as it begins to set the key; without a value it deletes it."""
    what = [f"--value={value[0]}"] if value else ["--delete"]
    argv = [f"--config-path={job.path}", f"--type={kind}", f"--key={key}", *what]
    return subprocess.Popen(
        [sys.executable, "-m", WRITER, *argv],
        env=job.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def write(job: Job, key: str, *value: str) -> str:
    """The coordinator stream has the value of the key, or has it no more; what was printed."""
    return ended(writing(job, key, *value))


def ended(child: subprocess.Popen[str]) -> str:
    """The program has ended well; what it printed."""
    printed, _ = child.communicate(timeout=60)
    assert child.returncode == 0, printed
    return printed


def record(job: Job, key: str, value: str) -> None:
    """The coordinator stream has the value without a check: Samza's tool makes none."""
    with coordinator_stream(job) as store:
        store.write([wire.set_config(key, value)])


def coordinator_stream(job: Job) -> CoordinatorStreamStore:
    """The job's coordinator stream, not read yet."""
    config = load(str(job.path))
    section = JobConfig.of(config)
    system = SystemConfig.of(config, section.coordinator_system)
    return CoordinatorStreamStore(system, section.coordinator_topic, source=WRITER_SOURCE)


def tasks(job: Job) -> dict[str, frozenset[str]]:
    """{processor: its tasks} in the JobModel that the AM serves."""
    containers = job.get("")["containers"]
    return {p: frozenset(c["tasks"]) for p, c in containers.items()}


def epochs(job: Job) -> dict[str, int]:
    """{processor: epoch of its container}."""
    return {p: c["epoch"] for p, c in job.containers().items()}


def wait_for_count(job: Job, count: int) -> None:
    """The JobModel has so many containers, all run, and no other does."""
    wait_for(lambda: len(tasks(job)) == count and len(job.pids()) == count, job)


def restarted(before: dict[str, int], after: dict[str, int]) -> set[str]:
    """Processors that are in both, with another epoch."""
    return {p for p in before.keys() & after.keys() if before[p] != after[p]}


def rescale(job: Job, count: int, *, kill_when: str = "") -> None:
    """The job has so many containers; only those with other tasks were restarted.

    ``kill_when``: the driver is killed when the key is ``written``, or when its model is
    ``visible`` and containers are being stopped.
    """
    before, had, of = epochs(job), tasks(job), len(tasks(job))
    child = writing(job, COUNT, str(count))
    if kill_when == "written":
        ended(child)
        job.kill_driver()
    wait_for(lambda: len(tasks(job)) == count, job, every_s=0.02)
    visible_ms = time.time_ns() // 1_000_000
    if kill_when != "written":
        ended(child)
    written_ms = job.written_ms(COUNT)
    log.info(
        "%d -> %d: visible at GET / %d ms after the record was written%s; 2 x catch-up interval: "
        "%d ms",
        of,
        count,
        visible_ms - written_ms,
        ", the driver killed in between" if kill_when == "written" else "",
        2 * CATCH_UP_MS,
    )
    if kill_when == "visible":
        job.kill_driver()
    wait_for_count(job, count)
    after, has = epochs(job), tasks(job)
    changed = {p for p in had.keys() & has.keys() if had[p] != has[p]}
    log.info(
        "%d -> %d: of %d that stay %d have other tasks, %d were restarted; all run after %.1f s",
        of,
        count,
        len(had.keys() & has.keys()),
        len(changed),
        len(restarted(before, after)),
        time.time() - written_ms / 1000,
    )
    assert restarted(before, after) == changed
    assert sorted(t for each in has.values() for t in each) == sorted(
        t for each in had.values() for t in each
    )


def status_of_configuration(job: Job) -> dict[str, Any]:
    """What the status says of keys that are not applied."""
    found: dict[str, Any] = job.get("v1/status")["configuration"]
    return found


def test_containers_are_added_and_taken_away_while_the_job_runs(
    make_job: Callable[[str], Job],
) -> None:
    """3 -> 5 -> 2, the driver killed in the middle of each, two writers at once; exact."""
    job = make_job("rescaled")
    job.begin(500)
    attempt = job.attempt
    job.produce(300, first=500)
    rescale(job, 5, kill_when="visible")
    job.produce(300, first=800)
    rescale(job, 2, kill_when="written")
    job.produce(300, first=1100)
    # Two at once: whose record is the last in the stream has it.
    both = [writing(job, COUNT, "4"), writing(job, COUNT, "3")]
    for child in both:
        ended(child)
    job.kill_driver()
    last = job.written(COUNT)
    assert last in {"3", "4"}
    # Until the new driver has caught up it may serve, and carry out, the other one.
    wait_for(lambda: job.get("config")[COUNT] == last, job)
    wait_for_count(job, int(last))
    job.produce(300, first=1400)
    job.expects(1700)
    status = job.get("v1/status")
    assert status["change"] is None
    assert status["failures"] == []
    assert status["job"]["attempt"] == attempt
    versions = {c["model_version"] for c in status["containers"]}
    assert max(versions) == status["job"]["model_version"]
    for version in range(1, status["job"]["model_version"] + 1):
        assert job.get(f"?version={version}")["containers"]
    job.end()


@pytest.mark.long
def test_a_container_that_a_change_overtakes_in_its_start_has_not_failed(
    make_job: Callable[[str], Job],
) -> None:
    """Two counts in a row: a container that starts under the first ends as ordered; exact.

    It reads the second count in the coordinator stream before its order to stop arrives.
    """
    job = make_job("overtaken")
    job.values["cluster-manager.container.lease.ms"] = "30000"
    job.begin(300)
    write(job, COUNT, "5")
    # A new container has no spare: its child has imports to do before it reads anything.
    wait_for(lambda: bool(new_children(job)), job, every_s=0.02)
    begun = new_children(job)[0]
    child = begun["child_pid"]
    with standing_still(parent_of(child)):
        with standing_still(child):
            write(job, COUNT, "2")
            wait_for(lambda: len(tasks(job)) == 2, job)
        wait_for(lambda: not alive(child), job)
    wait_for_count(job, 2)
    of = begun["processor_id"]
    ends = [e for e in job.history("child-stopped") if e["processor_id"] == of]
    assert [(e["exit_code"], e["cause"]) for e in ends] == [(EXIT_OVERTAKEN, "ordered")]
    job.produce(300, first=300)
    job.expects(600)
    assert job.get("v1/status")["failures"] == []
    job.end()


def new_children(job: Job) -> list[dict[str, Any]]:
    """What launchers wrote down of the first children of processors that the job began without."""
    return [e for e in job.history("child-started") if e["processor_id"] in {"3", "4"}]


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_changes_and_kills_in_any_order(make_job: Callable[[str], Job], seed: int) -> None:
    """Eight counts in a row, drivers, launchers and containers killed meanwhile; exact."""
    chance = random.Random(seed)  # noqa: S311 - a schedule is no secret
    job = make_job(f"shaken-{seed}")
    job.values["cluster-manager.container.retry.count"] = "100"
    job.begin(100)
    attempt = job.attempt
    for change in range(8):
        count = chance.randint(1, PARTITIONS)
        child = writing(job, COUNT, str(count))
        for _ in range(chance.randint(1, 3)):
            time.sleep(chance.uniform(0, 3))  # faults fall where they fall
            name = chance.choice([DRIVER, DRIVER, ".launcher", ".container_runner"])
            lines = sorted(pids_of(job.application_id).items())
            found = [pid for pid, line in lines if name in line and alive(pid)]
            if found:
                victim = chance.choice(found)
                os.kill(victim, signal.SIGKILL)
                log.info("seed %d: to %d, SIGKILL of %s, pid %d", seed, count, name, victim)
        ended(child)
        job.produce(60, first=100 + 60 * change)
    write(job, COUNT, "3")
    wait_for_count(job, 3)
    job.expects(100 + 60 * 8)
    assert job.attempt == attempt
    job.end()


@pytest.mark.long
def test_an_attempt_that_dies_in_the_middle_of_a_change_leaves_it_to_the_next(
    make_job: Callable[[str], Job],
) -> None:
    """SIGKILL of the AM: the next attempt reads how many containers there are to be; exact."""
    job = make_job("handed-on")
    job.begin(200)
    attempt = job.attempt
    write(job, COUNT, "5")
    wait_for(lambda: len(tasks(job)) == 5, job)
    for pid in programs(job, APPLICATION_MASTER):
        os.kill(pid, signal.SIGKILL)
    job.produce(200, first=200)
    job_of_attempt(job, attempt + 1)
    wait_for_count(job, 5)
    job.expects(400)
    job.end()


def test_a_tuning_key_is_in_effect_without_a_restart(make_job: Callable[[str], Job]) -> None:
    """Containers that would not flush for ten minutes do so twice a second; processes stay.

    The level of their logs falls too: JSON lines that were below it appear.
    """
    job = make_job("retuned")
    job.values |= {"job.log.format": "json", "job.log.level": "ERROR"}
    job.values["job.container.count"] = "1"
    job.values["task.commit.ms"] = "600000"
    pids = job.begin(100)
    before = epochs(job)
    job.expects(100)
    printed = write(job, "task.commit.ms", "500")
    assert "nothing restarts" in printed
    wait_for(lambda: len(job.history("retuned")) == len(pids), job)
    taken = job.history("retuned")
    assert {(e["processor_id"], e["epoch"]) for e in taken} == set(before.items())
    assert {e["commit_ms"] for e in taken} == {500}
    waited_ms = max(e["ts_ms"] for e in taken) - job.written_ms("task.commit.ms")
    log.info("task.commit.ms: in effect in every container %d ms after its record", waited_ms)
    job.produce(100, first=100)
    job.expects(200)
    since_ms = max(e["ts_ms"] for e in taken)
    wait_for(lambda: {*flushed(job, since_ms)} == {*pids}, job)
    assert logged(job, "0") == []
    write(job, "job.log.level", "INFO")
    wait_for(lambda: logged(job, "0") != [], job)
    line = logged(job, "0")[0]
    assert (line["processor"], line["epoch"], line["level"]) == ("0", before["0"], "INFO")
    assert "log_level INFO" in line["message"]
    assert (job.pids(), epochs(job)) == (pids, before)
    home = job.containers()["0"]["host"]
    for stopped in (False, True):
        if stopped:
            job.kill()
            job.judge_history()
        unknown = placed(job, "9", home)
        assert "--key = '9': the job has no processor of that id, but 0" in unknown
        nowhere = placed(job, "0", "nm9")
        assert "--value = 'nm9': it is no live host of the cluster" in nowhere
        assert f"the processor starts elsewhere while it is so; its home was {home}" in nowhere
        assert "warning" not in placed(job, "0", home)


def placed(job: Job, processor: str, host: str) -> str:
    """What coordinator-stream-writer prints that gives the processor that home."""
    return ended(writing(job, processor, host, kind=MessageType.SET_CONTAINER_HOST.value))


def logged(job: Job, processor: str) -> list[dict[str, Any]]:
    """The JSON lines in the container's log."""
    shown = job.operator("logs", processor)
    assert shown.returncode == 0, shown.stderr
    return [json.loads(line) for line in shown.stdout.splitlines() if line.startswith("{")]


def flushed(job: Job, since_ms: int) -> list[str]:
    """The processors that have flushed their stores since then."""
    return [e["processor_id"] for e in job.history("commit") if e["ts_ms"] > since_ms]


@pytest.mark.long
def test_a_key_of_the_containers_restarts_all_and_one_of_the_deployment_is_said(
    make_job: Callable[[str], Job],
) -> None:
    """A redeploy key and an invalid value are reported, not applied; the job goes on."""
    job = make_job("reconfigured")
    job.begin(100)
    before = epochs(job)
    # As Samza's tool writes them: a misspelt key, and each of two tasks with the other's state.
    record(job, "task.comit.ms", "5000")
    with coordinator_stream(job) as store:
        store.write([wire.set_changelog("Partition 0", 1), wire.set_changelog("Partition 1", 0)])
    printed = write(job, DROP, "true")
    assert "its containers restart, one after the other, standbys first, each watched" in printed
    assert f"unwatched): {', '.join(sorted(before))}\n" in printed
    wait_for(lambda: job.get("config").get(DROP) == "true", job)
    wait_for(lambda: job.get("v1/status")["rolling_restart"]["phase"] == "done", job)
    assert restarted(before, epochs(job)) == set(before)
    assert job.get("v1/status")["rolling_restart"]["given"] == sorted(before)
    before, version = epochs(job), job.get("v1/status")["job"]["model_version"]
    with coordinator_stream(job) as store:
        store.bootstrap()
        manager = ChangelogPartitionManager(store)
        assert list(manager.contradictions()) == []
        assert manager.read() == {f"Partition {n}": n for n in range(PARTITIONS)}
    record(job, "task.comit.ms", "7000")

    printed = write(job, "cluster-manager.container.memory.mb", "640")
    assert "used from the next deployment" in printed
    wait_for(lambda: bool(status_of_configuration(job)["pending"]), job)
    assert status_of_configuration(job)["pending"] == [
        {
            "key": "cluster-manager.container.memory.mb",
            "in_force": "512",
            "wanted": "640",
            "takes": "applied by the next deployment",
        }
    ]
    job.kill_driver()
    wait_for(lambda: bool(job.pids()), job)
    assert job.get("config")["cluster-manager.container.memory.mb"] == "512"

    refused = writing(job, COUNT, str(PARTITIONS + 1))
    assert f"there are only {PARTITIONS} tasks" in refused.communicate(timeout=60)[0]
    assert refused.returncode == 1
    record(job, COUNT, str(PARTITIONS + 1))
    wait_for(lambda: bool(status_of_configuration(job)["fault"]), job)
    assert COUNT in status_of_configuration(job)["fault"]
    assert len(tasks(job)) == len(before)
    write(job, COUNT, "3")
    wait_for(lambda: status_of_configuration(job)["fault"] is None, job)
    job.produce(100, first=100)
    job.expects(200)
    assert epochs(job) == before
    assert job.get("v1/status")["job"]["model_version"] == version
    job.kill()
    job.judge_history()


def grow(job: Job, partitions: int) -> None:
    """The job's input has so many partitions."""
    admin = AdminClient({"bootstrap.servers": job.servers})
    topic = f"{job.name}-in"
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(30)


@pytest.mark.long
def test_new_partitions_of_an_input_get_tasks_where_there_is_no_state(
    make_job: Callable[[str], Job],
) -> None:
    """H6: without a durable store the job goes on, and reads what comes there."""
    job = make_job("grown")
    job.values = {k: v for k, v in job.values.items() if not k.startswith("stores.")}
    job.values["task.class"] = "probe_task:Silent"
    job.values["job.coordinator.monitor-partition-change.frequency.ms"] = "1000"
    job.begin(100)
    grow(job, PARTITIONS + 2)
    wait_for(lambda: sum(map(len, tasks(job).values())) == PARTITIONS + 2, job)
    wait_for(lambda: bool(job.pids()), job)
    job.kill()
    job.judge_history()


def test_a_job_with_state_takes_new_partitions_into_the_tasks_it_has(
    make_job: Callable[[str], Job],
) -> None:
    """G18 on a running job: each task gets the partitions that its own were split into; exact."""
    job = make_job("expanded")
    job.values["job.container.count"] = "2"
    job.values["job.coordinator.monitor-partition-change.frequency.ms"] = "1000"
    job.begin(300)
    job.expects(300)
    names = {t for each in tasks(job).values() for t in each}
    grow(job, 2 * PARTITIONS)
    wait_for(lambda: partitions_read(job) == 2 * PARTITIONS, job)
    wait_for(lambda: bool(job.pids()), job)
    assert {t for each in tasks(job).values() for t in each} == names
    job.produce(300, first=300)
    job.expects(600)
    job.kill()
    job.judge_history()


def partitions_read(job: Job) -> int:
    """How many input partitions the JobModel gives to tasks."""
    containers = job.get("")["containers"].values()
    return sum(
        len(task["system-stream-partitions"]) for c in containers for task in c["tasks"].values()
    )


@pytest.mark.long
def test_a_job_with_state_whose_input_cannot_be_followed_fails(
    make_job: Callable[[str], Job],
) -> None:
    """H6: with a durable store, and a growth that splits no partition, the job ends FAILED."""
    job = make_job("outgrown")
    job.values["job.coordinator.monitor-partition-change.frequency.ms"] = "1000"
    job.begin(100)
    grow(job, PARTITIONS + 1)
    wait_for(lambda: not job.application().is_active, job)
    assert job.application().final_status == "FAILED"
    assert f"has grown from {PARTITIONS} to {PARTITIONS + 1}" in job.application().diagnostics


@pytest.mark.long
def test_a_recreated_input_is_noticed_by_a_driver_that_never_saw_it(
    make_job: Callable[[str], Job],
) -> None:
    """It has as many partitions; the next driver is the first to notice: the job ends FAILED."""
    job = make_job("replaced")
    topic = f"{job.name}-in"
    job.begin(100)
    wait_for(lambda: bool(of_type(job, MessageType.SET_INPUT_TOPIC)), job)
    admin = AdminClient({"bootstrap.servers": job.servers})
    admin.delete_topics([topic])[topic].result(30)
    wait_for(lambda: topic not in admin.list_topics(timeout=10).topics, job)
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    job.kill_driver()
    wait_for(lambda: not job.application().is_active, job)
    assert job.application().final_status == "FAILED"
    assert f"kafka.{topic} was deleted and recreated" in job.application().diagnostics


def of_type(job: Job, kind: MessageType) -> list[str]:
    """The keys of the coordinator stream's records of that type."""
    with coordinator_stream(job) as store:
        store.bootstrap()
        return sorted(store.latest(kind))
