"""The first screen of a job: what is late comes before what runs."""

from __future__ import annotations

from typing import Any

from own_records import put
from statuses import status_of
from stream_in_memory import InMemoryCoordinatorStream

from homeport.cli.job.failure_reasons import end_of
from homeport.cli.job.status_command import lines
from homeport.config.config import Config
from homeport.job_coordinator.metadata.epochs import Submission, submission_message
from homeport.job_coordinator.metadata.lifecycle import (
    JobEnd,
    JobEndManager,
    RetryManager,
    RetryState,
)
from homeport.job_coordinator.model.ids import ProcessorId

NOW_MS = 100_000_000
LOST = "3 tasks have lost their processor, the last in version 9"


def _container(processor_id: str, **changes: object) -> dict[str, Any]:
    return {
        "processor_id": processor_id,
        "role": "active",
        "replica_of": None,
        "phase": "running",
        "host": "nm1",
        "last_host": "nm1",
        "requested_host": None,
        "since_ms": NOW_MS - 72_000,
        "epoch": 3,
        "lag": None,
        "failures": 0,
        "last_failure": None,
        "report": {"processed": 1200, "input_lag": 7},
        **changes,
    }


def _screen(*containers: dict[str, Any], **changes: object) -> list[str]:
    job = {
        "name": "flights",
        "id": "1",
        "application": "application_1_1",
        "state": "active",
        "health": "deployed",
        "model_version": 2,
    }
    body = {"job": job, "containers": list(containers), "hosts": ["nm1", "nm2"], **changes}
    return list(lines(status_of(body), NOW_MS))


def test_a_job_in_order_is_one_line_and_a_table() -> None:
    """Of an active container the input's lag, of a standby its changelogs'."""
    standby = _container("0-0", replica_of="0", role="standby", host="nm2", lag=12, report=None)
    assert _screen(_container("0"), standby) == [
        "flights-1: deployed, application_1_1, JobModel version 2",
        "All 2 containers are where they should be",
        "",
        "PROCESSOR  ROLE          PHASE    HOST  FOR    EPOCH  LAG  PROCESSED  FAILURES",
        "0          active        running  nm1   1m12s  3        7       1200         0",
        "0-0        standby of 0  running  nm2   1m12s  3       12          -         0",
    ]


def test_the_jobs_own_metrics_come_last() -> None:
    """Of all containers together."""
    own = [
        ["orders", "counter", [["country", "de"]], 3.0],
        ["depth", "gauge", [["task", "t"]], 1.5],
    ]
    report = {"processed": 1200, "input_lag": 7, "own": own}
    shown = _screen(_container("0", report=report), _container("1", report=report))
    assert shown[-4:] == [
        "",
        "METRIC                VALUE",
        "depth                 1.5",
        'orders{country="de"}  6',
    ]


def test_what_is_late_comes_first_with_its_reason() -> None:
    """Since when, what it waits for, why it ended."""
    late = _container(
        "1",
        phase="requested",
        host=None,
        requested_host="nm2",
        since_ms=NOW_MS - 90_061_000,
        last_failure="exit code 1",
        failures=2,
    )
    found = _screen(_container("0"), late, coordinator_stream="Kafka does not answer")
    assert found[1:6] == [
        (
            "1 of 2 containers is not where it should be: processor 1 is not placed yet since "
            "1970-01-01 02:45 UTC; it waits for a container on nm2"
        ),
        "  the coordinator stream: Kafka does not answer",
        "  1: requested, for 1d1h",
        "      waits for a container on nm2",
        "      last failure: exit code 1",
    ]
    assert found[-1].split() == ["1", "active", "requested", "-", "1d1h", "3", "7", "1200", "2"]


def test_a_start_is_called_a_start() -> None:
    """Also where an earlier deployment has run: nothing recovers."""
    job = {"name": "flights", "id": "1", "application": "a_1", "health": "recovering"}
    found = _screen(_container("0", phase="starting", since_ms=NOW_MS), job=job)
    assert found[:3] == [
        "flights-1: starting, a_1, JobModel version None",
        "The only container is starting",
        "  0: starting, for 0s",
    ]


