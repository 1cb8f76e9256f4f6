"""What a job stands on goes away for a while, on real parts; the result is exact afterwards."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import cast

import lost_hosts
import pytest
from job_configs import kafka_system
from suites import long
from waiting import until
from yarn_jobs import LIMIT_S, Job, parent_of, wait_for

from homeport.cli.job.job_view import JobView
from homeport.cli.job.placement_request import Patience, answers, new_request, write_order
from homeport.config.config import Config
from homeport.config.errors import UnansweredError, UnavailableError
from homeport.container.incarnation.kafka_watch import watch_kafka
from homeport.container.kafka.log_reader import LogReader
from homeport.job_coordinator.coordinator_stream.message import MessageType, set_config
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.metadata.placement import PlacementManager
from homeport.job_coordinator.model.placement import PlacementResponse, PlacementStatus
from homeport.job_coordinator.model.silence import Silence
from homeport.local_cluster.cluster import LocalCluster

SOON_S = 30.0
OUTAGE_S = 60.0
"""How long the fault lasts; nothing is waited for by it."""
STALL_S = 15.0
"""As above: longer than a transaction may take."""
NO_ANSWER = "the broker did not answer with the offset in time"


def soon(call: Callable[[], object]) -> None:
    """The call succeeds, asked again while a broker that has just started finds its leaders."""
    deadline = time.monotonic() + SOON_S
    while True:
        try:
            call()
        except UnavailableError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


def test_a_command_that_waits_outlasts_a_kafka_that_is_away(
    broker: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says so, and has the answer that was written since."""
    system, config = kafka_system(broker.bootstrap_servers), Config({"job.name": "waits"})
    TopicAdmin(system).create("waits", 1, 1, {"cleanup.policy": "compact"})
    request = new_request("application_1_1", "0", "any")
    with (
        CoordinatorStreamStore(system, "waits", source="tool", timeout_s=5) as tool,
        CoordinatorStreamStore(system, "waits", source="am", timeout_s=5) as am,
    ):
        tool.bootstrap()
        write_order(tool, [PlacementManager.request_message(request)])
        patience = Patience(JobView(config, "waits", tool, None))
        broker.stop_kafka()
        try:
            patience()
            with pytest.raises(UnansweredError, match="it again"):
                write_order(tool, [PlacementManager.request_message(request)])
        finally:
            broker.start_kafka()
        am.bootstrap()
        answer = PlacementResponse(request, PlacementStatus.SUCCEEDED, "there", 1)
        soon(lambda: am.write([PlacementManager.response_message(answer)]))
        (read,) = answers(tool, request.uuid, patience)
        assert (read.request.uuid, read.status, read.message) == (
            request.uuid,
            answer.status,
            answer.message,
        )
    assert "what was ordered stays in the coordinator stream" in capsys.readouterr().err


def test_a_coordinator_stream_goes_on_once_its_broker_is_back(broker: LocalCluster) -> None:
    """Reading finds the new leader; a transaction begins only while a broker answers."""
    system = kafka_system(broker.bootstrap_servers)
    TopicAdmin(system).create("stream", 1, 1, {"cleanup.policy": "compact"})
    with (
        CoordinatorStreamStore(system, "stream", source="t", timeout_s=5) as reader,
        CoordinatorStreamStore(
            system, "stream", source="t", transactional_id="writer", timeout_s=5
        ) as writer,
    ):
        reader.bootstrap()
        writer.fence()
        writer.write([set_config("a", "before")])
        broker.stop_kafka()
        try:
            with pytest.raises(UnavailableError):
                writer.write([set_config("a", "meanwhile")])
            with pytest.raises(UnavailableError):
                reader.catch_up()
        finally:
            broker.start_kafka()
        soon(lambda: writer.write([set_config("a", "after")]))
        soon(reader.catch_up)
        assert reader.latest(MessageType.SET_CONFIG)["a"].value("value") == "after"


@contextlib.contextmanager
def standing_still(broker: LocalCluster) -> Iterator[None]:
    """Inside the block the broker neither answers nor closes a connection, as behind a cut."""
    broker.pause_kafka()
    try:
        yield
    finally:
        broker.resume_kafka()


