"""Tests that kill, pause or restart parts of their cluster: it is theirs alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from clusters_under_test import LocalUnderTest


@pytest.fixture(scope="session")
def cluster(
    running_cluster: Callable[..., AbstractContextManager[LocalUnderTest]],
) -> Iterator[LocalUnderTest]:
    """Three nodes and Kafka; each test leaves all of them running."""
    with running_cluster("disturbed", 3, keeps_containers=False) as started:
        yield started
