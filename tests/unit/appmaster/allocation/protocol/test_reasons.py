"""Why the allocator decided what it decided: of each kind one decision, and its sentence."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from homeport.appmaster.allocation.container_process_manager import Decision, step
from homeport.appmaster.allocation.protocol.events import ChargedFailures, Event
from homeport.appmaster.allocation.protocol.reasons import Reason, ReasonKind
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.outcomes import StopCause
from tests.unit.appmaster.allocation.conftest import (
    Machine,
    MachineWith,
    check_in,
    ended,
    exclusion_over,
    expired,
    job,
    live,
    model,
    silent,
    stopped,
)
from tests.unit.appmaster.allocation.test_exclusion import observed, report


def stated(machine: Machine, *events: Event) -> list[str]:
    """The sentences that these events led to."""
    return [str(reason) for event in events for reason in machine.decide(event).reasons]


def test_every_kind_has_a_sentence() -> None:
    """Also a reason without a processor."""
    for kind in ReasonKind:
        sentence = str(Reason(kind))
        assert sentence[0].isupper(), sentence
        assert "{" not in sentence
        assert not sentence.endswith(".")


def test_a_detail_follows_its_sentence() -> None:
    """Ids keep their letters as they are."""
    reason = Reason(ReasonKind.CHARGED, ProcessorId("a-B"), Host("nm1"), detail="exit code 7")
    assert str(reason) == ("Processor a-B failed, which is charged to its retries: exit code 7")


def test_reasons_take_no_part_in_comparisons() -> None:
    """Two decisions that differ in their reasons only are equal."""
    machine = Machine()
    decision = step(machine.state, model({"0": None}))
    assert decision == Decision(decision.state, decision.records, decision.instructions)


def deployed(machine: Machine, *hosts: str) -> Machine:
    """Processors 0 and 1 run at home on a and b."""
    machine.deploy({"0": "a", "1": "b"}, *(hosts or ("a", "b", "c")))
    machine.run("0", "r0", "a", request=1)
    machine.run("1", "r1", "b", request=2)
    return machine


def test_a_launcher_serves_the_container_whose_home_its_host_is(machine: Machine) -> None:
    """The container that requested it requests again."""
    machine.deploy({"0": "a", "1": None}, "a", "b")
    assert stated(machine, check_in("r0", "a", request=2)) == [
        ("Processor 1 requests again: its launcher, on a, serves processor 0: its home is there"),
        "Processor 0 gets a launcher on a, the host with its state",
        "Processor 0 is permitted to start on a: epoch 1, JobModel version 1",
        "Processor 1 asks for b, the best other host: it has no home yet",
    ]


def test_failures_charged_by_an_earlier_driver_still_count(machine: Machine) -> None:
    """Also when it is too much."""
    failures = {
        ProcessorId("0"): ChargedFailures(1, 1_000),
        ProcessorId("1"): ChargedFailures(3, 1_000),
    }
    reasons = stated(machine, replace(model({"0": "a", "1": "b"}), failures=failures))
    assert "What an earlier driver charged to processor 0 still counts: 1 of them" in reasons
    assert any(r.startswith("Processor 1 is given up, as its retries are used up") for r in reasons)


def test_a_launcher_that_is_lost_before_it_is_used(machine: Machine) -> None:
    """It was set aside for a container that had to start again there."""
    deployed(machine)
    machine.feed(stopped("0", 1))
    assert stated(machine, ended(1, story="preempted")) == [
        (
            "Processor 0 lost the launcher on a that was set aside for it: "
            "its YARN container ended: preempted"
        ),
        "Processor 0 asks for a, the host with its state",
    ]


def test_yarns_report_of_an_end_is_no_evidence_but_is_used(machine: Machine) -> None:
    """Home is requested early; the request is used with the evidence, or withdrawn."""
    deployed(machine)
    assert stated(machine, ended(1, story="killed")) == [
        (
            "YARN calls the container of processor 0 on a ended: it is waited for the evidence "
            "that what ran in it has stopped: killed"
        ),
        (
            "Host a is requested early for processor 0: YARN calls its container there "
            "ended, and the evidence that it has stopped is waited for"
        ),
    ]
    assert stated(machine, stopped("0", 1, StopCause.SIGNALLED, 143))[-1] == (
        "Processor 0 has stopped, and takes over the early request for a"
    )
    machine.feed(ended(2))
    assert stated(machine, live("a", "c"))[-1] == (
        "Processor 1 does not need the early request for b"
    )


def test_a_host_whose_launchers_fell_silent_is_excluded_probed_and_excluded_again(
    machine: Machine,
) -> None:
    """Its requests are withdrawn; it is open again when a launcher there checks in."""
    machine.deploy({"0": "a", "1": "a"}, "a", "b", "c")
    machine.run("0", "r0", "a", request=1)
    falls = stated(machine, silent("r0"))
    assert falls[:2] == [
        "Host a is not requested now, as all its launchers fell silent: the last of them just now",
        "Processor 1 asks for a no more: its launchers fell silent",
    ]
    assert "Processor 0 asks for b, the best other host: the launchers of a fell silent" in falls
    assert stated(machine, exclusion_over("a"))[0] == "Host a may get one request, as a probe"
    assert stated(machine, check_in("r9", "a"))[0] == (
        "Host a may be requested again: a launcher there checked in"
    )


def test_a_probe_that_fails(machine: Machine) -> None:
    """The host is excluded again, and forgotten when the ResourceManager calls it lost."""
    machine.at_home({"0": "a"}, "b", "c")
    machine.feed(silent("r0"), expired(2), expired(3), exclusion_over("a"))
    machine.feed(expired(4))
    asked = machine.container("0").request_id
    assert asked is not None
    assert machine.container("0").requested_host == "a"
    assert stated(machine, expired(asked))[1] == (
        "Host a is not requested now, as all its launchers fell silent: "
        "no launcher came of the probe"
    )
    assert stated(machine, live("b", "c"))[0] == (
        "Host a may be requested again: the ResourceManager calls it lost, and is believed"
    )


def test_an_only_host_is_not_excluded(machine: Machine) -> None:
    """Where the others are lost there is nothing else to ask."""
    machine.at_home({"0": "a"}, "b", "c")
    machine.feed(silent("r0"))
    assert "Host a may be requested again: it is the only host, and is believed" in stated(
        machine, live("a")
    )


def test_most_hosts_at_once_are_our_own_fault(machine: Machine) -> None:
    """Two of three."""
    deployed(machine)
    machine.feed(silent("r0"))
    assert stated(machine, silent("r1"))[0] == (
        "More than half of all hosts fell silent at once, b the last: the fault is taken to be "
        "the AM's own, and no host is excluded: a, b"
    )


def test_a_host_that_is_lost_while_it_is_requested(machine: Machine) -> None:
    """By the ResourceManager's word."""
    machine.deploy({"0": "a"}, "a", "b")
    assert stated(machine, live("b")) == [
        "Processor 0 asks for a no more: the ResourceManager does not call it live",
        "Processor 0 asks for b, the best other host: a is not live",
    ]


