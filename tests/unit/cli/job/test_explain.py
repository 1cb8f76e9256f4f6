"""What ``homeport explain`` and ``homeport what-if`` make of the job coordinator's answers."""

from __future__ import annotations

from typing import Any

import pytest
from statuses import container_of, status_of

from homeport.cli.job import drain_command, explain_command
from homeport.config.errors import ConfigError, HomeportError
from homeport.job_coordinator.model.ids import Host
from homeport.job_coordinator.model.wire_form import value_of
from homeport.job_coordinator.status.outlook import ShownOutlook


def _container(**changes: object) -> dict[str, Any]:
    return {
        "processor_id": "0",
        "role": "active",
        "phase": "running",
        "host": "nm1",
        "last_host": "nm1",
        "requested_host": None,
        "since_ms": 1_500,
        "epoch": 3,
        "model_version": 2,
        "failures": 0,
        "last_failure": None,
        **changes,
    }


def _event(**changes: object) -> dict[str, Any]:
    reasons = [
        {"processor_id": "0", "other": None, "sentence": "Processor 0 asks for nm2"},
        {"processor_id": "1", "other": None, "sentence": "Processor 1 rests"},
        {"processor_id": None, "other": None, "sentence": "Host nm1 is not asked for now"},
    ]
    return {
        "at_ms": 2_000,
        "cause": "LauncherSilent r0",
        "reasons": reasons,
        "records": ["EndFailover active=0"],
        "instructions": ["RequestResource 7 on nm2"],
        **changes,
    }


def _explained(
    stated: dict[str, Any], *events: dict[str, Any], status: dict[str, Any] | None = None
) -> list[str]:
    body = {"since_ms": 0, "events": list(events)}
    return list(
        explain_command.explanation(
            status_of(status or {"hosts": ["nm1"]}), container_of(stated), body
        )
    )


def test_the_account_of_a_processor_that_runs() -> None:
    """Where, since when, by what; what concerns others alone is left out."""
    assert _explained(_container(), _event()) == [
        "processor 0 (active): epoch 3, JobModel version 2",
        "  running on nm1 since 1970-01-01 00:00:01.500",
        "",
        "last decisions since 1970-01-01 00:00:00.000:",
        "  1970-01-01 00:00:02.000  LauncherSilent r0",
        "      Processor 0 asks for nm2",
        "      Host nm1 is not asked for now",
        "      -> EndFailover active=0",
        "      -> RequestResource 7 on nm2",
    ]


RECOVERY = {
    "cause": "launcher-silent",
    "kind": "failover",
    "from": "nm1",
    "to": "nm2",
    "began_ms": 1_000,
    "phases_ms": {"detect": 3600, "decide": 0, "stop": 450, "first-batch": 50},
    "total_ms": 4100,
    "is_over": True,
}


@pytest.mark.parametrize(
    ("recovery", "line"),
    [
        (
            RECOVERY,
            (
                "last recovery: failover, nm1 to nm2, launcher-silent at 1970-01-01 00:00:01.000, "
                "4.10 s: detect 3.60, stop 0.45, first-batch 0.05"
            ),
        ),
        (
            RECOVERY
            | {"kind": None, "to": None, "from": None, "is_over": False, "phases_ms": {"stop": 0}},
            (
                "recovers: a host to a place that is sought, launcher-silent at "
                "1970-01-01 00:00:01.000, 4.10 s: none"
            ),
        ),
    ],
)
def test_the_last_recovery_in_one_line(recovery: dict[str, Any], line: str) -> None:
    """Phase by phase, in seconds; one that is under way says so."""
    assert _explained(_container(recovery=recovery))[2] == f"  {line}"


def test_the_account_of_a_standby_that_failed() -> None:
    """Whose it is, where it was, what counts against it."""
    stated = _container(
        processor_id="0-0",
        replica_of="0",
        phase="requested",
        host=None,
        requested_host="nm2",
        model_version=None,
        failures=2,
        last_failure="exit code 1",
    )
    assert _explained(stated, status={"hosts": ["nm1"], "excluded_hosts": ["nm1"]}) == [
        "processor 0-0 (standby of processor 0): epoch 3",
        "  requested since 1970-01-01 00:00:01.500; it was on nm1 before",
        "  waits: for a container on nm2",
        "  waits: while nm1 is not asked, as its launchers fell silent",
        "  failures that count against its retries: 2",
        "  last failure: exit code 1",
        "",
        "nothing was decided of it since 1970-01-01 00:00:00.000",
    ]


