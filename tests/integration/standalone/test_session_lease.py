"""The lease of a session behind a server that follows, and is cut off from its leader."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from processors_in_memory import DEADLINE_S, Processor, settings, shared, story, until
from zookeeper_ensemble import Ensemble, zookeeper_ensemble

from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.standalone import nodes

ROOT = "/homeport/j"
PATIENT = 1000
"""Ticks of 300 ms: so long such a server answers reads, which is longer than a test waits."""


@pytest.fixture
def ensemble(tmp_path: Path) -> Iterator[Ensemble]:
    """Servers that notice no cut in a test's time."""
    with zookeeper_ensemble(tmp_path, PATIENT) as made:
        yield made


def port_of(processor: Processor) -> int:
    """Of the server that the processor is connected to."""
    session: Any = processor.tree._session
    port: int = session.client._connection._socket.getpeername()[1]
    return port


def test_the_lease_of_a_session_ends_before_its_leader_ends_that(ensemble: Ensemble) -> None:
    """The server goes on to answer, but no write: the processor goes on at another one then."""
    followers = [server for server in ensemble.servers if server is not ensemble.leader]
    connect = ",".join(server.connect for server in followers)
    with contextlib.ExitStack() as stack:
        client = KazooClient(ensemble.leader.connect)
        client.start(DEADLINE_S)
        stack.callback(client.close)
        stack.callback(client.stop)
        one = Processor("one", settings(connect, session_ms=4000), ROOT)
        stack.callback(one.close)
        until(lambda: shared([one]), lambda: story([one]))
        lease, generation = one.work.lease, one.generation
        assert lease is not None
        assert one.state is not None
        registration = f"{ROOT}/{nodes.PROCESSORS}/{nodes.node_name(one.state.sequence or 0)}"
        (lonely,) = [server for server in followers if server.port == port_of(one)]
        ensemble.cut_off(lonely)
        until(lambda: client.exists(registration) is None, lambda: lease.deadline_ms)
        assert lease.deadline_ms < boot_ms()
        assert one.state.is_connected, one.state  # to the server, which answers
        one.work.end(StopCause.LEASE_LOST)  # as its child does then
        until(lambda: shared([one]) and one.generation > generation, lambda: story([one]))
