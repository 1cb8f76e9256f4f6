"""RowSender: the task of a job whose pipeline's rows leave as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import TextKey
from homeport.config.settings.serde_names import ConfiguredSerde
from homeport.config.system_stream import SystemStream
from homeport.container.api import BatchTask, MessageCollector, TaskContext
from homeport.container.classes import load_serde
from homeport.container.spark.output_rows import HEADERS, KEY, VALUE, Leaving

_Encode = Callable[[Any], bytes]


class RowSender(BatchTask):
    """Sends each row, in the order of the rows; keeps nothing."""

    def init(self, context: TaskContext) -> None:
        """Takes the stream of ``task.pipeline.output`` and its serdes."""
        leaving = Leaving.of(Config(context.config))
        assert leaving is not None  # noqa: S101 - only then is this the job's task
        self._stream = str(leaving.stream)
        self._key = _encoder(keys.STREAM_KEY_SERDE, leaving.stream, leaving.key_serde)
        is_encoded = leaving.is_json or leaving.is_one_column
        msg_serde = None if is_encoded else leaving.msg_serde
        self._value = _encoder(keys.STREAM_MSG_SERDE, leaving.stream, msg_serde)

    def process_batch(self, table: pa.Table, collector: MessageCollector) -> None:
        """Sends the rows of ``table``, whose columns are those of ``leaving_rows``."""
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
    """The column as bytes; null for each row where there is no such column."""
    if column not in table.column_names:
        return [None] * table.num_rows
    values: list[Any] = table[column].to_pylist()
    if encode is None:
        return values
    return [None if value is None else encode(value) for value in values]
