"""Which processor keeps which standby and how far it is, and how many tasks had one at a death.

PURE. STANDBY's measures for a standalone job: the lag of each replica, and "tasks that could not be
started on their backup".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from homeport.job_coordinator.http.container_report import ContainerReport, StoreLag
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.standalone.plan import Plan, Standby


def standbys_shown(kept: Iterable[Standby], report: ContainerReport | None) -> list[dict[str, Any]]:
    """An entry for each standby that a processor keeps, by name.

    ``lag``: records that all its stores are behind together, ``lag_seconds`` of the one that is
    furthest behind, at the last look; None where it has not said so yet, as in a restore.
    ``is_caught_up``: whether no record was missing; None where the lag is not known.
    """
    lags: dict[TaskName, list[StoreLag]] = {}
    for lag in () if report is None else report.lags:
        lags.setdefault(lag.task, []).append(lag)
    return [_shown(standby, lags.get(standby.name)) for standby in sorted(kept, key=_name_of)]


def _name_of(standby: Standby) -> TaskName:
    return standby.name


def _shown(standby: Standby, lags: list[StoreLag] | None) -> dict[str, Any]:
    records = None if lags is None else sum(lag.records for lag in lags)
    known = [lag.seconds for lag in lags or () if lag.seconds is not None]
    return {
        "name": standby.name,
        "task": standby.task,
        "lag": records,
        "lag_seconds": max(known, default=None),
        "is_caught_up": None if records is None else records == 0,
    }


@dataclass(frozen=True, slots=True)
class TakenOver:
    """Tasks that lost their processor while this one led.

    ``lost``: all of them. ``unbacked``: those that did not start where a standby of theirs was.
    ``version``: the last one that took such tasks over; 0: none.
    """

    lost: int = 0
    unbacked: int = 0
    version: int = 0

    def after(self, plan: Plan) -> TakenOver:
        """These and those of a version that was not seen before."""
        if not plan.lost:
            return self
        return TakenOver(self.lost + plan.lost, self.unbacked + plan.unbacked, plan.version)

    def to_json(self) -> Mapping[str, int]:
        """The field ``taken_over`` of the status."""
        return {"lost": self.lost, "unbacked": self.unbacked, "version": self.version}
