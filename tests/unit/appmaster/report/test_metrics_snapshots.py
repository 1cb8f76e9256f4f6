"""Snapshots in the form of Samza's reporter: headers, groups and names."""

from __future__ import annotations

import json
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from statuses import container_of

from homeport.appmaster.report.allocator_metrics import MANAGER, samza_name
from homeport.appmaster.report.metrics_snapshots import Origin, snapshots
from homeport.job_coordinator.http.metrics import JobCoordinatorMetrics
from homeport.job_coordinator.status.shape import ShownStatus

ORIGIN = Origin("wiki", "2", "container_1_0001_01_000001", "h0", "9.9", 5)
RUNNING: dict[str, Any] = {
    "processor_id": "0",
    "phase": "running",
    "resource": "container_1_0001_01_000002",
    "host": "h1",
    "since_ms": 70,
    "report": {
        "processed": 12,
        "stages": [
            {"stage": "tasks", "ms": 30, "times": 3},
            {"stage": "sending", "ms": 0, "times": 0},
            {"stage": "fetch", "ms": 3, "times": 3},
        ],
        "figures": [["memory_bytes", ["python"], 1 << 20], ["memory_bytes", ["jvm"], 1 << 21]],
    },
}
QUEUED = {"processor_id": "1", "phase": "queued", "resource": None, "host": None, "since_ms": 9}


def families() -> list[Any]:
    """One of each kind."""
    running = GaugeMetricFamily(
        samza_name(MANAGER, "running-containers"), f"{MANAGER} running-containers. That run. Yes."
    )
    running.add_metric((), 1)
    rows = CounterMetricFamily("homeport_task_rows", "x", labels=("processor", "task"))
    rows.add_metric(("0", "Partition 0"), 7)
    phases = GaugeMetricFamily("homeport_containers", "x", labels=("phase",))
    phases.add_metric(("running",), 1)
    times = HistogramMetricFamily("homeport_recovery_seconds", "x", labels=("cause",))
    times.add_metric(("lost",), [("1.0", 1), ("+Inf", 2)], 3.0)
    return [running, rows, phases, times]


def test_the_am_and_each_container_with_a_host_have_one() -> None:
    """Headers as Samza's; a container that waits for its place has none."""
    am, container = map(
        json.loads,
        snapshots(ORIGIN, families(), [container_of(RUNNING), container_of(QUEUED)], 100),
    )
    assert am["header"] == {
        "job-name": "wiki",
        "job-id": "2",
        "container-name": "ApplicationMaster",
        "exec-env-container-id": "container_1_0001_01_000001",
        "source": "ApplicationMaster",
        "version": "9.9",
        "samza-version": "homeport-9.9",
        "host": "h0",
        "time": 100,
        "reset-time": 5,
    }
    named = {"container-name", "exec-env-container-id", "source", "host", "reset-time"}
    assert {key: container["header"][key] for key in named} == {
        "container-name": "samza-container-0",
        "exec-env-container-id": "container_1_0001_01_000002",
        "source": "samza-container-0",
        "host": "h1",
        "reset-time": 70,
    }


def test_samzas_metrics_have_its_groups_and_names() -> None:
    """All others are Homeport's, with their labels behind the name; buckets are left out."""
    am, container = map(json.loads, snapshots(ORIGIN, families(), [container_of(RUNNING)], 100))
    assert am["metrics"] == {
        MANAGER: {"running-containers": 1},
        "homeport": {
            "containers-running": 1,
            "recovery_seconds_count-lost": 2,
            "recovery_seconds_sum-lost": 3,
        },
    }
    assert container["metrics"]["org.apache.samza.container.SamzaContainerMetrics"] == {
        "container-running": 1,
        "process-envelopes": 12,
        "process-calls": 3,
        "process-ns": 10_000_000,
        "physical-memory-mb": 3,
    }
    assert container["metrics"]["homeport"] == {"task_rows_total-Partition 0": 7}


def test_metrics_of_the_jobs_own_have_a_group() -> None:
    """With the values of their labels behind the name; of a histogram its count and its sum."""
    own = [
        ["orders", "counter", [["country", "de"]], 3.0],
        ["depth", "gauge", [["task", "Partition 0"]], 7.0],
        ["amount", "histogram", [], 12.0, [1.0], [1, 2]],
    ]
    report = {**RUNNING["report"], "own": own}
    shown = container_of({**RUNNING, "report": report})
    job = JobCoordinatorMetrics(lambda: ShownStatus(containers=(shown,)))
    _, container = map(json.loads, snapshots(ORIGIN, job.collect(), [shown], 100))
    assert container["metrics"]["job"] == {
        "orders-de": 3,
        "depth-Partition 0": 7,
        "amount_count": 3,
        "amount_sum": 12,
    }
    assert not [name for name in container["metrics"]["homeport"] if name.startswith("job_")]


def test_a_container_that_has_reported_nothing_says_so_little() -> None:
    """Whether it runs."""
    starting = {**RUNNING, "phase": "starting", "report": None}
    _, container = map(json.loads, snapshots(ORIGIN, [], [container_of(starting)], 100))
    assert container["metrics"] == {
        "org.apache.samza.container.SamzaContainerMetrics": {"container-running": 0},
        "homeport": {},
    }
