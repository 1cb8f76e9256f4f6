"""No permit has a number that an incarnation of the processor had before (safety A6)."""

from __future__ import annotations

from homeport.appmaster.job_model.publication import Owners
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.metadata.epochs import epoch_floor_message
from tests.unit.appmaster.job_model.test_publication import (
    ONE,
    P0,
    P1,
    P2,
    THREE,
    inc,
    permitted,
    published,
    reported,
)


def test_every_first_epoch_is_above_what_ran_standalone() -> None:
    """Processors with a record below the floor too; an epoch above it stays."""
    stream = InMemoryCoordinatorStream()
    published(stream, THREE)
    stream.write([epoch_floor_message(7)])
    permitted(stream, "0", 9)
    permitted(stream, "1", 3)
    assert published(stream, THREE).floors == {P0: 9, P1: 7, P2: 7}


def test_no_permit_has_a_number_that_a_report_names() -> None:
    """Its word on that number holds for good."""
    stream = InMemoryCoordinatorStream()
    published(stream, THREE)
    reported(stream, "9", 6, inc("1", 5), inc("1", 2), inc("0", 1))
    permitted(stream, "0", 9)
    owners = Owners.read(stream)
    assert [owners.floor_of(p) for p in (P0, P1, P2)] == [9, 5, 0]


def test_a_report_counts_for_the_permit_that_it_names_alone() -> None:
    """A list without a permit has none yet, whatever a processor of that id has reported before."""
    stream = InMemoryCoordinatorStream()
    published(stream, ONE)
    permitted(stream, "0", 12)
    reported(stream, "1", 3, inc("2", 1))
    reported(stream, "2", 0)
    said = published(stream, THREE)
    assert said.unfenced[P1] == said.unfenced[P2] == (inc("0", 12),)
    permitted(stream, "1", 13, inc("0", 12))
    reported(stream, "1", 14)
    assert Owners.read(stream).unfenced(P1) == (inc("0", 12), inc("1", 13))
    reported(stream, "1", 13, inc("0", 12))
    assert Owners.read(stream).unfenced(P1) == (inc("1", 13),)
