"""What of standbys' lags the allocator is told."""

from __future__ import annotations

from homeport.appmaster.allocation.events import LagsReported
from homeport.appmaster.runtime.lags import LagBoard
from homeport.job_coordinator.model.ids import ProcessorId

S0, S1 = ProcessorId("0-0"), ProcessorId("1-0")


def test_only_what_is_new_is_told_and_once() -> None:
    """The last word of each; a lag that came back to what it was told as is told again."""
    board = LagBoard()
    assert board.news() is None
    board.heard(S0, 7)
    board.heard(S0, 5)
    board.heard(S1, 0)
    assert board.news() == LagsReported({S0: 5, S1: 0})
    board.heard(S0, 5)
    assert board.news() is None
    board.heard(S1, 3)
    assert board.news() == LagsReported({S1: 3})
