"""The tasks of one container, made from the class that the job names."""

from __future__ import annotations

from collections.abc import Callable

from homeport.container.api import BatchTask, StreamTask
from homeport.container.classes import load_serde
from homeport.container.container_job import ContainerJob
from homeport.container.processing.loop_parts import Task
from homeport.container.processing.records import BadRecords, InputMessages, PipelineMessages
from homeport.container.processing.stream_task_instance import (
    Requests,
    StreamTaskInstance,
    StreamTaskParts,
)
from homeport.container.processing.task_instance import Context, Outputs, TaskInstance
from homeport.container.serde.serdes import Serde
from homeport.job_coordinator.model.ids import TaskName


def make_tasks(
    job: ContainerJob,
    task_class: type[BatchTask | StreamTask],
    context_of: Callable[[TaskName], Context],
    outputs: Outputs,
    may_go_on: Callable[[], None],
) -> tuple[dict[TaskName, Task], Requests]:
    """Every task of the container, initialised, and what they will ask of it.

    Raises:
        TaskFailedError: one of them raised.
        ConfigError: a serde of an input cannot be used.
    """
    requests = Requests()
    names = [task.task_name for task in job.tasks]
    if issubclass(task_class, BatchTask):
        return {n: TaskInstance(task_class, context_of(n), outputs) for n in names}, requests
    parts = _parts(job, outputs, requests, may_go_on)
    return {n: StreamTaskInstance(task_class, context_of(n), parts) for n in names}, requests


def _parts(
    job: ContainerJob, outputs: Outputs, requests: Requests, may_go_on: Callable[[], None]
) -> StreamTaskParts:
    records = job.records
    if job.task.pipeline_class is not None:
        return StreamTaskParts(
            outputs, requests, PipelineMessages(), records.ignored_exceptions, may_go_on
        )
    inputs = {(s.system, s.stream) for t in job.tasks for s in t.system_stream_partitions}
    serdes = {stream: _serdes(job, *stream) for stream in sorted(inputs)}
    dead_letter = str(records.dead_letter) if records.dead_letter else None
    bad = BadRecords(outputs, dead_letter, drop=records.drop_undecodable)
    messages = InputMessages(lambda system, stream: serdes[system, stream], bad)
    return StreamTaskParts(outputs, requests, messages, records.ignored_exceptions, may_go_on)


def _serdes(job: ContainerJob, system: str, stream: str) -> tuple[Serde | None, Serde | None]:
    view = job.systems[system]
    names = {"key": view.key_serde(stream), "msg": view.msg_serde(stream)}
    of = f"systems.{system}.streams.{stream}.samza"
    key, msg = (
        None if name is None else load_serde(f"{of}.{part}.serde", name)
        for part, name in names.items()
    )
    return key, msg
