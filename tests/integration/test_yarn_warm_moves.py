"""Containers of a job on a real YARN cluster move without a pause, under load, and leave a host.

A warm move, to a host without a standby and to that of one; its pause is read from the history and
printed. What a move loses or does twice would show in the counts.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from http import HTTPStatus

import pytest
from am_attempts import job_of_attempt, kill_am, programs
from standby_jobs import are_apart, records_read, standby_job
from suites import long
from warm_moves import (
    STATE,
    answers,
    homeport,
    moved,
    moving,
    pause_s,
    runs_with_state,
    steps,
    succeeds,
    under_load,
    with_state,
)
from yarn_actions import act
from yarn_jobs import Job, wait_for

PIPELINE = {
    "task.pipeline.class": "probe_task:with_keys",
    "cluster-manager.container.memory.mb": "1280",
}


@pytest.mark.parametrize("values", [long(PIPELINE), {}], ids=["pipeline", "task"])
def test_a_warm_move_under_load_pauses_for_no_restore(
    make_job: Callable[[str], Job], announce: Callable[[str], None], values: dict[str, str]
) -> None:
    """The container reads a tail, finds a Spark that has started, and has counted all exactly."""
    job, there = with_state(make_job, f"warm-{len(values)}", **values)
    looked = job.operator("drain", job.am_host(), "--dry-run")
    assert f"the ApplicationMaster runs on {job.am_host()}, and stays there" in looked.stderr
    with under_load(job):
        assert moved(job, "0", there, "--warm") == f"SUCCEEDED: 0@2 runs on {there}"
    containers = job.containers()
    assert set(containers) == {"0"}
    assert records_read(containers["0"]) < STATE / 10
    assert ("no Spark was ready" in str(answers(job))) is False
    assert ("a Spark starts beside it" in str(answers(job))) is bool(values)
    numbers = job.get_text("metrics")
    assert 'homeport_warm_moves_total{outcome="succeeded"} 1.0' in numbers
    assert "homeport_warm_move_pause_seconds_count 1.0" in numbers
    job.judge_history()
    announce(f"warm move with {STATE} keys: pause {pause_s(job, 2):.2f} s")
    localities = job.get("locality")
    assert "warm" not in str(localities)
    assert job.kill() == f"stopped {job.application_id} in order"


def stand_still(job: Job) -> None:
    """The standby of the move gets SIGSTOP in its start: its launcher goes on, and it does not."""
    wait_for(lambda: bool(job.containers().get("0-warm", {}).get("pid")), job, every_s=0.02)
    os.kill(job.containers()["0-warm"]["pid"], signal.SIGSTOP)


def fails(tool: subprocess.Popen[str], story: str) -> None:
    """The command ends with this in its last line."""
    out, err = tool.communicate(timeout=120)
    assert (tool.returncode, story in err.splitlines()[-1]) == (1, True), (out, err)


def test_a_standby_that_stands_still_ends_its_move_alone(make_job: Callable[[str], Job]) -> None:
    """By time, by a cancel, and with a drain that is taken back: the container is not touched.

    On a drained host it restarts in its place.
    """
    limit = "cluster-manager.command.timeout.ms"
    job, there = with_state(make_job, "stands-still", **{"task.shutdown.ms": "2000", limit: "4000"})
    here, resource = (job.containers()["0"][name] for name in ("host", "resource"))

    with moving(job, there) as tool:
        stand_still(job)
        fails(tool, "it has come no further in 4000 ms")
    wait_for(lambda: set(job.containers()) == {"0"}, job)
    assert homeport(job, "config", "set", limit, "600000").returncode == 0
    wait_for(lambda: job.get("config")[limit] == "600000", job)

    with moving(job, there) as tool:
        stand_still(job)
        assert "homeport move 0 --cancel ends it" in homeport(job, "status").stdout
        cancelled = f"SUCCEEDED: {there}: cancelled; processor 0 is running on {here}"
        assert moved(job, "0", "--cancel") == cancelled
        fails(tool, "it was cancelled")
    wait_for(lambda: set(job.containers()) == {"0"}, job)

    with job.operating("drain", here) as tool:
        stand_still(job)
        assert homeport(job, "drain", here, "--undo").returncode == 0
        fails(tool, f"the drain of {here} was taken back: processor 0 stays")
    wait_for(lambda: set(job.containers()) == {"0"}, job)
    assert (job.containers()["0"]["epoch"], job.containers()["0"]["resource"]) == (1, resource)

    drained = "cluster-manager.drained.hosts"
    assert homeport(job, "config", "set", drained, here).returncode == 0
    wait_for(lambda: job.get("v1/status")["drained_hosts"] == [here], job)
    assert f"{here} is drained and has processor 0" in homeport(job, "status").stdout
    assert homeport(job, "restart", "0").stdout.strip() == f"SUCCEEDED: 0@2 runs on {here}"
    assert job.containers()["0"]["resource"] == resource
    job.judge_history()
    job.kill()


@pytest.mark.long
@pytest.mark.parametrize(
    "values", [{}, {**PIPELINE, "job.hotstandby.prewarm": "true"}], ids=["task", "pipeline"]
)
def test_a_standby_on_the_destination_gives_way(
    make_job: Callable[[str], Job], announce: Callable[[str], None], values: dict[str, str]
) -> None:
    """It comes to the host that its active has left; no temporary standby is needed.

    With its key it has a Spark beside it, which its active finds.
    """
    job = standby_job(make_job, f"gives-way-{len(values)}", containers=1)
    job.values |= values
    runs_with_state(job)
    before = {p: c["host"] for p, c in job.containers().items()}
    with under_load(job):
        printed = moved(job, "0", before["0-0"], "--warm")
        assert printed == f"SUCCEEDED: 0@2 runs on {before['0-0']}"
        wait_for(lambda: job.containers()["0-0"]["phase"] == "running", job)
    are_apart(job.containers())
    assert not [e for e in job.history("permit-granted") if e.get("temporary")]
    assert "no Spark was ready" not in str(answers(job))
    job.judge_history()
    announce(f"to the host of the standby: pause {pause_s(job, 2):.2f} s")
    job.kill()


@pytest.mark.long
def test_a_host_is_drained_and_comes_back(
    make_job: Callable[[str], Job], announce: Callable[[str], None]
) -> None:
    """Actives leave it warm, standbys cold; none comes there until it is taken back."""
    job = standby_job(make_job, "drained", containers=2)
    runs_with_state(job)
    before = job.containers()
    host = before["0"]["host"]
    there = sorted(p for p, c in before.items() if c["host"] == host)
    looked = homeport(job, "drain", host, "--dry-run")
    assert looked.returncode == 0
    assert "all can be placed" in looked.stdout
    assert job.get("v1/status")["drained_hosts"] == []
    with under_load(job):
        done = homeport(job, "drain", host)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == f"{host} has no container of the job"
        assert job.get("v1/status")["drained_hosts"] == [host]
    job.wait_until_running()
    containers = job.containers()
    assert host not in {c["host"] for c in containers.values()}
    are_apart(containers)
    other = containers["0"]["host"]
    refused = homeport(job, "drain", other)
    assert (refused.returncode, "have no place for" in refused.stderr) == (1, True)
    assert f"homeport drain {host} --undo" in homeport(job, "move", "0", host).stderr
    job.judge_history()
    for processor in sorted(set(there) & {"0", "1"}):
        epoch = containers[processor]["epoch"]
        announce(f"{processor} left {host}: pause {pause_s(job, epoch, processor):.2f} s")
    token = homeport(job, "token", "new", "ada", "--role=operate").stdout.strip()
    wait_for(lambda: act(job, token, "drain", host=host, undo=True)[0] == HTTPStatus.OK, job)
    undone = act(job, token, "drain", dry_run=False, host=host, undo=True)
    assert undone[0] == HTTPStatus.OK
    wait_for(lambda: job.get("v1/status")["drained_hosts"] == [], job)
    assert moved(job, "0", host, "--warm").endswith(f"runs on {host}")
    status, body = act(job, token, "drain", dry_run=False, host=host)
    assert status == HTTPStatus.OK
    wait_for(lambda: job.get(f"ui/answers/{body['uuid']}")["final"], job)
    answer = job.get(f"ui/answers/{body['uuid']}")
    assert (answer["status"], answer["message"]) == (
        "SUCCEEDED",
        f"{host} has no container of the job",
    )
    assert host not in {c["host"] for c in job.containers().values()}
    job.kill()


@pytest.mark.long
@pytest.mark.parametrize("step", ["reserving", "warming", "giving-way", "moving"])
def test_a_driver_that_dies_in_a_warm_move_has_a_successor_that_ends_it(
    make_job: Callable[[str], Job], step: str
) -> None:
    """Wherever it was: the move has one answer, the result is exact."""
    job, there = with_state(make_job, f"dies-{step}")
    with under_load(job), moving(job, there, "--expiry-ms=60000") as tool:
        wait_for(lambda: step in steps(job), job, every_s=0.02)
        job.kill_driver()
        succeeds(tool, there)
    assert set(job.containers()) == {"0"}
    job.judge_history()
    job.kill()


@pytest.mark.long
@pytest.mark.parametrize("step", ["warming", "giving-way"])
def test_an_am_that_dies_in_a_warm_move_has_a_successor_that_ends_it(
    make_job: Callable[[str], Job], step: str
) -> None:
    """All of its processes go at once, and all containers: nothing is left of the standby."""
    job, there = with_state(make_job, f"am-{step}")
    first = job.attempt
    with under_load(job), moving(job, there, "--expiry-ms=60000") as tool:
        wait_for(lambda: step in steps(job), job, every_s=0.02)
        kill_am(job)
        succeeds(tool, there)
    job_of_attempt(job, first + 1)
    wait_for(lambda: job.get("v1/status")["placements"] == [], job)
    assert {p: c["host"] for p, c in job.containers().items()} == {"0": there}
    assert len(programs(job, ".launcher")) == 1
    job.judge_history()
    job.kill()
