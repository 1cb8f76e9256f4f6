"""A cluster in containers of this test run, where an engine can be had."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from clusters_in_containers import ContainersUnderTest
from docker_cluster import engine
from docker_cluster.engine import DockerError
from run_summary import BACK_END
from yarn_jobs import Job

from local_setup.environment import cache_dir
from tests.faults import Faults

BUILD = Path(__file__).resolve().parents[2] / "build"


@pytest.fixture(scope="session")
def containers() -> str:
    """Skips what needs containers where no engine can be had; the versions of what runs them."""
    try:
        found = engine.find(cache_dir())
        if found is None and (os.geteuid() != 0 or shutil.which("dockerd") is None):
            pytest.skip("no Docker engine answers, and none can be started here")
        compose = (found or engine.Engine("")).compose()
    except DockerError as error:
        pytest.skip(str(error))
    if found is None:
        version = _printed("dockerd", "--version").split()[2]
    else:
        version = found.run("version", "-f", "{{.Server.Version}}")
    # Debian's, and that of an engine of our own before it is started, have more than a number.
    number = version.strip().rstrip(",").partition("+")[0]
    return f"engine {number}, compose {_printed(*compose, 'version', '--short')}"


def _printed(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(autouse=True)
def back_end(request: pytest.FixtureRequest, containers: str) -> None:
    """The summary of the run says what the test ran on."""
    request.node.user_properties.append((BACK_END, containers))


@pytest.fixture(scope="session")
def cluster(containers: str) -> Iterator[ContainersUnderTest]:
    """Three hosts, HDFS, Kafka and a client; each test leaves all of them running.

    The tests look at the processes and volumes of the hosts, as root can.
    """
    del containers
    if os.geteuid() != 0:
        pytest.skip("the tests look into volumes and processes of containers: run them as root")
    started = ContainersUnderTest(BUILD / "docker-tests")
    started.down(print)  # of a run that was killed
    try:
        started.up(print)
        yield started
    finally:
        started.down(print)


@pytest.fixture
def make_job(cluster: ContainersUnderTest) -> Iterator[Callable[[str], Job]]:
    """Makes jobs; those that still run at the end are killed."""
    made: list[Job] = []

    def make(name: str) -> Job:
        folder = cluster.work / f"{name}-{uuid.uuid4().hex[:6]}"
        folder.mkdir()
        made.append(Job(cluster, folder, name))
        return made[-1]

    yield make
    for job in made:
        job.call("kill")


@pytest.fixture
def faults(cluster: ContainersUnderTest, make_job: Callable[[str], Job]) -> Iterator[Faults]:
    """Faults of the cluster; before the test's jobs are killed all is healed."""
    del make_job
    with Faults(cluster) as made:
        yield made
