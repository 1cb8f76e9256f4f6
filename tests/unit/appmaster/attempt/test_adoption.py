"""What a new driver waits for before it places anything."""

from __future__ import annotations

from homeport.appmaster.attempt.adoption import Adoption, Unheard
from homeport.job_coordinator.model.ids import ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation

A, B = Incarnation(ProcessorId("0"), 3), Incarnation(ProcessorId("1"), 1)


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
