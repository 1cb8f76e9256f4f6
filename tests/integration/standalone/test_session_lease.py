"""The lease of a session behind a server that follows, and is cut off from its leader."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from processors_in_memory import DEADLINE_S, Processor, settings, shared, story
from waiting import until
from zookeeper_ensemble import Ensemble, zookeeper_ensemble
from zookeeper_server import ZooKeeperServer

from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.standalone import nodes

ROOT = "/homeport/j"
PATIENT = 1000
"""Ticks of 300 ms: so long such a server answers reads, which is longer than a test waits."""


@pytest.fixture
def ensemble(tmp_path: Path) -> Iterator[Ensemble]:
    """Servers that notice no cut in a test's time."""
    with zookeeper_ensemble(tmp_path, PATIENT) as made:
        yield made


@pytest.fixture
def client(ensemble: Ensemble) -> Iterator[KazooClient]:
    """A client of the test's own, at the leader."""
    made = KazooClient(ensemble.leader.connect)
    made.start(DEADLINE_S)
    yield made
    made.stop()
    made.close()


def followers(ensemble: Ensemble) -> list[ZooKeeperServer]:
    """The servers that do not lead."""
    leader = ensemble.leader
    return [server for server in ensemble.servers if server is not leader]


@contextlib.contextmanager
def working(*servers: ZooKeeperServer) -> Iterator[Processor]:
    """A processor that knows these servers alone, at work, with nothing left to write.

    Behind a write that is not answered no ping is, so that the client would go on elsewhere.
    """
    connect = ",".join(server.connect for server in servers)
    one = Processor("one", settings(connect, session_ms=4000), ROOT)
    try:
        until(lambda: shared([one]), lambda: story([one]))
        until(lambda: len(one.tree.readings().task_hosts) == one.tasks, one.tree.readings)
        yield one
    finally:
        one.close()


def registration_of(processor: Processor) -> str:
    """Its node."""
    state = processor.state
    assert state is not None
    assert state.sequence is not None
    return f"{ROOT}/{nodes.PROCESSORS}/{nodes.node_name(state.sequence)}"


def port_of(processor: Processor) -> int:
    """Return the port of the processor's server; 0: it has none."""
    session: Any = processor.tree._session
    connection = session.client._connection._socket
    with contextlib.suppress(AttributeError, OSError):
        port: int = connection.getpeername()[1]
        return port
    return 0


def test_a_lease_ends_before_the_leader_ends_its_session(
    ensemble: Ensemble, client: KazooClient
) -> None:
    """Safety C1: the server would go on to answer reads, and its client knows no other one."""
    lonely, _ = followers(ensemble)
    with working(lonely) as one:
        lease, registration = one.work.lease, registration_of(one)
        assert lease is not None
        ensemble.cut_off(lonely)
        until(lambda: client.exists(registration) is None, lambda: story([one]))
        assert lease.deadline_ms < boot_ms()
    assert one.ended is not None  # though the server answers no close


def test_a_processor_goes_on_at_a_server_that_reaches_the_leader(
    ensemble: Ensemble, client: KazooClient
) -> None:
    """Within its session: nothing stops, and the lease lasts."""
    with working(*followers(ensemble)) as one:
        lease, registration = one.work.lease, registration_of(one)
        assert lease is not None
        lonely = next(s for s in followers(ensemble) if s.port == port_of(one))
        cut_ms, generation = boot_ms(), one.generation
        ensemble.cut_off(lonely)
        until(
            lambda: port_of(one) not in {0, lonely.port} and lease.deadline_ms > cut_ms + 8000,
            lambda: story([one]),
        )
        assert client.exists(registration) is not None
        assert (one.generation, one.work.lease) == (generation, lease)
