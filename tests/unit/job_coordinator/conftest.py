"""A coordinator stream for each test, an event loop for each module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from coordinator_server import Loop
from stream_in_memory import InMemoryCoordinatorStream


@pytest.fixture
def stream() -> InMemoryCoordinatorStream:
    """An empty stream."""
    return InMemoryCoordinatorStream()


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    """One running event loop for all tests here."""
    running = Loop()
    yield running
    running.close()
