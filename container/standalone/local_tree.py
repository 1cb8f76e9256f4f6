"""LocalTree: the tree of a job with one processor, in a folder and without ZooKeeper.

The folder is the processor's own, under a lock. One file has what fencing needs: the newest version
with its plan, and the generations that have fenced. So no generation recurs, and a process that
comes back fences the one before it, as under ZooKeeper.
"""

import contextlib
import fcntl
import os
import uuid
from collections.abc import Mapping
from pathlib import Path

import msgspec

from homeport.config.errors import ConfigError, StoreError, WireError
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import JobModel
from homeport.job_coordinator.model.json_values import parse_object
from homeport.job_coordinator.model.wire_form import Long, json_text, value_of
from homeport.job_coordinator.own_folders import NotOwnError, make_own_folder, open_own_file
from homeport.job_coordinator.standalone import nodes, protocol
from homeport.job_coordinator.standalone.plan import Plan, Registration
from homeport.job_coordinator.zookeeper.session import Connection
from homeport.job_coordinator.zookeeper.tree import Readings, Sink

_YEAR_MS = 365 * 86_400_000
_FILE, _LOCK = "coordination.json", "lock"
_OPTION = "--work-dir"
"""What names the folder, for errors."""


class _Kept(msgspec.Struct, frozen=True, kw_only=True, rename={"locality_data": "localityData"}):
    """The file; ``version`` 0: there is no plan yet. Earlier releases wrote no ``id``."""

    id: str | None = None
    registrations: Long
    version: Long
    plan: bytes
    locality_data: Mapping[TaskName, Host]
    fenced: Mapping[ProcessorId, Long]


def unusable(folder: Path, reason: str | None) -> ConfigError:
    """Return the error of a work folder in which this process may not write."""
    rule = f"it must be a folder that can be written ({reason})"
    return ConfigError(_OPTION, str(folder), rule, "name another one")


