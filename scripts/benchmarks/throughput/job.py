"""Runs a container's loop over an input that is there already; prints JSON.

As ``benchmarks.commit.job``, with a Spark where there is a pipeline.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.bed import scratch
from benchmarks.commit.job import Run, Watch, topic
from benchmarks.commit.tasks import STORE
from benchmarks.processes import tree_cpu_s
from benchmarks.throughput.tasks import SCHEMA, Counts, ParsedCounts, Sums
from benchmarks.throughput.work import PARTITIONS
from homeport.config.config import Config
from homeport.config.system_stream import SystemStream
from homeport.container.api import BatchTask, StreamTask
from homeport.container.container_job import ContainerJob
from homeport.container.host.stop_flag import StopFlag
from homeport.container.incarnation.stream_container import spare_collections
from homeport.container.processing.loop_dependencies import Pipeline
from homeport.container.processing.records import use_arrow_once
from homeport.container.spark.prepared import PipelineSettings, start_pipeline
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import NOTHING
from homeport.job_coordinator.model.ids import ProcessorId

_ROCKSDB_MB = 64
KINDS: Mapping[str, type[BatchTask | StreamTask]] = {
    "stream": Sums,
    "batch": ParsedCounts,
    "pipeline": Counts,
    "typed": Counts,
}


def job_of(servers: str, name: str, given: str, kind: str) -> ContainerJob:
    """One container that has all partitions of the topic ``given``."""
    stream = f"systems.kafka.streams.{given}"
    own = {
        "stream": {f"{stream}.samza.msg.serde": "json"},
        "pipeline": {"task.pipeline.class": "benchmarks.throughput.tasks:parse"},
        "typed": {
            "task.pipeline.class": "benchmarks.throughput.tasks:keep",
            f"{stream}.samza.msg.serde": "numbers",
            "serializers.registry.numbers.class": "json",
            "serializers.registry.numbers.schema": SCHEMA,
        },
    }
    config = Config(
        {
            "job.name": name,
            "job.default.system": "kafka",
            "task.class": f"benchmarks.throughput.tasks:{KINDS[kind].__name__}",
            "task.inputs": f"kafka.{given}",
            "systems.kafka.consumer.bootstrap.servers": servers,
            "systems.kafka.samza.offset.default": "oldest",
            f"stores.{STORE}.factory": "rocksdb",
            f"stores.{STORE}.changelog": f"kafka.{topic(name, STORE)}",
            f"stores.{STORE}.key.serde": "bytes",
            f"stores.{STORE}.msg.serde": "long",
            **own.get(kind, {}),
        }
    )
    inputs = {SystemStream("kafka", given): PARTITIONS}
    return ContainerJob.of(calculate_job_model(config, inputs, NOTHING), ProcessorId("0"))


def _now() -> tuple[float, float]:
    return time.perf_counter(), tree_cpu_s(os.getpid())


@contextmanager
def with_spark(
    job: ContainerJob, task_class: type[BatchTask | StreamTask], folder: Path, stop: StopFlag
) -> Iterator[tuple[Run, Pipeline | None]]:
    """Prepare a container of ``job`` in this process, with a Spark where it has a pipeline."""
    settings = PipelineSettings.of(job.config, folder / "spark")
    spark = None if settings is None else start_pipeline(settings)
    try:
        run = Run(job, task_class, folder, _ROCKSDB_MB)
        yield run, None if spark is None else spark.pipeline(stop.check)
    finally:
        if spark is not None:
            spark.stop()


def main() -> None:
    """``SERVERS NAME INPUT RECORDS KIND``: the input has so many records."""
    servers, name, given, records, kind = sys.argv[1:]
    stop, job = StopFlag(), job_of(servers, name, given, kind)
    watch = Watch(stop, int(records))
    with scratch() as folder, with_spark(job, KINDS[kind], folder, stop) as (run, pipeline):
        positions = run.positions()
        use_arrow_once()  # as a container does before its permit
        spare_collections()
        began, cpu_s = _now()
        run.run(positions, stop, watch.event, pipeline)
        s, ended_cpu_s = _now()
        print(json.dumps({"s": s - began, "cpu_s": ended_cpu_s - cpu_s}), flush=True)


if __name__ == "__main__":
    main()
