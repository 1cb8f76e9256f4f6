"""A server of a small job, on an event loop of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from coordinator_server import TOKEN, Backend, Loop, Served, serving


@pytest.fixture
def served(loop: Loop) -> Iterator[Served]:
    """A server on a free port."""
    with serving(loop, Backend(), f"{TOKEN}\n") as served:
        yield served
        loop.run(served.server.stop())
