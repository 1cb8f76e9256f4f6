"""The native path of input and JSON keeps no memory, however many records it has read."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pytest
from mock_cluster import Record, mock_cluster
from native_fuzz import source_of, ssp

from homeport.container.kafka.input_consumer import Reading
from homeport.container.native.column_reader import natively
from homeport.container.serde.json_schema_serde import json_columns
from homeport.job_coordinator.model.ids import TaskName

PARTITIONS = 4
RECORDS = 120_000
_MB = 1 << 20

pytestmark = pytest.mark.long


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / _MB


@pytest.mark.parametrize("passes", [834])
def test_memory_stays_flat_over_a_hundred_million_records(passes: int) -> None:
    """Each pass has a client and a queue of its own; some records have headers, or other JSON."""
    logging.disable()
    kind = pa.struct([("n", pa.int64()), ("text", pa.string()), ("x", pa.float64())])
    columns = natively(json_columns(kind))
    assert columns.read is not None
    starts = {TaskName("T"): {ssp(n, "flat"): 0 for n in range(PARTITIONS)}}
    with mock_cluster(PARTITIONS) as cluster:
        headers = [(b"name", b"value")]
        for n in range(RECORDS):
            decimal = b"-0.0" if n % 100 == 0 else b"%d.5" % n  # the first is left to Python
            value = b'{"n": %d, "text": "some text of a record", "x": %s}' % (n, decimal)
            record = Record(n % PARTITIONS, b"%06d" % n, value, headers if n % 50 == 0 else ())
            cluster.send("flat", [record], waits=n % 20_000 == 0)
        cluster.send("flat", [])
        read, marks = 0, []
        for number in range(passes):
            source, left = source_of(cluster, starts, Reading()), RECORDS
            while left > 0:
                batch = source.poll(50_000, 1.0)
                if batch is not None:
                    left -= batch.table.num_rows
                    for values in batch.table.column("value").chunks:
                        assert not columns.decode(values).bad
            source.close()
            read += RECORDS
            if number % (passes // 10) == 0:
                marks.append(_resident_mb())
                print(f"{read:,} records: {marks[-1]:.0f} MB", flush=True)  # noqa: T201 - progress
    assert read >= passes * RECORDS
    # The first tenth fills caches and arenas.
    assert max(marks[2:]) - marks[1] < 64, marks
