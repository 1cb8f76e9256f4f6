"""What an operator sees before a command: what becomes of containers, and the answer."""

from __future__ import annotations

from dataclasses import replace as replaced

import pytest
from msgspec.structs import replace

from homeport.appmaster.allocation.protocol.instructions import WritePlacementResponse
from homeport.appmaster.allocation.what_if import CommandOutlook
from homeport.appmaster.driver.actions.draining import outlook_lines
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.placement import CANCEL, PlacementRequest, PlacementStatus
from homeport.job_coordinator.status.outlook import ShownFate

ASKED = PlacementRequest("u1", "a", ProcessorId("0"), "nm2", None, 5)
MOVED = ShownFate(
    processor_id=ProcessorId("0"),
    role="active",
    replica_of=None,
    host_before=Host("nm1"),
    host=Host("nm2"),
    phase="running",
    is_placed=True,
    takes_over=None,
    why=(),
)
CANCELLED = WritePlacementResponse(
    replaced(ASKED, destination=CANCEL), PlacementStatus.SUCCEEDED, "nm2: cancelled"
)


def answer(status: PlacementStatus, message: str) -> WritePlacementResponse:
    """The last one."""
    return WritePlacementResponse(ASKED, status, message)


@pytest.mark.parametrize(
    ("fate", "line"),
    [
        (MOVED, "0: nm1 -> nm2"),
        (replace(MOVED, host=Host("nm1")), "0: stops, and starts again on nm1"),
        (replace(MOVED, host_before=None), "0: nowhere -> nm2"),
        (replace(MOVED, phase=None, host=None), "0: nm1 -> nowhere"),
        (replace(MOVED, is_placed=False), "0: nm1 -> nowhere"),
    ],
)
def test_each_container_has_a_line(fate: ShownFate, line: str) -> None:
    """From where to where; a good answer says no more than that."""
    done = answer(PlacementStatus.SUCCEEDED, "0@2 runs on nm2")
    assert list(outlook_lines(CommandOutlook(done, (fate,)))) == [line]


@pytest.mark.parametrize(
    ("written", "line"),
    [
        (None, "the job takes no command now; the command waits until it does"),
        (
            answer(PlacementStatus.ACCEPTED, "0 does not run"),
            "then the command waits: 0 does not run",
        ),
        (answer(PlacementStatus.FAILED, "no room"), "no room"),
        (answer(PlacementStatus.BAD_REQUEST, "no such"), "no such"),
        (CANCELLED, "nm2: cancelled"),
    ],
)
def test_an_answer_that_is_not_good_or_of_a_cancel_is_said(
    written: WritePlacementResponse | None, line: str
) -> None:
    """Also where nothing moves."""
    assert list(outlook_lines(CommandOutlook(written, ()))) == [line]
