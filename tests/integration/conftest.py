"""Real Kafka and YARN for integration tests, started when a test first needs them.

The fixtures ``cluster`` and ``kafka`` are shared by all workers of a run; every other one
belongs to the worker that uses it, and ``disturbed`` has a ``cluster`` of its own.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import shared_clusters
from clusters_under_test import LocalUnderTest
from job_configs import job_config
from launchers import FIRST, Am, Launch, Ready, Running
from samza_peer import SamzaPeer
from samza_streams import Stream
from stopped_container import PLAN_VARIABLE
from stream_containers import Make, jobs
from yarn_jobs import Job

from homeport.config.settings.sections import JobConfig, SystemConfig
from homeport.job_coordinator.http.messages import OrderKind
from homeport.job_coordinator.kafka.topics import TopicAdmin, coordinator_topic_spec
from homeport.local_cluster.cluster import remove_abandoned
from homeport.local_cluster.errors import ClusterError
from homeport.local_cluster.net import network
from tests.faults import Faults


@contextlib.contextmanager
def running(
    role: str,
    nodes: int,
    request: pytest.FixtureRequest,
    *,
    brokers: int = 1,
    namespaces: bool = False,
    scheduler: str = "fair",
    keeps_containers: bool = True,
) -> Iterator[LocalUnderTest]:
    """A cluster of this test run; afterwards gone, with its logs kept if a test failed.

    Where nodes are lost, ``keeps_containers`` is False: a machine that starts again has none.
    """
    remove_abandoned(shared_clusters.PREFIX, progress=print)
    name = f"{shared_clusters.PREFIX}{os.getpid()}-{role}"
    started = LocalUnderTest(
        name,
        nodes=nodes,
        brokers=brokers,
        namespaces=namespaces,
        scheduler=scheduler,
        keeps_containers=keeps_containers,
    )
    try:
        started.up(print)
        yield started
    finally:
        failed = bool(request.session.testsfailed)
        started.down(keep_logs=failed)
        if failed:
            request.config.stash[shared_clusters.KEPT_LOGS].append(str(started.log_dir))


@pytest.fixture(scope="session")
def cluster() -> LocalUnderTest:
    """Three nodes and Kafka, shared by all tests of the run: none of them disturbs it."""
    return shared_clusters.shared("cluster", 3)


@pytest.fixture(scope="session")
def namespaces() -> None:
    """Skips what needs network namespaces where they cannot be had."""
    try:
        network.check()
    except ClusterError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def network_cluster(namespaces: None, request: pytest.FixtureRequest) -> Iterator[LocalUnderTest]:
    """Four nodes, RM and Kafka, each with a network of its own.

    Four: with two hosts lost beside the AM's, a task and its standby still find a host each.
    """
    del namespaces
    with running("network", 4, request, namespaces=True, keeps_containers=False) as started:
        own = started.faults.network.name
        yield started
    assert network.remains(own) == []


@pytest.fixture(scope="session")
def running_cluster(
    request: pytest.FixtureRequest,
) -> Callable[..., contextlib.AbstractContextManager[LocalUnderTest]]:
    """Starts a cluster for a block: its role and number of nodes; options of ``running``.

    A module that has a fixture ``cluster`` made with it has a cluster of its own for its jobs.
    """
    return lambda role, nodes, **options: running(role, nodes, request, **options)


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> str:
    """Bootstrap servers of a broker: the cluster's if any test of the run needs a cluster."""
    if any("cluster" in getattr(item, "fixturenames", ()) for item in request.session.items):
        return shared_clusters.shared("cluster", 3).bootstrap_servers
    return shared_clusters.shared("kafka", 0).bootstrap_servers


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest) -> Iterator[LocalUnderTest]:
    """A broker of one module's tests alone, which they may stop."""
    with running("broker", 0, request) as started:
        yield started


@pytest.fixture(scope="module")
def brokers(request: pytest.FixtureRequest) -> Iterator[LocalUnderTest]:
    """Three brokers of one module's tests alone; at the end of each test all of them must run."""
    with running("brokers", 0, request, brokers=3) as started:
        yield started


@pytest.fixture(scope="session")
def samza(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SamzaPeer]:
    """Samza's classes in a JVM of their own; the first run of a cache fetches them."""
    with SamzaPeer(tmp_path_factory.mktemp("samza"), print) as started:
        yield started


@pytest.fixture
def stream(kafka: str, samza: SamzaPeer) -> Stream:
    """The empty coordinator stream of a new job, made as run-job makes it, and Samza beside it."""
    config = job_config(kafka, {"systems.kafka.producer.bootstrap.servers": kafka})
    TopicAdmin(SystemConfig.of(config, "kafka")).ensure(
        coordinator_topic_spec(JobConfig.of(config))
    )
    return Stream(config, samza)


@contextlib.contextmanager
def _jobs(cluster: LocalUnderTest, folder: Path) -> Iterator[Callable[[str], Job]]:
    """Makes jobs; those that still run at the end are killed."""
    made: list[Job] = []

    def make(name: str) -> Job:
        made.append(Job(cluster, folder, name))
        return made[-1]

    yield make
    for job in made:
        job.call("kill")


@pytest.fixture
def make_job(cluster: LocalUnderTest, tmp_path: Path) -> Iterator[Callable[[str], Job]]:
    """Makes jobs; those that still run at the end are killed."""
    with _jobs(cluster, tmp_path) as make:
        yield make


@pytest.fixture
def make_network_job(
    network_cluster: LocalUnderTest, tmp_path: Path
) -> Iterator[Callable[[str], Job]]:
    """Makes jobs on the nodes with networks of their own; as ``make_job``."""
    with _jobs(network_cluster, tmp_path) as make:
        yield make


@pytest.fixture
def faults(
    network_cluster: LocalUnderTest, make_network_job: Callable[[str], Job]
) -> Iterator[Faults]:
    """Faults of the network cluster; before the test's jobs are killed all is healed."""
    del make_network_job
    with Faults(network_cluster) as made:
        yield made


@pytest.fixture
def make(request: pytest.FixtureRequest, kafka: str, tmp_path: Path) -> Iterator[Make]:
    """Makes a job of one container from further keys, dots written as underscores.

    The module's ``JOBS`` are arguments of ``jobs``: the code of the task, keys of every job. What
    runs as ``stopped_container`` heeds the file ``plan``.
    """
    plan = {PLAN_VARIABLE: str(tmp_path / "plan")}
    options = getattr(request.module, "JOBS", {})
    with jobs(kafka, tmp_path, environment=plan, **options) as made:
        yield made


@pytest.fixture
def am() -> Iterator[Am]:
    """An AM that says ``wait``."""
    with Am() as started:
        yield started


@pytest.fixture
def launch(tmp_path: Path, am: Am) -> Iterator[Launch]:
    """Starts launchers; those that still run at the end are killed."""
    started: list[Running] = []

    def start(mode: str = "run", folder: Path | None = None, **environment: str) -> Running:
        folder = folder or tmp_path / str(len(started))
        folder.mkdir(exist_ok=True)
        started.append(Running(folder, am, mode, **environment))
        return started[-1]

    yield start
    for launcher in started:
        with contextlib.suppress(ProcessLookupError):
            launcher.process.kill()
        launcher.process.wait()


@pytest.fixture
def ready(am: Am, launch: Launch) -> Ready:
    """Starts launchers that have run the first incarnation's child."""

    def start(mode: str = "run", **environment: str) -> tuple[Running, int]:
        launcher = launch(mode, **environment)
        am.orders(OrderKind.RUN, FIRST)
        return launcher, launcher.child_pid(am)

    return start
