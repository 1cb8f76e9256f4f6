"""ZooKeeper for the tests of standalone processors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from zookeeper_server import ZooKeeperServer, zookeeper_server


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """A server of one module's tests; one that stops it starts it again."""
    with zookeeper_server(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server
