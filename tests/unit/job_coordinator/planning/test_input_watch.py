"""What has become of a job's inputs since its JobModel was made."""

from __future__ import annotations

import pytest

from homeport.config.config import Config
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStream,
    SystemStreamPartition,
    TaskModel,
)
from homeport.job_coordinator.planning.input_watch import InputsSeen, InputWatch

IN, WIDE = SystemStream("kafka", "in"), SystemStream("kafka", "wide")


def model() -> JobModel:
    """Two tasks read the partitions of ``in``, and both read partition 1 of ``wide``."""
    every = SystemStreamPartition("kafka", "wide", 1)
    tasks = {
        TaskName(f"T{n}"): TaskModel(
            TaskName(f"T{n}"), (SystemStreamPartition("kafka", "in", n), every), n
        )
        for n in range(2)
    }
    return JobModel(Config({}), {ProcessorId("0"): ContainerModel(ProcessorId("0"), tasks)})


def seen(count: int | None, topic_id: str = "a") -> InputsSeen:
    """``in`` has so many partitions, None: it is gone; ``wide`` has four."""
    counts, ids = {WIDE: 4}, {WIDE: "w"}
    if count is not None:
        counts[IN], ids[IN] = count, topic_id
    return InputsSeen(counts, ids)


def test_the_model_gives_the_inputs_it_was_made_from() -> None:
    """The highest partition that a task reads, and one."""
    assert model().partition_counts() == {IN: 2, WIDE: 2}


def test_unchanged_inputs_are_not_reported() -> None:
    """Partitions of a broadcast stream that no task reads are none either."""
    watch = InputWatch()
    assert watch.fault(model(), seen(2)) is None
    assert watch.fault(model(), seen(2)) is None
    assert InputWatch.grown(model(), seen(2).counts, [IN]) is None


def test_growth_is_reported_with_its_numbers() -> None:
    """H6: what follows from it depends on the job's state."""
    assert InputWatch().fault(model(), seen(4)) is None
    stated = InputWatch.grown(model(), seen(4).counts, [IN])
    assert stated == "input stream kafka.in has grown from 2 to 4 partitions"


@pytest.mark.parametrize(
    ("now", "stated"),
    [
        (seen(None), "kafka.in does not exist any more"),
        (seen(1), "kafka.in has 1 partitions and had 2"),
        (seen(2, "b"), "kafka.in was deleted and recreated"),
        (seen(4, "b"), "kafka.in was deleted and recreated"),
    ],
)
def test_an_input_that_is_another_topic_is_a_fault(now: InputsSeen, stated: str) -> None:
    """Its offsets are not those that the job has committed."""
    watch = InputWatch()
    assert watch.fault(model(), seen(2)) is None
    fault = watch.fault(model(), now)
    assert fault is not None
    assert stated in fault
    assert "job.id" in fault
    assert "job.input.recreated=begin" in fault
