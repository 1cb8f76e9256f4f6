"""What a new driver waits for before it places anything."""

from __future__ import annotations

from homeport.appmaster.runtime.adoption import Adoption
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation

A, B = Incarnation(ProcessorId("0"), 3), Incarnation(ProcessorId("1"), 1)


def test_a_first_driver_waits_for_nobody() -> None:
    """Nothing was permitted before it."""
    assert Adoption().is_complete


def test_it_is_complete_when_each_is_accounted_for() -> None:
    """Each is news once; an epoch that nobody waits for is none."""
    adoption = Adoption([B, A])
    assert adoption.pending == (A, B)
    assert not adoption.settled(Incarnation(A.processor_id, 4))
    assert adoption.settled(A)
    assert not adoption.settled(A)
    assert not adoption.is_complete
    assert adoption.settled(B)
    assert adoption.is_complete
