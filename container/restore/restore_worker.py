"""The restore worker's program: fills one store from its changelog, in a process of its own.

RocksDB's binding holds Python's global lock, so only separate processes can restore in parallel.
The worker reads its brief, which has the system's passwords, from standard input. It writes its
reports to standard output, a JSON object a line, and ``restore_workers`` reads them. Every few
seconds the worker flushes the store and reports. The container then writes OFFSET, so that an
interrupted restore continues from there.

Exit codes: 0 when the store is at the head; 143 after SIGTERM, when the worker has flushed and
reported the records that it read; 1 after a failure, which it has reported. The process never
outlives its container (safety C5).
"""

import contextlib
import gc
import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

from homeport.config.config import Config
from homeport.config.declarations import all_keys
from homeport.config.errors import HomeportError
from homeport.config.settings.sections import SystemConfig
from homeport.config.settings.stores_section import StorageConfig
from homeport.container.kafka.log_reader import LogReader
from homeport.container.progress.restore_schedule import worker_memory
from homeport.container.storage.storage_engines import persistent_engine
from homeport.job_coordinator.model.wire_form import value_of
from homeport.job_coordinator.parent_death import die_with_parent

STOPPED = 143
FAILED = 1
REPORT_S = 1.0

_KIB = 1024


class _StopError(HomeportError):
    """The worker got SIGTERM."""


@dataclass(frozen=True, slots=True)
class WorkerBrief:
    """The order to one worker: read [start, head) of a changelog partition into a store.

    ``path``: the store's directory. ``memory_mb``: the limit for the whole process. ``parent``:
    process id of the container.
    """

    config: Mapping[str, str]
    store: str
    system: str
    topic: str
    partition: int
    start: int
    head: int
    path: str
    memory_mb: int
    cores: int
    flush_s: float
    parent: int


class RestoreWorker:
    """Carries out one brief."""

    def __init__(self, brief: WorkerBrief) -> None:
        """Open the store; StoreError if RocksDB cannot open it."""
        self._brief = brief
        self._memory = worker_memory(brief.memory_mb)
        config = StorageConfig.of(Config(brief.config)).stores[brief.store]
        self._store = persistent_engine(config.factory).bulk_loader(
            config, Path(brief.path), self._memory, brief.cores
        )
        self._has_to_stop = False
        self._records = 0
        self._bytes = 0
        self._last: int | None = None
        self._flushed: int | None = None
        self._reported_s = self._flushed_s = time.monotonic()

    def stop(self, _number: int, _frame: FrameType | None) -> None:
        """Handle SIGTERM: stop before the next poll."""
        self._has_to_stop = True

    def run(self) -> int:
        """Fill the store, close it and return the exit code.

        On return, all reported records are on the disk.

        Raises:
            HomeportError: the disk, the store or Kafka failed.
        """
        store, head = self._store, self._brief.head
        try:
            with contextlib.closing(self._reader()) as reader:
                self._fill(reader)
            store.write((), (), head - 1)
            self._last = head - 1
            self._flush()
            store.compact(lambda files: _send({"merging": files}))
        except _StopError:
            self._flush()
            return STOPPED
        finally:
            store.close()
        _send({"peak_mb": _peak_mb()})
        return 0

    def _reader(self) -> LogReader:
        system = SystemConfig.of(Config(self._brief.config), self._brief.system)
        queue = {"queued.max.messages.kbytes": self._memory.queue_mb * _KIB}
        return LogReader(system, self._before_poll, queue)

    def _fill(self, reader: LogReader) -> None:
        brief = self._brief
        native = all_keys.TASK_INPUT_NATIVE.read(Config(brief.config))
        span = brief.topic, brief.partition, brief.start, brief.head
        for keys, values, offsets in reader.read_pairs(*span, native=native):
            self._last = offsets[-1]
            self._store.write(keys, values, self._last)
            self._records += len(keys)
            self._bytes += sum(map(len, filter(None, keys))) + sum(map(len, filter(None, values)))

    def _before_poll(self, seconds: float) -> None:
        if self._has_to_stop:
            raise _StopError
        now_s = time.monotonic()
        if now_s - self._flushed_s >= self._brief.flush_s:
            self._flush()
            self._flushed_s = time.monotonic()
        elif now_s - self._reported_s >= REPORT_S:
            self._report_read()
        if seconds:
            time.sleep(seconds)

    def _flush(self) -> None:
        self._report_read()
        if self._last is not None and self._last != self._flushed:
            self._store.flush()
            self._flushed = self._last
            _send({"flushed": self._last})

    def _report_read(self) -> None:
        self._reported_s = time.monotonic()
        if self._last is not None:
            _send({"records": self._records, "bytes": self._bytes, "last": self._last})
            self._records = self._bytes = 0


def _peak_mb() -> int:
    """Return the peak resident memory; getrusage adds the parent's, and psutil does not have it."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (kib,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return int(kib) // _KIB


def _send(fact: Mapping[str, object]) -> None:
    sys.stdout.write(json.dumps(fact) + "\n")
    sys.stdout.flush()


def main() -> NoReturn:
    """Carry out the brief on standard input and end the process."""
    brief = value_of(WorkerBrief, json.load(sys.stdin.buffer), "a brief")
    die_with_parent(brief.parent)
    # This program creates no reference cycles, so the collector would only cost time.
    gc.disable()
    # Ctrl-C also reaches the container, which decides when this worker stops.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        worker = RestoreWorker(brief)
        signal.signal(signal.SIGTERM, worker.stop)
        code = worker.run()
    except HomeportError as error:
        _send({"error": type(error).__name__, "text": " ".join(str(error).split())})
        code = FAILED
    sys.stdout.flush()
    # The interpreter's normal exit would wait for threads of the Kafka library.
    os._exit(code)


if __name__ == "__main__":
    main()
