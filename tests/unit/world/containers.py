"""Launchers and stream containers: the product's own programs, whole, in processes of the world.

A launcher runs ``launcher.main``; a child runs ``stream_container._run``, with the product's
``StreamContainer``, ``RunLoop``, ``ContainerStorage`` and Kafka code. What they are given instead
of the real thing: processes, signals and selectors; a RocksDB that is a dict with a memtable; a
task that counts records per key.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from signal import Signals
from typing import Any

import pyarrow as pa

import homeport.container.incarnation.kafka_watch  # noqa: F401 - what a child imports late is replaced too
from homeport.container.api import BatchTask, KeyValueStore, MessageCollector, TaskContext
from homeport.container.child.process import ChildProcess
from homeport.container.host.lease_memory import FD_VARIABLE, LeaseMemory, watch_lease
from homeport.container.host.orders import Orders, kept_in
from homeport.container.host.permit import Permit
from homeport.container.host.stop_flag import StopFlag
from homeport.container.incarnation import container_runner as stream_container
from homeport.container.incarnation import context, environment
from homeport.container.incarnation import stream_container as container
from homeport.container.incarnation.warm_up import GettingReady
from homeport.container.launcher import launcher, spare
from homeport.container.launcher import stop_recorder as stop_witness
from homeport.container.launcher.stop_reporter import Brief
from homeport.container.rocksdb import factory
from homeport.container.storage import container_storage as managers
from homeport.container.storage.directory import StoreDirectory
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.model.ids import Host
from tests.unit.world.am import TOKEN, Attempt, Cluster
from tests.unit.world.clock import Clock, Process, ProcessState
from tests.unit.world.yarn import YarnContainer


class WorldOrders(Orders):
    """``Orders`` on the world's clock, with the launcher's end; ``permitted`` gets each permit."""

    def __init__(self, clock: Clock, permitted: Callable[[str], None]) -> None:
        self._clock = clock
        self._permitted = permitted
        self._written = ""
        self._permits: list[str] = []
        self._is_over = False
        self.is_waiting = False
        self._stop: WorldStop = WorldStop(clock)

    def write(self, data: bytes) -> None:
        """It is on its way."""
        self._written += data.decode()

    def flush(self) -> None:
        """What was written is whole: its reader may read it."""
        *messages, self._written = self._written.split("\n")
        for message in messages:
            kept = kept_in(message)
            if kept is not None:
                self._stop.rest(kept)
            else:
                self._permitted(message)
                self._permits.append(message)

    def close(self) -> None:
        """Nothing more comes."""
        self._is_over = True

    def terminate(self) -> None:
        """As by SIGTERM."""
        self._is_over = True
        self._permits.clear()
        self._stop.set()

    def next_permit(
        self, idle: Callable[[], object] = lambda: None, idle_s: float | None = None
    ) -> str | None:
        """The next permit; None: there is no further one."""
        self.is_waiting = True
        wait_ms = None if idle_s is None else int(idle_s * 1000)
        if not self._clock.wait_for(self._has_news, wait_ms):
            idle()
            self._clock.wait_for(self._has_news)
        self.is_waiting = False
        return self._permits.pop(0) if self._permits else None

    def begin(self) -> WorldStop:
        """The stop flag of the incarnation whose permit came last."""
        self._stop, before = WorldStop(self._clock), self._stop
        if before.is_set() and not before.is_to_rest:
            self._stop.set()
        return self._stop

    def _has_news(self) -> bool:
        return bool(self._permits) or self._is_over


class Popen:
    """``subprocess.Popen`` of a child."""

    def __init__(self, process: Process, stdin: WorldOrders | None = None) -> None:
        self.process = process
        self.pid = process.number
        self.stdin = stdin

    def poll(self) -> int | None:
        """Its exit code, minus nine where it was killed; None while it lives."""
        if self.process.is_alive:
            return None
        code = self.process.exit_code
        return code if isinstance(code, int) else -int(signal.SIGKILL)

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        self.process._clock.wait_for(lambda: not self.process.is_alive)
        code = self.poll()
        if code is None:
            raise AssertionError("it was waited for")
        return code


RUNNING = ProcessState.RUNNING
_FIRST_HANDLE = 1_000_000
_BRIEF_BYTES = 1 << 20

_ROOMS = ("child", "host", "incarnation", "launcher", "processing")
"""The folders of ``container`` whose modules use the operating system of the world."""


class Count(BatchTask):
    """Counts records per key into ``counts``, and sends every count to ``out``.

    With a value of ``my.bug`` it fails, "at-start" or "at-work". Where the job has the repartition
    ``by`` it sends each record of an input there, and counts what comes from there.
    """

    def init(self, context: TaskContext) -> None:
        """Finds its store."""
        self._counts: KeyValueStore = context.store("counts")
        self._by = context.repartition("by") if "task.repartition.by" in context.config else None
        self._bug = context.config.get("my.bug")
        if self._bug == "at-start":
            raise ValueError(self._bug)

    def process_batch(self, table: pa.Table, collector: MessageCollector) -> None:
        """One count per record."""
        if self._bug == "at-work":
            raise ValueError(self._bug)
        rows = zip(*(table.column(name).to_pylist() for name in ("stream", "key")), strict=True)
        for stream, key in rows:
            if self._by not in (None, stream):
                collector.send("by", b"", key)
                continue
            count = int(self._counts.get(key) or b"0") + 1
            self._counts.put(key, str(count).encode())
            collector.send("out", str(count).encode(), key)


class Hosts:
    """The machines of a cluster: their disks, and the launchers and children that run on them."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.launchers: list[Process] = []
        self.children: list[Process] = []
        self.witnesses: list[Process] = []
        self.disks: dict[Path, dict[bytes, bytes]] = {}
        self.environments: dict[Process, Mapping[str, str]] = {}
        self.stores: dict[Process, list[ModelRocksDb]] = {}
        self.on_start: Callable[[Process], None] = lambda _: None
        """Called with every child that a launcher starts."""
        self._parents: dict[Process, Process] = {}
        self._orders: dict[Process, WorldOrders] = {}
        self.handles: dict[int, Process] = {}
        self._frozen: dict[str, int] = {}
        self._memory_fds: list[int] = []
        self._unburied: dict[ChildProcess, tuple[int, int]] = {}
        self._memories: list[LeaseMemory] = []
        self._token_file = cluster.folder / "token"
        self._token_file.write_text(TOKEN, encoding="utf-8")
        cluster.world.launch = self._launch
        cluster.world.at_end.append(self._close)
        self._install()

    @property
    def clock(self) -> Clock:
        """The world's clock."""
        return self.cluster.world.clock

    def here(self) -> Process:
        """The running process."""
        current = self.clock.current
        if current is None:
            raise AssertionError("only a process runs this")
        return current.process

    def require_alive(self) -> None:
        """The running thread ends here if its process was killed: it has no effect any more."""
        if self.clock.current is not None:
            self.clock.current.require_alive()

    def child(self, name: str) -> Process:
        """The child of that incarnation, such as "0@1"."""
        found = [p for p in self.children if p.name.startswith(f"{name} ")]
        if not found:
            raise AssertionError(f"no child {name}: {[p.name for p in self.children]}")
        return found[-1]

    def has_child(self, name: str) -> bool:
        """Whether there is, or was, a child of that incarnation."""
        return any(p.name.startswith(f"{name} ") for p in self.children)

    def launcher_of(self, child: Process) -> Process:
        """The launcher that started it."""
        return self._parents[child]

    def of(self, host: str) -> list[Process]:
        """All launchers, children and witnesses on that host that live."""
        everybody = (*self.launchers, *self.children, *self.witnesses)
        return [p for p in everybody if p.host == host and p.is_alive]

    def freeze(self, host: str) -> None:
        """The machine stands still, its clocks too, as one whose hypervisor holds it."""
        self._frozen[host] = self.clock.now_ms
        for process in self._all_on(host):
            process.stop()

    def thaw(self, host: str) -> None:
        """It goes on, and does not know that time has passed."""
        missed_ms = self.clock.now_ms - self._frozen.pop(host)
        self.clock.missed_ms[host] = self.clock.missed_ms.get(host, 0) + missed_ms
        for process in self._all_on(host):
            process.go_on()

    def _all_on(self, host: str) -> list[Process]:
        return [p for p in self.clock.processes if p.host == host and p.is_alive]

    # -- how they are started

    def _launch(self, attempt: Attempt, granted: YarnContainer) -> Process:
        host = str(granted.host)
        process = self.clock.process(f"launcher {granted.skein_id}", host)
        folder = self.cluster.folder / host
        self.environments[process] = {
            **granted.environment,
            "CONTAINER_ID": str(granted.resource_id),
            "SKEIN_CONTAINER_ID": granted.skein_id,
            "NM_HOST": host,
            "HOMEPORT_TOKEN_FILE": str(self._token_file),
            "LOG_DIRS": str(folder / "logs"),
            "LOGGED_STORE_BASE_DIR": str(folder / "state"),
        }
        self.launchers.append(process)
        if host in self._frozen:
            process.stop()
        process.spawn(launcher.main)
        del attempt
        return process

    def popen(self, arguments: Sequence[str], options: Mapping[str, Any]) -> Popen:
        """A child of the running launcher: with a parent-death signal, it dies with its thread."""
        current = self.clock.current
        if current is None:
            raise AssertionError("only a launcher starts a child")
        current.require_alive()
        if "--ready" not in arguments:
            return self._popen_witness(current.process.host, int(options["stdin"]))
        process = self.clock.process(f"spare on {current.process.host}", current.process.host)
        self.environments[process] = options["env"]
        self._parents[process] = current.process
        if options.get("preexec_fn") is not None:
            current.children.append(process)
        fd = os.dup(int(options["env"][FD_VARIABLE]))
        self._memory_fds.append(fd)
        orders = WorldOrders(self.clock, lambda permit: self._permitted(process, permit))
        self._orders[process] = orders
        process.spawn(lambda: self._run_child(orders, fd))
        return Popen(process, orders)

    def _permitted(self, process: Process, permit: str) -> None:
        """What has waited, or rests, is from now on the child of that incarnation."""
        own = Permit.from_json(permit).incarnation
        process.name = f"{own.processor_id}@{own.epoch} on {process.host}"
        for other in self.children:
            # One that stands still may wake up later; fencing is the last word on it.
            is_of_it = other.name.startswith(f"{own.processor_id}@")
            if is_of_it and other.state is RUNNING and not self._orders[other].is_waiting:
                self.cluster.world.note("overlap", process.name, other=other.name)
        if process not in self.children:
            self.children.append(process)
        self.on_start(process)

    def _popen_witness(self, host: str, stdin: int) -> Popen:
        """A stop witness, in a session of its own: it outlives the process that starts it."""
        brief = Brief.from_json(os.pread(stdin, _BRIEF_BYTES, 0))
        own = brief.incarnation
        process = self.clock.process(f"witness of {own.processor_id}@{own.epoch}", host)
        self.witnesses.append(process)
        process.spawn(lambda: 0 if stop_witness.testify(brief) else 1)
        return Popen(process)

    def _has_ended(self, handle: int, wait_ms: int) -> bool:
        return self.clock.wait_for(lambda: not self.handles[handle].is_alive, wait_ms)

    def _run_child(self, orders: WorldOrders, fd: int) -> int:
        """Mirrors ``container_runner.main``."""
        process = self.here()
        memory = watch_lease({FD_VARIABLE: str(fd)}, process.exit)
        process.on_sigterm = orders.terminate
        ready = GettingReady(stream_container._launcher(memory))
        code, cause = stream_container._run_all(orders, memory, ready, None)
        if cause is not None:
            self.clock.announce(f"error: {cause}")
        if code == stream_container.FINISHED and memory is not None:
            memory.is_finished = True
        return code

    def _environment(self, *_: object) -> environment.Environment:
        variables = self.environments[self.here()]
        return environment.Environment(
            host=Host(variables["NM_HOST"]),
            logged_store_base_dir=variables["LOGGED_STORE_BASE_DIR"],
            work_dir=self.cluster.folder / self.here().name.replace(" ", "-"),
        )

    def _am_client(self, *_: object) -> CoordinatorClient:
        return CoordinatorClient(self.environments[self.here()]["SAMZA_COORDINATOR_URL"], TOKEN)

    def _install(self) -> None:
        patch = self.cluster.world.patch
        facades = {
            "os": _Os(self),
            "signal": _Signal(self),
            "selectors": _Selectors(self),
            "socket": _Socket(),
            "subprocess": _Subprocess(self),
        }
        self.cluster.world.replace(
            {id(m): facades[m.__name__] for m in (os, signal, selectors, socket, subprocess)},
            *(f"homeport.container.{room}." for room in _ROOMS),
        )
        patch.setattr(stream_container, "_collect_later", lambda: None)
        patch.setattr(stream_container, "_end", lambda code, _: self.here().exit(code))
        patch.setattr(environment.Environment, "of", staticmethod(self._environment))
        patch.setattr(context, "am_client", self._am_client)
        patch.setattr(stop_witness, "has_ended", self._has_ended)
        patch.setattr(spare, "used_mb", lambda: 0)
        patch.setattr(container, "task_class_of", lambda _: Count)
        patch.setattr(container, "spare_collections", lambda: None)
        patch.setattr(factory, "RocksDbMemory", lambda *_: None)
        patch.setattr(factory, "RocksDbStore", lambda path, *_: ModelRocksDb(self, path))
        patch.setattr(managers, "StoreDirectory", self._store_directory)
        begin, bury, map_memory = ChildProcess.__init__, ChildProcess.close, LeaseMemory.__init__

        def mapped(memory: LeaseMemory, fd: int) -> None:
            map_memory(memory, fd)
            self._memories.append(memory)

        def begun(child: ChildProcess, *parts: Any) -> None:  # noqa: ANN401 - the constructor's own
            begin(child, *parts)
            self._unburied[child] = child.memory.fd, child._log_fd

        def buried(child: ChildProcess) -> None:
            self._unburied.pop(child, None)
            bury(child)

        patch.setattr(LeaseMemory, "__init__", mapped)
        patch.setattr(ChildProcess, "__init__", begun)
        patch.setattr(ChildProcess, "close", buried)

    def _store_directory(self, *arguments: Any, **named: Any) -> StoreDirectory:  # noqa: ANN401 - as the real one's
        directory = StoreDirectory(*arguments, **named)
        # A lock ends with its process.
        self.here().at_end.append(directory.release)
        return directory

    def _close(self) -> None:
        left = [fd for fds in self._unburied.values() for fd in fds]  # their launchers were killed
        for fd in (*self._memory_fds, *left):
            os.close(fd)
        for memory in self._memories:  # each mapping has a descriptor of its own
            memory.numbers.release()
            memory._report.release()


