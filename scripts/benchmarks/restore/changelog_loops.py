"""One loop over a changelog partition of a broker, in a process of its own.

``discard`` reads with the client and settings of a restore and drops the records; ``put`` hands
each to a RocksDB with the binding's default options, its log included; ``stages`` does what a
restore worker does, with a watch on each stage.
"""

from __future__ import annotations

import contextlib
import gc
import os
import time
from collections.abc import Iterator
from pathlib import Path

from rocksdict import Options, Rdict

from benchmarks.bed import go_on
from benchmarks.jobs import config_of
from benchmarks.report import Spent
from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka.log_reader import LogReader
from homeport.container.progress.restore_schedule import WORKER_MB, worker_memory
from homeport.container.rocksdb.bulk_store import BulkStore

Found = dict[str, float]


def _begin(servers: str) -> tuple[LogReader, Spent]:
    gc.disable()
    queue = {"queued.max.messages.kbytes": worker_memory(WORKER_MB).queue_mb * 1024}
    reader = LogReader(SystemConfig.of(config_of(servers, {}), "kafka"), go_on, queue)
    return reader, Spent()


def _times(spent: Spent) -> Found:
    return {"seconds": spent.so_far()[0], "cpu_s": time.process_time()}


def discard(servers: str, topic: str, head: int, _path: str) -> Found:
    """Read and drop the records."""
    reader, spent = _begin(servers)
    for _ in reader.read(topic, 0, 0, head):
        pass
    return _times(spent)


def put(servers: str, topic: str, head: int, path: str) -> Found:
    """Put each record into a RocksDB with the options of its binding."""
    reader, spent = _begin(servers)
    options = Options(raw_mode=True)
    options.create_if_missing(True)  # noqa: FBT003 - the binding takes it by position only
    database = Rdict(path, options)
    for records in reader.read(topic, 0, 0, head):
        for record in records:
            database.put(record.key() or b"", record.value() or b"")
    database.flush(True)  # noqa: FBT003 - wait for it
    database.close()
    return _times(spent)


def stages(servers: str, topic: str, head: int, path: str) -> Found:
    """Seconds of the main thread by stage, and those of them in which it ran."""
    reader, spent = _begin(servers)
    store = BulkStore(Path(path), worker_memory(WORKER_MB), os.cpu_count() or 1)
    found: Found = dict.fromkeys(("consume", "write", "flush", "merge"), 0.0)
    ran: Found = dict.fromkeys(found, 0.0)

    @contextlib.contextmanager
    def stage(name: str) -> Iterator[None]:
        began, cpu = time.perf_counter(), time.thread_time()
        yield
        found[name] += time.perf_counter() - began
        ran[name] += time.thread_time() - cpu

    batches = reader.read_pairs(topic, 0, 0, head)
    while True:
        with stage("consume"):
            records = next(batches, None)
        if records is None:
            break
        with stage("write"):
            store.write(records.keys, records.values, records.offsets[-1])
    with stage("flush"):
        store.flush()
    with stage("merge"):
        store.compact(lambda _: None)
    store.close()
    return {**_times(spent), **found, **{f"{name}_ran": s for name, s in ran.items()}}
