"""Processors under three ZooKeeper servers, which lose their leader, or their quorum."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from standalone_jobs import DEADLINE_S, StandaloneJob, on_zookeeper, standalone_job
from suites import long
from zookeeper_ensemble import FOLLOWER, LEADER, READ_ONLY, Ensemble, zookeeper_ensemble

from homeport.job_coordinator.standalone import nodes

MakeJob = Callable[..., StandaloneJob]
CHECKPOINT = ("checkpoint", "set", "--task", "Partition 0")
CLOSES = "a server closes the connection, as one without a quorum, or a read-only one, does"


@pytest.fixture
def ensemble(tmp_path: Path) -> Iterator[Ensemble]:
    """Of a test that kills its servers."""
    with zookeeper_ensemble(tmp_path) as made:
        yield made


@pytest.fixture
def make_job(kafka: str, tmp_path: Path, ensemble: Ensemble) -> Iterator[MakeJob]:
    """Makes the job of a test, with sessions of so many ms."""
    with contextlib.ExitStack() as stack:

        def make(session_ms: int) -> StandaloneJob:
            more = on_zookeeper(ensemble.connect, session_ms)
            folder = tmp_path / "job"
            folder.mkdir()
            return stack.enter_context(standalone_job(kafka, folder, more))

        yield make


@contextlib.contextmanager
def watching(job: StandaloneJob, ensemble: Ensemble) -> Iterator[KazooClient]:
    """A client of the test's own, below the job's node."""
    own = job.name, "1"
    root = nodes.root_of("/homeport", app=own, job=own, stage="1")
    client = KazooClient(ensemble.connect + root, timeout=DEADLINE_S)
    client.start(DEADLINE_S)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def registrations(job: StandaloneJob, ensemble: Ensemble) -> list[str]:
    """The names of the registrations, each of one session."""
    with watching(job, ensemble) as client:
        return sorted(client.get_children(nodes.PROCESSORS))


def both_work(job: StandaloneJob) -> None:
    """Processors one and two have started, and have counted what was sent."""
    job.until(lambda: job.started_by("two") > 0 and job.started_by("one") > 1)
    job.until_counted()


@pytest.mark.parametrize(
    "moment", [nodes.JOB_MODELS, long(nodes.PROCESSORS), long(nodes.BARRIERS), long(nodes.FENCED)]
)
def test_the_leading_server_dies_while_tasks_move(
    make_job: MakeJob, ensemble: Ensemble, moment: str
) -> None:
    """As soon as the node changes: the sessions go on elsewhere, and no record counts twice."""
    job = make_job(30_000)
    job.produce(20)
    one = job.processor("one")
    job.until(lambda: job.started_by("one") > 0)
    job.until_counted()
    changes = threading.Semaphore(0)
    with watching(job, ensemble) as client:
        client.ensure_path(f"/{moment}")
        client.ChildrenWatch(f"/{moment}", lambda _names: changes.release())
        assert changes.acquire(timeout=DEADLINE_S)  # the children as they are
        two = job.processor("two")
        assert changes.acquire(timeout=DEADLINE_S), job.logs()
        ensemble.leader.kill()
    job.produce(20)
    both_work(job)
    ensemble.until(LEADER, FOLLOWER)
    assert len(registrations(job, ensemble)) == 2
    assert job.logs().count("ZooKeeper: SessionBegun") == 2, job.logs()
    assert "lease-lost" not in job.logs()
    for processor in (two, one):
        job.stop(processor)
    assert job.counted() == job.sent


@pytest.mark.long
def test_a_quorum_that_is_lost_for_less_than_the_session_stops_nothing(
    make_job: MakeJob, ensemble: Ensemble
) -> None:
    """Work goes on under the read-only server that is left; its sessions are those of before."""
    job = make_job(40_000)
    job.produce(20)
    processors = [job.processor("one")]
    job.until(lambda: job.started_by("one") > 0)
    processors.append(job.processor("two"))
    both_work(job)
    before = registrations(job, ensemble), job.started_by("one"), job.started_by("two")
    lost = [ensemble.leader, next(s for s in ensemble.servers if s is not ensemble.leader)]
    for server in lost:
        server.kill()
    ensemble.until(READ_ONLY)
    job.until(lambda: job.logs().count("ZooKeeper: Disconnected") == len(processors))
    job.produce(20)
    job.until_counted()
    for server in lost:
        server.start()
    ensemble.until(LEADER, FOLLOWER, FOLLOWER)
    job.until(lambda: job.logs().count("ZooKeeper: Reconnected") == len(processors))
    after = registrations(job, ensemble), job.started_by("one"), job.started_by("two")
    assert after == before
    assert "lease-lost" not in job.logs()
    job.stop(processors[0])
    job.produce(20)
    job.until_counted()


@pytest.mark.long
def test_a_processor_that_reaches_a_read_only_server_alone_gives_its_tasks_away(
    make_job: MakeJob, ensemble: Ensemble
) -> None:
    """Its lease ends as without ZooKeeper, though the server would answer; then it comes back."""
    job = make_job(6_000)
    lonely = next(server for server in ensemble.servers if server is not ensemble.leader)
    there = f"--config=job.coordinator.zk.connect={lonely.connect}"
    job.produce(20)
    one = job.run(
        *("run-processor", "one", "--processor-id=one", "--config=job.location-id=here", there)
    )
    job.until(lambda: job.started_by("one") > 0)
    two = job.processor("two")
    both_work(job)
    before = job.started_by("one"), job.started_by("two")
    ensemble.part_from(lonely)
    job.produce(20)
    job.until(lambda: job.logs().count("the work ended (lease-lost)") >= 1)
    job.until(lambda: job.started_by("two") > before[1])
    job.until_counted()
    assert one.poll() is None
    assert two.poll() is None

    late = job.run(
        *("run-processor", "late", there, "--config=job.coordinator.zk.connection.timeout.ms=2000")
    )
    assert late.wait(DEADLINE_S) == 1, job.logs()
    assert (job.folder / "late.log").read_text("utf-8").splitlines()[-1] == (
        f"error: ZooKeeper at {lonely.connect} does not answer within "
        f"job.coordinator.zk.connection.timeout.ms (2000) ({CLOSES}): start it, or correct "
        "job.coordinator.zk.connect"
    )
    # Its nodes are those of before: what is not registered there may be registered elsewhere.
    refused = job.tool(*CHECKPOINT, f"--ssp=kafka.{job.name}-in.0", "--latest", there)
    assert refused.returncode == 1, refused.stdout
    assert refused.stderr.splitlines()[-1] == (
        f"error: ZooKeeper at {lonely.connect} does not answer: {CLOSES}"
    )

    ensemble.join(lonely)
    job.until(lambda: job.started_by("one") > before[0])
    job.produce(20)
    job.until_counted()
    for processor in (two, one):
        job.stop(processor)
    assert job.counted() == job.sent
