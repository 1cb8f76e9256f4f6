"""What a new attempt waits for, and how long. Times are given."""

from __future__ import annotations

from homeport.appmaster.attempt.hold_back import HoldBack, Inheritance
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation

A, B = Incarnation(ProcessorId("0"), 3), Incarnation(ProcessorId("1"), 1)
SPAN_MS = 42_000
BOTH = Inheritance(1000, {A: SPAN_MS, B: SPAN_MS})


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
    assert hold_back.settled([A]) == (A,)
    assert hold_back.settled([A]) == ()
    assert not hold_back.is_over(2000)
    assert hold_back.settled([A, B]) == (B,)
    assert hold_back.is_over(2000)


def test_the_stop_of_another_epoch_is_no_evidence() -> None:
    """Neither an older nor a newer one says anything of the one that was permitted."""
    others = [Incarnation(A.processor_id, e) for e in (A.epoch - 1, A.epoch + 1)]
    hold_back = HoldBack(Inheritance(1000, {A: SPAN_MS}), others)
    assert hold_back.settled(others) == ()
    assert hold_back.pending == (A,)


def test_each_is_waited_for_as_long_as_its_own_permit_says() -> None:
    """The longest decides, and only while that one has not stopped."""
    hold_back = HoldBack(Inheritance(1000, {A: 40_000, B: 10_000}))
    assert not hold_back.is_over(1000 + 40_000 - 1)
    assert hold_back.is_over(1000 + 40_000)
    assert hold_back.settled([A]) == (A,)
    assert not hold_back.is_over(1000 + 10_000 - 1)
    assert hold_back.is_over(1000 + 10_000)
