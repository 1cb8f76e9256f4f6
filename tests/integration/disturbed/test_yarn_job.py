"""Jobs on a real YARN cluster, by the command that users have."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from yarn_jobs import PARTITIONS, Job, alive, wait_for


def test_a_job_runs_stops_and_comes_home(make_job: Callable[[str], Job]) -> None:
    """One host each, JobModel by HTTP, one application at a time, an orderly end, home again."""
    job = make_job("home")
    job.produce(600)
    assert job.call("status").stdout == "New\n"
    job.run()
    first = job.wait_until_running()
    assert {c["host"] for c in first.values()} == {"nm1", "nm2", "nm3"}
    assert all(alive(c["pid"]) for c in first.values())
    model = job.get("")
    assert sorted(model["containers"]) == ["0", "1", "2"]
    assert sum(len(c["tasks"]) for c in model["containers"].values()) == PARTITIONS
    assert job.call("status").stdout == "Running\n"
    for id_, container in first.items():
        part = job.get(f"v1/processors/{id_}/model?version=1")
        assert part == model | {"containers": {id_: model["containers"][id_]}}
        beat = job.get(f"containerHeartbeat?executionContainerId={container['resource']}")
        assert beat == {"alive": True}
    numbers = job.get_text("metrics").splitlines()
    assert "homeport_job_model_version 1.0" in numbers
    assert 'homeport_containers{phase="running"} 3.0' in numbers
    assert "homeport_coordinator_stream_damaged_records_total 0.0" in numbers

    again = job.call("run")
    assert again.returncode == 1
    assert again.stderr.count("\n") == 1
    assert again.stderr.startswith("error: job.name = 'home'")
    assert job.application_id in again.stderr

    assert job.kill() == f"stopped {job.application_id} in order"
    ended = job.application()
    assert (ended.state, ended.final_status) == ("FINISHED", "KILLED")
    assert ended.diagnostics == "shut down on request"
    assert job.call("status").stdout == "UnsuccessfulFinish\n"
    assert job.kill() == "home_1 is not running"

    job.run()
    second = job.wait_until_running()
    assert {p: c["host"] for p, c in second.items()} == {p: c["host"] for p, c in first.items()}
    kinds = {r["kind"] for c in second.values() for r in c["restored"]["counts"].values()}
    assert kinds == {"none"}
    assert {c["epoch"] for c in second.values()} == {2}
    job.kill()


def test_a_job_that_cannot_run_fails_with_its_story(make_job: Callable[[str], Job]) -> None:
    """Two retries, the last after a rest, then FAILED: status, YARN and ``wait`` show the cause.

    The last lines of the log are for the job's owner; YARN and ``wait`` say where the log is. The
    last one is the reason, which the operator's commands read from the coordinator stream.
    """
    job = make_job("broken")
    job.produce(1)
    job.run(
        "task.class=probe_task:Failing",
        "job.container.count=1",
        "cluster-manager.container.retry.count=2",
        "cluster-manager.container.preferred-host.last.retry.delay.ms=15000",
    )
    wait_for(lambda: [c["phase"] for c in job.containers().values()] == ["backing-off"], job)
    failures = job.failures()
    assert [(f["epoch"], f["cause"], f["exit_code"]) for f in failures] == [
        (1, "failed", 1),
        (2, "failed", 1),
    ]
    assert all("a fault of the task" in f["last_lines"][-1] for f in failures)
    assert [f["last_lines"] for f in job.get("v1/status")["failures"]] == [None, None]
    reason = "exit code 1: task 'Partition "  # of the one record
    for command in (["status"], ["explain", "0"]):
        (line,) = [s for s in job.operator(*command).stdout.splitlines() if "last failure: " in s]
        assert f"failed, {reason}" in line
        assert line.endswith("ValueError: a fault of the task")
    newest, first = job.operator("logs", "0"), job.operator("logs", "0", "--epoch=1")
    assert "0@1 failed on " in newest.stderr
    assert "processor 0 epoch 1 on" in first.stdout
    assert first.stdout.splitlines()[-1].endswith("ValueError: a fault of the task")
    assert "0@9 neither runs nor is" in job.operator("logs", "0", "--epoch=9").stderr
    done = job.call("wait")
    assert done.returncode == 1
    assert "UnsuccessfulFinish (FAILED)" in done.stderr
    ended = job.application()
    assert ended.final_status == "FAILED"
    story = "processor 0 failed 3 times, cluster-manager.container.retry.count is 2; 0@3 on "
    place = "; the log of 0@3 is container-0-3.log of container_"
    assert story in ended.diagnostics
    assert f"failed, exit code 1{place}" in ended.diagnostics
    assert "a fault of the task" not in ended.diagnostics
    assert story in done.stderr
    assert f"ValueError: a fault of the task{place}" in done.stderr
    assert reason in done.stderr
    assert job.operator("status").stdout.endswith("ValueError: a fault of the task\n")
    refused = job.operator("logs", "0")
    assert refused.returncode == 1
    assert "the job broken does not run: homeport local logs --name " in refused.stderr
    assert f" lists the logs, below {ended.application_id}" in refused.stderr


def test_a_fault_that_only_the_am_sees_is_reported_at_once(make_job: Callable[[str], Job]) -> None:
    """The application fails in its first attempt, and ``run-job`` says why in one line."""
    job = make_job("misshapen")
    job.produce(1)
    admin = AdminClient({"bootstrap.servers": job.servers})
    topic = NewTopic("misshapen-counts", 1, 1, config={"cleanup.policy": "compact"})
    admin.create_topics([topic])["misshapen-counts"].result(30)
    done = job.call("run")
    assert done.returncode == 1
    line = done.stderr.splitlines()[-1]
    assert line.startswith("error: application_")
    assert "topic = 'misshapen-counts': it has 1 partitions and must have 6" in line
    assert "_000001" in line  # where the log of the attempt is


@pytest.mark.long
def test_a_container_that_is_killed_comes_back_on_its_host(make_job: Callable[[str], Job]) -> None:
    """SIGKILL of a stream container: the same launcher runs the next incarnation."""
    job = make_job("victim")
    job.produce(60)
    job.run()
    before = job.wait_until_running()["1"]
    os.kill(before["pid"], signal.SIGKILL)
    wait_for(lambda: job.containers()["1"]["epoch"] == 2, job)
    after = job.wait_until_running()["1"]
    assert (after["host"], after["resource"]) == (before["host"], before["resource"])
    (failure,) = job.get("v1/status")["failures"]
    assert (failure["cause"], failure["exit_code"]) == ("killed", -9)
    job.kill()


def _what_if(job: Job, host: str) -> dict[str, tuple[str, str]]:
    """{processor: from where, to where} if this host were lost."""
    done = job.operator("what-if", "--host", host, "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["is_settled"]
    return {c["processor_id"]: (c["from"], c["to"]) for c in answer["containers"]}


def _without_reports(containers: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What the allocator knows: reports of a container and its launcher come at any time."""
    unheard = {"report": None, "spare": None}
    return {processor: {**stated, **unheard} for processor, stated in containers.items()}


