"""A job in one Python file on YARN, and a job that moves there from a properties file."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable

from topic_records import committed
from yarn_jobs import KEYS, Job, wait_for

_FILE = """
from homeport import Job

job = Job({name!r}, kafka={kafka!r}, containers=3, keys={keys!r})
source = job.input("{name}-in", key=str)
counts = job.store("counts", key=str, value=object, changelog="{name}-counts")


@job.each(source)
def count(key: str, _value: bytes) -> None:
    counts[key] = counts.get(key, 0) + 1
    job.context.metrics.counter("records").inc()
    job.context.metrics.gauge("newest", kind="count").set(counts[key])
"""
_DECLARED = ("job.name", "systems.kafka.consumer.", "stores.", "task.", "yarn.package.path")


def test_a_job_moves_from_a_properties_file_to_a_python_file(
    make_job: Callable[[str], Job],
) -> None:
    """Its state goes along: what both counted is exact, over SIGKILL of a container.

    `run-job` ships the file alone as the job's package.
    """
    job = make_job("one-file")
    job.begin(300)
    job.expects(300)
    job.kill()
    keys = {key: v for key, v in job.values.items() if not key.startswith(_DECLARED)}
    own = "metrics.reporter.snapshot"
    keys |= {
        "metrics.reporters": "snapshot",
        f"{own}.class": "org.apache.samza.metrics.reporter.MetricsSnapshotReporterFactory",
        f"{own}.stream": f"kafka.{job.name}-metrics",
        f"{own}.interval": "1",
        "task.outputs.create.partitions": "1",
    }
    job.path = job.path.with_name("one_file.py")
    job.text = _FILE.format(name=job.name, kafka=job.servers, keys=keys)
    job.produce(300, first=300)
    job.run()
    pids = job.settled()
    os.kill(pids["1"], signal.SIGKILL)
    job.produce(300, first=600)
    wait_for(lambda: job.pids().get("1", pids["1"]) != pids["1"], job)
    job.expects(900)
    assert len(job.counts()) == KEYS
    shown = job.operator("config", "show")
    assert f"task.class={job.path.stem}:job" in shown.stdout.splitlines()
    _shows_its_metrics(job)
    job.end()


def _shows_its_metrics(job: Job) -> None:
    """The status, ``/metrics`` and the snapshots have them; a killed process begins at 0."""

    def is_shown() -> bool:
        lines = job.operator("status").stdout.splitlines()
        counted = [line.split()[1] for line in lines if line.startswith("records ")]
        return bool(counted) and 300 <= int(counted[0]) <= 600

    wait_for(is_shown, job)
    assert 'newest{kind="count"}  ' in job.operator("status").stdout
    text = job.get_text("metrics")
    assert 'job_records_total{processor="0"} ' in text
    assert 'job_newest{kind="count",processor="0",task="Partition ' in text

    def has_snapshot() -> bool:
        found = committed(job.servers, f"{job.name}-metrics", 1)
        snapshots = [json.loads(record.value() or b"{}") for record in found]
        return any(s["metrics"].get("job", {}).get("records", 0) > 0 for s in snapshots)

    wait_for(has_snapshot, job)