def test_a_restore_says_how_far_it_is() -> None:
    """With the time that is left, where it is known; a clock that is behind shows no time."""
    progress = {
        "store": "planes",
        "task": "Partition 0",
        "records": 500,
        "remaining": 1500,
        "seconds_left": 3.4,
    }
    unknown = {**progress, "store": "names", "seconds_left": None}
    report = {"restoring": [progress, unknown]}
    found = _screen(_container("0", phase="starting", since_ms=NOW_MS + 5, report=report))
    assert found[2:6] == [
        "  0: starting, for 0s",
        "      waits for its report that its stores are restored",
        "  0 restores planes of Partition 0: 500 records read, 1500 offsets to go, some 3s left",
        "  0 restores names of Partition 0: 500 records read, 1500 offsets to go",
    ]


def test_a_job_that_has_just_begun_says_so() -> None:
    """The table has its head alone."""
    assert _screen()[1] == "The job has no containers yet"


def test_a_processor_without_tasks_is_in_order() -> None:
    """A standalone one; what the leader does not know of it is not shown."""
    waiting = _container("two", phase="waiting", since_ms=0, host=None, report=None)
    found = _screen(_container("one"), waiting)
    assert found[1] == "All 2 containers are where they should be"
    assert found[-1].split() == ["two", "active", "waiting", "-", "-", "3", "-", "-", "0"]


def test_standbys_beside_active_tasks_have_a_table_of_their_own() -> None:
    """And what the deaths of processors have cost, where one has died."""
    known = {"name": "Standby-a-0", "lag": 0, "lag_seconds": 0.04, "is_caught_up": True}
    behind = {"name": "Standby-b-0", "lag": 12, "lag_seconds": 1.5, "is_caught_up": False}
    unknown = {"name": "Standby-c-0", "lag": None, "lag_seconds": None, "is_caught_up": None}
    taken_over = {"lost": 3, "unbacked": 1, "version": 9}
    shown = _screen(
        _container("one", standbys=[known, behind]),
        _container("two", standbys=[unknown]),
        taken_over=taken_over,
    )
    assert shown[7:] == [
        "STANDBY      PROCESSOR  STATE      LAG  SECONDS",
        "Standby-a-0  one        caught up    0      0.0",
        "Standby-b-0  one        behind      12      1.5",
        "Standby-c-0  two        unknown      -        -",
        f"{LOST}; 1 of them started without their standby",
    ]


def test_a_job_that_has_ended_is_one_line() -> None:
    """Its last submission's end; one without an end is no answer: it may run."""
    config = Config({"job.name": "flights", "job.default.system": "kafka"})
    stream = InMemoryCoordinatorStream()
    assert end_of(config, stream) is None
    put(stream, submission_message(Submission(2, "application_1_2")))
    put(stream, JobEndManager.message(JobEnd(1, "SUCCEEDED")))
    assert end_of(config, stream) is None
    put(stream, JobEndManager.message(JobEnd(2, "KILLED", "shut down on request")))
    assert end_of(config, stream) == (
        "flights-1: ended, application_1_2, KILLED: shut down on request"
    )
    story = "processor 0 failed 1 times; 0@1 on nm1: failed, exit code 1"
    put(stream, JobEndManager.message(JobEnd(2, "FAILED", story)))
    put(stream, RetryManager.message(ProcessorId("0"), RetryState(1, 5, 1, "division by zero")))
    assert end_of(config, stream) == (
        f"flights-1: ended, application_1_2, FAILED: {story}: division by zero"
    )
    put(stream, JobEndManager.message(JobEnd(2, "SUCCEEDED")))
    assert end_of(config, stream) == "flights-1: ended, application_1_2, SUCCEEDED"
