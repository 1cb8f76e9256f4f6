"""Sessions with ZooKeeper: a kazoo client, the events of its connection, and the session's lease.

A callback from kazoo only puts what it gets into a queue. Each state of the connection has its own
``Connection`` object: a read or write in a state that is over proves nothing.
"""

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
"""Requests to ZooKeeper's leader in the time-out of a session.

A lease ends one such part before the session can (safety C1).
"""
_STOPPED_S = 0.1


class SessionLease:
    """The deadline of one session's work, in ms on CLOCK_BOOTTIME."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._deadline_ms = 0
        self._take: Callable[[int], None] | None = None

    @property
    def deadline_ms(self) -> int:
        """The time at which the work must have ended."""
        with self._lock:
            return self._deadline_ms

    def renew(self, deadline_ms: int) -> None:
        """Make the lease last until ``deadline_ms``; never make it shorter."""
        with self._lock:
            self._deadline_ms = max(self._deadline_ms, deadline_ms)
            if self._take is not None:
                self._take(self._deadline_ms)

    def hold(self, take: Callable[[int], None] | None) -> None:
        """Call ``take`` with the deadline, now and at each change; None: call nothing."""
        with self._lock:
            self._take = take
            if take is not None:
                take(self._deadline_ms)


@dataclass(frozen=True, eq=False)
class Connection:
    """One state of the connection, between two changes; it equals only itself."""

    is_up: bool = False
    lease: SessionLease = field(default_factory=SessionLease)


Put = Callable[[Connection, Event], None]


class Session:
    """The sessions of one client, one after another. Call ``close`` in any case.

    The client is never ``read_only``: a server that has lost its quorum would answer, and renew a
    lease whose session the other servers may have ended (safety C1).

    ``put`` takes the events of the connection, in their order. A session begins with its lease.
    ``broken`` takes the one line with the cause why the client cannot go on.
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
        """Begin to connect; try until a server answers."""
        self.client.start_async()
        self._prober.start()

    def close(self) -> None:
        """End the session if ZooKeeper answers; else its time-out ends it."""
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
        """The last fault of the connection; "": there is none."""
        return self._faults.last

    @property
    def session_id(self) -> int | None:
        """ZooKeeper's number of the session; None while there is no session."""
        client_id = self.client.client_id
        return None if client_id is None else int(client_id[0])

    def _on_state(self, state: str) -> None:
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
        """Notice that Kazoo has given up: for a refused user, or after its own fault."""
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

        A follower answers a read by itself, even while it is cut off from the leader, which ends
        the session meanwhile. So each request is a ``sync``, which goes to the leader.
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
        """Renew the lease and wait until the next request; return False for a useless answer.

        The new deadline counts from the request before this one. The leader counts the session's
        time from its next ping, with whose answer the server reports the client. The earlier
        request is reported by now; this one may not be.
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
