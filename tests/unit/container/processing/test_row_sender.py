"""What leaves of rows that a pipeline has made."""

from __future__ import annotations

import pyarrow as pa

from homeport.config.config import Config
from homeport.container.api import HeaderPairs
from homeport.container.processing.task_factory import RowSender, task_class_of
from homeport.container.processing.task_instance import Context, Outputs
from homeport.container.progress.transaction_plan import Send
from homeport.job_coordinator.model.ids import TaskName

KEYS = {
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
    config = {**KEYS, **{f"{STREAM}.{part}.serde": name for part, name in more.items()}}
    assert task_class_of(Config(config)) is RowSender
    task, outputs = RowSender(), Outputs({"kafka"}, {"kafka"}, None)
    task.init(Context(TaskName("Partition 0"), config, {}))
    task.process_batch(table, outputs)
    return outputs.take()


def _send(value: bytes | None, key: bytes | None, headers: HeaderPairs | None = None) -> Send:
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
