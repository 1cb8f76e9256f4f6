"""The thread of a tree, before it comes to ZooKeeper."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kazoo.exceptions import ConnectionLoss, NoAuthError

from homeport.config.errors import ConfigError, WireError
from homeport.config.settings.standalone_section import StandaloneConfig
from homeport.job_coordinator.standalone.protocol import Event
from homeport.job_coordinator.zookeeper.session import Connection
from homeport.job_coordinator.zookeeper.tree import ZooKeeperTree

SETTINGS = StandaloneConfig("a:1", "/homeport", 1000, 1000, 1000, 0, 8080)


class Broken:
    """Keeps the lines that say why there is no going on."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def event(self, connection: Connection, event: Event) -> None:
        """Nothing is seen."""
        raise AssertionError((connection, event))

    def confirmed(self, incarnation: object, *, is_newest: bool) -> None:
        """Nothing is confirmed."""
        raise AssertionError((incarnation, is_newest))

    def broken(self, cause: str) -> None:
        """The line."""
        self.lines.append(cause)


@pytest.mark.parametrize(
    ("error", "lines"),
    [
        (ConnectionLoss(), []),
        (
            NoAuthError(),
            [
                (
                    "ZooKeeper at a:1 gives a client that shows nothing no right on /homeport/j, "
                    "or on a node above it: show the user or certificate that has made these "
                    "nodes, or have its owner set their ACL"
                )
            ],
        ),
        (ConfigError("k", None, "r", "do"), ["k is missing: r; do"]),
        (WireError("no plan"), ["ZooKeeper at a:1, /homeport/j: no plan"]),
        (KeyError("x"), ["ZooKeeper at a:1, /homeport/j: KeyError('x')"]),
    ],
    ids=lambda given: type(given).__name__,
)
def test_an_error_of_an_access_is_reported_and_never_ends_the_thread(
    error: Exception, lines: list[str]
) -> None:
    """A lost connection is looked after; whatever else it is, the processor ends with its line."""

    def access(_connection: Connection) -> None:
        raise error

    tree, sink = ZooKeeperTree(SETTINGS, "/homeport/j"), Broken()
    tree._sink = sink
    session: Any = SimpleNamespace(connection=Connection(is_up=True))
    tree._session = session
    tree._in_connection(access)
    assert sink.lines == lines


def test_a_session_that_cannot_be_renewed_is_reported_and_never_ends_the_thread() -> None:
    """The processor would wait for its new session without an end."""

    def close() -> None:
        raise OSError(24, "Too many open files")

    tree, sink = ZooKeeperTree(SETTINGS, "/homeport/j"), Broken()
    tree._sink = sink
    session: Any = SimpleNamespace(close=close)
    tree._session = session
    tree._renew()
    assert sink.lines == [
        "ZooKeeper at a:1: no new session can begin: OSError(24, 'Too many open files')"
    ]
