"""The part of a JobModel that a processor's child gets."""

from __future__ import annotations

from homeport.config.config import Config
from homeport.job_coordinator.grouper.standby_models import standby_task
from homeport.job_coordinator.model.codec import decode_job_model, encode_job_model
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskMode,
    TaskModel,
)
from homeport.job_coordinator.standalone.child_model import (
    active_part,
    model_of_child,
    standby_part,
)
from homeport.job_coordinator.standalone.plan import Standby

P, Q, R = (ProcessorId(name) for name in "pqr")
CONFIG = Config({"job.name": "j"})


def _task(number: int) -> TaskModel:
    ssp = SystemStreamPartition("kafka", "in", number)
    return TaskModel(TaskName(f"t{number}"), (ssp,), number)


TASKS = [_task(number) for number in range(4)]
STANDBYS = [standby_task(task, 0) for task in TASKS]


def _model() -> JobModel:
    """P has t0 and keeps t1 and t2; q has the others, and r keeps t0 alone."""
    held = {P: [TASKS[0], STANDBYS[1], STANDBYS[2]], Q: TASKS[1:], R: [STANDBYS[0]]}
    return JobModel(
        Config({}), {p: ContainerModel(p, {t.task_name: t for t in own}) for p, own in held.items()}
    )


def _standby(number: int) -> Standby:
    return Standby(TASKS[number].task_name, STANDBYS[number].task_name)


def test_a_child_knows_whose_standbys_it_keeps() -> None:
    """In Samza's JSON the task follows from what the standby mirrors, so that it is there too."""
    own = model_of_child(CONFIG, _model(), P, [_standby(1)])
    assert {p: list(c.tasks) for p, c in own.containers.items()} == {
        P: ["t0", "Standby-t1-0"],
        Q: ["t1"],
    }
    read = decode_job_model(encode_job_model(own, mask_secrets=False))
    kept = standby_part(read, P)
    assert kept is not None
    assert kept.containers[P].role is TaskMode.STANDBY
    assert kept.containers[P].tasks[TaskName("Standby-t1-0")].state_of == "t1"
    active = active_part(read, P)
    assert active is not None
    assert (list(active.containers[P].tasks), active.config) == (["t0"], CONFIG)


def test_a_processor_may_have_one_kind_or_none() -> None:
    """Standbys alone; or what a list without any leaves."""
    alone = model_of_child(CONFIG, _model(), R, [_standby(0)])
    assert active_part(alone, R) is None
    assert standby_part(alone, R) is not None
    nothing = model_of_child(CONFIG, _model(), R, [])
    assert nothing.containers == {R: ContainerModel(R, {})}
    assert standby_part(nothing, R) is None
    assert standby_part(nothing, Q) is None
