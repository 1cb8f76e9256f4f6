"""Which processor keeps which standby and how far it is, and how many tasks had one at a death.

PURE. STANDBY's measures for a standalone job: the lag of each replica, and "tasks that could not be
started on their backup".
"""

from __future__ import annotations

from collections.abc import Iterable

from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.standalone.plan import Plan, Standby
from homeport.job_coordinator.status.container_report import ContainerReport, StoreLag
from homeport.job_coordinator.status.shape import ShownStandby, ShownTakenOver


def standbys_shown(
    kept: Iterable[Standby], report: ContainerReport | None
) -> tuple[ShownStandby, ...]:
    """Return an entry for each standby that a processor keeps, by name.

    ``lag``: records that all its stores are behind together, ``lag_seconds`` of the one that is
    furthest behind, at the last look; None where it has not said so yet, as in a restore.
    ``is_caught_up``: whether no record was missing; None where the lag is not known.
    """
    lags: dict[TaskName, list[StoreLag]] = {}
    for lag in () if report is None else report.lags:
        lags.setdefault(lag.task, []).append(lag)
    found = (_shown(standby, lags.get(standby.name)) for standby in sorted(kept, key=_name_of))
    return tuple(found)


def _name_of(standby: Standby) -> TaskName:
    return standby.name


def _shown(standby: Standby, lags: list[StoreLag] | None) -> ShownStandby:
    records = None if lags is None else sum(lag.records for lag in lags)
    known = [lag.seconds for lag in lags or () if lag.seconds is not None]
    return ShownStandby(
        name=standby.name,
        task=standby.task,
        lag=records,
        lag_seconds=max(known, default=None),
        is_caught_up=None if records is None else records == 0,
    )


def after(known: ShownTakenOver, plan: Plan) -> ShownTakenOver:
    """Return the tasks of ``known`` and those of a version that was not seen before."""
    if not plan.lost:
        return known
    lost, unbacked = known.lost + plan.lost, known.unbacked + plan.unbacked
    return ShownTakenOver(lost=lost, unbacked=unbacked, version=plan.version)
