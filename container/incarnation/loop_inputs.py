"""The inputs of a loop at its start: settings, and the stores and timers of each task."""

from collections.abc import Callable
from typing import Any

from homeport.config.declarations import all_keys as keys
from homeport.config.settings.pipeline_section import PipelineConfig
from homeport.config.settings.sections import SystemConfig, repartitions
from homeport.config.settings.timers_section import TimersConfig
from homeport.container.container_job import ContainerJob
from homeport.container.kafka.purge import Purge
from homeport.container.processing.loop_dependencies import NO_PIPELINE, LoopSettings
from homeport.container.processing.task_instance import Context
from homeport.container.processing.timers import partitions_of, timers_of
from homeport.container.progress.purging import Purging
from homeport.container.reporting.work_report import WorkReport
from homeport.container.spark.faults import Named
from homeport.container.spark.prepared import MAX_ROWS_SPARK
from homeport.container.storage.container_storage import ContainerStorage
from homeport.container.storage.typed_store import TypedStore, ValueGuard
from homeport.job_coordinator.clocks import wall_ms
from homeport.job_coordinator.kafka import clients
from homeport.job_coordinator.model.ids import TaskName

MAX_ROWS = 50_000
"""Most rows of a micro-batch without Spark and without a StreamTask."""
_MAX_ROWS_STREAM = 2_000
"""Messages are handed to a StreamTask one by one: windows, commits and votes wait for a batch."""
_ROWS_PER_CALL = 32
"""Rows of a micro-batch for each concurrent call: such calls take their time."""


def contexts_of(
    job: ContainerJob,
    storage: ContainerStorage,
    report: WorkReport,
    now_ms: Callable[[], int] = wall_ms,
) -> dict[TaskName, Context]:
    """Return the context of each task: its part of every restored store, and its timers."""
    settings = TimersConfig.of(job.config)
    contexts = {}
    for task in job.tasks:
        stores = {}
        for store in job.stores:
            key_serde, msg_serde = job.serdes(store, storage.writers.get(store.name, ()))
            overlay = storage.overlay(store.name, task.task_name)
            guard = report.count(ValueGuard.of(store, task.task_name))
            stores[store.name] = TypedStore(overlay, key_serde, msg_serde, guard)
        for name, config in job.adjunct_configs.items():
            if storage.adjuncts is not None:
                entries = storage.adjuncts.entries(name, task.task_name)
                stores[name] = TypedStore(entries, *job.serdes(config))
        timers = timers_of(settings, task, stores, now_ms, job.adjunct_streams)
        partitions = partitions_of(task, job.adjunct_streams)
        metrics = report.own_metrics.of_task(task.task_name)
        contexts[task.task_name] = Context(
            task.task_name, job.config, stores, timers, partitions, metrics
        )
    return contexts


def purge_of(
    job: ContainerJob,
    clock: Callable[[], float],
    connect: Callable[[SystemConfig], Any] | None = None,
) -> Purge | None:
    """Return what deletes committed records of the job's repartitions; None: it has none."""
    streams = [own.stream for own in repartitions(job.config)]
    if not streams:
        return None
    interval_s = keys.TASK_REPARTITION_PURGE_MS.read(job.config) / 1000
    purging = Purging(streams, interval_s, clock())
    return Purge(job.transaction_system, purging, clock, connect or clients.admin)


def loop_settings(job: ContainerJob, *, is_stream_task: bool) -> LoopSettings:
    """Return the settings of the container's loop, which do not change."""
    task, pipeline = job.task, PipelineConfig.of(job.config)
    max_rows = _MAX_ROWS_STREAM if is_stream_task else MAX_ROWS
    if job.records.max_concurrency > 1:
        max_rows = min(max_rows, _ROWS_PER_CALL * job.records.max_concurrency)
    return LoopSettings(
        max_rows=MAX_ROWS_SPARK if task.has_pipeline else max_rows,
        grouper=job.job.ssp_grouper_factory,
        checkpoint_topic=task.checkpoint_topic if task.checkpoint_enabled else None,
        has_windows=is_stream_task,
        overlaps=True,
        pipeline=NO_PIPELINE if pipeline is None else Named(pipeline.key, pipeline.value),
    )
