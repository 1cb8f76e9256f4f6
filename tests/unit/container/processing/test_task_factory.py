"""The tasks that a container makes, which of their parts they share, and rows that leave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from homeport.config.config import Config
from homeport.container.api import (
    BATCH_SCHEMA,
    IncomingMessage,
    MessageCollector,
    StreamTask,
    TaskCoordinator,
)
from homeport.container.callables import TaskFailedError
from homeport.container.container_job import ContainerJob
from homeport.container.host.stop_flag import StopFlag, StopRequestedError
from homeport.container.processing.call_watch import CallWatch
from homeport.container.processing.loop_dependencies import Task
from homeport.container.processing.records import UndecodableError
from homeport.container.processing.task_factory import RowSender, make_tasks, task_class_of
from homeport.container.processing.task_instance import Context, Outputs, Requests
from homeport.container.progress.transaction_plan import Send
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskModel,
)

A, B = TaskName("A"), TaskName("B")
KEYS = {
    "job.name": "j",
    "job.default.system": "kafka",
    "task.class": "m:C",
    "task.inputs": "kafka.in",
    "systems.kafka.consumer.bootstrap.servers": "a:1",
    "systems.kafka.streams.in.samza.key.serde": "string",
    "systems.kafka.streams.in.samza.msg.serde": "json",
}
DROP = {"task.drop.deserialization.errors": "true"}


class _Echo(StreamTask):
    """Sends the text that its message has, and votes for the end."""

    def process(
        self, message: IncomingMessage, collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:
        collector.send("out", message.value["text"].encode())
        coordinator.shutdown()


class _Container:
    """The tasks A and B of one container, as the job's keys say."""

    def __init__(self, over: Mapping[str, str]) -> None:
        models = [
            TaskModel(name, (SystemStreamPartition("kafka", "in", i),), i)
            for i, name in enumerate((A, B))
        ]
        container = ContainerModel(ProcessorId("0"), {m.task_name: m for m in models})
        model = JobModel(Config({**KEYS, **over}), {ProcessorId("0"): container})
        job = ContainerJob.of(model, ProcessorId("0"))
        self.outputs = Outputs({"kafka"}, {"kafka"}, "kafka")
        self.stop = StopFlag()
        made = make_tasks(
            job, _Echo, lambda name: Context(name, {}, {}), self.outputs, self.stop, CallWatch(None)
        )
        self.tasks: Mapping[TaskName, Task] = made[0]
        self.requests: Requests = made[1]

    def sent(self) -> list[tuple[str, bytes | None]]:
        """Topic and value of all outputs."""
        return [(send.topic, send.value) for send in self.outputs.sends]


def _row(value: bytes) -> pa.Table:
    values: list[Any] = [A, b"k", value, "kafka", "in", 0, 0, 0, None]
    row = dict(zip(BATCH_SCHEMA.names, values, strict=True))
    return pa.Table.from_pylist([row], schema=BATCH_SCHEMA)


def test_stream_tasks_share_their_outputs_and_their_votes() -> None:
    """They get what the stream's serdes read; the container ends when all have voted."""
    container = _Container({})
    assert sorted(container.tasks) == [A, B]
    container.tasks[A].process_batch(_row(b'{"text": "1"}'))
    assert not container.requests.has_all_of(container.tasks)
    container.tasks[B].process_batch(_row(b'{"text": "2"}'))
    assert container.requests.has_all_of(container.tasks)
    assert container.sent() == [("out", b"1"), ("out", b"2")]


@pytest.mark.parametrize(
    ("over", "letters"),
    [({}, []), ({"task.dead.letter.stream": "kafka.dead"}, [("dead", b"no json")])],
)
def test_dropped_records_go_to_the_dead_letters_of_the_job(
    over: Mapping[str, str], letters: list[tuple[str, bytes]]
) -> None:
    """Where the job names no such stream, they go nowhere."""
    container = _Container({**DROP, **over})
    container.tasks[A].process_batch(_row(b"no json"))
    assert container.sent() == letters