class LocalTree:
    """Keeps the tree of a job of one processor in its ``folder``.

    ``begin`` once, ``close`` in any case. Each call is done at its return, in the caller's thread.
    """

    session_timeout_ms = 1000
    last_fault = ""
    url = ""
    """Where the processor answers HTTP; the coordinator stream has it, the folder does not."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock_fd: int | None = None
        self._sink: Sink | None = None
        self._connection = Connection()
        self._number = 0
        self._registration: Registration | None = None
        self._plan: Plan | None = None
        self._barrier = protocol.BarrierPhase.NEW
        self._joined: tuple[tuple[ProcessorId, int], ...] = ()
        self._hosts: dict[TaskName, Host] = {}
        self._fenced: dict[ProcessorId, int] = {}
        self.id = uuid.uuid4().hex

    @property
    def version(self) -> int:
        """The newest version; 0: there is none."""
        return 0 if self._plan is None else self._plan.version

    def go_on(self, plan: Plan) -> None:
        """Go on behind ``plan``, with the incarnations that another folder had, and write it."""
        self._plan = plan
        self._barrier, self._joined, self._fenced = protocol.BarrierPhase.NEW, (), {}
        self._save()

    @property
    def name(self) -> str:
        """What it is, for errors."""
        return str(self._folder)

    def acquire(self) -> None:
        """Take the folder for this process alone, and read it.

        ConfigError: another process has it, or it cannot be used. StoreError: its file is damaged.
        """
        try:
            make_own_folder(self._folder, below=self._folder.parent)
            fd = open_own_file(self._folder / _LOCK, os.O_RDWR)
        except (NotOwnError, OSError) as error:
            reason = error.reason if isinstance(error, NotOwnError) else error.strerror
            raise unusable(self._folder, reason) from None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            if isinstance(error, BlockingIOError):
                rule, remedy = "another process runs this job there", "stop that one"
            else:
                rule = f"its file {_LOCK} must be one that can be locked ({error.strerror})"
                remedy = "name a folder on a local disk"
            raise ConfigError(_OPTION, str(self._folder), rule, remedy) from None
        self._lock_fd = fd
        try:
            self._load()
        except StoreError:
            self.close()
            raise

    def begin(self, sink: Sink) -> None:
        """Begin the session, which lasts as long as this process."""
        self._sink = sink
        self._begin_session()

    def write(self, record: protocol.Record) -> None:
        """Write the record; the sink sees what follows from it."""
        if isinstance(record, protocol.Register):
            self._number += 1
            self._save()
            own = (record.processor_id, record.location, self.url)
            self._registration = Registration(self._number, *own)
            self._sees(protocol.Registered(self._number))
            if self._plan is not None:
                self._sees(protocol.PlanSeen(self._plan))
                self._see_barrier()
            self._sees(protocol.ProcessorsSeen((self._registration,)))
        elif isinstance(record, protocol.Deregister):
            self._registration = None
        elif isinstance(record, protocol.Publish):
            self._publish(record)
        elif isinstance(record, protocol.Join):
            self._joined = ((record.processor_id, record.sequence),)
            self._see_barrier()
        elif isinstance(record, protocol.CloseBarrier):
            self._barrier = record.phase
            self._see_barrier()
        elif isinstance(record, protocol.WriteLocations):
            self._hosts.update(dict.fromkeys(record.tasks, record.location))
            self._save()

    def _publish(self, record: protocol.Publish) -> None:
        plan = record.plan
        if any(self._fenced.get(i.processor_id) == i.epoch for i in record.unreported):
            self._sees(protocol.PublishRefused(plan.version))
            return
        self._plan = plan
        self._barrier, self._joined = protocol.BarrierPhase.NEW, ()
        members = {member.processor_id for member in plan.members}
        self._fenced = {p: generation for p, generation in self._fenced.items() if p in members}
        self._save()
        self._sees(protocol.PlanSeen(plan))
        self._see_barrier()

    def confirm(self, incarnation: Incarnation) -> None:
        """Record that it has fenced its list, if the plan has its generation."""
        members = () if self._plan is None else self._plan.members
        is_newest = incarnation in {member.incarnation for member in members}
        if is_newest:
            self._fenced[incarnation.processor_id] = incarnation.epoch
            self._save()
        if self._sink is not None:
            self._sink.confirmed(incarnation, is_newest=is_newest)

    def renew(self) -> None:
        """Begin a new session."""
        self._registration = None
        self._begin_session()

    def model(self, version: int) -> JobModel:
        """Return the JobModel of the version, which is the newest."""
        if self._plan is None or self._plan.version != version:
            raise StoreError(f"{self._folder}: there is no version {version}")
        return self._plan.model

    def readings(self) -> Readings:
        """Return what a computation reads now."""
        there = () if self._registration is None else (self._registration,)
        return Readings(self.version, there, dict(self._hosts), dict(self._fenced))

    def close(self) -> None:
        """Free the folder."""
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None

    def _begin_session(self) -> None:
        self._connection = Connection(is_up=True)
        self._connection.lease.renew(boot_ms() + _YEAR_MS)
        self._sees(protocol.SessionBegun())

    def _sees(self, event: protocol.Event) -> None:
        if self._sink is not None:
            self._sink.event(self._connection, event)

    def _see_barrier(self) -> None:
        if self._plan is not None:
            self._sees(protocol.BarrierSeen(self._plan.version, self._barrier, self._joined))

    # --- the file

    def _load(self) -> None:
        path = self._folder / _FILE
        try:
            body = parse_object(path.read_bytes(), _FILE)
        except FileNotFoundError:
            return
        except (OSError, WireError) as error:
            raise StoreError(f"{path} cannot be read: {error}") from None
        try:
            kept = value_of(_Kept, body, _FILE)
            if kept.version:
                self._plan = nodes.decode_plan(kept.version, kept.plan, ())
        except WireError as error:
            raise StoreError(f"{path} is damaged: {error}") from None
        self._number, self.id = kept.registrations, kept.id or self.id
        self._hosts, self._fenced = dict(kept.locality_data), dict(kept.fenced)

    def _save(self) -> None:
        plan = b""
        if self._plan is not None:
            plan = nodes.encode_plan(self._plan, self._number, 1 << 30).value
        kept = _Kept(
            id=self.id,
            registrations=self._number,
            version=self.version,
            plan=plan,
            locality_data=self._hosts,
            fenced=self._fenced,
        )
        path = self._folder / _FILE
        fresh = path.with_suffix(".tmp")
        with os.fdopen(open_own_file(fresh, os.O_WRONLY | os.O_TRUNC), "wb") as file:
            file.write(json_text(kept).encode())
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(path)
        folder = os.open(self._folder, os.O_RDONLY)
        with contextlib.suppress(OSError):
            os.fsync(folder)
        os.close(folder)
