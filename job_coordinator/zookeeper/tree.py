"""ZooKeeperTree: the nodes of one job, as the events and records of a standalone processor.

Reads, and writes of records, run in one thread, in their order. For the machine, each is done
within one state of the connection or not at all. The machine looks for what a lost connection may
have lost, and writes it again. So every write may happen twice, and the second one changes nothing.
"""

import contextlib
import logging
import queue
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from kazoo.exceptions import (
    ConnectionClosedError,
    ConnectionLoss,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    SessionExpiredError,
    SessionMovedError,
)

from homeport.config.errors import ConfigError, HomeportError, UnavailableError, WireError
from homeport.config.settings.standalone_section import StandaloneConfig
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import JobModel
from homeport.job_coordinator.standalone import nodes, protocol
from homeport.job_coordinator.standalone.plan import Plan, Registration
from homeport.job_coordinator.zookeeper.client import credentials_of, no_right
from homeport.job_coordinator.zookeeper.job_nodes import (
    answers_of,
    is_there,
    make_nodes,
    values_below,
    values_of,
)
from homeport.job_coordinator.zookeeper.session import Connection, Session
from homeport.job_coordinator.zookeeper.version_nodes import VersionNodes

_LOG = logging.getLogger(__name__)

_AWAY = (ConnectionLoss, SessionExpiredError, ConnectionClosedError, SessionMovedError)


class Sink(Protocol):
    """Takes what a tree has for the coordination; other threads call it."""

    def event(self, connection: Connection, event: protocol.Event) -> None:
        """Take an event from that state of the connection."""

    def confirmed(self, incarnation: Incarnation, *, is_newest: bool) -> None:
        """Take the answer whether the incarnation may go on (safety I3)."""

    def broken(self, cause: str) -> None:
        """Take the one line with the cause why the tree cannot go on."""


@dataclass(frozen=True, slots=True)
class Readings:
    """The facts for a computation.

    ``version``: the newest one, read first. Shapes: ``task_hosts`` {task: location}; ``fenced``
    {member of that version: the generation in which it last reported that it fenced its list}.
    """

    version: int
    registrations: tuple[Registration, ...]
    task_hosts: Mapping[TaskName, Host]
    fenced: Mapping[ProcessorId, int]


