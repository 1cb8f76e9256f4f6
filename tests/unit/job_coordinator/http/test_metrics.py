"""The numbers of ``GET /metrics`` against status and requests."""

from __future__ import annotations

from typing import Any

from coordinator_server import TOKEN, Served
from prometheus_client.parser import text_string_to_metric_families
from statuses import status_of

from homeport.job_coordinator.http.metrics import JobCoordinatorMetrics
from homeport.job_coordinator.status.shape import ShownStatus


def _samples(text: bytes) -> dict[tuple[str, ...], float]:
    """{(name, label values in the order of their names...): value}."""
    return {
        (sample.name, *(sample.labels[label] for label in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def _container(
    processor_id: str, phase: str, report: dict[str, Any] | None = None, since_ms: int = 0
) -> dict[str, Any]:
    """As the status shows it."""
    return {
        "processor_id": processor_id,
        "role": "active",
        "phase": phase,
        "since_ms": since_ms,
        "report": report,
    }


def _of(*containers: dict[str, Any]) -> dict[tuple[str, ...], float]:
    """The samples of a status with these containers."""
    return _samples(JobCoordinatorMetrics(lambda: status_of({"containers": containers})).text())


def test_the_status_in_numbers() -> None:
    """Version, containers by phase, age and damage of the coordinator stream."""
    status: dict[str, Any] = {
        "job": {"model_version": 7},
        "containers": [
            _container("0", "running", since_ms=2500),
            _container("1", "finished", since_ms=3500),
            _container("2", "queued", since_ms=4500),
        ],
        "coordinator_stream": "ok",
        "coordinator_stream_age_ms": 1500,
        "coordinator_stream_damaged": 2,
        "stores_refused": {"stale": 3},
        "excluded_hosts": ["h1"],
        "drained_hosts": ["h2"],
        "upgrade": {"phase": "forward", "given": ["0-0", "0"]},
    }
    metrics = JobCoordinatorMetrics(lambda: status_of(status))
    given = [sample.value for family in metrics.collect() for sample in family.samples]
    assert {type(value) for value in given} <= {int, float}  # snapshots carry them as JSON
    assert _samples(metrics.text()) == {
        ("homeport_job_model_version",): 7,
        ("homeport_containers", "running"): 1,
        ("homeport_containers", "finished"): 1,
        ("homeport_containers", "queued"): 1,
        ("homeport_container_running", "0", "active"): 1,
        ("homeport_container_running", "2", "active"): 0,
        ("homeport_container_phase_start_time_seconds", "running", "0", "active"): 2.5,
        ("homeport_container_phase_start_time_seconds", "finished", "1", "active"): 3.5,
        ("homeport_container_phase_start_time_seconds", "queued", "2", "active"): 4.5,
        ("homeport_coordinator_stream_reachable",): 1,
        ("homeport_coordinator_stream_age_seconds",): 1.5,
        ("homeport_coordinator_stream_damaged_records_total",): 2,
        ("homeport_stores_refused_total", "stale"): 3,
        ("homeport_hosts_not_requested", "h1", "fell-silent"): 1,
        ("homeport_hosts_not_requested", "h2", "drained"): 1,
        ("homeport_upgrade_processors", "forward"): 2,
    }
    status["containers"] = []
    status["coordinator_stream"] = "Kafka did not answer"
    samples = _samples(metrics.text())
    assert samples["homeport_containers", "running"] == 0
    assert samples["homeport_coordinator_stream_reachable",] == 0


def test_the_metrics_of_single_stores() -> None:
    """Progress of a restore and lag of a standby, by processor, store and task; unknowns left."""
    report = {
        "restoring": [
            {
                "store": "s",
                "task": "Partition 1",
                "records": 5,
                "bytes": 60,
                "remaining": 7,
                "records_per_s": 2.5,
                "seconds_left": None,
                "merging": 17,
            }
        ],
        "dropped": [{"store": "u", "task": "Partition 3", "count": 4}],
        "lags": [{"store": "t", "task": "Partition 2", "records": 3, "seconds": 0.5}],
    }
    samples = _of(_container("0", "running", report), _container("1", "running"))
    labels = ("0", "s"), ("0", "t"), ("0", "u")
    of_stores = {name: value for name, value in samples.items() if name[1:3] in labels}
    assert of_stores == {
        ("homeport_restore_records", "0", "s", "Partition 1"): 5,
        ("homeport_restore_bytes", "0", "s", "Partition 1"): 60,
        ("homeport_restore_remaining_records", "0", "s", "Partition 1"): 7,
        ("homeport_restore_records_per_second", "0", "s", "Partition 1"): 2.5,
        ("homeport_restore_merging_files", "0", "s", "Partition 1"): 17,
        ("homeport_dropped_values_total", "0", "u", "Partition 3"): 4,
        ("homeport_standby_lag_records", "0", "t", "Partition 2"): 3,
        ("homeport_standby_lag_seconds", "0", "t", "Partition 2"): 0.5,
    }


def test_the_metrics_of_adjunct_stores() -> None:
    """What fills each, how much it has and how far behind it is; what is not known is left out."""
    known = {
        "store": "a",
        "task": "Partition 1",
        "input": "kafka.a",
        "kind": "broadcast",
        "records": 3,
        "bytes": 4096,
        "positions": {"0": 4},
        "lag": 5,
        "remaining": 6,
        "seconds_left": 7.5,
        "age_seconds": 8.5,
        "version": 9,
        "late": 1,
    }
    unknown = dict.fromkeys(known) | {"store": "b", "task": "P", "input": "i", "kind": "k"}
    adjuncts = [known, unknown | {"records": 0}]
    samples = _of(
        _container("0", "running", {"adjuncts": adjuncts}), _container("1", "running", {})
    )
    found = {name: value for name, value in samples.items() if name[0].startswith("homeport_adj")}
    labels = "0", "a", "Partition 1"
    assert found == {
        ("homeport_adjunct_records", *labels): 3,
        ("homeport_adjunct_bytes", *labels): 4096,
        ("homeport_adjunct_lag_records", *labels): 5,
        ("homeport_adjunct_bootstrap_remaining_records", *labels): 6,
        ("homeport_adjunct_bootstrap_remaining_seconds", *labels): 7.5,
        ("homeport_adjunct_age_seconds", *labels): 8.5,
        ("homeport_adjunct_version", *labels): 9,
        ("homeport_adjunct_late_versions", *labels): 1,
        ("homeport_adjunct_store_info", "kafka.a", "broadcast", *labels): 1,
        ("homeport_adjunct_records", "0", "b", "P"): 0,
        ("homeport_adjunct_store_info", "i", "k", "0", "b", "P"): 1,
    }


def test_the_metrics_of_the_input() -> None:
    """What active containers report; a standby reports none."""
    stages = [{"stage": "tasks", "ms": 1500}, {"stage": "fetch", "ms": 0}]
    active = {"processed": 12, "input_lag": 3, "input_lost": 7, "stages": stages}
    standby = {"processed": None, "input_lag": None, "lag": 0}
    samples = _of(_container("0", "running", active), _container("1", "running", standby))
    assert samples["homeport_stage_seconds_total", "0", "tasks"] == 1.5
    assert samples["homeport_stage_seconds_total", "0", "fetch"] == 0
    assert {name: value for name, value in samples.items() if len(name) == 2} == {
        ("homeport_containers", "running"): 2,
        ("homeport_records_processed_total", "0"): 12,
        ("homeport_input_lag_records", "0"): 3,
        ("homeport_input_lost_offsets_total", "0"): 7,
    }


def test_an_unknown_value_has_no_sample() -> None:
    """No sample rather than a zero that was not measured."""
    assert _samples(JobCoordinatorMetrics(ShownStatus).text()) == {}


def test_requests_are_counted_by_route(served: Served) -> None:
    """By the route's declared form: what callers invent makes no series of its own."""
    token = f"Bearer {TOKEN}"
    for id_ in ("0", "7", "8"):
        served.call("GET", f"/v1/processors/{id_}/model")
    served.call("GET", "/nothing")
    served.call("GET", "/else", Authorization=token)
    served.call("DELETE", "/", Authorization=token)
    served.call("POST", "/v1/check-in", b"{}")
    status, headers, body = served.call("GET", "/metrics")
    assert (status, headers["content-type"].partition(";")[0]) == (200, "text/plain")
    samples = _samples(body)
    requests = {k: v for k, v in samples.items() if k[0] == "homeport_http_requests_total"}
    name = "homeport_http_requests_total"
    part = "/v1/processors/{processor_id}/model"
    assert requests == {
        (name, "200", "GET", part): 1,
        (name, "404", "GET", part): 2,
        (name, "404", "GET", "unknown"): 2,
        (name, "405", "DELETE", "unknown"): 1,
        (name, "401", "POST", "/v1/check-in"): 1,
    }


def test_the_standbys_of_standalone_processors_by_their_state() -> None:
    """A state that none is in has 0; a container without such standbys has none."""
    kept = [{"is_caught_up": True}, {"is_caught_up": None}, {"is_caught_up": True}]
    one = {**_container("one", "running"), "standbys": kept}
    two = {**_container("two", "running"), "standbys": []}
    samples = _of(one, two, _container("three", "running"))
    assert {key[1:]: n for key, n in samples.items() if key[0] == "homeport_standbys"} == {
        ("one", "caught_up"): 2,
        ("one", "behind"): 0,
        ("one", "unknown"): 1,
    }


def test_metrics_of_the_jobs_own() -> None:
    """As Prometheus reads them; of two kinds of one name the first is shown."""
    orders = ["orders", "counter", [["country", 'd"e']], 3.0]
    amount = ["amount", "histogram", [], 12.0, [1.0, 5.0], [1, 0, 2]]
    depth = ["depth", "gauge", [["task", "Partition 0"]], -7.5]
    found = _of(
        _container("0", "running", {"own": [orders, amount]}),
        _container("1", "running", {"own": [orders, depth, ["amount", "counter", [], 1.0]]}),
    )
    assert {key: value for key, value in found.items() if key[0].startswith("job_")} == {
        ("job_orders_total", 'd"e', "0"): 3,
        ("job_orders_total", 'd"e', "1"): 3,
        ("job_depth", "1", "Partition 0"): -7.5,
        ("job_amount_bucket", "1.0", "0"): 1,
        ("job_amount_bucket", "5.0", "0"): 1,
        ("job_amount_bucket", "+Inf", "0"): 3,
        ("job_amount_count", "0"): 3,
        ("job_amount_sum", "0"): 12,
    }
