"""The lags of standbys that the allocator receives."""

from __future__ import annotations

from homeport.appmaster.allocation.protocol.events import LagsReported
from homeport.appmaster.driver.lags import LagBoard
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation

P0, P1 = ProcessorId("0-0"), ProcessorId("1-0")
S0, S1 = Incarnation(P0, 3), Incarnation(P1, 1)


def test_only_a_new_lag_is_reported_and_once() -> None:
    """The last report of each; a lag that returned to its reported value is reported again."""
    board = LagBoard()
    assert board.news() is None
    board.heard(S0, 7)
    board.heard(S0, 5)
    board.heard(S1, 0)
    assert board.news() == LagsReported({P0: 5, P1: 0})
    board.heard(S0, 5)
    assert board.news() is None
    board.heard(S1, 3)
    assert board.news() == LagsReported({P1: 3})


def test_the_lag_of_a_new_incarnation_is_news() -> None:
    """What was known of the one before it was forgotten with it."""
    board = LagBoard()
    board.heard(S0, 5)
    board.news()
    board.heard(Incarnation(P0, 4), 5)
    assert board.news() == LagsReported({P0: 5})
