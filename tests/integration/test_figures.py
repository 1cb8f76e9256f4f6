"""What a container with a real Spark, RocksDB and Kafka reports of itself while it works."""

from __future__ import annotations

from pathlib import Path

from counted_words import has_processed, words
from stream_containers import COUNTER, Running, jobs
from trace_collector import trace_collector

from homeport.job_coordinator.status.container_report import ContainerReport
from homeport.job_coordinator.status.figures import FIGURES

PIPELINE = (
    COUNTER
    + """
def same(frame):
    return frame.select("task", "key", "stream", "partition", "offset")
"""
)
MIB = 1024 * 1024


def figures(container: Running) -> dict[tuple[str, ...], float]:
    """{(figure, its labels...): value} of the last report."""
    report = container.memory.last_report() or ContainerReport()
    return {(sample.name, *sample.labels): sample.value for sample in report.figures}


def test_a_container_reports_its_memory_stores_tasks_and_collections(
    kafka: str, tmp_path: Path
) -> None:
    """Every figure that is declared has a value, and those that a test can know are right.

    Its transactions are traced, up to the last one.
    """
    total = 2_000
    with (
        trace_collector() as collector,
        jobs(kafka, tmp_path, common={"task.pipeline.class": "user_job:same"}) as made,
    ):
        job = made(PIPELINE, **{"task.traces.otlp.endpoint": collector.url})
        job.produce(words(total))
        container = job.start(1)
        job.until(lambda: has_processed(job, total), container)
        job.until(lambda: _rows(figures(container)) == total, container)
        found = figures(container)
        report = container.memory.last_report()
        assert container.stop() == 143
    # No transaction is open in its input, and the job has no metrics of its own beyond the limit.
    assert {name for name, *_ in found} == {*FIGURES} - {"input_held_seconds", "own_series_refused"}
    assert found["memory_bytes", "jvm"] > 100 * MIB
    assert found["memory_bytes", "python"] > 50 * MIB
    assert found["memory_share_bytes", "jvm"] >= 512 * MIB
    assert found["gc_collections", "jvm"] >= 1
    assert sum(v for (name, *_), v in found.items() if name == "task_input_lag_records") == 0
    keys = {key for _, key, _ in words(total)}
    (store,) = {labels[0] for name, *labels in found if name == "store_entries"}
    # Each task's store has its position as an entry too, and RocksDB estimates.
    assert found["store_entries", store] >= len(keys)
    assert report is not None
    stages = {time.stage: time for time in report.stages}
    assert set(stages) == {"fetch", "pipeline", "tasks", "sending"}
    assert all(sum(time.buckets) == time.times for time in stages.values())

    roots = [span for span in collector.spans() if span.name == "transaction"]
    rows = [a.value.int_value for r in roots for a in r.attributes if a.key == "homeport.rows"]
    assert sum(rows) == total
    first = {span.name for span in collector.spans() if span.trace_id == roots[0].trace_id}
    assert first == {"transaction", "fetch", "pipeline", "tasks", "commit"}
    assert collector.resource()["homeport.epoch"] == "1"


def _rows(found: dict[tuple[str, ...], float]) -> float:
    return sum(value for (name, *_), value in found.items() if name == "task_rows")
