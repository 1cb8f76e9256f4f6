"""A server of a small job, on an event loop of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from coordinator_server import TOKEN, Backend, Loop, Served

from homeport.job_coordinator.http.server import JobCoordinatorServer


@pytest.fixture
def served(loop: Loop) -> Iterator[Served]:
    """A server on a free port."""
    backend = Backend()
    server = JobCoordinatorServer(backend, f"{TOKEN}\n", "127.0.0.1", 0, launchers=backend)
    host, port = loop.run(server.start())
    assert host == "127.0.0.1"
    yield Served(backend, server, port)
    loop.run(server.stop())
    loop.run(server.stop())
