"""What ``homeport explain`` and ``homeport what-if`` make of the job coordinator's answers."""

from __future__ import annotations

from typing import Any

import pytest
from statuses import container_of, status_of

from homeport.cli.job import drain_command, explain_command
from homeport.config.errors import ConfigError, HomeportError
from homeport.job_coordinator.model.ids import Host


def container(**changes: object) -> dict[str, Any]:
    """Processor 0, which runs on nm1."""
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


def event(**changes: object) -> dict[str, Any]:
    """One that decided something of processor 0, and of processor 1."""
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


def explained(
    stated: dict[str, Any], *events: dict[str, Any], status: dict[str, Any] | None = None
) -> list[str]:
    """The account."""
    body = {"since_ms": 0, "events": list(events)}
    return list(
        explain_command.explanation(
            status_of(status or {"hosts": ["nm1"]}), container_of(stated), body
        )
    )


def test_the_account_of_a_processor_that_runs() -> None:
    """Where, since when, by what; what concerns others alone is left out."""
    assert explained(container(), event()) == [
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
    assert explained(container(recovery=recovery))[2] == f"  {line}"


def test_the_account_of_a_standby_that_failed() -> None:
    """Whose it is, where it was, what counts against it."""
    stated = container(
        processor_id="0-0",
        replica_of="0",
        phase="requested",
        host=None,
        requested_host="nm2",
        model_version=None,
        failures=2,
        last_failure="exit code 1",
    )
    assert explained(stated, status={"hosts": ["nm1"], "excluded_hosts": ["nm1"]}) == [
        "processor 0-0 (standby of processor 0): epoch 3",
        "  requested since 1970-01-01 00:00:01.500; it was on nm1 before",
        "  waits: for a container on nm2",
        "  waits: while nm1 is not asked, as its launchers fell silent",
        "  failures that count against its retries: 2",
        "  last failure: exit code 1",
        "",
        "nothing was decided of it since 1970-01-01 00:00:00.000",
    ]


@pytest.mark.parametrize(
    ("stated", "wait"),
    [
        ({"phase": "requested", "requested_host": None}, "for a container on any host"),
        ({"phase": "allocated", "requested_host": "a"}, "for the launcher on a to check in"),
        ({"phase": "queued", "requested_host": "a"}, "for its turn at a, which another requests"),
        ({"phase": "backing-off"}, "for its retry delay to pass"),
        ({"phase": "starting"}, "for its report that its stores are restored"),
        ({"phase": "stopping"}, "for the evidence that it has stopped"),
    ],
)
def test_explain_says_what_a_processor_waits_for(stated: dict[str, object], wait: str) -> None:
    """By its phase."""
    assert f"  waits: {wait}" in explained(container(**stated))


def test_a_processor_waits_for_hosts_and_for_former_owners() -> None:
    """What the status says beside the container's own part."""
    queued = container(phase="queued", host=None)
    assert "  waits: for the ResourceManager's word of the hosts" in explained(
        queued, status={"hosts": []}
    )
    status = {"hosts": ["a"], "change": {"waits": {"0": ["1@4", "2@1"]}}}
    waits = "  waits: for the stop of 1@4, 2@1, which own tasks of it"
    assert waits in explained(container(phase="assigned"), status=status)


def test_a_new_driver_waits_for_containers_it_has_not_placed() -> None:
    """By name, for containers that are not placed meanwhile; not for one that runs."""
    waits = "  waits: until it is known whether {} still {}, permitted by an earlier driver"
    queued, one, two = container(phase="queued"), ["1@4"], ["0@3", "1@4"]
    assert waits.format("1@4", "runs") in explained(queued, status={"unaccounted": one})
    assert waits.format("0@3, 1@4", "run") in explained(queued, status={"unaccounted": two})
    assert not any("waits" in x for x in explained(container(), status={"unaccounted": one}))


def test_a_shortage_is_reported_host_by_host() -> None:
    """Its own obstacles first, then everybody's; since when; of other processors nothing."""
    waiting: dict[str, Any] = {
        "needs": {"memory_mb": 1024, "cores": 2},
        "processors": [
            {"processor_id": "9", "since_ms": 5, "asks": None, "obstacles": {"c": "is full"}},
            {
                "processor_id": "0",
                "since_ms": 1000,
                "asks": "a",
                "obstacles": {"a": "gave it no container in time"},
            },
        ],
        "hosts": {"a": "", "b": "is lost"},
    }
    stated = explained(container(phase="requested"), status={"hosts": ["a"], "waiting": waiting})
    assert (
        "  waits: for 1024 MB and 2 cores since 1970-01-01 00:00:01.000: "
        "a gave it no container in time; b is lost"
    ) in stated
    waiting["processors"][1].update(since_ms=None, obstacles={})
    waiting["hosts"] = {"a": ""}
    stated = explained(container(phase="requested"), status={"hosts": ["a"], "waiting": waiting})
    assert "  waits: for 1024 MB and 2 cores: nothing is known to be in the way" in stated


def test_a_processor_waits_for_its_standby_and_for_commands() -> None:
    """An active that fails over, the standby that stops for it, and an operator's request."""
    failover = {"active": "0", "standby": "0-0", "host": "b", "waits_for": "0-0@3"}
    status = {"hosts": ["b"], "failovers": [failover]}
    active, standby = container(phase="failing-over"), container(processor_id="0-0")
    assert "  waits: for the stop of its standby 0-0 on b, whose place it takes" in explained(
        active, status=status
    )
    assert "  waits: until it has made way on b for processor 0" in explained(
        standby, status=status
    )
    failover["waits_for"] = ""
    assert "  waits: to start on b, as it fails over" in explained(active, status=status)
    assert not any("waits" in line for line in explained(standby, status=status))
    command = {"processor_id": "0", "destination": "nm3", "step": "reserving"}
    assert "  waits: for an operator's command to nm3: reserving" in explained(
        container(), status={"hosts": ["b"], "placements": [command, {"processor_id": "1"}]}
    )


def test_an_unknown_processor_gives_one_line() -> None:
    """It names those that there are, or the first of them."""
    known = status_of({"containers": [{"processor_id": str(n)} for n in range(25)]})
    line = r"^the job has no processor 'x': it has 0, 1, .* and 5 more$"
    with pytest.raises(HomeportError, match=line):
        explain_command.find(known, "x")
    with pytest.raises(HomeportError, match=r"it has none yet$"):
        explain_command.find(status_of({}), "x")
    assert explain_command.find(known, "24").processor_id == "24"


def fate(**changes: object) -> dict[str, Any]:
    """Processor 0, which would go from nm1 to nm2."""
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
    return list(drain_command.outlook(answer, with_reasons=why))


def test_which_container_takes_over_where() -> None:
    """A takeover, a new start, and one that is gone."""
    fates = (
        fate(takes_over="0-0"),
        fate(processor_id="0-0", role="standby", replica_of="0", **{"from": "nm2", "to": "nm3"}),
        fate(processor_id="9", phase=None, to=None),
    )
    assert outlook(*fates) == [
        "if nm1 were lost now: 3 of the job's containers would be affected",
        "  0 (active): nm1 -> nm2, in the place of its standby 0-0",
        "  0-0 (standby of 0): nm2 -> nm3, restarted",
        "  9 (active): gone from nm1",
        "all can be placed",
    ]


def test_which_container_cannot_be_placed_and_why() -> None:
    """And what else people should know of such a loss."""
    lines = outlook(
        fate(is_placed=False, to=None, phase="requested", why=["It got none", "It asks again"]),
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
    assert outlook(fate(), why=True)[2] == "      Processor 0 has started on nm2"


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
