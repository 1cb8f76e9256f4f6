"""The first screen: its one sentence, what is late and why, and what else is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from statuses import report_of, status_of

from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.model.wire_form import json_text
from homeport.job_coordinator.ui.first_screen import (
    CAUSES_IN_WORDS,
    FirstScreen,
    first_screen,
    kept_standbys,
    seconds_left,
)

NOW_MS = 1_764_036_900_000
"""2025-11-25 02:15:00 UTC."""


def container(processor_id: str, **changes: object) -> dict[str, Any]:
    """One that runs on host-a since 53 seconds."""
    return {
        "processor_id": processor_id,
        "phase": "running",
        "host": "host-a",
        "last_host": "host-a",
        "since_ms": NOW_MS - 53_000,
        **changes,
    }


def screen(*containers: dict[str, Any], **changes: object) -> FirstScreen:
    """Of a job with these, on host-b and host-c."""
    hosts = ["host-b", "host-c"]
    body = {"job": {"state": "running"}, "containers": list(containers), "hosts": hosts}
    return first_screen(status_of({**body, **changes}), NOW_MS)


def lost(**changes: object) -> dict[str, Any]:
    """A container whose host is lost, and that restores elsewhere."""
    return container(
        "2",
        **{
            "phase": "starting",
            "host": "host-b",
            "recovery": {"cause": "resource-ended", "from": "host-a", "is_over": False},
            "report": {"restoring": [{"seconds_left": 40.2}, {"seconds_left": 3.0}]},
            **changes,
        },
    )


def test_a_calm_job_is_one_sentence() -> None:
    """A processor that has finished, or has no task, is where it should be."""
    ended, idle = container("1", phase="finished"), container("2", phase="waiting")
    found = screen(container("0"), ended, idle)
    assert found.headline == "All 3 containers are where they should be"
    assert found.is_calm
    assert json.loads(json_text(found)) == {
        "headline": "All 3 containers are where they should be",
        "is_calm": True,
        "late": [],
        "notices": [],
    }
    assert screen(container("0")).headline == "The only container is where it should be"


def test_one_late_container_is_named_with_since_when_why_and_what_comes_next() -> None:
    """The longest of its restores is what is left."""
    found = screen(container("0"), container("1"), container("3"), lost())
    assert found.headline == (
        "1 of 4 containers is not where it should be: processor 2 is starting on host-b since "
        "02:14:07 UTC, because host-a is lost; its state is restored in about 40s"
    )
    assert not found.is_calm
    assert json.loads(json_text(found))["late"] == [
        {
            "id": "2",
            "phase": "starting",
            "does": "is starting on host-b",
            "since_ms": NOW_MS - 53_000,
            "why": ["host-a is lost"],
            "waits": ["for its report that its stores are restored"],
            "left_s": 40.2,
        }
    ]


def test_what_it_waits_for_stands_where_the_time_left_is_not_known() -> None:
    """With the cause of its end where its host lives."""
    recovery = {"cause": "killed", "from": "host-b", "is_over": False}
    asks = {"phase": "requested", "host": None, "requested_host": "host-b"}
    late = lost(**asks, recovery=recovery, report=None)
    assert screen(late, container("0")).headline == (
        "1 of 2 containers is not where it should be: processor 2 is not placed yet since "
        "02:14:07 UTC, because it was killed on host-b; it waits for a container on host-b"
    )


def test_of_many_the_one_that_is_late_for_longest_is_named() -> None:
    """Five are named; what is not known is left out."""
    late = [
        container(str(n), phase="starting", since_ms=NOW_MS - n * 1000, failures=1)
        for n in range(1, 8)
    ]
    assert screen(container("0"), *late).headline == (
        "7 of 8 containers are not where they should be: processors 1, 2, 3, 4, 5 and 2 more; "
        "processor 7 is starting on host-a since 02:14:53 UTC; it waits for its report that its "
        "stores are restored"
    )
    unknown = container("0", phase="failed", since_ms=0, last_failure="exit code 1")
    found = screen(unknown, container("1", phase="failed", since_ms=0))
    assert found.headline == (
        "2 of 2 containers are not where they should be: processors 0, 1; processor 0 is given up"
    )
    assert found.late[0].why == ("last failure: exit code 1",)
    later = container("0", phase="odd", host=None, since_ms=NOW_MS - 90_000_000)
    assert "processor 0 odd since 2025-11-24 01:15 UTC" in screen(later).headline


def test_a_start_is_no_alarm() -> None:
    """Nothing has ended, and it takes no longer than a start does."""
    asks = {"phase": "requested", "host": None, "requested_host": "host-b"}
    first = container("0", **asks)
    assert screen(first).headline == "The only container is starting"
    assert screen(first).is_calm
    assert screen(first).late[0].waits == ("for a container on host-b",)
    both = screen(first, container("1", phase="starting"))
    assert (both.headline, both.is_calm) == ("All 2 containers are starting", True)
    one = screen(first, container("1"))
    assert (one.headline, one.is_calm) == ("1 of 2 containers is starting", True)
    assert not screen(first, suspects_itself=True).is_calm
    for wrong in (
        {"since_ms": NOW_MS - 60_000},
        {"since_ms": 0},
        {"failures": 1},
        {"last_failure": "exit code 1"},
        {"recovery": {"cause": "killed", "from": "host-b", "is_over": True}},
        {"phase": "backing-off"},
    ):
        found = screen({**first, **wrong}, container("1", phase="starting"))
        assert found.headline.startswith("2 of 2 containers are not where they should be: "), wrong
        assert not found.is_calm


def test_a_cause_without_a_word_of_its_own_is_shown_as_it_is() -> None:
    """Also where no host is known; one that is over says nothing."""
    recovery = {"cause": "other", "from": None, "is_over": False}
    assert screen(lost(recovery=recovery, last_host=None)).late[0].why == ("other",)
    over = {"cause": "killed", "from": "host-a", "is_over": True}
    assert screen(lost(recovery=over)).late[0].why == ()


@pytest.mark.parametrize(
    ("state", "containers", "expected"),
    [
        ("starting", [], "The job has no containers yet"),
        ("ending", [container("0", phase="stopping")], "The job is ending"),
        ("ended", [container("0", phase="stopped")], "The job has ended"),
    ],
)
def test_a_job_at_its_beginning_or_end(
    state: str, containers: list[dict[str, Any]], expected: str
) -> None:
    """One sentence without processors."""
    assert (
        first_screen(status_of({"job": {"state": state}, "containers": containers}), 0).headline
        == expected
    )


def test_what_else_is_wrong_is_noticed() -> None:
    """A standby from a minute on, as the alert rule has it."""
    found = screen(
        container("0"),
        container("0-0", lag_seconds=59.9),
        container("1-0", lag_seconds=75.0),
        coordinator_stream="Kafka does not answer",
        unanswered={"Skein": "no answer in 10 s"},
        excluded_hosts=["host-c"],
        suspects_itself=True,
    )
    assert found.notices == (
        "the coordinator stream: Kafka does not answer",
        "Skein does not answer: no answer in 10 s",
        "standby 1-0 is 1m15s behind its changelogs",
        "not requested now, as their launchers fell silent: host-c",
        "most hosts fell silent at once: the fault is taken to be the ApplicationMaster's own",
    )
    assert not found.is_calm
    assert found.headline == "All 3 containers are where they should be"


def test_what_is_not_in_force_is_noticed() -> None:
    """Keys that break a rule, and topics that match and become no input: the first five."""
    refused = [f"kafka.odd-{n} matches" for n in range(7)]
    found = screen(container("0"), configuration={"fault": "bad", "topics_refused": refused})
    assert found.notices == (
        "the configuration in force stays: bad",
        *refused[:5],
        "2 more topics that match become no input",
    )
    five = screen(container("0"), configuration={"fault": None, "topics_refused": refused[:5]})
    assert five.notices == tuple(refused[:5])
    assert screen(container("0"), configuration={"version": 2}).is_calm
    ahead = {"Partition 1": 20_000, "Partition 4": None}
    assert screen(container("0"), configuration={"reads_ahead": ahead}).notices == (
        "a change waits until 2 tasks are read ahead: 20000 records",
    )


def test_a_command_for_a_container_that_runs_is_noticed() -> None:
    """It has what it waits for, and the way out; one that does not run has its own line."""
    waits = "0-warm@1 has 13000 records left to read"
    placement = {"processor_id": "0", "destination": "b", "step": "warming", "waits": waits}
    found = screen(container("0"), placements=[placement])
    assert found.notices == (
        (
            f"processor 0 has an operator's command to b: warming, {waits}; "
            "homeport move 0 --cancel ends it"
        ),
    )
    assert screen(container("0", phase="stopping"), placements=[placement]).notices == ()
    assert screen(container("0"), placements=[{**placement, "processor_id": "9"}]).notices == ()


def test_what_stands_on_a_drained_host_is_noticed() -> None:
    """Until it has left, or the drain is taken back."""
    here = container("0", host="host-a", role="active")
    (notice,) = screen(here, drained_hosts=["host-a"]).notices
    assert notice.startswith("host-a is drained and has processor 0")
    assert screen(here, drained_hosts=["host-b"]).is_calm


def test_a_rolling_restart_under_way_is_noticed() -> None:
    """Which containers have the changed values, for what it waits, and why it goes back."""
    forward = {"phase": "forward", "given": ["0-0", "0"], "waits": "it is watched", "reason": ""}
    (notice,) = screen(container("0"), rolling_restart=forward).notices
    head = "rolling restart with a changed configuration"
    assert notice == f"{head}; with it: 0-0, 0; it waits: it is watched"
    back = {**forward, "phase": "back", "given": [], "waits": "", "reason": "processor 0 failed"}
    (notice,) = screen(container("0"), rolling_restart=back).notices
    assert notice == f"{head} goes back, as processor 0 failed; with it: none"
    assert screen(container("0"), rolling_restart={**forward, "phase": "done"}).is_calm


def test_an_upgrade_under_way_is_noticed() -> None:
    """For what it waits, and why it goes back; one that is over is not."""
    forward = {"phase": "forward", "package": "ab" * 32, "given": ["0"], "reason": ""}
    (notice,) = screen(container("0"), upgrade={**forward, "waits": "processor 1 starts"}).notices
    assert notice == (
        "upgrade to package abababababab: 1 processors have it; it waits: processor 1 starts"
    )
    back = {**forward, "phase": "back", "reason": "processor 0 failed", "waits": ""}
    assert screen(container("0"), upgrade=back).notices == (
        "upgrade to package abababababab goes back, as processor 0 failed; 1 have it",
    )
    assert screen(container("0"), upgrade={**forward, "phase": "done"}).is_calm


def test_time_left_is_known_where_each_restore_has_a_rate() -> None:
    """None where one has none, or nothing is restored."""
    assert seconds_left(report_of({"restoring": [{"seconds_left": 2.0}]})) == 2.0
    assert seconds_left(report_of({"restoring": [{"seconds_left": 2.0}, {}]})) is None
    assert seconds_left(None) is None


@pytest.mark.parametrize("cause", [c for c in StopCause if c is not StopCause.FINISHED])
def test_each_cause_of_an_end_has_words(cause: StopCause) -> None:
    """A reader never meets the bare name of a cause."""
    assert cause.value in CAUSES_IN_WORDS


@pytest.mark.parametrize(
    ("lags", "sentence"),
    [
        ((), None),
        ((0,), "keeps 1 standby: all caught up"),
        ((0, 7, 300), "keeps 3 standbys: 2 behind, the furthest by 300 records"),
        ((None, 0), "keeps 2 standbys: 1 not read yet"),
        ((None, 9), "keeps 2 standbys: 1 behind, the furthest by 9 records, 1 not read yet"),
    ],
)
def test_how_far_the_standbys_of_a_container_are(
    lags: tuple[int | None, ...], sentence: str | None
) -> None:
    """A mixed container and a standalone processor keep standbys."""
    kept = [{"name": f"s{n}", "lag": lag} for n, lag in enumerate(lags)]
    status = status_of({"containers": [container("0", standbys=kept)]})
    assert kept_standbys(status.containers[0]) == sentence
