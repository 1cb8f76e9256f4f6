"""A coordinator stream for each test."""

from __future__ import annotations

import pytest

from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream


@pytest.fixture
def stream() -> InMemoryCoordinatorStream:
    """An empty stream."""
    return InMemoryCoordinatorStream()