_NEEDS = {"memory_mb": 1024, "cores": 2}
_OTHER = {"processor_id": "9", "since_ms": 5, "asks": None, "obstacles": {"c": "is full"}}
_OWN = {"processor_id": "0", "since_ms": 1000, "asks": "a", "obstacles": {"a": "gave it none"}}
_CLEAR = {**_OWN, "since_ms": None, "obstacles": {}}
_HOSTS = {"a": "", "b": "is lost"}
_SHORT = {"waiting": {"needs": _NEEDS, "processors": [_OTHER, _OWN], "hosts": _HOSTS}}
_NO_LONGER = {"waiting": {"needs": _NEEDS, "processors": [_OTHER, _CLEAR], "hosts": {"a": ""}}}
_FAILOVER = {"active": "0", "standby": "0-0", "host": "b", "waits_for": "0-0@3"}
_FAILS_OVER, _STARTS = ({"failovers": [{**_FAILOVER, "waits_for": x}]} for x in ("0-0@3", ""))
_COMMAND = {"processor_id": "0", "destination": "nm3", "step": "reserving"}


@pytest.mark.parametrize(
    ("phase", "status", "waits"),
    [
        ("requested", {}, "for a container on any host"),
        ("allocated at a", {}, "for the launcher on a to check in"),
        ("queued at a", {}, "for its turn at a, which another requests"),
        ("backing-off", {}, "for its retry delay to pass"),
        ("starting", {}, "for its report that its stores are restored"),
        ("stopping", {}, "for the evidence that it has stopped"),
        ("queued", {"hosts": []}, "for the ResourceManager to name its hosts"),
        (
            "assigned",
            {"change": {"waits": {"0": ["1@4", "2@1"]}}},
            "for the stop of 1@4, 2@1, which own tasks of it",
        ),
        (
            "queued",
            {"unaccounted": ["1@4"]},
            "until it is known whether 1@4 still runs, permitted by an earlier driver",
        ),
        (
            "queued",
            {"unaccounted": ["0@3", "1@4"]},
            "until it is known whether 0@3, 1@4 still run, permitted by an earlier driver",
        ),
        ("running", {"unaccounted": ["1@4"]}, ""),
        (
            "requested",
            _SHORT,
            "for 1024 MB and 2 cores since 1970-01-01 00:00:01 UTC: a gave it none; b is lost",
        ),
        ("requested", _NO_LONGER, "for 1024 MB and 2 cores: nothing is known to be in the way"),
        ("failing-over", _FAILS_OVER, "for the stop of its standby 0-0 on b, whose place it takes"),
        ("running as 0-0", _FAILS_OVER, "until it has made way on b for processor 0"),
        ("failing-over", _STARTS, "to start on b, as it fails over"),
        ("running as 0-0", _STARTS, ""),
        (
            "running",
            {"placements": [_COMMAND, {"processor_id": "1"}]},
            "for an operator's command to nm3: reserving",
        ),
    ],
)
def test_explain_says_what_a_processor_waits_for(
    phase: str, status: dict[str, Any], waits: str
) -> None:
    """By its phase, and last by what the status says beside the container's own part."""
    phase, _, processor = phase.partition(" as ")
    phase, _, host = phase.partition(" at ")
    stated = _container(phase=phase, processor_id=processor or "0", requested_host=host or None)
    found = _explained(stated, status={"hosts": ["a"], **status})
    waited = [line.removeprefix("  waits: ") for line in found if line.startswith("  waits: ")]
    assert (waited or [""])[-1] == waits


def test_what_a_mixed_container_keeps() -> None:
    """Its standbys, and how far they are."""
    found = _explained(_container(standbys=[{"name": "a", "lag": 4}]))
    assert "  it keeps 1 standby: 1 behind, the furthest by 4 records" in found


