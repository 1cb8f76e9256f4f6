"""Rows and messages as a container reads them, and stores that they fill."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from homeport.container.adjunct.extractor import Bytes
from homeport.container.adjunct.versions import Run
from homeport.container.api import BATCH_SCHEMA, IncomingMessage
from homeport.job_coordinator.model.job_model import SystemStreamPartition


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


@dataclass
class Sink:
    """Keeps what it is handed, as it came."""

    taken: list[tuple[Run, Bytes, Bytes]] = field(default_factory=list)

    def take(self, run: Run, keys: Bytes, values: Bytes) -> None:
        """As ``AdjunctSink``."""
        self.taken.append((run, list(keys), list(values)))


@dataclass
class Storage:
    """The stores of a task or container, which begin with nothing in ``reset``."""

    sinks: dict[str, Sink]
    reset: Collection[SystemStreamPartition] = ()

    def adjunct(self, store: str) -> Sink | None:
        """As ``BaseStorageManager``."""
        return self.sinks.get(store)

    def reset_partitions(self) -> Collection[SystemStreamPartition]:
        """As ``BaseStorageManager``."""
        return self.reset