def _assert_it_is_explained(job: Job, moved: str, host: str, lost: str) -> None:
    wait_for(lambda: job.containers()[moved]["recovery"]["is_over"], job)
    stated = job.operator("explain", moved, "--last=100").stdout
    assert f"last recovery: elsewhere, {lost} to {host}, launcher-silent at " in stated
    assert f"running on {host} since" in stated
    assert f"Processor {moved} is permitted to start on {host}: epoch 2" in stated
    screen = job.operator("status").stdout.splitlines()
    assert screen[1] == "All 3 containers are where they should be"
    (row,) = (line.split() for line in screen if line.startswith(f"{moved} "))
    assert row[1:4] == ["active", "running", host]
    nowhere = job.operator("what-if", "--host=nm99")
    assert nowhere.returncode == 1
    refusal, _, known = nowhere.stderr.rstrip().partition("; give one of ")
    assert refusal == "error: --host = 'nm99': the job knows no host of that name"
    # YARN gives the lost one up when it likes.
    assert {"nm1", "nm2", "nm3"} - set(known.split(", ")) <= {lost}
    unknown = job.operator("explain", "9")
    assert (unknown.returncode, unknown.stderr) == (
        1,
        "error: the job has no processor '9': it has 0, 1, 2\n",
    )
    events = job.get(f"v1/events?processor={moved}")["events"]
    kinds = [r["kind"] for e in events for r in e["reasons"] if r["processor_id"] == moved]
    # The host was lost with all that it ran: not charged, and the driver requests another one at
    # once. Skein may report the grant later than the launcher checks in.
    assert [k for k in kinds if k != "launcher-awaited"][-5:] == [
        "not-charged",
        "other-host-asked",
        "own-launcher-came",
        "permitted",
        "started",
    ]
    numbers = job.get_text("metrics").splitlines()
    assert "samza_ContainerProcessManagerMetrics_running_containers 3.0" in numbers
    assert "samza_ContainerProcessManagerMetrics_failed_containers_total 1.0" in numbers
    assert "samza_SamzaAppMasterMetrics_heartbeats_expired_total 1.0" in numbers
    assert 'homeport_recovery_seconds_count{cause="launcher-silent"} 1.0' in numbers


def test_a_dead_host_is_left_and_nothing_else_is_disturbed(make_job: Callable[[str], Job]) -> None:
    """Its processor runs elsewhere once its launcher has been silent; the others go on.

    The host is lost from then on: the driver requests another one long before YARN reports the
    loss.
    """
    job = make_job("moving")
    job.produce(600)
    job.run()
    before = job.wait_until_running()
    am_host = job.am_host()
    moved = next(p for p, c in before.items() if c["host"] != am_host)
    lost = before[moved]["host"]
    foreseen = _what_if(job, lost)
    assert _without_reports(job.containers()) == _without_reports(before)
    job.cluster.kill_node(lost)
    try:
        wait_for(lambda: job.containers()[moved]["epoch"] == 2, job)
        after = job.wait_until_running()
        assert after[moved]["host"] not in {lost, None}
        assert all(c["epoch"] == 1 for p, c in after.items() if p != moved)
        (stated,) = job.decisions("LauncherSilent")
        assert f"SetTimer exclusion:{lost}" in stated
        (asked,) = [i for i in stated if i.startswith("RequestResource")]
        assert asked.endswith(after[moved]["host"])
        assert foreseen == {moved: (lost, after[moved]["host"])}
        _assert_it_is_explained(job, moved, after[moved]["host"], lost)
        job.produce(100, first=600)
        job.expects(700)
        assert job.kill() == f"stopped {job.application_id} in order"
    finally:
        job.cluster.start_node(lost)
