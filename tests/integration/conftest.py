"""Real Kafka and YARN for integration tests, one each per test run, started when first asked for."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

import pytest

from local_cluster.cluster import LocalCluster, remove_abandoned

PREFIX = "test-"


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    """End a terminated test run as an interrupted one: with teardown of its fixtures."""
    raise KeyboardInterrupt


@contextlib.contextmanager
def running(role: str, nodes: int, request: pytest.FixtureRequest) -> Iterator[LocalCluster]:
    """A cluster of this test run; afterwards gone, with its logs kept if a test failed."""
    remove_abandoned(PREFIX, progress=print)
    before = signal.signal(signal.SIGTERM, _interrupt)
    cluster = LocalCluster(f"{PREFIX}{os.getpid()}-{role}", nodes=nodes)
    try:
        cluster.up(print)
        yield cluster
    finally:
        failed = bool(request.session.testsfailed)
        cluster.down(keep_logs=failed)
        signal.signal(signal.SIGTERM, before)
        if failed:
            print(f"logs of cluster {cluster.name}: {cluster.log_dir}")


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[LocalCluster]:
    """Three nodes and Kafka, shared by all tests of the run."""
    with running("cluster", 3, request) as started:
        yield started


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> Iterator[str]:
    """Bootstrap servers of a broker: the cluster's if any test of the run needs a cluster."""
    if any("cluster" in getattr(item, "fixturenames", ()) for item in request.session.items):
        shared: LocalCluster = request.getfixturevalue("cluster")
        yield shared.bootstrap_servers
    else:
        with running("kafka", 0, request) as started:
            yield started.bootstrap_servers
