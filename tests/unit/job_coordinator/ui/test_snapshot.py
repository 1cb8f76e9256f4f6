"""What the page gets of a job: where each container is shown, what it does, and no more."""

from __future__ import annotations

import dashboard_jobs as jobs
from statuses import status_of

from homeport.job_coordinator.model.json_values import compact_json
from homeport.job_coordinator.ui.plots import Plots
from homeport.job_coordinator.ui.snapshot import configuration, snapshot
from homeport.job_coordinator.ui.times import clock, since, span


def test_each_container_has_a_place_and_its_work() -> None:
    """Where it is, is to be, or was last; a restore is the sum of its stores."""
    job = jobs.settled_job(2, 2)
    jobs.lose_host(job, "nm02.example.com")
    job["containers"][0].update(host=None, requested_host=None, last_host=None)
    found = snapshot(status_of(job), Plots(), 0)
    places = {c["id"]: (c["place"], c["is_there"]) for c in found["containers"]}
    assert places == {
        "0": (None, False),
        "1": ("nm01.example.com", True),
        "0-0": ("nm02.example.com", False),
        "1-0": ("nm01.example.com", False),
    }
    by_id = {c["id"]: c for c in found["containers"]}
    assert by_id["1"]["restore"] == {
        "stores": 1,
        "done": 61_000 / 99_000,
        "remaining": 38_000,
        "left_s": 40.0,
    }
    assert by_id["0"]["restore"] is None
    assert by_id["0"]["log"] == "container-0-3.log"
    assert by_id["0"]["lag"] == 0
    assert by_id["0-0"]["of"] == "0"
    assert found["hosts"] == [
        {"host": "nm01.example.com", "state": "live"},
        {"host": "nm02.example.com", "state": "lost"},
    ]
    assert found["hosts_live"] == 1
    assert found["job"]["version"] == 4
    assert jobs.SECRET not in compact_json(found).decode()


def test_the_jobs_own_metrics_are_shown_up_to_a_number() -> None:
    """Of all containers together; the page stays small."""
    own = [[f"m{number:03}", "counter", [], 2.0] for number in range(150)]
    report = {"own": own}
    job = {
        "containers": [
            {"processor_id": "0", "report": report},
            {"processor_id": "1", "report": report},
        ]
    }
    found = snapshot(status_of(job), Plots(), 0)["metrics"]
    assert found[0] == ("m000", "4")
    assert len(found) == 100


def test_of_a_large_cluster_the_hosts_of_the_job_are_shown() -> None:
    """Of a small one all; one that is not requested says so."""
    job = jobs.settled_job(1, 2)
    job["hosts"] = [f"nm{n:02}.example.com" for n in range(1, 14)]
    job["excluded_hosts"] = ["nm02.example.com"]
    found = snapshot(status_of(job), Plots(), 0)["hosts"]
    assert [h["host"] for h in found] == ["nm01.example.com", "nm02.example.com"]
    assert found[1]["state"] == "not requested"
    job["hosts"] = job["hosts"][:12]
    assert len(snapshot(status_of(job), Plots(), 0)["hosts"]) == 12


def test_a_restore_of_nothing_is_not_done() -> None:
    """Its store has just been opened; a job without any field is empty."""
    job = jobs.settled_job(1, 1)
    nothing = {"records": 0, "remaining": 0, "seconds_left": None}
    job["containers"][0]["report"] = {"restoring": [nothing]}
    assert snapshot(status_of(job), Plots(), 0)["containers"][0]["restore"]["done"] == 0.0
    empty = snapshot(status_of({}), Plots(), 0)
    assert (empty["containers"], empty["hosts"], empty["hosts_live"]) == ([], [], 0)
    assert empty["job"]["name"] == ""


def test_the_configuration_names_what_set_each_key_and_masks_secrets() -> None:
    """By its newest record; a key without a record, and a job without a stream, have no origin."""
    record = jobs.written("task.commit.ms", "9", "job-runner")
    config = {"task.commit.ms": "9", "my.password": "pw"}
    found = configuration(config, {"task.commit.ms": record})
    assert found["in_stream"]
    assert found["keys"] == [
        {
            "key": "my.password",
            "value": "********",
            "source": None,
            "user": None,
            "host": None,
            "at_ms": None,
        },
        {
            "key": "task.commit.ms",
            "value": "9",
            "source": "job-runner",
            "user": "ada",
            "host": "gateway",
            "at_ms": 1_764_000_000_000,
        },
    ]
    assert not configuration(config, None)["in_stream"]


def test_times_and_spans() -> None:
    """UTC; a day is what makes a date needed; two units."""
    assert clock(1_764_036_900_123) == "2025-11-25 02:15:00.123"
    assert since(1_764_036_900_000, 1_764_036_901_000) == "02:15:00 UTC"
    assert since(1_764_036_900_000, 1_764_136_900_000) == "2025-11-25 02:15 UTC"
    assert [span(ms) for ms in (-5, 999, 61_000, 3_600_000, 90_061_000)] == [
        "0s",
        "0s",
        "1m1s",
        "1h0m",
        "1d1h",
    ]
