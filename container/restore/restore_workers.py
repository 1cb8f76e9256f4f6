"""RestoreWorkers: fills stores by worker processes, several at once.

It runs on the main thread: a worker is killed when the thread that started it ends (safety C5).
"""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Any

import msgspec

from homeport.config.config import Config
from homeport.config.errors import HomeportError, StoreError, UnavailableError
from homeport.container.host.disk_space import DiskForbiddenError, DiskFullError
from homeport.container.kafka.client_properties import HangingTransactionError, PartitionError
from homeport.container.progress.restore_schedule import FLUSH_S, WorkerLimits
from homeport.container.restore.restore_worker import STOPPED, WorkerBrief
from homeport.container.storage.store_restore import StoreRestore

_STEP_S = 0.1
GRACE_S = 5.0
"""How long workers have for their last flush when the container stops."""
COMMAND = [sys.executable, "-m", "homeport.container.restore.restore_worker"]
_READ_BYTES = 65_536
MALLOC_SETTINGS = {
    # malloc keeps freed memory tables, which saves page faults, and reuses them in its one arena.
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "MALLOC_TOP_PAD_": str(1 << 26),
}
"""Environment of a worker, added to its container's."""
_FAULTS: tuple[type[HomeportError], ...] = (
    DiskFullError,
    DiskForbiddenError,
    UnavailableError,
    HangingTransactionError,
    PartitionError,
)
_ERRORS = {fault.__name__: fault for fault in _FAULTS}


class WorkerStoreError(StoreError):
    """A worker found that a store cannot be used."""


@dataclass
class _Worker:
    restore: StoreRestore
    process: subprocess.Popen[bytes]
    output: IO[bytes]
    rest: bytes = b""
    fault: HomeportError | None = None
    peak_mb: int | None = None

    def take(self) -> bool:
        """Pass on the reports that have come; return False at their end."""
        data = os.read(self.output.fileno(), _READ_BYTES)
        lines = (self.rest + data).split(b"\n")
        self.rest = lines.pop()
        for line in lines:
            self._hear(json.loads(line))
        return bool(data)

    def ended(self) -> int:
        self.output.close()
        return self.process.wait()

    def _hear(self, fact: dict[str, Any]) -> None:
        if "records" in fact:
            self.restore.read(fact["records"], fact["bytes"], fact["last"])
        elif "flushed" in fact:
            self.restore.store.flushed_elsewhere(fact["flushed"])
        elif "merging" in fact:
            self.restore.merging(fact["merging"])
        elif "peak_mb" in fact:
            self.peak_mb = fact["peak_mb"]
        elif "error" in fact:
            self.fault = _ERRORS.get(fact["error"], WorkerStoreError)(fact["text"])


class RestoreWorkers:
    """Worker processes of one container, which has ``cores``.

    ``limits``: how many workers run at once, and the memory of each. ``pause``: waits the seconds
    given, and raises to stop. ``flush_s``: how often each worker flushes.
    """

    def __init__(
        self,
        config: Config,
        limits: WorkerLimits,
        cores: int,
        pause: Callable[[float], None],
        flush_s: float = FLUSH_S,
    ) -> None:
        self._flush_s = flush_s
        self._config = config
        self._limits = limits
        self._cores = cores
        self._pause = pause
        self.peak_mb: list[int] = []

    def run(self, restores: Sequence[StoreRestore]) -> None:
        """Restore every store by its plan; none is open here.

        A store that turns out to be damaged is restored in full; the others are not. At another
        fault, or when ``pause`` raises, the workers end. The records that they had read are then on
        the disk, and OFFSET has that.

        Raises:
            HomeportError: the first fault of a worker, in one line.
        """
        waiting = deque(restores)
        running: list[_Worker] = []
        try:
            while waiting or running:
                while waiting and len(running) < self._limits.workers:
                    running.append(self._started(waiting.popleft()))
                self._pause(0)
                for worker in _readable(running):
                    if not worker.take():
                        running.remove(worker)
                        if self._is_to_run_again(worker):
                            waiting.append(worker.restore)
        finally:
            _end(running)

    def _started(self, restore: StoreRestore) -> _Worker:
        process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **MALLOC_SETTINGS},
            # Should it outlive us by a moment, its directory is still locked.
            pass_fds=(restore.store.directory.lock_descriptor,),
        )
        if process.stdin is None or process.stdout is None:
            raise AssertionError("a worker's input and output are pipes")
        with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
            # In ASCII: a path may have bytes that are no UTF-8.
            pipe.write(json.dumps(msgspec.to_builtins(self._brief_of(restore))).encode())
        return _Worker(restore, process, process.stdout)

    def _brief_of(self, restore: StoreRestore) -> WorkerBrief:
        store, plan = restore.store, restore.plan
        return WorkerBrief(
            config=dict(self._config),
            store=store.config.name,
            system=store.changelog.system,
            topic=store.changelog.stream,
            partition=store.task.changelog_partition,
            start=plan.start,
            head=plan.head,
            path=str(store.directory.path),
            memory_mb=self._limits.worker_mb,
            cores=self._cores,
            flush_s=self._flush_s,
            parent=os.getpid(),
        )

    def _is_to_run_again(self, worker: _Worker) -> bool:
        code = worker.ended()
        name = worker.restore.store.name
        if isinstance(worker.fault, WorkerStoreError):
            if worker.restore.again_from_nothing(worker.fault):
                return True
            raise worker.fault
        if worker.fault is not None:
            raise worker.fault
        if code in {STOPPED, -signal.SIGTERM}:
            # SIGTERM went to the whole process group, or to this worker alone.
            self._pause(GRACE_S)
            raise StoreError(f"the restore of store {name} was ended by SIGTERM: start again")
        if code != 0:
            raise StoreError(
                f"the worker that restored store {name} {_end_of(code)}; what it had flushed "
                "stays, and the next start goes on from there"
            )
        if worker.peak_mb is not None:
            self.peak_mb.append(worker.peak_mb)
        return False


def _end_of(code: int) -> str:
    if code == -signal.SIGKILL:
        return "was killed, by hand or for want of memory"
    if code < 0:
        return f"was ended by signal {-code}"
    return f"ended with exit code {code}, for a cause logged above"


def _readable(workers: Sequence[_Worker]) -> list[_Worker]:
    with selectors.DefaultSelector() as selector:
        for worker in workers:
            selector.register(worker.output, selectors.EVENT_READ, worker)
        return [key.data for key, _ in selector.select(_STEP_S)]


def _end(workers: Sequence[_Worker]) -> None:
    """End all of ``workers``; each that ends in time flushes the records that it had read."""
    for worker in workers:
        worker.process.send_signal(signal.SIGTERM)
    for worker in workers:
        try:
            worker.process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            worker.process.kill()
        while worker.take():
            pass
        worker.ended()
