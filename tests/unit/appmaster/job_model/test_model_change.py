"""The next JobModel of a job that runs, and the first one of an attempt."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from homeport.appmaster.job_model import publication
from homeport.appmaster.job_model.job_model_store import JobModelStore
from homeport.appmaster.job_model.model_change import ModelPlanner, changed_containers, first_model
from homeport.appmaster.yarn.submission_file import Submitted
from homeport.config.config import Config
from homeport.config.errors import ConfigError, UnavailableError
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import (
    CoordinatorStream,
    InMemoryCoordinatorStream,
)
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import NOTHING
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.job_model import JobModel, SystemStream
from homeport.job_coordinator.planning import next_model

IN, MORE, ALL = (SystemStream("kafka", name) for name in ("in", "more", "all"))
P2 = ProcessorId("2")
COUNT = "job.container.count"
FILE = Config(
    {
        "job.name": "j",
        "job.default.system": "kafka",
        "job.host-affinity.enabled": "true",
        COUNT: "2",
        "systems.kafka.samza.factory": "org.apache.samza.system.kafka.KafkaSystemFactory",
        "systems.kafka.consumer.bootstrap.servers": "b:1",
        "task.class": "m:C",
        "task.inputs": "kafka.in",
    }
)
STORE = {
    "stores.s.factory": "rocksdb",
    "stores.s.changelog": "kafka.s",
    "stores.s.key.serde": "string",
    "stores.s.msg.serde": "json",
}


class Attempt:
    """A stream and a shelf with version 1, and a Kafka whose partitions the test says."""

    def __init__(self, folder: Path, file: Config) -> None:
        self.counts: dict[SystemStream, int] = {IN: 4, MORE: 4, ALL: 3}
        self.made: list[JobModel] = []
        self.is_away = False
        self.stream = InMemoryCoordinatorStream()
        self.job_models = JobModelStore(folder)
        model = calculate_job_model(file, self.counts, NOTHING)
        publication.publish(model, self.stream, lambda host: host)
        self.job_models.enter(1, model)
        self.planner = ModelPlanner(self.stream, self.job_models, self._counts, self._create_topics)

    def _create_topics(self, model: JobModel, stream: CoordinatorStream) -> None:
        assert stream is self.stream
        self.made.append(model)

    def _counts(self, _: Config) -> Mapping[SystemStream, int]:
        if self.is_away:
            raise UnavailableError("Kafka is away")
        return self.counts


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    """Four tasks in two containers, without state."""
    return Attempt(tmp_path, FILE)


def names(model: JobModel) -> set[str]:
    """All tasks."""
    return {t for c in model.containers.values() for t in c.tasks}


def test_only_changed_processors_are_listed(attempt: Attempt) -> None:
    """A processor with the same tasks, inputs and changelog partitions is not there."""
    before = attempt.job_models.model
    after = attempt.planner.reconfigured(FILE.merged({COUNT: "3"}))
    changed = changed_containers(before, after)
    assert {p for p in before.containers if before.containers[p] != after.containers[p]} | {
        "2"
    } == set(changed)
    assert changed[P2]["before"] is None
    (task,) = changed[P2]["after"]
    number = task.removeprefix("Partition ")
    assert changed[P2]["after"] == {task: [int(number), [f"kafka.in.{number}"]]}
    assert changed_containers(before, before) == {}


def test_topics_are_there_before_the_model_is(attempt: Attempt) -> None:
    """A model whose topics cannot be had is none; those that are there are not asked for again."""
    attempt.planner.reconfigured(FILE.merged({COUNT: "3"}))
    assert attempt.made == []
    model = attempt.planner.expanded({IN: 8})
    assert attempt.made == [model]


def test_kafka_is_queried_for_inputs_that_the_model_does_not_know(attempt: Attempt) -> None:
    """A change of the number of containers does not wait."""
    attempt.is_away = True
    attempt.planner.reconfigured(FILE.merged({COUNT: "3"}))
    with pytest.raises(UnavailableError):
        attempt.planner.reconfigured(FILE.merged({"task.inputs": "kafka.in,kafka.more"}))


def test_inputs_of_the_model_stay_and_new_ones_are_as_they_are(attempt: Attempt) -> None:
    """Between two looks at the inputs nothing of them changes."""
    attempt.counts[IN] = 8
    model = attempt.planner.reconfigured(FILE.merged({"task.inputs": "kafka.in,kafka.more"}))
    inputs = {
        ssp
        for container in model.containers.values()
        for task in container.tasks.values()
        for ssp in task.system_stream_partitions
    }
    assert len(inputs) == 8
    assert names(model) == names(attempt.job_models.model)


def test_state_keeps_its_tasks(tmp_path: Path) -> None:
    """A change that would give a job with state other tasks is refused, whatever asks for it."""
    attempt = Attempt(tmp_path, FILE.merged(STORE))
    attempt.counts[MORE] = 9
    with pytest.raises(ConfigError, match=r"task\.inputs"):
        attempt.planner.reconfigured(FILE.merged({**STORE, "task.inputs": "kafka.in,kafka.more"}))
    assert attempt.made == []


def test_g18_inputs_of_a_job_with_state_expand_into_its_tasks(tmp_path: Path) -> None:
    """G18: 4 partitions become 8; each task reads two, and keeps its changelog partition."""
    attempt = Attempt(tmp_path, FILE.merged(STORE))
    model = attempt.planner.expanded({IN: 8})
    assert names(model) == names(attempt.job_models.model)
    for container in model.containers.values():
        for name, task in container.tasks.items():
            first = int(name.removeprefix("Partition "))
            assert [s.partition for s in task.system_stream_partitions] == [first, first + 4]
            assert task.changelog_partition == first
    with pytest.raises(ConfigError):
        attempt.planner.expanded({IN: 7})


def test_a_new_attempt_begins_with_what_the_stream_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """And where no model can be made of that, with what was submitted."""
    counts = {IN: 4}
    monkeypatch.setattr(next_model, "create_topics", lambda *_, **__: None)
    monkeypatch.setattr(next_model, "counts_now", lambda _config: counts)
    stream = InMemoryCoordinatorStream()
    for text, containers in (("3", 3), ("50", 2), ("none", 2), ("4", 4)):
        stream.write([wire.set_config(COUNT, text)])
        stream.catch_up()
        assert len(first_model(Submitted(FILE, FILE), stream).containers) == containers
    counts.clear()
    with pytest.raises(ConfigError, match=r"kafka\.in"):
        first_model(Submitted(FILE, FILE), stream)


def test_a_new_attempt_does_not_begin_with_other_tasks_than_the_state_was_made_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As run-job at a submission; here also where a grouper of the job's own deals the tasks."""
    file = FILE.merged({**STORE, "job.systemstreampartition.input.expansion.enabled": "false"})
    attempt = Attempt(tmp_path, file)
    made: list[JobModel] = []
    monkeypatch.setattr(next_model, "create_topics", lambda model, *_, **__: made.append(model))
    monkeypatch.setattr(next_model, "counts_now", lambda _config: attempt.counts)
    assert names(first_model(Submitted(file, file), attempt.stream)) == names(
        attempt.job_models.model
    )
    attempt.counts[IN] = 8
    with pytest.raises(ConfigError) as caught:
        first_model(Submitted(file, file), attempt.stream)
    assert str(caught.value) == (
        "task.inputs = \"task 'Partition 4' of kafka.in#4\": it was \"no task 'Partition 4'\" when "
        "the job's state was made, which a change would mix up; set it back, or begin from nothing "
        "by run-job --reset-state"
    )
    assert len(made) == 1
