"""A real ZooKeeper server for a test, which does not outlive it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from zookeeper_process import ZooKeeperServer

from homeport.job_coordinator.parent_death import die_with_parent

__all__ = ["ZooKeeperServer", "zookeeper_server"]


@contextmanager
def zookeeper_server(
    folder: Path, more: Sequence[str] = (), options: Sequence[str] = (), *, has_tls: bool = False
) -> Iterator[ZooKeeperServer]:
    """A server for a block; afterwards it is gone. The rest is as ``ZooKeeperServer`` has it."""
    first = partial(die_with_parent, os.getpid())
    server = ZooKeeperServer(folder, None, first, more, options, has_tls=has_tls)
    try:
        server.start()
        yield server
    finally:
        server.kill()
