"""The tasks of one container, made from the class that the job names."""

import functools
import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import TextKey
from homeport.config.settings.adjunct_section import streams_of_tasks
from homeport.config.settings.input_serdes import InputSerde, input_serdes, serde_of_columns
from homeport.config.settings.pipeline_section import has_pipeline
from homeport.config.settings.sections import TaskConfig, repartitions
from homeport.config.settings.serde_names import ConfiguredSerde, SchemaSerde
from homeport.config.system_stream import SystemStream
from homeport.container.api import BatchTask, MessageCollector, StreamTask, TaskContext
from homeport.container.classes import (
    load_columns,
    load_serde,
    load_task_class,
    require_task_class,
    with_classes,
)
from homeport.container.container_job import ContainerJob
from homeport.container.host.stop_flag import StopFlag
from homeport.container.native.column_reader import natively
from homeport.container.processing.call_watch import CallWatch
from homeport.container.processing.concurrent_calls import LoopCalls, ThreadCalls
from homeport.container.processing.concurrent_tasks import (
    AsyncStreamTask,
    Locked,
    ThreadedStreamTask,
)
from homeport.container.processing.loop_dependencies import Task
from homeport.container.processing.records import BadRecords, InputMessages, pipeline_messages
from homeport.container.processing.stream_task_instance import StreamTaskInstance, StreamTaskParts
from homeport.container.processing.task_instance import Context, Outputs, Requests, TaskInstance
from homeport.container.processing.typed_input import TypedInput, Typing
from homeport.container.serde.serdes import Serde
from homeport.container.spark.frame_columns import serdes_of_frames
from homeport.container.spark.micro_batch import SparkPipeline
from homeport.container.spark.output_rows import HEADERS, KEY, VALUE, Leaving
from homeport.job_coordinator.kafka.record_limit import producer_limit
from homeport.job_coordinator.model.ids import TaskName


def task_class_of(config: Config) -> type[BatchTask | StreamTask]:
    """Return the class of the job's tasks: its own, or ``RowSender`` for a pipeline's rows.

    Raises:
        ConfigError: there is none, or it cannot be loaded.
    """
    if Leaving.of(config) is not None:
        return RowSender
    name = require_task_class(TaskConfig.of(config).task_class)
    return load_task_class(name, streams_of_tasks(config), has_pipeline=has_pipeline(config))


def make_tasks(
    job: ContainerJob,
    task_class: type[BatchTask | StreamTask],
    context_of: Callable[[TaskName], Context],
    outputs: Outputs,
    stop: StopFlag,
    watch: CallWatch,
    calls: ThreadCalls | LoopCalls | None = None,
) -> tuple[dict[TaskName, Task], Requests]:
    """Make every task of the container; return them, and their requests to it.

    ``stop`` and ``watch``: as in ``StreamTaskParts``. ``calls``: makes calls of
    ``process``; None: each is made when its message comes.

    Raises:
        TaskFailedError: a task raised.
        ConfigError: a serde of an input cannot be used.
    """
    requests = Requests()
    names = [task.task_name for task in job.tasks]
    if issubclass(task_class, BatchTask):
        made = {n: TaskInstance(task_class, context_of(n), outputs, requests) for n in names}
        return {**made}, requests
    if calls is None:
        parts = _parts(job, outputs, requests, stop, watch)
        return {n: StreamTaskInstance(task_class, context_of(n), parts) for n in names}, requests
    guard: Callable[[Any], Any] = functools.partial(Locked, lock=threading.Lock())
    parts = _parts(job, guard(outputs), requests, stop, watch)

    def shared(name: TaskName) -> Context:
        return context_of(name).shared(guard)

    if isinstance(calls, LoopCalls):
        return {n: AsyncStreamTask(task_class, shared(n), parts, calls) for n in names}, requests
    return {n: ThreadedStreamTask(task_class, shared(n), parts, calls) for n in names}, requests


def _parts(
    job: ContainerJob, outputs: Outputs, requests: Requests, stop: StopFlag, watch: CallWatch
) -> StreamTaskParts:
    ignored = job.records.ignored_exceptions
    if job.task.has_pipeline:
        return StreamTaskParts(outputs, requests, pipeline_messages, ignored, stop, watch)
    inputs = {(s.system, s.stream) for t in job.tasks for s in t.system_stream_partitions}
    serdes = {stream: stream_serdes(job, *stream) for stream in sorted(inputs)}
    messages = InputMessages(lambda *stream: serdes[stream], bad_records(job, outputs).met)
    return StreamTaskParts(outputs, requests, messages.of, ignored, stop, watch, messages.parts)


