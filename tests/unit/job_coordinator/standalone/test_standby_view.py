"""What a status shows of the standbys in a container of a JobModel."""

from __future__ import annotations

from homeport.job_coordinator.grouper.standby_models import standby_task
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import ContainerModel, TaskModel
from homeport.job_coordinator.standalone.plan import Standby
from homeport.job_coordinator.standalone.standby_view import (
    after,
    lags_of,
    standbys_in,
    standbys_shown,
)
from homeport.job_coordinator.status.container_report import ContainerReport, StoreLag
from homeport.job_coordinator.status.shape import ShownTakenOver

OWN, OTHER = (TaskModel(TaskName(name), (), n) for n, name in enumerate(("T 0", "T 1")))
REPLICA = standby_task(OTHER, 0)
MIXED = ContainerModel(ProcessorId("0"), {t.task_name: t for t in (OWN, REPLICA)})


def test_a_mixed_containers_standbys_are_those_of_its_model() -> None:
    """Each with the task whose state it keeps, and its lag once that is reported."""
    kept = standbys_in(MIXED)
    assert kept == (Standby(TaskName("T 1"), TaskName("Standby-T 1-0")),)
    (shown,) = standbys_shown(kept, None)
    assert (shown.name, shown.task, shown.lag, shown.is_caught_up) == (
        "Standby-T 1-0",
        "T 1",
        None,
        None,
    )
    lags = (StoreLag("counts", TaskName("Standby-T 1-0"), 3, 1.5),)
    (shown,) = standbys_shown(kept, ContainerReport(lags=lags))
    assert (shown.lag, shown.lag_seconds, shown.is_caught_up) == (3, 1.5, False)


def test_the_lag_of_a_standby_is_that_of_all_its_stores() -> None:
    """By the reports of all containers; one that restores has none."""
    first, second = TaskName("Standby-T 1-0"), TaskName("Standby-T 2-0")
    one = ContainerReport(lags=(StoreLag("a", first, 3), StoreLag("b", first, 4)))
    other = ContainerReport(lags=(StoreLag("a", second, 0, 0.0),))
    assert lags_of([one, None, ContainerReport(), other]) == {first: 7, second: 0}


def test_a_container_that_the_model_lacks_has_none() -> None:
    """It is retired, and stops."""
    assert standbys_in(None) == ()


def test_what_versions_take_over_adds_up() -> None:
    """With the version of the last loss; one without a loss leaves it as it was."""
    known = after(ShownTakenOver(), 2, 1, 3)
    assert known == ShownTakenOver(lost=2, unbacked=1, version=3)
    assert after(known, 0, 0, 4) == known
    assert after(known, 1, 0, 5) == ShownTakenOver(lost=3, unbacked=1, version=5)
