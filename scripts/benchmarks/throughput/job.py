"""Runs a container's loop over an input that is there already; prints JSON.

As ``benchmarks.commit.job``, with a Spark where there is a pipeline.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from benchmarks.bed import scratch
from benchmarks.commit.job import Run, Watch, topic
from benchmarks.commit.tasks import STORE
from benchmarks.cpu_time import tree_cpu_s
from benchmarks.jobs import config_of, container_of, store_keys
from benchmarks.report import Spent
from benchmarks.throughput.functions import task_class
from benchmarks.throughput.tasks import SCHEMA, Counts, ParsedCounts, Sent, Sums, TypedCounts
from benchmarks.throughput.work import PARTITIONS
from homeport import BatchTask, StreamTask
from homeport.container.container_job import ContainerJob
from homeport.container.host.late_pandas import without_pandas
from homeport.container.host.stop_flag import StopFlag
from homeport.container.incarnation.stream_container import spare_collections
from homeport.container.processing.loop_dependencies import Pipeline
from homeport.container.spark.prepared import PipelineSettings, start_pipeline

_ROCKSDB_MB = 64
KINDS: Mapping[str, type[BatchTask | StreamTask]] = {
    "stream": Sums,
    "batch": ParsedCounts,
    "typed-batch": TypedCounts,
    "pipeline": Counts,
    "typed": Counts,
    "batch-sends": Sent,
    "each": Sums,
    "tables": Sent,
}
"""A class for each kind of work; those of ``FUNCTIONS`` are done by functions instead."""
FUNCTIONS = frozenset({"each", "tables"})


def job_of(servers: str, name: str, given: str, kind: str) -> ContainerJob:
    """One container that has all partitions of the topic ``given``."""
    stream = f"systems.kafka.streams.{given}"
    numbers = {
        f"{stream}.samza.msg.serde": "numbers",
        "serializers.registry.numbers.class": "json",
        "serializers.registry.numbers.schema": SCHEMA,
    }
    own = {
        **{name: {f"{stream}.samza.msg.serde": "json"} for name in ("stream", "each")},
        "pipeline": {"task.pipeline.class": "benchmarks.throughput.tasks:parse"},
        "typed": {"task.pipeline.class": "benchmarks.throughput.tasks:keep", **numbers},
        "typed-batch": numbers,
    }
    keys = {
        "task.class": f"benchmarks.throughput.tasks:{KINDS[kind].__name__}",
        "task.inputs": f"kafka.{given}",
        **store_keys(STORE, topic(name, STORE), "long"),
        **own.get(kind, {}),
    }
    return container_of(config_of(servers, keys, name), {given: PARTITIONS})


@contextmanager
def with_spark(
    job: ContainerJob, task_class: type[BatchTask | StreamTask], folder: Path, stop: StopFlag
) -> Iterator[tuple[Run, Pipeline | None]]:
    """Prepare a container of ``job`` in this process, with a Spark where it has a pipeline."""
    settings = PipelineSettings.of(job.config, folder / "spark")
    spark = None if settings is None else start_pipeline(settings)
    try:
        with closing(Run(job, task_class, folder, _ROCKSDB_MB)) as run:
            yield run, None if spark is None else spark.pipeline(stop.check)
    finally:
        if spark is not None:
            spark.stop()


def main() -> None:
    """``SERVERS NAME INPUT RECORDS KIND``: the input has so many records."""
    servers, name, given, records, kind = sys.argv[1:]
    stop, job = StopFlag(), job_of(servers, name, given, kind)
    watch = Watch(stop, int(records))
    made = task_class(kind, job.config, given) if kind in FUNCTIONS else KINDS[kind]
    with scratch() as folder, with_spark(job, made, folder, stop) as (run, pipeline):
        positions = run.positions()
        without_pandas()  # as a container does before its permit
        spare_collections()
        spent = Spent(tree_cpu_s)
        run.run(positions, stop, watch.event, pipeline)
        print(json.dumps(spent.found()), flush=True)


if __name__ == "__main__":
    main()
