"""Section bootstrap: an adjunct store from a broker, beside the restore of the same records."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.adjunct.stores import RECORDS, VALUE_BYTES
from benchmarks.bed import broker, scratch
from benchmarks.jobs import config_of, container_of
from benchmarks.report import BenchmarkError, Row, at_most, figure, progress
from benchmarks.restore.stores import TOPIC, Stores
from homeport.container.container_job import ContainerJob
from homeport.container.host.clocks import read_clocks
from homeport.container.host.executors import OneThread
from homeport.container.host.stop_flag import StopFlag
from homeport.container.incarnation.adjunct_start import adjunct_feed, adjunct_storage, streams_now
from homeport.container.incarnation.loop_inputs import loop_settings
from homeport.container.incarnation.stream_container import spare_collections
from homeport.container.kafka.input_consumer import InputConsumer, Reading
from homeport.container.kafka.log_reader import LogReader
from homeport.container.processing.records import BadRecords
from homeport.container.processing.task_instance import Outputs
from homeport.container.progress.input_position import InputPosition
from homeport.container.restore.restore_workers import MALLOC_SETTINGS
from homeport.container.storage.directory_lock import NO_WAIT
from homeport.container.storage.storage_engines import StorageEngines
from homeport.container.storage.task_store import passed
from homeport.job_coordinator.model.ids import ProcessorId

_TITLE = (
    f"bootstrap of an adjunct store of {RECORDS:,} x 200 B, distinct keys in random order, against "
    "a full restore of the same topic (3 rounds in turns, the least of each)"
)
_ROUNDS = 3
_MEMORY_BYTES = 128 << 20
_PATIENCE_S = 1.0


def rows(records: int = RECORDS, rounds: int = _ROUNDS) -> Iterator[Row]:
    """Seconds and rates of both, and how they compare."""
    os.environ.update(MALLOC_SETTINGS)
    restored, filled = [], []
    with scratch() as folder, broker() as started:
        servers = started.bootstrap_servers
        stores = Stores(servers, folder / "stores", 1, records, VALUE_BYTES)
        progress("the topic is filled")
        stores.fill_changelog()
        for number in range(1, rounds + 1):
            progress(f"round {number} of {rounds}")
            restored.append(stores.restore(1).seconds)
            filled.append(_bootstrap(servers, folder / "adjunct", records))
    yield figure("full restore, from locks to OFFSET", records / min(restored), "records/s")
    yield figure("bootstrap, from locks to the flush", records / min(filled), "records/s")
    yield at_most("bootstrap against restore", min(filled) / min(restored), 1, "x")


def _bootstrap(servers: str, folder: Path, records: int) -> float:
    """Seconds in which a store that is not there is filled and flushed, as a container does it."""
    shutil.rmtree(folder, ignore_errors=True)
    job = _job(servers)
    began = time.perf_counter()
    roots = folder / "logged", folder / "scratch"
    beside = OneThread("adjunct stores")
    storage = adjunct_storage(job, ProcessorId("0"), roots, read_clocks, beside)
    if storage is None:
        raise BenchmarkError("the job has no adjunct store")
    storage.open(StorageEngines(_MEMORY_BYTES, 1), NO_WAIT, None)
    readers = {"kafka": LogReader(job.systems["kafka"], StopFlag().pause)}
    streams = streams_now(job, storage, readers)
    ranges = streams.ranges
    starts = storage.recover(streams, lambda _, ssp: InputPosition(ranges[ssp].oldest))
    bad = BadRecords(Outputs((), (), None), None, drop=False)
    feed = adjunct_feed(job, storage, bad, {})
    offsets = {task: {p: at.offset for p, at in own.items()} for task, own in starts.items()}
    source = InputConsumer(job.systems, offsets, reading=Reading(job.task.batch_max_bytes))
    spare_collections()
    read, most = 0, loop_settings(job, is_stream_task=False).max_rows
    while read < records:
        batch = source.poll(most, _PATIENCE_S)
        if batch is not None and feed is not None:
            read += batch.table.num_rows
            feed.show(feed.split(batch)[1], passed, passed)
    storage.flush(passed, passed)
    seconds = time.perf_counter() - began
    source.close()
    storage.close()
    readers["kafka"].close()
    return seconds


def _job(servers: str) -> ContainerJob:
    keys = {
        "task.class": "benchmarks.commit.tasks:Sums",
        "task.inputs": f"kafka.in, kafka.{TOPIC}",
        f"systems.kafka.streams.{TOPIC}.samza.bootstrap": "true",
        "stores.planes.factory": "rocksdb",
        "stores.planes.key.serde": "bytes",
        "stores.planes.msg.serde": "bytes",
        "stores.planes.adstore.input": f"kafka.{TOPIC}",
    }
    return container_of(config_of(servers, keys), {"in": 1, TOPIC: 1})


SECTIONS = {"bootstrap": (_TITLE, rows)}
