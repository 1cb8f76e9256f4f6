"""From configuration, metadata and what was before to the JobModel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import TypeVar

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from homeport.config.config import Config
from homeport.config.errors import ConfigError, InvariantViolation
from homeport.config.java_names import Kind, java_name, known_names
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model, input_streams
from homeport.job_coordinator.grouper.previous_assignment import NOTHING, PreviousAssignment
from homeport.job_coordinator.grouper.task_name_grouper import ContainerTasks, GroupByContainerCount
from homeport.job_coordinator.grouper.validation import first_fault
from homeport.job_coordinator.model.codec import decode_job_model, encode_job_model
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    JobModel,
    SystemStream,
    SystemStreamPartition,
    TaskModel,
)

A, B, RULES = (SystemStream("kafka", name) for name in ("a", "b", "rules"))


def _config(**over: str) -> Config:
    values = {
        "job.name": "j",
        "job.default.system": "kafka",
        "task.inputs": "kafka.a,kafka.b",
        "job.container.count": "2",
        "job.host-affinity.enabled": "true",
    }
    return Config(values | {key.replace("__", "."): value for key, value in over.items()})


def _tasks_of(model: JobModel) -> dict[str, list[str]]:
    return {id_: list(container.tasks) for id_, container in model.containers.items()}


def test_a_broadcast_partition_is_in_every_task() -> None:
    """G25: with a stream that is not among ``task.inputs``; its counts are needed too."""
    config = _config(task__broadcast__inputs="kafka.rules#1")
    assert input_streams(config) == (A, B, RULES)
    model = calculate_job_model(config, {A: 2, B: 2, RULES: 2}, NOTHING)
    broadcast = SystemStreamPartition("kafka", "rules", 1)
    tasks = [task for c in model.containers.values() for task in c.tasks.values()]
    assert len(tasks) == 2
    assert all(broadcast in task.system_stream_partitions for task in tasks)
    assert first_fault(model) is None


def test_g17_broadcast_partitions_give_rise_to_no_task() -> None:
    """G17: an input stream may be broadcast in part: that part forms no task and is in each."""
    config = _config(task__broadcast__inputs="kafka.a#0,kafka.b#0", job__container__count="1")
    (container,) = calculate_job_model(config, {A: 2, B: 2}, NOTHING).containers.values()
    assert list(container.tasks) == ["Partition 1"]
    (task,) = container.tasks.values()
    assert len(task.system_stream_partitions) == 4
    with pytest.raises(ConfigError, match=r"task\.inputs is missing.*not broadcast"):
        calculate_job_model(config, {A: 1, B: 1}, NOTHING)


def test_a_broadcast_partition_that_is_not_there_is_refused() -> None:
    """The message names the key, the partition and how many there are."""
    config = _config(task__broadcast__inputs="kafka.rules#2")
    with pytest.raises(ConfigError, match=r"task\.broadcast\.inputs = 'kafka\.rules#2'.*0 to 1"):
        calculate_job_model(config, {A: 2, B: 2, RULES: 2}, NOTHING)
    with pytest.raises(ConfigError, match=r"task\.broadcast\.inputs = 'kafka\.rules'"):
        calculate_job_model(config, {A: 2, B: 2}, NOTHING)


def test_an_input_stream_that_is_not_there_is_refused() -> None:
    """One line with key, value, rule and remedy."""
    with pytest.raises(ConfigError) as caught:
        calculate_job_model(_config(), {A: 2}, NOTHING)
    assert str(caught.value) == (
        "task.inputs = 'kafka.b': the input stream must exist, and system 'kafka' has no 'b'; "
        "create it or correct the name"
    )


def test_more_containers_than_tasks_are_refused() -> None:
    """The count of containers must fit the partitions."""
    with pytest.raises(ConfigError, match=r"job\.container\.count = '9'"):
        calculate_job_model(_config(job__container__count="9"), {A: 8, B: 2}, NOTHING)


@pytest.mark.parametrize("kind", [Kind.SSP_GROUPER, Kind.TASK_NAME_GROUPER])
def test_groupers_are_named_by_either_name(kind: Kind) -> None:
    """Samza's Java name and ours stand for the same grouper; each of the table can be made."""
    key = {
        Kind.SSP_GROUPER: "job.systemstreampartition.grouper.factory",
        Kind.TASK_NAME_GROUPER: "task.name.grouper.factory",
    }[kind]
    for name in known_names(kind):
        models = [
            calculate_job_model(_config().merged({key: value or ""}), {A: 2, B: 2}, NOTHING)
            for value in (name, java_name(kind, name))
        ]
        assert models[0].containers == models[1].containers
        assert first_fault(models[0]) is None


def test_hot_standby_makes_replicas_in_either_words() -> None:
    """Reference 3.8: one replica by our keys, or two by a factor of three."""
    ours = _config(job__hotstandby__enabled="true")
    samza = _config(job__standbytasks__replication__factor="3")
    model = calculate_job_model(ours, {A: 2, B: 2}, NOTHING)
    assert sorted(model.containers) == ["0", "0-0", "1", "1-0"]
    model = calculate_job_model(samza, {A: 2, B: 2}, NOTHING)
    assert sorted(model.containers) == ["0", "0-0", "0-1", "1", "1-0", "1-1"]
    assert model.max_change_log_stream_partitions == 2
    assert first_fault(model) is None
    both = samza.merged(ours)
    with pytest.raises(ConfigError, match=r"job\.standbytasks\.replication\.factor = '3'"):
        calculate_job_model(both, {A: 2, B: 2}, NOTHING)