def test_an_unknown_processor_gives_one_line() -> None:
    """It names those that there are, or the first of them."""
    known = status_of({"containers": [{"processor_id": str(n)} for n in range(25)]})
    line = r"^the job has no processor 'x': it has 0, 1, .* and 5 more$"
    with pytest.raises(HomeportError, match=line):
        explain_command.find(known, "x")
    with pytest.raises(HomeportError, match=r"it has none yet$"):
        explain_command.find(status_of({}), "x")
    assert explain_command.find(known, "24").processor_id == "24"


def _fate(**changes: object) -> dict[str, Any]:
    return {
        "processor_id": "0",
        "role": "active",
        "replica_of": None,
        "from": "nm1",
        "to": "nm2",
        "phase": "running",
        "is_placed": True,
        "takes_over": None,
        "why": ["Processor 0 has started on nm2"],
        **changes,
    }


def outlook(*fates: dict[str, Any], why: bool = False, **changes: object) -> list[str]:
    """What is printed of this answer."""
    answer = {
        "hosts": ["nm1"],
        "containers": list(fates),
        "unplaced": [f["processor_id"] for f in fates if not f["is_placed"]],
        "notes": ["The job ends"],
        "shortage": None,
        "suspects_itself": False,
        "job": "active",
        "is_settled": True,
        **changes,
    }
    return list(drain_command.outlook(value_of(ShownOutlook, answer, "x"), with_reasons=why))


def test_which_container_takes_over_where() -> None:
    """A takeover, a new start, and one that is gone."""
    fates = (
        _fate(takes_over="0-0"),
        _fate(processor_id="0-0", role="standby", replica_of="0", **{"from": "nm2", "to": "nm3"}),
        _fate(processor_id="9", phase=None, to=None),
    )
    assert outlook(*fates) == [
        "if nm1 were lost now: 3 of the job's containers would be affected",
        "  0 (active): nm1 -> nm2, in the place of its standby 0-0",
        "  0-0 (standby of 0): nm2 -> nm3, restarted",
        "  9 (active): gone from nm1",
        "all can be placed",
    ]


def test_where_the_tasks_of_mixed_containers_go() -> None:
    """To those with their standbys, in the running processes."""
    moved = {"0": {"1": 2, "2": 3}, "3": {"1": 1}}
    assert outlook(_fate(), tasks_moved=moved, unbacked=1) == [
        "if nm1 were lost now: 1 of the job's containers would be affected",
        "  0 (active): nm1 -> nm2, restarted",
        "tasks of 0: 2 to 1, 3 to 2",
        "tasks of 3: 1 to 1",
        "5 of them start on a standby, 1 without one",
        "all can be placed",
    ]
    assert outlook(_fate(), tasks_moved={"0": {}})[2:] == [
        "tasks of 0: they wait for it",
        "all can be placed",
    ]


def test_which_container_cannot_be_placed_and_why() -> None:
    """And what else people should know of such a loss."""
    lines = outlook(
        _fate(is_placed=False, to=None, phase="requested", why=["It got none", "It asks again"]),
        suspects_itself=True,
        shortage="waiting for 1 container",
        job="ending",
        is_settled=False,
    )
    assert lines[1] == "  0 (active): nm1 -> nowhere, requested"
    assert lines[2] == "The job ends"
    assert lines[3].startswith("that is more than half of all hosts")
    assert lines[4:] == [
        "cannot be placed: 0",
        "then waiting for 1 container",
        "the job would be ending",
        "it was not looked any further: that much would happen",
    ]


def test_the_reasons_are_printed_on_request() -> None:
    """Each below its container."""
    assert outlook(_fate(), why=True)[2] == "      Processor 0 has started on nm2"


def test_a_host_that_the_job_does_not_know_is_named_with_those_that_it_does() -> None:
    """In one line: what was given, what is wrong with it, what to give instead."""
    status = status_of({"hosts": ["nm2"], "containers": [{"host": "nm1"}, {"host": None}]})
    drain_command.require_known([Host("nm1"), Host("nm2")], status)
    with pytest.raises(ConfigError) as caught:
        drain_command.require_known([Host("nm1"), Host("nm7")], status)
    assert str(caught.value) == (
        "--host = 'nm7': the job knows no host of that name; give one of nm1, nm2"
    )
    with pytest.raises(ConfigError, match="it knows none yet: ask later"):
        drain_command.require_known([Host("nm7")], status_of({}))