def test_a_record_that_cannot_be_read_is_not_dropped_by_default() -> None:
    """The container fails with it."""
    with pytest.raises(UndecodableError):
        _Container({}).tasks[A].process_batch(_row(b"no json"))


def test_after_a_pipeline_its_row_is_the_value() -> None:
    """The serdes of the input are not asked."""
    container = _Container({"task.pipeline.class": "m:p"})
    container.tasks[A].process_batch(pa.table({"task": [A], "text": ["of Spark"]}))
    assert container.sent() == [("out", b"of Spark")]


def test_exceptions_are_ignored_as_the_job_says() -> None:
    """By their names; without the key the task fails."""
    no_text = _row(b"{}")
    _Container({"task.ignored.exceptions": "KeyError"}).tasks[A].process_batch(no_text)
    with pytest.raises(TaskFailedError, match="KeyError"):
        _Container({}).tasks[A].process_batch(no_text)


def test_a_stop_ends_a_batch_between_two_messages() -> None:
    """A task whose container is ordered to stop sees no further message."""
    container = _Container({})
    container.stop.set()
    with pytest.raises(StopRequestedError):
        container.tasks[A].process_batch(_row(b'{"text": "1"}'))
    assert container.sent() == []


LEAVING = {
    "job.name": "j",
    "job.default.system": "kafka",
    "systems.kafka.consumer.bootstrap.servers": "a:1",
    "task.pipeline.sql": "SELECT key FROM input",
    "task.pipeline.output": "kafka.out.of.dots",
    "serializers.registry.own.class": f"{__name__}:Text",
}
STREAM = "systems.kafka.streams.out.of.dots.samza"
HEADERS = pa.map_(pa.string(), pa.binary())


def _sent(table: pa.Table, **more: str) -> list[Send]:
    config = {**LEAVING, **{f"{STREAM}.{part}.serde": name for part, name in more.items()}}
    assert task_class_of(Config(config)) is RowSender
    task, outputs = RowSender(), Outputs({"kafka"}, {"kafka"}, None)
    task.init(Context(TaskName("Partition 0"), config, {}))
    task.process_batch(table, outputs)
    return list(outputs.take())


def _send(
    value: bytes | None, key: bytes | None, headers: list[tuple[str, bytes | None]] | None = None
) -> Send:
    return Send("out.of.dots", key, value, None, headers, "kafka")


def test_rows_leave_in_their_order() -> None:
    """A column that is not there is null for each of them; so is one that is empty."""
    values = pa.array([b"1", None, b"3"], pa.binary())
    assert _sent(pa.table({"value": values})) == [
        _send(b"1", None),
        _send(None, None),
        _send(b"3", None),
    ]
    keys = pa.array([b"a", None, b"c"], pa.binary())
    headers = pa.array([[("h", b"1"), ("h", None)], None, []], HEADERS)
    assert _sent(pa.table({"key": keys, "value": values, "headers": headers})) == [
        _send(b"1", b"a", [("h", b"1"), ("h", None)]),
        _send(None, None),
        _send(b"3", b"c"),
    ]


def test_serdes_of_the_stream_make_what_is_no_bytes() -> None:
    """Keys of another type; a value is a struct where no column leaves as it is."""
    table = pa.table({"key": [1, None], "value": [b"x", b"y"]})
    assert _sent(table, key="integer") == [_send(b"x", b"\0\0\0\1"), _send(b"y", None)]
    rows = pa.table({"value": [{"n": 1}, {"n": None}]})
    assert _sent(rows, msg="own") == [_send(b"{'n': 1}", None), _send(b"{'n': None}", None)]


class Text:
    """A serde of a job's own."""

    def to_bytes(self, value: object) -> bytes:
        """Its text."""
        return str(value).encode()

    def from_bytes(self, data: bytes) -> str:
        """The text."""
        return data.decode()
