"""Why the allocator decided what it decided: of each kind one decision, and its sentence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from homeport.appmaster import allocation
from homeport.appmaster.allocation.container_process_manager import Decision, step
from homeport.appmaster.allocation.protocol.events import ChargedFailures, Event, ShutdownRequested
from homeport.appmaster.allocation.protocol.reasons import Reason, ReasonKind
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.outcomes import StopCause
from tests.unit.appmaster.allocation.conftest import (
    Machine,
    MachineWith,
    allocated,
    check_in,
    ended,
    exclusion_over,
    expired,
    inc,
    job,
    live,
    model,
    rest_over,
    silent,
    started,
    stopped,
    window_over,
)


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


def test_home_is_requested_then_the_best_other_host_then_any(machine: Machine) -> None:
    """Each with what was in the way of home."""
    assert stated(machine, model({"0": "a"}), live("a", "b")) == [
        "Processor 0 is in the JobModel, and is to be placed: version 1",
        "Processor 0 asks for a, the host with its state",
    ]
    assert stated(machine, expired(1)) == [
        "Processor 0 got no container on a in time: 5000 ms",
        "Processor 0 asks for b, the best other host: a had no room, or launched nothing",
    ]
    assert stated(machine, expired(2)) == [
        "Processor 0 got no container on b in time: 5000 ms",
        (
            "Processor 0 asks for any host, as no host is left to ask for by name: "
            "a had no room, or launched nothing"
        ),
    ]


def test_a_failure_is_charged_with_its_story(machine: Machine) -> None:
    """And the same launcher is taken again."""
    machine.deploy({"0": "a"}, "a", "b")
    machine.run("0", "r1", "a", request=1)
    assert stated(machine, stopped("0", 1, StopCause.FAILED, 7)) == [
        (
            "Processor 0 failed, which is charged to its retries: "
            "0@1 on a: failed, exit code 7; failure 1, 2 are forgiven"
        ),
        "Processor 0 starts again on its launcher on a, which lives",
    ]
    assert stated(machine, check_in("r1", "a", request=1)) == [
        "Processor 0 is permitted to start on a: epoch 2, JobModel version 1"
    ]


def deployed(machine: Machine, *hosts: str) -> Machine:
    """Processors 0 and 1 run at home on a and b."""
    machine.deploy({"0": "a", "1": "b"}, *(hosts or ("a", "b", "c")))
    machine.run("0", "r0", "a", request=1)
    machine.run("1", "r1", "b", request=2)
    return machine


def test_a_host_that_is_requested_for_another_container_is_waited_for(machine: Machine) -> None:
    """Once, not with every event; the turn comes when the host has served the first."""
    assert stated(machine, model({"0": "a", "1": "a"}), live("a"))[2:] == [
        "Processor 0 asks for a, the host with its state",
        "Processor 1 waits for its turn at a, which another requests",
    ]
    assert stated(machine, allocated(1)) == [
        "Processor 0 was granted a container, whose launcher is to check in",
        "Processor 1 asks for a, the host with its state",
    ]


def test_without_host_affinity_no_home_is_sought(machine_with: MachineWith) -> None:
    """It says so, and so does a processor that never ran."""
    machine = machine_with(host_affinity_enabled=False)
    asked = stated(machine, model({"0": "a"}), live("a"))[-1]
    assert asked == "Processor 0 asks for a, the best other host: host affinity is off"
    asked = stated(Machine(), model({"0": None}), live("a"))[-1]
    assert asked == "Processor 0 asks for a, the best other host: it has no home yet"


def test_home_that_cannot_be_requested_by_name(machine_with: MachineWith) -> None:
    """It joined after submission."""
    machine = machine_with(strict_hosts=(Host("a"),))
    machine.feed(live("a", "b"))
    assert stated(machine, model({"0": "b"}))[-1] == (
        "Processor 0 asks for a, the best other host: "
        "b joined after submission and cannot be asked for by name"
    )


def test_a_launcher_starts_its_own_processor(machine: Machine) -> None:
    """From the check-in to the start."""
    machine.deploy({"0": "a"}, "a")
    assert stated(machine, check_in("r0", "a", request=1), started("0", 1)) == [
        "Processor 0 gets the launcher of its own request, on a",
        "Processor 0 is permitted to start on a: epoch 1, JobModel version 1",
        "Processor 0 has started on a: epoch 1",
    ]


def test_a_launcher_serves_the_container_whose_home_its_host_is(machine: Machine) -> None:
    """The container that requested it requests again."""
    machine.deploy({"0": "a", "1": None}, "a", "b")
    assert stated(machine, check_in("r0", "a", request=2)) == [
        ("Processor 1 requests again: its launcher, on a, serves processor 0: its home is there"),
        "Processor 0 gets a launcher on a, the host with its state",
        "Processor 0 is permitted to start on a: epoch 1, JobModel version 1",
        "Processor 1 asks for b, the best other host: it has no home yet",
    ]


def test_a_launcher_without_a_request_serves_any_container(machine: Machine) -> None:
    """A container without a home."""
    machine.deploy({"0": None}, "a", "b")
    assert stated(machine, check_in("r0", "b"))[0] == (
        "Processor 0 gets a launcher on b that none there seeks"
    )


def test_a_surplus_is_kept_used_and_released(machine: Machine) -> None:
    """Kept while a container waits for another host, used when that expires, else released."""
    machine.deploy({"0": "a"}, "a", "b")
    assert stated(machine, check_in("r1", "b"), check_in("r2", "b")) == [
        "A launcher on b fits none now, and is kept while one seeks a place: r1",
        "A launcher on b fits none now, and is kept while one seeks a place: r2",
    ]
    assert stated(machine, expired(1)) == [
        "Processor 0 got no container on a in time: 5000 ms",
        "Processor 0 takes an idle launcher on b: a had no room, or launched nothing",
        "A launcher on b is released, as no container needs it: r2",
    ]


def test_a_successor_waits_for_the_owner_of_its_tasks(machine: Machine) -> None:
    """It holds its launcher, and is permitted when the owner has stopped."""
    deployed(machine)
    owner = {ProcessorId("2"): (inc("0", 1),)}
    change = replace(
        model({"0": "a", "1": "b", "2": "c"}, version=2),
        floors={ProcessorId("0"): 2},
        unfenced=owner,
    )
    assert stated(machine, change) == [
        "Processor 0 is to stop, as the JobModel has changed for it: version 2",
        "Processor 2 is in the JobModel, and is to be placed: version 2",
        "Processor 2 asks for c, the host with its state",
    ]
    assert stated(machine, check_in("r2", "c", request=3)) == [
        "Processor 2 gets the launcher of its own request, on c",
        (
            "Processor 2 is not permitted on c until processor 0, an owner of its tasks, has "
            "stopped: 0@1 may still run"
        ),
    ]
    assert stated(machine, stopped("0", 1, StopCause.ORDERED, 143)) == [
        "Processor 0 has stopped, as it was ordered to: container stopped",
        "Processor 0 starts again on its launcher on a, which lives",
    ]


def test_a_processor_that_is_not_in_the_model_any_more_is_retired(machine: Machine) -> None:
    """What was charged to the others is forgiven, and its launcher is not needed."""
    deployed(machine)
    machine.feed(stopped("0", 1), check_in("r0", "a", request=1))
    assert stated(machine, model({"0": "a"}, version=2)) == [
        "The failures of processor 0 are forgiven: JobModel version 2",
        "Processor 1 is not in the JobModel any more: version 2",
    ]
    assert stated(machine, stopped("1", 1, StopCause.ORDERED, 143)) == [
        "Processor 1 has stopped, as it was ordered to: container stopped",
        "A launcher on b is released, as no container needs it: r1",
    ]


def test_a_given_up_processor_is_tried_again_by_a_new_model(machine_with: MachineWith) -> None:
    """One failure more than is forgiven, and the job goes on without it."""
    machine = deployed(machine_with(retry_count=0, fail_job_after_retries=False))
    assert stated(machine, stopped("0", 1, StopCause.FAILED, 7)) == [
        (
            "Processor 0 failed, which is charged to its retries: "
            "0@1 on a: failed, exit code 7; failure 1, 0 are forgiven"
        ),
        (
            "Processor 0 is given up, as its retries are used up: processor 0 failed 1 times, "
            "cluster-manager.container.retry.count is 0; 0@1 on a: failed, exit code 7"
        ),
        "A launcher on a is released, as no container needs it: r0",
    ]
    assert stated(machine, model({"0": "a", "1": "b"}, version=2)) == [
        "The failures of processor 0 are forgiven: JobModel version 2",
        "Processor 0 is placed again, as the JobModel has changed: version 2",
        "Processor 0 asks for a, the host with its state",
    ]


def test_an_intended_stop_is_not_charged(machine: Machine) -> None:
    """With its story all the same."""
    deployed(machine)
    assert stated(machine, stopped("0", 1, StopCause.SIGNALLED, 143))[0] == (
        "Processor 0 stopped, which is not charged to its retries: "
        "0@1 on a: signalled, exit code 143"
    )


def test_rests_begin_and_end(machine_with: MachineWith) -> None:
    """Before the last retry at home; and the window forgets."""
    machine = deployed(machine_with(retry_count=1, last_retry_delay_ms=9_000))
    assert stated(machine, stopped("0", 1))[1] == (
        "Processor 0 backs off before it is placed again: 9000 ms"
    )
    assert stated(machine, rest_over("0"))[0] == "Processor 0 has backed off and is placed again"
    assert stated(machine, window_over("0")) == [
        "The failures of processor 0 are forgiven: none within the window"
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


def test_a_processor_that_has_finished_ends_and_so_does_the_job(machine: Machine) -> None:
    """Everybody, and the job with them."""
    machine.deploy({"0": "a"}, "a")
    machine.run("0", "r0", "a", request=1)
    assert stated(machine, stopped("0", 1, StopCause.FINISHED, 0)) == [
        "Processor 0 has come to its end",
        "The job ends: SUCCEEDED, every processor finished",
        "A launcher on a is released, as no container needs it: r0",
    ]


def test_a_container_that_is_found_running_runs_on(machine: Machine) -> None:
    """A driver that starts again stops a container that runs on a wrong host."""
    machine.feed(model({"0": "a", "1": "b"}, p0=3, p1=2), live("a", "b"))
    assert stated(machine, check_in("r0", "a", inc("0", 3))) == [
        "Processor 0 was found running on a, and runs on: epoch 3"
    ]
    assert stated(machine, check_in("r1", "b", inc("1", 1))) == [
        (
            "Processor 1 was found running on b, where it must not run: "
            "it is not the incarnation that was permitted last, or not there"
        )
    ]


def test_a_container_that_is_found_running_with_an_outdated_model(machine: Machine) -> None:
    """It is adopted, to be stopped."""
    machine.feed(replace(model({"0": "a"}, p0=3), floors={ProcessorId("0"): 4}), live("a"))
    assert stated(machine, check_in("r0", "a", inc("0", 3))) == [
        "Processor 0 was found running on a, and runs on: epoch 3",
        "Processor 0 is to stop, as the JobModel has changed for it",
    ]


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


def test_an_early_request_that_runs_out(machine: Machine) -> None:
    """It has no other effect."""
    deployed(machine)
    machine.feed(ended(1))
    assert stated(machine, expired(3)) == ["Processor 0 got no container on a in time"]


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
    machine.deploy({"0": "a"}, "a", "b", "c")
    machine.run("0", "r0", "a", request=1)
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
    machine.deploy({"0": "a"}, "a", "b", "c")
    machine.run("0", "r0", "a", request=1)
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


def test_a_shutdown_ends_the_job(machine: Machine) -> None:
    """With what was said of it."""
    deployed(machine)
    assert stated(machine, ShutdownRequested()) == ["The job ends: KILLED, shut down on request"]
    assert stated(machine, stopped("0", 1, StopCause.ORDERED, 143))[0] == (
        "Processor 0 has stopped, as it was ordered to: container stopped"
    )


def test_every_kind_is_given_by_a_decision() -> None:
    """/v1/events promises each kind, so some decision must give it."""
    folder = Path(allocation.__path__[0])
    sources = "".join(f.read_text(encoding="utf-8") for f in folder.rglob("*.py"))
    assert {k for k in ReasonKind if f"ReasonKind.{k.name}" not in sources} == set()


def with_standby(machine: Machine, *hosts: str) -> Machine:
    """Processor 0 runs on a, its standby on b."""
    machine.feed(job({"0": "a", "0-0": "b"}), live(*hosts))
    machine.run("0", "r0", "a", request=1)
    machine.run("0-0", "r1", "b", request=2)
    return machine


def test_a_failover_to_a_standby(machine: Machine) -> None:
    """From the loss of the active's host to its start, and the standby's way."""
    with_standby(machine, "a", "b", "c")
    assert stated(machine, silent("r0")) == [
        "Host a is not requested now, as all its launchers fell silent: the last of them just now",
        (
            "Processor 0 stopped, which is not charged to its retries: "
            "0@1 on a: its launcher fell silent"
        ),
        "Processor 0 takes the place of its standby, processor 0-0, on b, which is to stop first",
        "Processor 0-0 leaves b to processor 0",
    ]
    stop = stated(machine, stopped("0-0", 1, StopCause.ORDERED, 143))
    assert "Processor 0-0, whose place processor 0 takes on b, has stopped" in stop
    assert "Processor 0-0 asks for c, the best other host: it has no home yet" in stop
    start = stated(machine, check_in("r1", "b", request=2), started("0", 2))
    assert start == [
        "Processor 0 is permitted to start on b: epoch 2, JobModel version 1",
        "The failover of processor 0 is over: it has started on b",
        "Processor 0 has started on b: epoch 2",
    ]


def test_a_failover_to_the_last_host_of_a_standby_that_does_not_run(machine: Machine) -> None:
    """It is requested as any home is."""
    machine.feed(job({"0": "a", "0-0": "b"}), live("a", "b", "c"))
    machine.run("0", "r0", "a", request=1)
    assert (
        "Processor 0 goes to b, where its standby, processor 0-0, ran last and does not run now"
        in stated(machine, silent("r0"))
    )


def test_a_failover_without_a_standby(machine: Machine) -> None:
    """The standby has never run anywhere."""
    machine.feed(job({"0": "a", "0-0": None}), live("a", "b"))
    machine.run("0", "r0", "a", request=1)
    assert "Processor 0 could not be failed to a standby, and goes to any host" in stated(
        machine, silent("r0")
    )


def test_a_choice_that_is_lost(machine: Machine) -> None:
    """The standby's host is lost too, before it has stopped."""
    with_standby(machine, "a", "b", "c", "d", "e")
    machine.feed(silent("r0"))
    assert "Processor 0 cannot take the place of processor 0-0 on b, and chooses again" in stated(
        machine, live("a", "c", "d", "e")
    )
