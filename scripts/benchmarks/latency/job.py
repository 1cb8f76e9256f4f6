"""Runs a container's loop until its standard input ends; says when it begins.

All of a container's data path, as ``scripts/bench commit``, with a Spark where there is a pipeline.
"""

from __future__ import annotations

import json
import sys
import threading

from benchmarks.bed import scratch
from benchmarks.commit.job import job_of
from benchmarks.latency.tasks import Echo
from benchmarks.throughput.job import with_spark
from homeport.container.host.stop_flag import StopFlag
from homeport.container.incarnation.stream_container import spare_collections
from homeport.job_coordinator.history.writer import HistoryWriter


def _until_input_ends(stop: StopFlag) -> None:
    sys.stdin.read()
    stop.set()


def main() -> None:
    """``SERVERS NAME KEYS``: keys as a JSON object."""
    servers, name, keys = sys.argv[1:]
    stop, job = StopFlag(), job_of(servers, name, json.loads(keys))
    with scratch() as folder, with_spark(job, Echo, folder, stop) as (run, pipeline):
        history = HistoryWriter(folder / "history", "container", "bench", 64)
        positions = run.positions()
        spare_collections()
        threading.Thread(target=_until_input_ends, args=(stop,), daemon=True).start()
        print("begins", flush=True)
        run.run(positions, stop, history.event, pipeline)


if __name__ == "__main__":
    main()