class ZooKeeperTree:
    """The tree of one processor. Call ``begin`` once, and ``close`` in any case.

    ``root``: the job's node; its parents are made too.

    ConfigError: a secret or a file is not where its key names it.

    ``url``: where the processor answers HTTP, set before it registers; empty: nowhere.
    """

    def __init__(self, settings: StandaloneConfig, root: str) -> None:
        self.url = ""
        self._settings = settings
        self._credentials = credentials_of(settings.access)
        self._root = root
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="zookeeper", daemon=True)
        self._lock = threading.Lock()
        self._plans: dict[int, Plan] = {}
        self._members: dict[str, Registration] = {}
        self._joined: dict[tuple[int, str], bytes] = {}
        self._registered_in: int | None = None
        self._sink: Sink | None = None
        self._session: Session | None = None

    # --- for the coordination

    def begin(self, sink: Sink) -> None:
        """Begin to connect; ``sink`` gets all events from now on."""
        self._sink = sink
        self._session = self._new_session(sink)
        self._thread.start()

    def write(self, record: protocol.Record) -> None:
        """Write the record, after all earlier ones."""
        self._tasks.put(partial(self._in_connection, partial(self._write, record)))

    def confirm(self, incarnation: Incarnation) -> None:
        """Report in the tree that the incarnation has fenced its list, if the newest plan has it.

        The sink gets no answer if the connection is lost.
        """
        self._tasks.put(partial(self._in_connection, partial(self._confirm, incarnation)))

    def renew(self) -> None:
        """Close the session and begin a new one."""
        self._tasks.put(self._renew)

    def model(self, version: int) -> JobModel:
        """Return the JobModel of a version that was seen, without configuration."""
        with self._lock:
            return self._plans[version].model

    @property
    def name(self) -> str:
        """A name for errors."""
        return f"ZooKeeper at {self._settings.connect}"

    @property
    def last_fault(self) -> str:
        """The last fault of the connection; "": there is none."""
        return "" if self._session is None else self._session.last_fault

    @property
    def session_timeout_ms(self) -> int:
        """How long ZooKeeper keeps a silent session."""
        session = self._session
        return self._settings.session_timeout_ms if session is None else session.timeout_ms

    def readings(self) -> Readings:
        """Return the facts for a computation; a server that is behind the others catches up first.

        UnavailableError: ZooKeeper does not answer.
        WireError: a node has a value that Homeport does not write.
        """
        try:
            self._client.sync(self._path(nodes.JOB_MODELS))
            version, _ = self._versions.newest()
            registrations = self._registrations()
            hosts = values_below(self._client, self._path(nodes.LOCALITY))
            plan = self._plan(version) if version else None
            members = () if plan is None else plan.members
            ids = {nodes.escaped(member.processor_id): member.processor_id for member in members}
            found = values_of(self._client, self._path(nodes.FENCED), ids)
        except _AWAY as error:
            raise UnavailableError(f"{self.name}: {error!r}") from None
        except NoAuthError:
            raise HomeportError(no_right(self._settings, self._root)) from None
        tasks = {TaskName(name): data for name, data in hosts.items()}
        return Readings(
            version,
            registrations,
            {task: nodes.decode_location(task, data) for task, data in tasks.items()},
            {ids[n]: nodes.decode_number(f"{nodes.FENCED}/{n}", data) for n, data in found.items()},
        )

    def close(self) -> None:
        """Write the remaining records, if ZooKeeper answers, and end the session."""
        session = self._session
        if session is None:
            return
        if session.connection.is_up:
            self._tasks.put(None)
            self._thread.join(self.session_timeout_ms / 1000)
        session.close()
        self._tasks.put(None)
        self._thread.join()

    # --- the thread

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()

    def _in_connection(self, act: Callable[[Connection], None]) -> None:
        sink, session = self._parts()
        connection = session.connection
        if not connection.is_up:
            return
        try:
            act(connection)
        except _AWAY as error:
            _LOG.info("the connection to ZooKeeper is lost: %r", error)
        except NoAuthError:
            sink.broken(no_right(self._settings, self._root))
        except ConfigError as error:
            sink.broken(str(error))
        except WireError as error:
            sink.broken(f"{self.name}, {self._root}: {error}")
        except Exception as error:  # noqa: BLE001 - else the thread would end unnoticed
            sink.broken(f"{self.name}, {self._root}: {error!r}")

    def _parts(self) -> tuple[Sink, Session]:
        if self._sink is None or self._session is None:
            raise RuntimeError("the tree has not begun")
        return self._sink, self._session

    def _new_session(self, sink: Sink) -> Session:
        session = Session(self._settings, self._credentials, self._on_connection, sink.broken)
        session.begin()
        return session

    def _renew(self) -> None:
        sink, session = self._parts()
        try:
            session.close()
            self._session = self._new_session(sink)
        except Exception as error:  # noqa: BLE001 - as above
            sink.broken(f"{self.name}: no new session can begin: {error!r}")

    def _on_connection(self, connection: Connection, event: protocol.Event) -> None:
        """Pass the event on; read all nodes if the connection is up."""
        if isinstance(event, protocol.SessionBegun):
            # before the event, which may lead to a registration
            self._tasks.put(partial(self._in_connection, self._make_nodes))
        if self._sink is not None:
            self._sink.event(connection, event)
        if isinstance(event, protocol.SessionBegun | protocol.Reconnected):
            self._look_at_plan()
            self._look_at_processors()

    def _put(self, connection: Connection, event: protocol.Event) -> None:
        sink, _ = self._parts()
        sink.event(connection, event)

    # --- reading

    def _path(self, *names: str) -> str:
        return "/".join((self._root, *names))

    @property
    def _client(self) -> Any:  # noqa: ANN401 - kazoo has no types
        return self._parts()[1].client

    @property
    def _versions(self) -> VersionNodes:
        return VersionNodes(self._client, self._root)

    def _look_at_processors(self, *_event: object) -> None:
        self._tasks.put(partial(self._in_connection, self._see_processors))

    def _look_at_plan(self, *_event: object) -> None:  # and at its barrier
        self._tasks.put(partial(self._in_connection, self._see_plan))

    def _see_processors(self, connection: Connection) -> None:
        found = self._registrations(self._look_at_processors)
        self._put(connection, protocol.ProcessorsSeen(found))

    def _see_plan(self, connection: Connection) -> None:
        version = self._versions.newest(self._look_at_plan)[0]
        if version == 0:
            return
        plan = self._plan(version)
        if plan is None:
            return  # it was replaced ten times: an event of the newest version is on its way
        self._put(connection, protocol.PlanSeen(plan))
        seen = self._barrier(version)
        if seen is not None:
            self._put(connection, seen)

    def _registrations(self, watch: Callable[..., None] | None = None) -> tuple[Registration, ...]:
        client = self._client
        names = client.get_children(self._path(nodes.PROCESSORS), watch=watch)
        found = {}
        for name in names:
            known = self._members.get(name)
            if known is None:
                with contextlib.suppress(NoNodeError):
                    data, _ = client.get(self._path(nodes.PROCESSORS, name))
                    known = nodes.decode_registration(name, data)
            if known is not None:
                found[name] = known
        self._members = found
        return tuple(sorted(found.values()))

    def _plan(self, version: int) -> Plan | None:
        with self._lock:
            known = self._plans.get(version)
        if known is not None:
            return known
        try:
            plan = self._versions.read(version)
        except NoNodeError:
            return None
        with self._lock:
            self._plans[version] = plan
            for old in sorted(self._plans)[: -nodes.KEPT_VERSIONS]:
                del self._plans[old]
        return plan

    def _barrier(self, version: int) -> protocol.BarrierSeen | None:
        client, path = self._client, self._path(nodes.BARRIERS, str(version))
        try:
            data, _ = client.get(path, watch=self._look_at_plan)
            names = client.get_children(path, watch=self._look_at_plan)
        except NoNodeError:
            return None
        # A registration joins a version once, so the value of its node does not change.
        known = {n: self._joined[version, n] for n in names if (version, n) in self._joined}
        known |= values_of(client, path, [name for name in names if name not in known])
        self._joined = {(version, name): value for name, value in known.items()}
        joined = [
            (ProcessorId(nodes.unescaped(name)), nodes.decode_number(f"{path}/{name}", value))
            for name, value in known.items()
        ]
        return protocol.BarrierSeen(
            version, nodes.decode_barrier(version, data), tuple(sorted(joined))
        )

    # --- writing

    def _make_nodes(self, _connection: Connection) -> None:
        make_nodes(self._client, self._root, is_owned=self._settings.access.is_owned)

    def _write(self, record: protocol.Record, connection: Connection) -> None:
        if isinstance(record, protocol.Register):
            self._register(record, connection)
        elif isinstance(record, protocol.Deregister):
            with contextlib.suppress(NoNodeError):
                self._client.delete(self._path(nodes.PROCESSORS, nodes.node_name(record.sequence)))
        elif isinstance(record, protocol.Publish):
            if not self._versions.publish(record):
                self._put(connection, protocol.PublishRefused(record.plan.version))
        elif isinstance(record, protocol.Join):
            self._versions.join(record)
        elif isinstance(record, protocol.CloseBarrier):
            self._versions.close_barrier(record)
        else:
            self._write_locality(record)

    def _register(self, record: protocol.Register, connection: Connection) -> None:
        """Register one node for a session; find it if the answer to its creation was lost."""
        client, path = self._client, self._path(nodes.PROCESSORS)
        own = self._parts()[1].session_id
        if self._registered_in == own:  # else this session has no node yet
            for name, stat in answers_of(client.exists_async, path, client.get_children(path)):
                if stat is not None and stat.ephemeralOwner == own:
                    self._put(connection, protocol.Registered(nodes.registration_number(name)))
                    return
        self._registered_in = own
        registration = Registration(0, record.processor_id, record.location, self.url)
        data = nodes.encode_registration(registration)
        made = client.create(f"{path}/{nodes.PREFIX}", data, ephemeral=True, sequence=True)
        number = nodes.registration_number(made.rpartition("/")[2])
        self._put(connection, protocol.Registered(number))

    def _write_locality(self, record: protocol.WriteLocations) -> None:
        value = record.location.encode()
        paths = [self._path(nodes.LOCALITY, nodes.escaped(task)) for task in record.tasks]
        answers = {path: self._client.set_async(path, value) for path in paths}
        missing = [path for path, answer in answers.items() if not is_there(answer)]
        for made in [self._client.create_async(path, value) for path in missing]:
            with contextlib.suppress(NodeExistsError):  # another processor's, a moment ago
                made.get()

    def _confirm(self, incarnation: Incarnation, _connection: Connection) -> None:
        sink, _ = self._parts()
        is_newest = self._versions.confirm(incarnation, self._plan)
        sink.confirmed(incarnation, is_newest=is_newest)
