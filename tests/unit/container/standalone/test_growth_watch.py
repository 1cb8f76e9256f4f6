"""When an input that has grown, or a topic that matches, is reported to the leader."""

from __future__ import annotations

from small_jobs import model_of, task_of

from homeport.config.config import Config
from homeport.container.standalone.growth_watch import GrowthWatch
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import (
    JobModel,
    SystemStream,
    SystemStreamPartition,
    TaskModel,
)

INPUT = SystemStream("kafka", "in")


def _model(partitions: int) -> JobModel:
    return model_of({}, *map(task_of, range(partitions)))


def test_each_growth_is_reported_once_and_to_the_leader_alone() -> None:
    """One that follows does not even ask; what the version reads by now is no growth."""
    model: list[JobModel | None] = [None]
    counts = {INPUT: 2}
    seen: list[int] = []
    config = Config({"job.name": "j", "job.default.system": "kafka", "task.inputs": "kafka.in"})
    watch = GrowthWatch(
        config, lambda: model[0], lambda: seen.append(counts[INPUT]), lambda _: counts
    )
    watch.check()
    model[0] = _model(2)
    watch.check()
    assert seen == []
    counts[INPUT] = 4
    watch.check()
    watch.check()
    assert seen == [4]
    model[0] = _model(4)
    watch.check()
    counts[INPUT] = 8
    watch.check()
    assert seen == [4, 8]
    counts.clear()  # the input is gone: that is for the planner
    watch.check()
    assert seen == [4, 8]


def test_a_topic_that_matches_is_reported_until_the_version_reads_it() -> None:
    """Once, to the leader alone; what is an input by then is none that is new."""
    model: list[JobModel | None] = [None]
    seen: list[str] = []
    config = Config(
        {
            "job.name": "j",
            "job.default.system": "kafka",
            "task.inputs": "kafka.in",
            "job.config.rewriters": "re",
            "job.config.rewriter.re.class": "regex-topics",
            "job.config.rewriter.re.system": "kafka",
            "job.config.rewriter.re.regex": "in.*",
        }
    )
    topics = {"in", "other"}
    watch = GrowthWatch(
        config, lambda: model[0], lambda: seen.append("changed"), topics=lambda *_: topics
    )
    topics.add("in-more")
    watch.check_topics()
    model[0] = _model(2)
    assert seen == []
    watch.check_topics()
    watch.check_topics()
    assert seen == ["changed"]
    more = SystemStreamPartition("kafka", "in-more", 0)
    model[0] = model_of({}, TaskModel(TaskName("Partition 0"), (more,), 0))
    watch.check_topics()
    assert list(watch.new) == []
    topics.add("in-third")
    watch.check_topics()
    assert seen == ["changed"] * 2
    assert list(watch.new) == [SystemStream("kafka", "in-third")]