def test_processors_are_not_given_twice() -> None:
    """Two of one id would silently be one."""
    twice = [ProcessorId("x"), ProcessorId("x")]
    with pytest.raises(InvariantViolation, match="x, x"):
        calculate_job_model(_config(), {A: 2, B: 2}, NOTHING, twice)


def test_a_grouper_cannot_name_a_processor_that_is_not_there() -> None:
    """Standalone: ``processor.id`` of another process would leave all tasks without anybody."""
    config = _config(task__name__grouper__factory="single-container", processor__id="elsewhere")
    with pytest.raises(
        ConfigError, match=r"'elsewhere', and there is no such processor.*processor\.id"
    ):
        calculate_job_model(config, {A: 2, B: 2}, NOTHING, [ProcessorId("here")])
    model = calculate_job_model(config, {A: 2, B: 2}, NOTHING)
    assert _tasks_of(model) == {"elsewhere": ["Partition 0", "Partition 1"]}


@pytest.mark.parametrize("grouper", known_names(Kind.TASK_NAME_GROUPER))
@pytest.mark.parametrize("by", known_names(Kind.SSP_GROUPER))
def test_every_grouper_takes_any_ids_and_streams(grouper: str, by: str) -> None:
    """Interchangeable: YARN's counted ids and standalone's texts; streams with dots and hyphens."""
    stream = SystemStream("kafka", "my-topic.v1_x")
    config = _config(
        task__inputs=str(stream),
        task__name__grouper__factory=grouper,
        job__systemstreampartition__grouper__factory=by,
    )
    ids = [ProcessorId(p) for p in ("9f-4e", 'ü "x"', "a.b")]
    counted = calculate_job_model(config, {stream: 5}, NOTHING)
    before = PreviousAssignment(
        task_processors={n: p for p, c in counted.containers.items() for n in c.tasks},
        processor_hosts={ids[0]: Host("h1")},
    )
    model = calculate_job_model(config, {stream: 5}, before, ids)
    assert set(model.containers) <= set(ids)
    assert first_fault(decode_job_model(encode_job_model(model, mask_secrets=False))) is None


K = TypeVar("K")
V = TypeVar("V")


def _shuffled(values: Mapping[K, V], random: Random) -> dict[K, V]:
    items = list(values.items())
    random.shuffle(items)
    return dict(items)


@settings(deadline=None)  # the machine may be busy
@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 8), st.randoms(), st.data())
def test_the_order_of_the_arguments_does_not_matter(
    a: int, b: int, count: int, random: Random, data: st.DataObject
) -> None:
    """The same content in any order gives the same bytes, and a model without fault."""
    assume(count <= max(a, b))
    config = _config(job__container__count=str(count))
    names = [TaskName(f"Partition {n}") for n in range(max(a, b))]
    numbers = data.draw(st.permutations(range(len(names) + 3)))
    known = dict(zip(names[: data.draw(st.integers(0, len(names)))], numbers, strict=False))
    previous = {name: ProcessorId(str(data.draw(st.integers(0, 3)))) for name in names}
    counts = {A: a, B: b}
    first = calculate_job_model(
        config, counts, PreviousAssignment(task_processors=previous, changelog_partitions=known)
    )
    shuffled = PreviousAssignment(
        task_processors=_shuffled(previous, random), changelog_partitions=_shuffled(known, random)
    )
    second = calculate_job_model(config, _shuffled(counts, random), shuffled)
    assert encode_job_model(first, mask_secrets=False) == encode_job_model(
        second, mask_secrets=False
    )
    assert first_fault(first) is None


def test_a_stream_that_gives_two_tasks_one_changelog_partition_is_not_believed() -> None:
    """Each would restore the other's state: no such JobModel is published."""
    known = {TaskName("Partition 0"): 3, TaskName("Partition 1"): 3}
    before = PreviousAssignment(changelog_partitions=known)
    with pytest.raises(
        ConfigError, match="'Partition 0' has this changelog partition too"
    ) as caught:
        calculate_job_model(_config(), {A: 2, B: 2}, before)
    assert caught.value.key == "set-changelog Partition 1"
    assert "--key='Partition 1' --value=0; no task has: 0, 1" in caught.value.remedy
    both = {TaskName("Partition 0"): 0, TaskName("Partition 1"): 0, TaskName("gone"): 1}
    with pytest.raises(ConfigError, match="--value=2; no task has: 2"):
        calculate_job_model(_config(), {A: 2, B: 2}, PreviousAssignment(changelog_partitions=both))


def test_a_model_with_a_fault_is_never_given() -> None:
    """Whatever led to it is a bug, as a number that no record can hold."""
    before = PreviousAssignment(changelog_partitions={TaskName("Partition 0"): -1})
    with pytest.raises(InvariantViolation, match="has the changelog partition -1"):
        calculate_job_model(_config(), {A: 2, B: 2}, before)


def test_a_task_that_a_grouper_of_homeport_loses_is_reported_as_a_bug(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its input would never be read: nothing is published; no configuration is blamed."""

    def forgetful(_self: object, tasks: Sequence[TaskModel], *_: object) -> ContainerTasks:
        return {ProcessorId("0"): [task.task_name for task in tasks[1:]]}

    monkeypatch.setattr(GroupByContainerCount, "group", forgetful)
    with pytest.raises(InvariantViolation, match="built a wrong JobModel: task 'Partition 0' is"):
        calculate_job_model(_config(), {A: 2, B: 2}, NOTHING)
