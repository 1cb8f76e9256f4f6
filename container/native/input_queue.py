"""InputQueue: the records of a consumer as Arrow, without a Python object per record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from homeport.container.native.record_queue import QueueFault, QueueRun, RecordQueue, Unnamed

RECORDS = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.int64(), nullable=False),
        pa.field("headers", pa.map_(pa.string(), pa.binary())),
    ]
)
_PLAIN = pa.schema(list(RECORDS)[:-1])


@dataclass(frozen=True)
class QueueBatch:
    """``records`` of ``RECORDS``, sorted by place and offset, in as many ``runs`` as partitions."""

    records: pa.RecordBatch | None
    runs: Sequence[QueueRun]
    faults: Sequence[QueueFault]
    unnamed: Sequence[Unnamed]


class InputQueue(RecordQueue):
    """A ``RecordQueue`` whose rows go into Arrow."""

    def poll(self, max_rows: int, max_bytes: int, timeout_s: float) -> QueueBatch:
        """Return what has arrived, as ``take``."""
        polled = self.take(max_rows, max_bytes, timeout_s)
        records = None
        if polled.rows:
            schema = RECORDS if polled.has_headers else _PLAIN
            records = pa.RecordBatch._import_from_c(self.array_address, schema)  # noqa: SLF001 - as Arrow's manual
            if not polled.has_headers:
                nothing = pa.nulls(polled.rows, RECORDS.field("headers").type)
                records = pa.RecordBatch.from_arrays([*records.columns, nothing], schema=RECORDS)
        return QueueBatch(records, polled.runs, polled.faults, polled.unnamed)
