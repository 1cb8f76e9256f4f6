"""Rows and messages as a container reads them, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from homeport.container.api import BATCH_SCHEMA, IncomingMessage


def table(
    pairs: Sequence[tuple[bytes | None, bytes | None]],
    stream: str = "planes",
    partition: int = 0,
    first: int = 0,
    headers: Mapping[int, Sequence[tuple[str, bytes | None]]] | None = None,
) -> pa.Table:
    """A row for each pair, at offsets from ``first`` on; ``headers`` {index: those of the row}."""
    rows = [
        {
            "task": "Partition 0",
            "key": key,
            "value": value,
            "system": "kafka",
            "stream": stream,
            "partition": partition,
            "offset": first + index,
            "timestamp": 1000 * (first + index),
            "headers": (headers or {}).get(index),
        }
        for index, (key, value) in enumerate(pairs)
    ]
    return pa.Table.from_pylist(rows, schema=BATCH_SCHEMA)


def message(key: Any, value: Any, **fields: Any) -> IncomingMessage:  # noqa: ANN401 - as the class
    """One record of ``kafka.planes``."""
    whole = IncomingMessage("kafka", "planes", 0, 0, key, value, 0, {})
    return whole._replace(**fields)
