"""Sessions with ZooKeeper: a kazoo client, what befalls its connection, and the lease that it is.

A callback of kazoo's only puts what it gets into a queue. Each state of the connection has a
``Connection`` of its own: what was read or written in one that is over says nothing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from kazoo.exceptions import KazooException
from kazoo.protocol.states import KazooState, KeeperState
from kazoo.retry import KazooRetry

from homeport.config.settings.standalone_section import StandaloneConfig
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.standalone.protocol import (
    Disconnected,
    Event,
    Reconnected,
    SessionBegun,
    SessionExpired,
)
from homeport.job_coordinator.zookeeper.client import (
    REFUSALS,
    Credentials,
    Faults,
    new_client,
    refused_user,
)

_LOG = logging.getLogger(__name__)

_PARTS = 10
"""So often in a session's time it sends a question to ZooKeeper's leader.

A lease ends one such part before the session can (safety C1).
"""
_STOPPED_S = 0.1


class SessionLease:
    """Until when the work of one session may run: ms on CLOCK_BOOTTIME."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._deadline_ms = 0
        self._take: Callable[[int], None] | None = None

    @property
    def deadline_ms(self) -> int:
        """When the work must be gone."""
        with self._lock:
            return self._deadline_ms

    def renew(self, deadline_ms: int) -> None:
        """Make it last until then; it never gets shorter."""
        with self._lock:
            self._deadline_ms = max(self._deadline_ms, deadline_ms)
            if self._take is not None:
                self._take(self._deadline_ms)

    def hold(self, take: Callable[[int], None] | None) -> None:
        """Give ``take`` the deadline, now and whenever it changes; None: no callback."""
        with self._lock:
            self._take = take
            if take is not None:
                take(self._deadline_ms)


@dataclass(frozen=True, eq=False)
class Connection:
    """One state of the connection, between two changes; equal to itself alone."""

    is_up: bool = False
    lease: SessionLease = field(default_factory=SessionLease)


Put = Callable[[Connection, Event], None]


class Session:
    """Sessions of one client, one after another. ``close`` in any case.

    The client is never ``read_only``: a server that has lost its quorum would answer, and renew a
    lease whose session the others may have ended (safety C1).

    Args:
        settings: servers and times. credentials: what it shows ZooKeeper.
        put: gets what befalls the connection, in its order. A session has begun when its lease has.
        broken: gets the one line that says why there is no going on.
    """

    def __init__(
        self,
        settings: StandaloneConfig,
        credentials: Credentials,
        put: Put,
        broken: Callable[[str], object],
    ) -> None:
        self._settings = settings
        self._put = put
        self._broken = broken
        self._lock = threading.Lock()
        self._connection = Connection()
        self._is_begun = False
        self._is_closed = False
        self._is_given_up = False
        self._heard_ms = 0
        self._stopped = threading.Event()
        self.timeout_ms = settings.session_timeout_ms
        self._faults = Faults()
        self.client = new_client(
            settings,
            credentials,
            self._faults,
            self._on_connection,
            timeout=settings.session_timeout_ms / 1000,
            connection_retry=KazooRetry(max_tries=-1, max_delay=1.0),
            command_retry=KazooRetry(max_tries=0),
        )
        self.client.add_listener(self._on_state)
        self._prober = threading.Thread(target=self._probe, name="session-lease", daemon=True)

    def begin(self) -> None:
        """Begin to connect, for as long as that takes."""
        self.client.start_async()
        self._prober.start()

    def close(self) -> None:
        """End the session where ZooKeeper answers, else let its time run out."""
        with self._lock:
            self._is_closed = True
            self._connection = Connection()
        self._stopped.set()
        self.client.stop()
        self.client.close()
        self._prober.join()

    @property
    def connection(self) -> Connection:
        """The present state of the connection."""
        with self._lock:
            return self._connection

    @property
    def last_fault(self) -> str:
        """What went wrong last with the connection; "": nothing."""
        return self._faults.last

    @property
    def session_id(self) -> int | None:
        """ZooKeeper's number of the session; None while there is none."""
        client_id = self.client.client_id
        return None if client_id is None else int(client_id[0])

    def _on_state(self, state: str) -> None:
        """Turn Kazoo's state of the connection into an event."""
        with self._lock:
            if self._is_closed:
                return
            was, is_begun = self._connection, self._is_begun
            event: Event
            if state == KazooState.CONNECTED:
                lease = was.lease if is_begun else SessionLease()
                self._connection, event = Connection(is_up=True, lease=lease), Reconnected()
            elif state == KazooState.SUSPENDED:
                self._connection, event = Connection(lease=was.lease), Disconnected()
            else:
                self._connection, event = Connection(), SessionExpired()
                self._is_begun = False
            if is_begun:  # else there is no session yet that has a lease
                self._put(self._connection, event)
        self._look_for_the_end()

    def _look_for_the_end(self) -> None:
        """Look for the end: Kazoo gives up for a refused user, or after its own fault."""
        state = self.client.client_state
        if state == KeeperState.AUTH_FAILED:
            self._give_up(refused_user(self._settings))
        elif state == KeeperState.CLOSED:
            servers, fault = self._settings.connect, self._faults.last
            self._give_up(f"the connection to ZooKeeper at {servers} is given up: {fault}")

    def _give_up(self, cause: str) -> None:
        with self._lock:
            is_first, self._is_given_up = not self._is_given_up, True
        self._stopped.set()
        if is_first:
            self._broken(cause)

    def _on_connection(self, begun_ms: int, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        with self._lock:
            self._heard_ms = begun_ms  # the leader heard of the session later

    def _probe(self) -> None:
        """Renew the lease by answers of ZooKeeper's leader, counted from sending (safety C1).

        A server that follows answers a read by itself, also one that is cut off from its leader,
        which ends the session meanwhile. So each question is a ``sync``, which goes to the leader.
        """
        while not self._stopped.is_set():
            connection, sent_ms = self.connection, boot_ms()
            if connection.is_up:
                try:
                    self.client.sync_async("/").get()
                except REFUSALS:
                    self._give_up(refused_user(self._settings))
                    continue
                except KazooException as error:
                    _LOG.debug("no answer of ZooKeeper's: %r", error)
                    self._stopped.wait(_STOPPED_S)
                    continue
                if self._answered(connection, sent_ms):
                    continue
            self._stopped.wait(_STOPPED_S)

    def _answered(self, connection: Connection, sent_ms: int) -> bool:
        """Renew the lease, and wait for the next question; return False for an answer of no use.

        The lease lasts from the question before. The leader counts the session's time from its next
        ping, by which the server reports the client. The earlier question is reported by now, this
        one need not be.
        """
        part_ms = self.timeout_ms // _PARTS
        with self._lock:
            if self._connection is not connection:
                return False
            connection.lease.renew(self._heard_ms + self.timeout_ms - part_ms)
            self._heard_ms = sent_ms
            if not self._is_begun:
                self._is_begun = True
                self._put(connection, SessionBegun())
        self._stopped.wait(part_ms / 1000)
        return True
