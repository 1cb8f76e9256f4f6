"""The work as functions of a job in Python, each beside the class that does the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from benchmarks.commit.tasks import OUTPUT, STORE
from benchmarks.throughput.work import LIMIT
from homeport import BatchTask, Job, StreamTask

_READ = arrow_json.ReadOptions(use_threads=False, block_size=64 << 20)


def task_class(kind: str, keys: Mapping[str, str], given: str) -> type[BatchTask | StreamTask]:
    """Return the class of a job whose function does the work of ``kind``.

    ``kind``: ``each`` as ``tasks.Sums``, ``tables`` as ``tasks.Sent``. ``given``: the topic that it
    reads.
    """
    job = Job(keys["job.name"])
    source = job.input(given, value=dict)
    sums = job.store(STORE, key=bytes, value=int)
    output = job.output(f"{keys['job.name']}-{OUTPUT}")

    def add(key: bytes, value: dict[str, Any]) -> None:
        total = sums.get(key, 0) + value["n"]
        sums[key] = total
        output.send(key, b"%d" % total)

    def count(table: pa.Table) -> None:
        lines = pa.BufferReader(b"\n".join(table["value"].to_pylist()))
        numbers = arrow_json.read_json(lines, read_options=_READ)["n"]
        seen = pc.value_counts(table.filter(pc.less(numbers, LIMIT))["key"])
        keys, counts = seen.field("values").to_pylist(), seen.field("counts").to_pylist()
        known = sums.get_all(keys)
        after = {key: known.get(key, 0) + n for key, n in zip(keys, counts, strict=True)}
        sums.put_all(after)
        for key, number in after.items():
            output.send(key, b"%d" % number)

    if kind == "each":
        job.each(source)(add)
    else:
        job.batch(source)(count)
    return job.task_class([source.stream], has_pipeline=False)
