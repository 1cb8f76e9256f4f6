"""What outlives AM attempts."""

from __future__ import annotations

from itertools import pairwise

import pytest
from own_records import put, write_permit
from stream_in_memory import InMemoryCoordinatorStream

from homeport.config.errors import WireError
from homeport.job_coordinator.coordinator_stream.message import (
    AM_EPOCH_KEY,
    JOB_MODEL_VERSION_KEY,
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata.epochs import (
    AmEpoch,
    EpochManager,
    FenceReport,
    JobModelVersion,
    ProcessorEpoch,
    Rank,
    epoch_floor_message,
    fence_report_message,
    processor_epoch_message,
)
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.wire_form import LARGEST

P0, P1 = ProcessorId("0"), ProcessorId("1")
BAD = {"fenced": "[1]"}


def test_reports_of_fences_are_read_back(stream: InMemoryCoordinatorStream) -> None:
    """The last one of each processor; a damaged one counts as none, and the lists stay longer."""
    manager = EpochManager(stream)
    manager.write_fenced(P0, FenceReport(4, (Incarnation(P0, 2),)))
    report = FenceReport(5, (Incarnation(P0, 4), Incarnation(P1, 9)))
    manager.write_fenced(P0, report)
    put(stream, CoordinatorStreamMessage(MessageType.SET_FENCED, P1, {"epoch": "1"} | BAD))
    assert manager.read_fenced() == {P0: report}


def test_the_highest_number_is_that_of_a_permit_a_generation_or_the_floor(
    stream: InMemoryCoordinatorStream,
) -> None:
    """Epochs of YARN and generations of standalone processors are one number space."""
    manager = EpochManager(stream)
    assert (manager.read_floor(), manager.highest()) == (0, 0)
    for message, highest in (
        (epoch_floor_message(4), 4),
        (processor_epoch_message(P0, ProcessorEpoch(5, 1)), 5),
        (fence_report_message(P1, FenceReport(6)), 6),
        (epoch_floor_message(7), 7),
    ):
        put(stream, message)
        assert manager.highest() == highest
    assert manager.read_floor() == 7


def test_a_damaged_floor_is_no_floor_of_zero(stream: InMemoryCoordinatorStream) -> None:
    """A permit could have the number of a generation."""
    put(stream, epoch_floor_message(7)._replace(values={"epoch": "x"}))
    with pytest.raises(WireError, match="set-epoch-floor 'epoch-floor'"):
        EpochManager(stream).read_floor()


def test_a_raised_epoch_has_the_last_permitted_one(stream: InMemoryCoordinatorStream) -> None:
    """No container was permitted to use it; without the field, the epoch is that of a permit."""
    manager = EpochManager(stream)
    raised = ProcessorEpoch(6, 2, (Incarnation(P0, 5),), permitted=5, unseen_ms=42_000)
    write_permit(manager, P0, raised)
    write_permit(manager, P1, ProcessorEpoch(9, 2))
    stream.catch_up()
    assert manager.read_processor_epochs() == {P0: raised, P1: ProcessorEpoch(9, 2, (), 9)}
    assert [e.is_raised for e in manager.read_processor_epochs().values()] == [True, False]
    written = stream.latest(MessageType.SET_PROCESSOR_EPOCH)
    assert (written["0"].value("permitted"), written["1"].value("permitted")) == ("5", None)


@pytest.mark.parametrize(
    "values",
    [
        {"epoch": "x", "model-version": "1"},
        {"epoch": "1"},
        {"epoch": "1", "model-version": "1", "permitted": "none"},
        {"epoch": "1", "model-version": "1", "unseen-ms": "long"},
        {"epoch": "1", "model-version": "1", "unseen-ms": "86400001"},
        {"epoch": "1", "model-version": "1", "fence": "no json"},
        {"epoch": "1", "model-version": "1", "fence": "[1]"},
        {"epoch": "1", "model-version": "1", "fence": '[{"processor_id":"0"}]'},
        {"epoch": "1", "model-version": "1", "fence": '[{"processor_id":"0","epoch":true}]'},
        {"epoch": "1", "model-version": "1", "fence": '[{"processor_id":"0","epoch":-1}]'},
        {
            "epoch": "1",
            "model-version": "1",
            "fence": f'[{{"processor_id":"0","epoch":{LARGEST + 1}}}]',
        },
    ],
)
def test_a_damaged_epoch_stops(stream: InMemoryCoordinatorStream, values: dict[str, str]) -> None:
    """Without it an epoch could be permitted twice."""
    put(stream, CoordinatorStreamMessage(MessageType.SET_PROCESSOR_EPOCH, "0", values))
    with pytest.raises(WireError, match="set-processor-epoch '0'"):
        EpochManager(stream).read_processor_epochs()


def test_ranks_are_ordered_by_submission_application_attempt() -> None:
    """A later application outranks an earlier one, also when its number has grown a digit."""
    ranks = [
        Rank(1, "application_1_9999", 2),
        Rank(2, "application_1_0001", 9),
        Rank(2, "application_1_9999", 1),
        Rank(2, "application_1_10000", 1),
        Rank(2, "application_1_10000", 2),
    ]
    for lower, higher in pairwise(ranks):
        assert higher.is_above(lower)
        assert not lower.is_above(higher)
        assert not lower.is_above(lower)


@pytest.mark.parametrize("epoch", [0, LARGEST])
def test_the_smallest_and_the_largest_epoch_are_read(
    stream: InMemoryCoordinatorStream, epoch: int
) -> None:
    """Beyond them a list is damaged."""
    manager = EpochManager(stream)
    write_permit(manager, P0, ProcessorEpoch(1, 1, (Incarnation(P1, epoch),)))
    stream.catch_up()
    assert manager.read_processor_epochs()[P0].fence == (Incarnation(P1, epoch),)


def test_an_attempt_without_an_application_and_a_model_without_a_digest_are_read(
    stream: InMemoryCoordinatorStream,
) -> None:
    """Both texts are empty."""
    attempt = {"submission": "2", "attempt": "1", "unfenced": "[]"}
    kind = MessageType.SET_AM_EPOCH
    stream.write([CoordinatorStreamMessage(kind, AM_EPOCH_KEY, attempt)])
    kind = MessageType.SET_JOB_MODEL_VERSION
    put(stream, CoordinatorStreamMessage(kind, JOB_MODEL_VERSION_KEY, {"version": "3"}))
    assert EpochManager(stream).read_am_epoch() == AmEpoch(Rank(2, "", 1), ())
    assert EpochManager(stream).read_job_model_version() == JobModelVersion(3, "")
