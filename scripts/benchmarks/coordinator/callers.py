"""Many HTTP clients at once in one process: they read bytes and look at nothing else."""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

_BUFFER_BYTES = 1 << 20
_LIMIT_S = 120.0
_OK = b" 200 "


@dataclass(slots=True)
class _Caller:
    connection: socket.socket
    request: bytes
    began: float
    received: int = 0
    status: bytes = b""


@dataclass
class Calls:
    """What came of the calls. Units: seconds from the call to its last byte, bytes with headers."""

    seconds: list[float] = field(default_factory=list)
    received: int = 0
    failed: int = 0
    wall_s: float = 0.0

    def quantile(self, part: float) -> float:
        """The time within which that part of the calls that were served ended."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else float("nan")


def call_at_once(port: int, requests: Sequence[bytes]) -> Calls:
    """All requests are sent at the same time, each on a connection of its own, and read to the end.

    Each must ask for the connection to be closed after it. Those that have not ended after two
    minutes have failed.
    """
    calls, buffer = Calls(), bytearray(_BUFFER_BYTES)
    began = time.perf_counter()
    with selectors.DefaultSelector() as selector:
        for request in requests:
            connection = socket.socket()
            connection.setblocking(False)  # noqa: FBT003 - the standard library's signature
            connection.connect_ex(("127.0.0.1", port))
            caller = _Caller(connection, request, time.perf_counter())
            selector.register(connection, selectors.EVENT_WRITE, caller)
        while selector.get_map() and time.perf_counter() - began < _LIMIT_S:
            for key, _ in selector.select(1.0):
                _go_on(selector, key.data, buffer, calls)
        for key in list(selector.get_map().values()):
            calls.failed += 1
            key.data.connection.close()
    calls.wall_s = time.perf_counter() - began
    return calls


def _go_on(
    selector: selectors.BaseSelector, caller: _Caller, buffer: bytearray, calls: Calls
) -> None:
    connection = caller.connection
    try:
        if caller.request:
            connection.sendall(caller.request)
            caller.request = b""
            selector.modify(connection, selectors.EVENT_READ, caller)
            return
        size = connection.recv_into(buffer)
    except OSError:
        size = 0
    if not caller.received:
        caller.status = bytes(buffer[:15]) if size else b""
    caller.received += size
    if size:
        return
    selector.unregister(connection)
    connection.close()
    if _OK in caller.status:
        calls.seconds.append(time.perf_counter() - caller.began)
        calls.received += caller.received
    else:
        calls.failed += 1


def hold_at_once(port: int, requests: Sequence[bytes]) -> None:
    """All requests have been answered in their first bytes, which is all that anybody has read."""
    with contextlib.ExitStack() as stack:
        connections = []
        for request in requests:
            address = ("127.0.0.1", port)
            connection = stack.enter_context(socket.create_connection(address, timeout=_LIMIT_S))
            connection.sendall(request)
            connections.append(connection)
        for connection in connections:
            connection.recv(len(_OK))
