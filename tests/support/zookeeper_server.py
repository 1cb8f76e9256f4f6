"""A real ZooKeeper server for a test, which does not outlive it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from homeport.container.host.parent_death import die_with_parent
from local_cluster.zookeeper import ZooKeeperServer

__all__ = ["ZooKeeperServer", "zookeeper_server"]


@contextmanager
def zookeeper_server(folder: Path) -> Iterator[ZooKeeperServer]:
    """A server for a block; afterwards it is gone."""
    server = ZooKeeperServer(folder, first=partial(die_with_parent, os.getpid()))
    try:
        server.start()
        yield server
    finally:
        server.kill()