def test_a_broker_that_stands_still_gives_no_end_of_a_stream(broker: LocalCluster) -> None:
    """The library reports no error then: what it says must not be taken for the stream's end."""
    system = kafka_system(broker.bootstrap_servers)
    TopicAdmin(system).create("still", 1, 1, {"cleanup.policy": "compact"})
    with CoordinatorStreamStore(system, "still", source="t", timeout_s=2) as reader:
        reader.bootstrap()
        with standing_still(broker), pytest.raises(UnavailableError, match=NO_ANSWER):
            reader.catch_up()
        soon(reader.catch_up)


@pytest.mark.long
def test_a_broker_that_stands_still_gives_no_end_of_a_changelog(broker: LocalCluster) -> None:
    """Else a store would be ahead of its changelog, or have nothing to read of it."""
    system = kafka_system(broker.bootstrap_servers)
    TopicAdmin(system).create("changes", 1, 1, {"cleanup.policy": "compact"})
    with contextlib.closing(LogReader(system, lambda _: None)) as reader:
        assert reader.ends([("changes", 0)])["changes", 0].head == 0
        with standing_still(broker), pytest.raises(UnavailableError, match=NO_ANSWER):
            reader.ends([("changes", 0)])
        soon(lambda: reader.ends([("changes", 0)]))


def test_a_broker_that_is_silent_for_the_limit_is_reported_once_and_not_before(
    broker: LocalCluster,
) -> None:
    """There is no report while the broker answers, nor for a pause shorter than the limit."""
    stated: queue.SimpleQueue[str] = queue.SimpleQueue()
    silence = Silence(4000)
    watch_kafka(kafka_system(broker.bootstrap_servers), "any", silence, stated.put)
    with standing_still(broker):
        until(lambda: silence.since_ms is not None)
    until(lambda: silence.since_ms is None)
    assert stated.empty()
    with standing_still(broker):
        cause = stated.get(timeout=SOON_S)
    assert cause.startswith(f"Kafka at {broker.bootstrap_servers} has not answered on this host ")
    assert stated.empty()


def test_a_restarted_resource_manager_disturbs_no_container(make_job: Callable[[str], Job]) -> None:
    """Same application, same processes; and a launcher that dies later gets a new container."""
    job = make_job("managed")
    job.values["job.container.count"] = "2"
    before, attempt = job.begin(300), job.attempt
    job.cluster.restart_resource_manager()
    job.produce(300, first=300)
    assert job.pids() == before
    assert job.attempt == attempt

    os.kill(parent_of(before["0"]), signal.SIGKILL)
    wait_for(lambda: job.containers()["0"]["epoch"] == 2, job)
    after = job.settled()
    assert {p: pid for p, pid in after.items() if p != "0"} == {
        p: pid for p, pid in before.items() if p != "0"
    }
    job.expects(600)
    job.end()


def reads_its_stream(job: Job) -> bool:
    """Its driver has read the coordinator stream at its last look."""
    return bool(job.get("v1/status")["coordinator_stream"] == "ok")


# The isolation limit of "patient" holds however long this machine takes to start a broker.
@pytest.mark.parametrize(
    ("name", "values"),
    [long("patient", {"job.coordinator.isolation.max.ms": "3600000"}), long("strict", {})],
    ids=["patient", "strict"],
)
def test_a_job_goes_on_after_a_minute_without_kafka(
    make_job: Callable[[str], Job], name: str, values: dict[str, str]
) -> None:
    """Within the isolation limit no container ends; beyond it leases run out, and all come back.

    Nothing is charged to the retry keys, the driver stays, and run-job refuses meanwhile.
    """
    job = make_job(name)
    job.values.update(values)
    job.values["job.container.count"] = "2"
    before = job.begin(2000, "cluster-manager.container.retry.count=0")
    driver = job.program("application_master")
    job.expects(2000)
    job.cluster.stop_kafka()
    try:
        refused = make_job("refused").call("run")
        time.sleep(OUTAGE_S)
        away, model = job.get("v1/status")["coordinator_stream"], job.get("")["containers"]
    finally:
        job.cluster.start_kafka()
    progress, error = refused.stderr.splitlines()
    assert progress.startswith(f"no answer from Kafka at {job.servers} yet")
    assert refused.returncode == 1
    assert error.startswith(f"error: Kafka at {job.servers} ")
    assert (len(model), away.startswith(f"Kafka at {job.servers} ")) == (2, True), away

    wait_for(partial(reads_its_stream, job), job)
    job.produce(1000, first=2000)
    job.expects(3000)
    assert job.program("application_master") == driver
    failures = [f["cause"] for f in job.get("v1/status")["failures"]]
    if name == "patient":
        assert (job.settled(), failures) == (before, [])
    else:
        assert "lease-lost" in failures
    assert not set(failures) & {"failed", "killed"}
    assert {c["failures"] for c in job.containers().values()} == {0}
    job.end()


