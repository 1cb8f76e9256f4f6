"""The view of standbys: where they are, their lag, and the tasks that had none to take over.

PURE. STANDBY's measures for containers of both roles: the lag of each replica, and "tasks that
could not be started on their backup".
"""

from collections import Counter
from collections.abc import Iterable

from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import ContainerModel, TaskMode
from homeport.job_coordinator.standalone.plan import Standby
from homeport.job_coordinator.status.container_report import ContainerReport, StoreLag
from homeport.job_coordinator.status.shape import ShownStandby, ShownTakenOver


def standbys_shown(
    kept: Iterable[Standby], report: ContainerReport | None
) -> tuple[ShownStandby, ...]:
    """Return an entry for each standby that a container keeps, by name.

    ``lag``: the records by which all its stores together are behind, at the last look.
    ``lag_seconds``: the lag of the store that is furthest behind. ``is_caught_up``: whether no
    record was missing. Each is None while no lag is reported, as in a restore.
    """
    lags: dict[TaskName, list[StoreLag]] = {}
    for lag in () if report is None else report.lags:
        lags.setdefault(lag.task, []).append(lag)
    by_name = sorted(kept, key=lambda standby: standby.name)
    return tuple(_shown(standby, lags.get(standby.name)) for standby in by_name)


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


def lags_of(reports: Iterable[ContainerReport | None]) -> dict[TaskName, int]:
    """Return {standby: the records by which all its stores together are behind}, as reported."""
    lags: Counter[TaskName] = Counter()
    for report in reports:
        for lag in () if report is None else report.lags:
            lags[lag.task] += lag.records
    return dict(lags)


def standbys_in(container: ContainerModel | None) -> tuple[Standby, ...]:
    """Return the standbys that a container has in a JobModel; None: the model lacks it."""
    tasks = () if container is None else container.tasks.values()
    return tuple(Standby(t.state_of, t.task_name) for t in tasks if t.task_mode is TaskMode.STANDBY)


def after(known: ShownTakenOver, lost: int, unbacked: int, version: int) -> ShownTakenOver:
    """Return the tasks of ``known`` and those of a version that was not seen before."""
    if not lost:
        return known
    return ShownTakenOver(
        lost=known.lost + lost, unbacked=known.unbacked + unbacked, version=version
    )
