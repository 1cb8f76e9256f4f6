"""The reports about standbys that the allocator receives."""

from __future__ import annotations

import pytest

from homeport.appmaster.allocation.protocol.events import LagsReported, SparesReported
from homeport.appmaster.driver.launcher_messages import StandbyReports
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.status.shape import SpareReport

P0, P1 = ProcessorId("0-0"), ProcessorId("1-0")
S0, S1 = Incarnation(P0, 3), Incarnation(P1, 1)
READY = SpareReport("warm", is_ready=True)


def test_only_a_new_lag_is_reported_and_once() -> None:
    """The last report of each; a lag that returned to its reported value is reported again."""
    reports = StandbyReports()
    assert list(reports.news()) == []
    reports.heard(S0, 7, None)
    reports.heard(S0, 5, None)
    reports.heard(S1, 0, None)
    assert list(reports.news()) == [LagsReported({P0: 5, P1: 0})]
    reports.heard(S0, 5, None)
    assert list(reports.news()) == []
    reports.heard(S1, 3, None)
    assert list(reports.news()) == [LagsReported({P1: 3})]


@pytest.mark.parametrize(
    "other",
    [None, SpareReport("warm", is_ready=False), SpareReport("spark", is_ready=True)],
    ids=str,
)
def test_a_spark_is_reported_when_it_comes_and_when_it_goes(other: SpareReport | None) -> None:
    """A spare that has merely imported, or is not ready, has none."""
    reports = StandbyReports()
    reports.heard(S0, 5, other)
    assert list(reports.news()) == [LagsReported({P0: 5})]
    reports.heard(S0, 5, READY)
    assert list(reports.news()) == [SparesReported({P0: True})]
    reports.heard(S0, 5, READY)
    assert list(reports.news()) == []
    reports.heard(S0, 5, other)
    assert list(reports.news()) == [SparesReported({P0: False})]


def test_a_new_incarnation_has_a_lag_of_its_own_and_no_spark_until_it_is_reported() -> None:
    """What was known of the one before is forgotten; the allocator forgets it with the permit."""
    reports = StandbyReports()
    reports.heard(S0, 5, READY)
    list(reports.news())
    reports.heard(Incarnation(P0, 4), 5, None)
    assert list(reports.news()) == [LagsReported({P0: 5})]
    reports.heard(Incarnation(P0, 4), 5, READY)
    assert list(reports.news()) == [SparesReported({P0: True})]