@pytest.mark.long
def test_a_broker_that_stands_still_fails_no_job(make_job: Callable[[str], Job]) -> None:
    """Transactions of all containers are out of time; none of them is charged, if none may fail."""
    job = make_job("stalled")
    job.values["job.container.count"] = "2"
    job.begin(1000, "cluster-manager.container.retry.count=0")
    job.expects(1000)
    job.produce(20_000, first=1000)
    with standing_still(cast("LocalCluster", job.cluster)):
        time.sleep(STALL_S)
    job.expects(21_000)
    status = job.get("v1/status")
    # A busy machine may lose leases too, which are not charged either.
    assert not {found["cause"] for found in status["failures"]} & {"failed", "killed"}
    assert {c["failures"] for c in job.containers().values()} == {0}
    job.end()


@pytest.mark.long
def test_a_job_whose_kafka_went_away_after_its_submission_comes_up(
    make_job: Callable[[str], Job],
) -> None:
    """AM, containers and run-job itself wait for Kafka; the job needs no second submission."""
    job = make_job("early")
    job.produce(500)
    submitting = job.submitting()
    until_submitted(submitting)
    job.cluster.stop_kafka()
    try:
        time.sleep(OUTAGE_S)
    finally:
        job.cluster.start_kafka()
    out, err = submitting.communicate(timeout=LIMIT_S)
    assert submitting.returncode == 0, err
    job.learn(out)
    job.settled()
    job.expects(500)
    assert job.get("v1/status")["failures"] == []
    job.end()


def until_submitted(submitting: subprocess.Popen[str]) -> None:
    """run-job has said that YARN has the application."""
    assert submitting.stderr is not None
    lines = []
    for line in submitting.stderr:
        lines.append(line)
        if line.startswith("submitted application_"):
            return
    pytest.fail("".join(lines))


@pytest.mark.long
def test_one_of_two_simultaneous_submissions_is_refused(make_job: Callable[[str], Job]) -> None:
    """In one line, by its own claim or by YARN's word; the other runs as if it had been alone."""
    job = make_job("twice")
    job.produce(500)
    both = [job.submitting(), job.submitting()]
    ends = [p.communicate(timeout=LIMIT_S) for p in both]
    codes = [p.returncode for p in both]
    assert sorted(codes) == [0, 1], ends
    out, _ = ends[codes.index(0)]
    _, err = ends[codes.index(1)]
    job.learn(out)
    refusal = err.splitlines()[-1]
    assert refusal.startswith("error: job.name = 'twice': the job 'twice' with job.id=1 runs ")
    assert job.application_id in refusal
    job.settled()
    job.expects(500)
    status = job.get("v1/status")
    assert {c["epoch"] for c in status["containers"]} == {1}
    # Not which attempt: a busy machine may take longer to start one than YARN waits for it.
    assert status["failures"] == []
    assert len(job.rest.applications("twice_1")) == 1
    job.end()


@pytest.mark.long
def test_a_full_disk_is_named_and_costs_nothing(make_job: Callable[[str], Job]) -> None:
    """The container says which directory has no room; with room it goes on from what it had."""
    lost_hosts.a_disk_that_is_full(make_job("full"))
