"""When an input that has grown is reported to the leader."""

from __future__ import annotations

from homeport.config.config import Config
from homeport.container.standalone.growth_watch import GrowthWatch
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStream,
    SystemStreamPartition,
    TaskModel,
)

INPUT = SystemStream("kafka", "in")


def _model(partitions: int) -> JobModel:
    """One container that reads so many partitions of one input."""
    tasks = {}
    for number in range(partitions):
        name = TaskName(f"Partition {number}")
        inputs = (SystemStreamPartition("kafka", "in", number),)
        tasks[name] = TaskModel(name, inputs, number)
    one = ProcessorId("one")
    return JobModel(Config({}), {one: ContainerModel(one, tasks)})


def test_each_growth_is_reported_once_and_to_the_leader_alone() -> None:
    """One that follows does not even ask; what the version reads by now is no growth."""
    model: list[JobModel | None] = [None]
    counts = {INPUT: 2}
    seen: list[int] = []
    config = Config({"job.name": "j", "job.default.system": "kafka", "task.inputs": "kafka.in"})
    watch = GrowthWatch(
        config, lambda: model[0], lambda: seen.append(counts[INPUT]), lambda: counts
    )
    watch.look()
    model[0] = _model(2)
    watch.look()
    assert seen == []
    counts[INPUT] = 4
    watch.look()
    watch.look()
    assert seen == [4]
    model[0] = _model(4)
    watch.look()
    counts[INPUT] = 8
    watch.look()
    assert seen == [4, 8]
    counts.clear()  # the input is gone: that is for the planner
    watch.look()
    assert seen == [4, 8]