def outputs_of(job: ContainerJob, count_of: Callable[[str, str], int]) -> Outputs:
    """Return the collector of the container's tasks, with the serdes of its streams."""
    serdes = functools.partial(stream_serdes, job)
    limits = {name: producer_limit(system) for name, system in job.systems.items()}
    default = job.job.default_system
    named = {r.name: (r.stream.system, r.stream.stream) for r in repartitions(job.config)}
    return Outputs(job.systems, job.output_systems, default, serdes, count_of, limits, named)


def typed_input(
    job: ContainerJob,
    task_class: type[BatchTask | StreamTask],
    outputs: Outputs,
    pipeline: SparkPipeline | None = None,
) -> TypedInput | None:
    """Return the maker of typed columns; None for a StreamTask, and without a schema.

    Raises:
        ConfigError: a serde cannot be loaded, or has no columns.
    """
    bad = bad_records(job, outputs)
    if pipeline is None and issubclass(task_class, StreamTask):
        return None
    inputs = with_classes(input_serdes(job.config))
    if pipeline is not None:
        serdes = serdes_of_frames(inputs, pipeline.takes)
        typings = {stream: _typing(job, item) for stream, item in serdes.items()}
        return TypedInput(typings, bad, pipeline.wanted) if typings else None
    found = serde_of_columns(inputs)
    return None if found is None else TypedInput({None: _typing(job, found)}, bad)


def _typing(job: ContainerJob, item: InputSerde) -> Typing:
    serde = item.serde
    columns = load_columns(item)
    if job.task.input_native:
        columns = natively(columns)
    return Typing(columns, serde.kind if isinstance(serde, SchemaSerde) else serde)


def bad_records(job: ContainerJob, outputs: Outputs) -> BadRecords:
    """Return the handler of input records that cannot be read."""
    dead_letter = str(job.records.dead_letter) if job.records.dead_letter else None
    return BadRecords(outputs, dead_letter, drop=job.records.drop_undecodable)


def stream_serdes(job: ContainerJob, system: str, stream: str) -> tuple[Serde | None, Serde | None]:
    """Return the serdes of the stream's keys and values; None: they stay bytes.

    Raises:
        ConfigError: a serde cannot be used.
    """
    view = job.systems[system]
    names = {
        view.key_serde_key(stream): view.key_serde(stream),
        view.msg_serde_key(stream): view.msg_serde(stream),
    }
    key, msg = (
        None if name is None else load_serde(of, name, stream) for of, name in names.items()
    )
    return key, msg


_Encode = Callable[[Any], bytes]


class RowSender(BatchTask):
    """Sends each row, in order; has no state."""

    def init(self, context: TaskContext) -> None:
        """Load the serdes of the stream ``task.pipeline.output``."""
        leaving = Leaving.of(Config(context.config))
        assert leaving is not None  # noqa: S101 - only then is this the job's task
        self._stream = str(leaving.stream)
        key_serde = None if leaving.has_plain_key else leaving.key_serde
        self._key = _encoder(keys.STREAM_KEY_SERDE, leaving.stream, key_serde)
        is_encoded = leaving.is_json or leaving.is_one_column
        msg_serde = None if is_encoded else leaving.msg_serde
        self._value = _encoder(keys.STREAM_MSG_SERDE, leaving.stream, msg_serde)

    def process_batch(self, table: pa.Table, collector: MessageCollector) -> None:
        """Send the rows of ``table``, whose columns are those of ``leaving_rows``."""
        values = encoded(table, VALUE, self._value)
        keys_ = encoded(table, KEY, self._key)
        stream, send = self._stream, collector.send
        if HEADERS not in table.column_names:
            for key, value in zip(keys_, values, strict=True):
                send(stream, value, key)
            return
        headers = table[HEADERS].to_pylist()
        for key, value, some in zip(keys_, values, headers, strict=True):
            send(stream, value, key, headers=some or None)


def _encoder(key: TextKey, stream: SystemStream, serde: ConfiguredSerde | None) -> _Encode | None:
    if serde is None:
        return None
    return load_serde(key.named(stream.system, stream.stream), serde, stream.stream).to_bytes


def encoded(table: pa.Table, column: str, encode: _Encode | None) -> list[bytes | None]:
    """Return the column as bytes; None for each row if there is no such column."""
    if column not in table.column_names:
        return [None] * table.num_rows
    values: list[Any] = table[column].to_pylist()
    if encode is None:
        return values
    return [None if value is None else encode(value) for value in values]
