"""The work as an application of Faust, in an environment of its own; prints JSON.

Its state is a table on RocksDB with a changelog; input and state are committed in one transaction,
each second as Homeport's by default.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
from typing import Any

import faust

from benchmarks.cpu_time import tree_cpu_s
from benchmarks.report import Spent
from benchmarks.throughput.work import LIMIT, PARTITIONS

_COMMIT_S = 1.0


def main() -> None:
    """``SERVERS NAME INPUT RECORDS KIND``: ends after so many records of its input."""
    servers, name, given, records, kind = sys.argv[1:]
    folder = tempfile.mkdtemp(prefix="homeport-bench-")
    app = faust.App(
        name,
        broker=f"kafka://{servers}",
        store="rocksdb://",
        datadir=folder,
        processing_guarantee="exactly_once",
        broker_commit_interval=_COMMIT_S,
        consumer_auto_offset_reset="earliest",
        topic_partitions=PARTITIONS,
        topic_disable_leader=True,
        web_enabled=False,
    )
    table = app.Table("counts", default=int, partitions=PARTITIONS, key_type=bytes, value_type=int)
    sent = app.topic(f"{name}-out", key_type=bytes, value_serializer="raw")
    began: list[Spent] = []

    async def end() -> None:
        # A record is acknowledged when the loop takes the next one.
        await asyncio.sleep(0.1)
        await app.consumer.commit()
        await app.stop()
        # Its worker has put a logger in the place of the standard output.
        print(json.dumps(began[0].found()), file=sys.__stdout__, flush=True)
        shutil.rmtree(folder)
        # The worker's own end takes seconds, and may ask for a second signal.
        os._exit(0)

    async def count(stream: Any) -> None:  # noqa: ANN401 - as the library's
        seen = 0
        async for key, value in stream.items():
            if not began:
                began.append(Spent(tree_cpu_s))
            if kind == "output":
                table[key] += value["n"]
                await sent.send(key=key, value=b"%d" % table[key])
            elif value["n"] < LIMIT:
                table[key] += 1
            seen += 1
            if seen == int(records):
                tasks.append(asyncio.get_running_loop().create_task(end()))

    tasks: list[asyncio.Task[None]] = []
    app.agent(app.topic(given, key_type=bytes))(count)
    sys.argv[1:] = []
    faust.Worker(app, loglevel="ERROR").execute_from_commandline()


if __name__ == "__main__":
    main()
