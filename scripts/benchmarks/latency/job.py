"""Runs a container's loop until its standard input ends; says when it begins.

All of a container's data path, as ``scripts/bench commit``, with a Spark where there is a pipeline.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import threading
from pathlib import Path

from benchmarks.commit.job import Run, job_of
from benchmarks.latency.tasks import Echo
from homeport.container.host.stop_flag import StopFlag
from homeport.container.incarnation.stream_container import spare_collections
from homeport.container.spark.prepared import PipelineSettings, start_pipeline
from homeport.job_coordinator.history.writer import HistoryWriter


def _until_input_ends(stop: StopFlag) -> None:
    sys.stdin.read()
    stop.set()


def main() -> None:
    """``SERVERS NAME KEYS``: keys as a JSON object."""
    servers, name, keys = sys.argv[1:]
    folder = Path(tempfile.mkdtemp(prefix="homeport-bench-"))
    stop, spark = StopFlag(), None
    history = HistoryWriter(folder / "history", "container", "bench", 64)
    try:
        job = job_of(servers, name, json.loads(keys))
        settings = PipelineSettings.of(job.config, folder / "spark")
        spark = None if settings is None else start_pipeline(settings)
        run = Run(job, Echo, folder, 64)
        pipeline = None if spark is None else spark.pipeline(stop.check)
        positions = run.positions()
        spare_collections()
        threading.Thread(target=_until_input_ends, args=(stop,), daemon=True).start()
        print("begins", flush=True)
        run.run(positions, stop, history.event, pipeline)
    finally:
        if spark is not None:
            spark.stop()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
