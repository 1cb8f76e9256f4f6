"""Why the allocator decided what it decided: of each kind one decision, and its sentence."""

from __future__ import annotations

from homeport.appmaster.allocation.container_process_manager import Decision, step
from homeport.appmaster.allocation.events import Event
from homeport.appmaster.allocation.reasons import Reason, ReasonKind
from homeport.job_coordinator.http.messages import StopCause
from homeport.job_coordinator.model.ids import Host, ProcessorId
from tests.unit.appmaster.allocation.conftest import (
    Machine,
    check_in,
    expired,
    live,
    model,
    stopped,
)


def told(machine: Machine, *events: Event) -> list[str]:
    """The sentences that these events led to."""
    return [str(reason) for event in events for reason in machine.decide(event).reasons]


def test_every_kind_has_a_sentence() -> None:
    """Also one that is about nobody in particular."""
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
    """Two ways of telling the same decision are the same decision."""
    machine = Machine()
    decision = step(machine.state, model({"0": None}))
    assert decision == Decision(decision.state, decision.records, decision.instructions)


def test_home_is_asked_for_then_the_best_other_host_then_any(machine: Machine) -> None:
    """Each with what was in the way of home."""
    assert told(machine, model({"0": "a"}), live("a", "b")) == [
        "Processor 0 is in the JobModel, and is to be placed: version 1",
        "Processor 0 asks for a, the host with its state",
    ]
    assert told(machine, expired(1)) == [
        "Processor 0 got no container on a in time: 5000 ms",
        "Processor 0 asks for b, the best other host: a had no room, or launched nothing",
    ]
    assert told(machine, expired(2)) == [
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
    assert told(machine, stopped("0", 1, StopCause.FAILED, 7)) == [
        (
            "Processor 0 failed, which is charged to its retries: "
            "0@1 on a: failed, exit code 7; failure 1, 2 are forgiven"
        ),
        "Processor 0 starts again on its launcher on a, which lives",
    ]
    assert told(machine, check_in("r1", "a", request=1)) == [
        "Processor 0 is permitted to start on a: epoch 2, JobModel version 1"
    ]
