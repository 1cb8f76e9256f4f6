"""How the proof of the zombie tests reads the broker's log, on bytes that a broker has written."""

from __future__ import annotations

import pytest
from producer_ids import Batch, batches_of, producer_id_of, transactional_id_of, trespasses

from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation

# A transaction of two records by producer 0; one record of a second that its next holder aborted,
# by an init that raised the epoch; a batch of three by producer 1. Kafka 4.3.1.
SEGMENT = bytes.fromhex(
    "00000000000000000000004300000000020e6b3bf1001000000001000001a1fe948a53000001a1fe948a5300000000"
    "000000000000000000000000000210000000026b02760010000002026b0276"
    "000000000000000002000000420000000002c1c74bf0003000000000000001a1fe948aa4000001a1fe948aa4000000"
    "00000000000000ffffffff000000012000000008000000010c000000000000"
    "0000000000000000030000003a00000000023353e7ee001000000000000001a1fe948a95000001a1fe948a95000000"
    "00000000000000000000020000000110000000026b0276"
    "000000000000000004000000420000000002ce5f8725003000000000000001a1fe948af5000001a1fe948af5000000"
    "00000000000001ffffffff000000012000000008000000000c000000000000"
    "0000000000000000050000004c0000000002b4ddecad001000000002000001a1fe948d2b000001a1fe948d2c000000"
    "00000000010000000000000000000310000000026b02760010000002026b02760010000204026b027600"
)
KEY = bytes.fromhex("0000001a686f6d65706f72742e6a2e312e70726f636573736f722e302e32")
VALUE = bytes.fromhex(
    "0001000000000000000100000000ea6001020274020000000000000001a1fe948d2f000001a1fe948d2f01000800"
    "00000000000001"
)
FIRST, SECOND = Incarnation(ProcessorId("0"), 1), Incarnation(ProcessorId("0"), 2)
OTHER = Incarnation(ProcessorId("1"), 1)
WRITERS = {0: FIRST, 1: SECOND, 2: OTHER}


def _wrote(producer_id: int, offset: int, epoch: int = 0, *, is_marker: bool = False) -> Batch:
    return Batch(offset, offset, 0, producer_id, epoch, is_marker)


def test_a_segment_has_producer_and_epoch_of_each_batch() -> None:
    """Markers too, whose epoch shows a fence; what is not whole at the end is left out."""
    found = list(batches_of(SEGMENT))
    assert [(b.first, b.last, b.producer_id, b.producer_epoch, b.is_marker) for b in found] == [
        (0, 1, 0, 0, False),
        (2, 2, 0, 0, True),
        (3, 3, 0, 0, False),
        (4, 4, 0, 1, True),
        (5, 7, 1, 0, False),
    ]
    assert found[0].timestamp_ms == 1795272510035
    assert list(batches_of(SEGMENT[:-1])) == found[:-1]
    assert list(batches_of(SEGMENT + bytes(200))) == found


def test_the_coordinators_topic_has_the_owner_of_a_producer_id() -> None:
    """Key and value of one of its records."""
    assert transactional_id_of(KEY) == "homeport.j.1.processor.0.2"
    assert producer_id_of(VALUE) == 1


def test_a_successor_that_came_after_its_fence_is_no_trespass() -> None:
    """Nor is what another processor writes meanwhile."""
    assert trespasses(batches_of(SEGMENT), WRITERS) == []
    assert trespasses([_wrote(0, 0), _wrote(2, 1), _wrote(1, 2), _wrote(2, 3)], WRITERS) == []


@pytest.mark.parametrize(
    ("late", "fault"),
    [
        (_wrote(0, 8), f"offset 8: {FIRST} wrote after {SECOND}"),
        (_wrote(0, 8, 1, is_marker=True), f"offset 8: {FIRST} wrote after {SECOND}"),
        (_wrote(7, 8), "offset 8: producer 7 is no incarnation's"),
    ],
)
def test_a_batch_after_the_successors_first_one_is_found(late: Batch, fault: str) -> None:
    """Records as well as markers, and those of an unknown writer."""
    writers = dict(WRITERS)
    before = [_wrote(0, 0, 1), _wrote(1, 1)]
    assert trespasses([*before, late], writers)[-1] == fault


def test_a_batch_of_an_epoch_that_was_fenced_is_found() -> None:
    """Also before its successor has written anything."""
    late = _wrote(0, 5)
    assert trespasses([*list(batches_of(SEGMENT))[:4], late], WRITERS) == [
        "offset 5: producer 0 wrote in epoch 0, after epoch 1"
    ]