class ModelRocksDb:
    """``RocksDbStore`` without a WAL: what was not flushed is lost with the process."""

    def __init__(self, hosts: Hosts, path: Path) -> None:
        self.path = path
        self.flushes = 0
        marker = path / "CURRENT"
        if not marker.exists():
            marker.write_text("", encoding="ascii")
            hosts.disks[path] = {}
        self._disk = hosts.disks[path]
        self._memory: dict[bytes, bytes | None] = {}
        hosts.stores.setdefault(hosts.here(), []).append(self)
        self._clock = hosts.clock

    @property
    def position(self) -> int | None:
        """As the product's."""
        value = self._get(b"\x00homeport.position")
        return None if value is None else int(value)

    def get(self, key: bytes) -> bytes | None:
        """As the product's."""
        return self._get(key)

    def get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """As the product's."""
        return [self._get(key) for key in keys]

    def scan(
        self, start: bytes | None = None, end: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """As the product's."""
        merged = {**self._disk, **self._memory}
        for key, value in sorted(merged.items()):
            inside = (start is None or key >= start) and (end is None or key < end)
            if inside and value is not None and not key.startswith(b"\x00"):
                yield key, value

    def write(self, entries: Mapping[bytes, bytes | None], position: int | None) -> None:
        """As the product's: all of it, or nothing."""
        self._clock.point(f"write to {self.path.parent.name}")
        self._memory.update(entries)
        if position is not None:
            self._memory[b"\x00homeport.position"] = str(position).encode()

    def flush(self) -> None:
        """As the product's; RocksDB may do so by itself at any time."""
        self._clock.point(f"flush {self.path.parent.name}")
        for key, value in self._memory.items():
            if value is None:
                self._disk.pop(key, None)
            else:
                self._disk[key] = value
        self._memory.clear()
        self.flushes += 1

    def close(self) -> None:
        """As RocksDB: what is in memory is flushed first."""
        self.flush()

    def _get(self, key: bytes) -> bytes | None:
        return self._memory[key] if key in self._memory else self._disk.get(key)


class WorldStop(StopFlag):
    """``StopFlag`` on the world's clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.is_ordered = False

    def _wake(self) -> None:
        self.is_ordered = True

    def wait(self, seconds: float | None = None) -> bool:
        """Returns when set, or after ``seconds``; whether it is set."""
        limit_ms = None if seconds is None else seconds * 1000
        return self._clock.wait_for(lambda: self.is_ordered, limit_ms)


class _Facade:
    """A module as launcher and child see it: what is not here is the real module's."""

    _real: Any

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the module has
        return getattr(self._real, name)


class _Os(_Facade):
    _real = os

    @property
    def environ(self) -> Mapping[str, str]:
        return self._hosts.environments.get(self._hosts.here(), {})

    def getpid(self) -> int:
        return self._hosts.here().number

    def pidfd_open(self, pid: int) -> int:
        process = next(p for p in self._hosts.clock.processes if p.number == pid)
        handle = _FIRST_HANDLE + len(self._hosts.handles)
        self._hosts.handles[handle] = process
        return handle

    def close(self, fd: int) -> None:
        if fd < _FIRST_HANDLE:
            os.close(fd)


class _Signal(_Facade):
    _real = signal

    def signal(self, number: Signals, handler: Callable[[int, None], None]) -> None:
        self._hosts.here().on_sigterm = lambda: handler(number, None)

    def set_wakeup_fd(self, fd: int, *, warn_on_full_buffer: bool) -> None:
        del fd, warn_on_full_buffer

    def pidfd_send_signal(self, handle: int, number: Signals) -> None:
        self._hosts.require_alive()
        process = self._hosts.handles[handle]
        if not process.is_alive:
            raise ProcessLookupError
        if number is signal.SIGKILL:
            process.kill()
        else:
            process.terminate()


class _Subprocess(_Facade):
    _real = subprocess

    def Popen(self, arguments: Sequence[str], **options: Any) -> Popen:  # noqa: ANN401, N802 - the module's
        return self._hosts.popen(list(arguments), options)


class _Selectors(_Facade):
    _real = selectors

    def DefaultSelector(self) -> _Selector:  # noqa: N802 - the module's name
        return _Selector(self._hosts)


class _Key:
    def __init__(self, fileobj: object) -> None:
        self.fileobj = fileobj


class _Selector:
    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self._registered: list[Any] = []
        self._was_terminated = False

    def register(self, fileobj: object, _events: int) -> None:
        self._registered.append(fileobj)

    def unregister(self, fileobj: object) -> None:
        self._registered.remove(fileobj)

    def select(self, timeout: float | None = None) -> list[tuple[_Key, int]]:
        clock = self._hosts.clock
        clock.wait_for(
            lambda: any(map(self._is_ready, self._registered)),
            None if timeout is None else timeout * 1000,
        )
        return [(_Key(f), 1) for f in self._registered if self._is_ready(f)]

    def _is_ready(self, fileobj: Any) -> bool:  # noqa: ANN401 - a handle or one end of a pair
        if isinstance(fileobj, int):
            return not self._hosts.handles[fileobj].is_alive
        return bool(fileobj.data)


class _Socket:
    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the module has
        return getattr(socket, name)

    def socketpair(self) -> tuple[_End, _End]:
        data: list[bytes] = []
        return _End(data), _End(data)


class _End:
    def __init__(self, data: list[bytes]) -> None:
        self.data = data

    def setblocking(self, flag: bool) -> None:  # noqa: FBT001 - the library's signature
        del flag

    def fileno(self) -> int:
        return 0

    def send(self, data: bytes) -> int:
        self.data.append(data)
        return len(data)

    def recv(self, _size: int) -> bytes:
        found = b"".join(self.data)
        self.data.clear()
        return found