@pytest.mark.parametrize(
    ("cause", "why"),
    [
        (
            StopCause.CUT_OFF,
            "A launcher is released, as its host a is cut off from Kafka, or from the AM: r0",
        ),
        (StopCause.NO_PACKAGE, "A launcher is released, as it cannot have its package on a: r0"),
    ],
)
def test_a_launcher_of_no_use_is_released(machine: Machine, cause: StopCause, why: str) -> None:
    """Its host keeps it from its work."""
    deployed(machine)
    assert why in stated(machine, stopped("0", 1, cause))


def test_a_cluster_that_is_too_small_gets_no_request(machine_with: MachineWith) -> None:
    """With what one needs, and what there is at most."""
    machine = machine_with(container_memory_mb=1024, container_cores=1)
    machine.feed(model({"0": None}), observed(report("a")))
    (found, *_) = stated(machine, observed(report("a", 512)))
    assert found.startswith("No host is requested, as none can hold a container: one needs 1024 MB")


def test_a_mixed_container_that_cannot_go_home_gives_its_tasks_away(
    machine_with: MachineWith,
) -> None:
    """Its host is lost, where standby containers have no part."""
    machine = machine_with(mixes_roles=True).at_home({"0": "a"}, "c")
    line = "Processor 0 cannot go home: its tasks go to where their standbys are: a"
    assert any(line.startswith(found) for found in stated(machine, silent("r0")))


def test_a_mixed_container_waits_for_its_home(machine_with: MachineWith) -> None:
    """Until it is back, or a probe has failed."""
    machine = machine_with(mixes_roles=True).at_home({"0": "a", "1": "b", "2": "c"})
    line = "Processor 0 waits for a, its home: each other host has a container of the job"
    assert line in stated(machine, silent("r0"))


def test_every_kind_is_given_by_a_decision() -> None:
    """/v1/events promises each kind: a transcript has its sentence, or a test of this module."""
    here = Path(__file__)
    stories = [here, *(here.parents[4] / "transcripts").glob("*.txt")]
    told = "".join(story.read_text(encoding="utf-8") for story in stories)
    for kind in ReasonKind:
        sentence = str(Reason(kind, ProcessorId("P"), Host("H"), ProcessorId("O")))
        assert re.search(re.sub(r"\b[PHO]\b", r"[\\w-]+", re.escape(sentence)), told), sentence


def with_standby(machine: Machine, *hosts: str) -> Machine:
    """Processor 0 runs on a, its standby on b."""
    machine.feed(job({"0": "a", "0-0": "b"}), live(*hosts))
    machine.run("0", "r0", "a", request=1)
    machine.run("0-0", "r1", "b", request=2)
    return machine


def test_a_failover_to_the_last_host_of_a_standby_that_does_not_run(machine: Machine) -> None:
    """It is requested as any home is."""
    machine.feed(job({"0": "a", "0-0": "b"}), live("a", "b", "c"))
    machine.run("0", "r0", "a", request=1)
    assert (
        "Processor 0 goes to b, where its standby, processor 0-0, ran last and does not run now"
        in stated(machine, silent("r0"))
    )
