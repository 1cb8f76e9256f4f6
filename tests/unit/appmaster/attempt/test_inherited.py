"""What a new driver or attempt makes of what earlier ones have left. Times are given."""

from __future__ import annotations

from homeport.appmaster.allocation.protocol.events import ChargedFailures
from homeport.appmaster.attempt.inherited import (
    Adoption,
    HoldBack,
    Inheritance,
    Unheard,
    charged_failures,
)
from homeport.job_coordinator.metadata.lifecycle import RetryState
from homeport.job_coordinator.model.ids import ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation

A, B = Incarnation(ProcessorId("0"), 3), Incarnation(ProcessorId("1"), 1)
SPAN_MS = 42_000
BOTH = Inheritance(1000, {A: SPAN_MS, B: SPAN_MS})


def test_a_first_driver_waits_for_no_incarnation() -> None:
    """Nothing was permitted before it."""
    assert Adoption().is_complete


def test_adoption_is_complete_when_each_is_accounted_for() -> None:
    """Each is news once; an epoch that the driver does not wait for is none."""
    adoption = Adoption([B, A])
    assert adoption.pending == (A, B)
    assert not adoption.settled(Incarnation(A.processor_id, 4))
    assert adoption.settled(A)
    assert not adoption.settled(A)
    assert not adoption.is_complete
    assert adoption.settled(B)
    assert adoption.is_complete


def test_adoption_lists_the_unaccounted_incarnations() -> None:
    """An incarnation that was never waited for, such as one of a lower rank, is none of them."""
    adoption = Adoption([A, B])
    adoption.settled(A)
    of_all = {A.processor_id: 3, B.processor_id: 1, ProcessorId("2"): 1}
    assert adoption.still(of_all) == {B.processor_id: 1}
    assert adoption.still({B.processor_id: 2}) == {}


def test_a_container_of_an_earlier_driver_is_ended_if_its_launcher_stays_silent() -> None:
    """Reported once, after L + M; what was heard once, and this driver's own, is left alone."""
    one, two, three = (RequestId(n) for n in (1, 2, 3))
    running = {one: ResourceId("r1"), two: ResourceId("r2"), three: ResourceId("r3")}
    unheard = Unheard(three, 1000, 600)
    assert unheard.overdue(running, {ResourceId("r1")}, 1599) == ()
    assert unheard.overdue(running, (), 1600) == (two,)
    assert unheard.overdue(running, (), 1601) == ()


def test_a_lost_lease_without_a_report_ends_the_wait() -> None:
    """Its launcher stands still: a launcher that is not heard by then is ended at once."""
    unheard = Unheard(RequestId(2), 1000, 600)
    unheard.lease_lost()
    assert unheard.overdue({RequestId(1): ResourceId("r1")}, (), 1001) == (RequestId(1),)


def test_a_job_that_has_never_run_waits_for_no_container() -> None:
    """No permit, no wait."""
    assert HoldBack(Inheritance(1000)).is_over(1000)


def test_without_a_report_it_lasts_for_the_whole_span() -> None:
    """From when the own rank was read back, not a moment less (safety A4)."""
    hold_back = HoldBack(Inheritance(1000, {B: SPAN_MS, A: SPAN_MS}))
    assert hold_back.pending == (A, B)
    assert not hold_back.is_over(1000 + SPAN_MS - 1)
    assert hold_back.is_over(1000 + SPAN_MS)


def test_containers_with_a_recorded_stop_are_not_waited_for() -> None:
    """With a record of each, placing begins at once."""
    assert HoldBack(BOTH, {A, B}).is_over(1000)
    assert HoldBack(BOTH, {A}).pending == (B,)


def test_a_report_that_comes_while_it_waits_ends_the_wait_for_that_container() -> None:
    """News once; the last one ends it."""
    hold_back = HoldBack(BOTH)
    assert hold_back.settled(A)
    assert not hold_back.settled(A)
    assert not hold_back.is_over(2000)
    assert hold_back.settled(B)
    assert hold_back.is_over(2000)


def test_the_stop_of_another_epoch_is_no_evidence() -> None:
    """Neither an older nor a newer one says anything of the one that was permitted."""
    others = [Incarnation(A.processor_id, e) for e in (A.epoch - 1, A.epoch + 1)]
    hold_back = HoldBack(Inheritance(1000, {A: SPAN_MS}), others)
    assert not any(map(hold_back.settled, others))
    assert hold_back.pending == (A,)


def test_each_is_waited_for_as_long_as_its_own_permit_says() -> None:
    """The longest decides, and only while that one has not stopped."""
    hold_back = HoldBack(Inheritance(1000, {A: 40_000, B: 10_000}))
    assert not hold_back.is_over(1000 + 40_000 - 1)
    assert hold_back.is_over(1000 + 40_000)
    assert hold_back.settled(A)
    assert not hold_back.is_over(1000 + 10_000 - 1)
    assert hold_back.is_over(1000 + 10_000)


def test_a_charged_failure_counts_for_the_rest_of_its_window() -> None:
    """Not longer; what was given up stays so; a clock that went back changes nothing."""

    def left(count: int, since_ms: int) -> ChargedFailures | None:
        states = {A.processor_id: RetryState(count, since_ms)}
        found = charged_failures(states, retry_count=2, window_ms=60_000, now_ms=100_000)
        return found.get(A.processor_id)

    assert left(2, 50_000) == ChargedFailures(2, 10_000)
    assert left(2, 40_000) is None
    assert left(3, 40_000) == ChargedFailures(3, 1)
    assert left(1, 200_000) == ChargedFailures(1, 60_000)
    assert left(0, 50_000) is None
