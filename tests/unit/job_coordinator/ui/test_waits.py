"""What a container waits for, phase by phase and obstacle by obstacle."""

from __future__ import annotations

from typing import Any

import pytest
from statuses import container_of, status_of

from homeport.job_coordinator.ui.first_screen import listed, waits

HOSTS = {"hosts": ["nm1"]}


def found(status: dict[str, Any], **container: Any) -> list[str]:  # noqa: ANN401 - JSON
    """Of processor 0, in that phase."""
    return list(waits(status_of(HOSTS | status), container_of(container)))


@pytest.mark.parametrize(
    ("phase", "host", "sentence"),
    [
        ("requested", "nm1", "for a container on nm1"),
        ("requested", None, "for a container on any host"),
        ("allocated", None, "for the launcher on any host to check in"),
        ("queued", "nm1", "for its turn at nm1, which another requests"),
        ("assigned", "nm1", "for the next check-in of its launcher on nm1"),
        ("backing-off", None, "for its retry delay to pass"),
        ("starting", None, "for its report that its stores are restored"),
        ("stopping", None, "for the evidence that it has stopped"),
    ],
)
def test_each_phase_has_its_sentence(phase: str, host: str | None, sentence: str) -> None:
    """One alone, where nothing else is in the way."""
    assert found({}, phase=phase, requested_host=host, host=host) == [sentence]


def test_what_runs_waits_for_nothing_but_what_it_says() -> None:
    """A processor may say by itself what it waits for."""
    assert found({}, phase="running") == []
    assert found({}, phase="waiting", waits=["for tasks"]) == ["for tasks"]
    assert found({}, phase="queued") == []


def test_a_driver_that_knows_no_host_yet() -> None:
    """The ResourceManager has to name them."""
    (sentence,) = waits(status_of({"hosts": []}), container_of({"phase": "queued"}))
    assert "ResourceManager" in sentence


def test_incarnations_of_an_earlier_driver_hold_back_what_is_queued() -> None:
    """One runs, two run."""
    one = found({"unaccounted": ["1@3"]}, phase="queued")
    two = found({"unaccounted": ["1@3", "2@1"]}, phase="queued")
    assert one == ["until it is known whether 1@3 still runs, permitted by an earlier driver"]
    assert "1@3, 2@1 still run," in two[0]
    assert found({"unaccounted": ["1@3"]}, phase="running") == []


def test_what_is_in_the_way_on_each_host() -> None:
    """By the host, with the time since when; where nothing is known, that is said."""
    waiter = {"processor_id": "0", "since_ms": None, "obstacles": {"nm1": "has 10 MB free"}}
    other = {**waiter, "processor_id": "1"}
    waiting = {
        "processors": [other, waiter],
        "needs": {"memory_mb": 512, "cores": 1},
        "hosts": {"nm2": "is lost", "nm3": ""},
    }
    line = "for 512 MB and 1 core: nm1 has 10 MB free; nm2 is lost"
    assert found({"waiting": waiting}, phase="running") == [line]
    free = {**waiter, "obstacles": {}, "since_ms": 1_000}
    waiting = {**waiting, "processors": [free], "hosts": {}}
    (sentence,) = found({"waiting": waiting}, phase="running")
    began = "for 512 MB and 1 core since 1970-01-01 00:00:01 UTC"
    assert sentence == f"{began}: nothing is known to be in the way"


def test_a_failover_that_its_parts_wait_for() -> None:
    """The active one for the stop of its standby, then for a start; the standby for its stop."""
    failover = {"active": "0", "standby": "0-0", "host": "nm2", "waits_for": "0-0@1"}
    awaited = {"failovers": [failover]}
    assert found(awaited, phase="running") == [
        "for the stop of its standby 0-0 on nm2, whose place it takes"
    ]
    (sentence,) = waits(
        status_of(HOSTS | awaited), container_of({"processor_id": "0-0", "phase": "running"})
    )
    assert sentence == "until it has made way on nm2 for processor 0"
    starting = {"failovers": [failover | {"waits_for": None, "host": None}]}
    assert found(starting, phase="running") == ["to start on any host, as it fails over"]
    assert not list(
        waits(
            status_of(HOSTS | starting), container_of({"processor_id": "0-0", "phase": "running"})
        )
    )


def test_commands_changes_and_silent_hosts() -> None:
    """An operator's command, owners of its tasks that stop, a home whose launchers are silent."""
    expected = "0-warm@1 has 5 records left to read"
    placement = {"processor_id": "0", "destination": "nm2", "step": "warming", "waits": expected}
    change = {"waits": {"0": ["1", "2"]}}
    status = {"placements": [placement], "change": change, "excluded_hosts": ["nm1"]}
    assert found(status, phase="running", last_host="nm1") == [
        f"for an operator's command to nm2: warming, {expected}",
        "for the stop of 1, 2, which own tasks of it",
        "while nm1 is not asked, as its launchers fell silent",
    ]
    of_an_older_am = {"placements": [{k: v for k, v in placement.items() if k != "waits"}]}
    assert found(of_an_older_am, phase="running") == ["for an operator's command to nm2: warming"]
    others = {"placements": [placement | {"processor_id": "1"}]}
    assert found(others, phase="running") == []


def test_a_long_list_is_cut() -> None:
    """Twenty names, and how many more there are."""
    names = [str(n) for n in range(22)]
    assert listed(names).endswith("19 and 2 more")
    assert listed(names[:2]) == "0, 1"
