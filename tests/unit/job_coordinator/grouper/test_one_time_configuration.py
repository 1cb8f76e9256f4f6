"""What is settled once a job has state, and what run-job refuses to change of it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from own_records import put
from stream_in_memory import InMemoryCoordinatorStream

from homeport.cli.yarn import state_check
from homeport.cli.yarn.state_check import require_unchanged
from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.one_time_configuration import (
    changed_key,
    changed_tasks,
    has_state,
    refusal,
)
from homeport.job_coordinator.grouper.previous_assignment import NOTHING, PreviousAssignment
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.state_reset import ResetPhase, StateReset, StateResetManager
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import JobModel, SystemStream, SystemStreamPartition

GROUPER = "job.systemstreampartition.grouper.factory"
VALUES = {
    "job.name": "j",
    "job.default.system": "kafka",
    "task.class": "m:T",
    "task.inputs": "kafka.in",
    "systems.kafka.consumer.bootstrap.servers": "b:1",
    "stores.s.factory": "rocksdb",
    "stores.s.changelog": "kafka.s",
    "stores.s.key.serde": "string",
    "stores.s.msg.serde": "json",
}


def config(**changes: str | None) -> Config:
    """The job's, with changes; underscores stand for dots, None takes a key away."""
    changed = {key.replace("_", "."): value for key, value in changes.items()}
    return Config({k: v for k, v in {**VALUES, **changed}.items() if v is not None})


def model(job: Config, counts: Mapping[str, int]) -> JobModel:
    """The JobModel of that job from nothing."""
    streams = {SystemStream("kafka", name): count for name, count in counts.items()}
    return calculate_job_model(job, streams, NOTHING)


def assigned(of: JobModel) -> PreviousAssignment:
    """What the coordinator stream says once that JobModel is published."""
    tasks = [t for c in of.containers.values() for t in c.tasks.values()]
    return PreviousAssignment(
        task_partitions={t.task_name: frozenset(t.system_stream_partitions) for t in tasks},
        changelog_partitions={t.task_name: t.changelog_partition for t in tasks},
    )


BEFORE = assigned(model(config(), {"in": 4}))


def test_a_job_has_state_once_a_task_has_a_changelog_partition() -> None:
    """Not before its first JobModel, and not without a store that has a changelog."""
    assert has_state(config(), BEFORE)
    assert not has_state(config(), NOTHING)
    assert not has_state(config(stores_s_changelog=None), BEFORE)
    assert not has_state(Config(), BEFORE)


@pytest.mark.parametrize(
    ("key", "new"),
    [
        (GROUPER, "all-ssp-to-single-task"),
        ("task.inputs", "kafka.in,kafka.more"),
        ("stores.s.changelog", "kafka.other"),
        ("stores.s.key.serde", "bytes"),
        ("stores.s.msg.serde", "bytes"),
    ],
)
def test_one_time_keys_are_reported_with_old_and_new_value(key: str, new: str) -> None:
    """COORD, benefit 3: "changing SystemStreamPartitionGrouper on a stateful Samza job", and more.

    One that was not set is reported with its default.
    """
    old = VALUES.get(key, "its default")
    assert str(changed_key(config(), config(**{key: new}))) == str(refusal(key, old, new))
    assert changed_key(config(**{key: new}), config(**{key: new})) is None


def test_a_key_that_does_not_touch_state_may_change() -> None:
    """More containers, another commit interval, the user's own keys, other words for the same."""
    java = "org.apache.samza.container.grouper.stream.GroupByPartitionFactory"
    other = config(**{GROUPER: java, "job.container.count": "3", "task.commit.ms": "1", "my": "1"})
    assert changed_key(config(), other) is None


def test_the_same_inputs_are_no_change() -> None:
    """Nor is a job whose stream does not say what its tasks read."""
    assert changed_tasks(BEFORE, model(config(), {"in": 4})) is None
    unsaid = PreviousAssignment(changelog_partitions=BEFORE.changelog_partitions)
    assert changed_tasks(unsaid, model(config(), {"in": 8})) is None


@pytest.mark.parametrize(("count", "name", "is_new"), [(8, 4, True), (3, 3, False)])
def test_an_input_with_more_or_fewer_partitions_makes_other_tasks(
    count: int,
    name: int,
    is_new: bool,  # noqa: FBT001 - a case
) -> None:
    """The first task that came or went is named with what it reads."""
    task, none = f"task 'Partition {name}' of kafka.in#{name}", f"no task 'Partition {name}'"
    expected = (none, task) if is_new else (task, none)
    found = changed_tasks(BEFORE, model(config(), {"in": count}))
    assert str(found) == str(refusal("task.inputs", *expected))


def test_an_input_that_the_job_did_not_have_is_a_change() -> None:
    """Also one that an old task takes as well; so is an input that is gone."""
    both = config(task_inputs="kafka.in,kafka.more")
    found = changed_tasks(BEFORE, model(both, {"in": 4, "more": 1}))
    assert "task.inputs = " in str(found)
    assert "it was \"task 'Partition 0' of kafka.in#0\" when" in str(found)
    gone = changed_tasks(assigned(model(both, {"in": 4, "more": 1})), model(config(), {"in": 4}))
    assert "it was \"task 'Partition 0' of kafka.in#0, kafka.more#0\" when" in str(gone)


def grown(*pairs: tuple[int, int]) -> JobModel:
    """Two tasks that had one partition each; {new partition: task that gets it} as pairs."""
    job = model(config(), {"in": 2})
    tasks = {n: t for c in job.containers.values() for n, t in c.tasks.items()}
    for partition, task in pairs:
        old = tasks[TaskName(f"Partition {task}")]
        more = SystemStreamPartition("kafka", "in", partition)
        ssps = (*old.system_stream_partitions, more)
        tasks[old.task_name] = type(old)(old.task_name, ssps, old.changelog_partition)
    (container,) = job.containers.values()
    only = type(container)(container.processor_id, tasks)
    return JobModel(job.config, {container.processor_id: only})


def test_an_expanded_input_is_no_change_where_keys_stay_with_their_task() -> None:
    """2 partitions become 4, and p joins the task of p modulo 2; any other deal mixes keys up."""
    before = assigned(model(config(), {"in": 2}))
    assert changed_tasks(before, grown((2, 0), (3, 1))) is None
    mixed = changed_tasks(before, grown((2, 1), (3, 0)))
    old, new = ("task 'Partition 0' of kafka.in#0", "task 'Partition 0' of kafka.in#0, kafka.in#3")
    assert str(mixed) == str(refusal("task.inputs", old, new))


def counts_are(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """The only input of the job that run-job looks at has so many partitions."""
    counts = {SystemStream("kafka", "in"): count}
    monkeypatch.setattr(state_check, "counts_now", lambda _config: counts)


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> InMemoryCoordinatorStream:
    """Of a job with state, whose only input has two partitions."""
    counts_are(monkeypatch, 2)
    made = InMemoryCoordinatorStream()
    ConfigManager(made).replace(config(), "job-runner")
    for number in range(2):
        task = f"Partition {number}"
        ssp = SystemStreamPartition("kafka", "in", number)
        put(
            made,
            wire.set_changelog(task, number),
            wire.set_task_container_assignment(task, "0"),
            wire.set_task_partition_assignment(ssp, [task]),
        )
    return made


def test_the_same_job_again_is_no_change(stream: InMemoryCoordinatorStream) -> None:
    """Nothing is written, whatever is found."""
    written = len(stream.log)
    require_unchanged(stream, config().merged({"job.container.count": "2", "task.commit.ms": "1"}))
    assert len(stream.log) == written


def test_a_changed_key_is_one_line_with_old_new_and_remedy(
    stream: InMemoryCoordinatorStream,
) -> None:
    """COORD, benefit 3; without state it may change."""
    written, changed = len(stream.log), config(**{GROUPER: "all-ssp-to-single-task"})
    with pytest.raises(ConfigError) as caught:
        require_unchanged(stream, changed)
    assert str(caught.value) == (
        f"{GROUPER} = 'all-ssp-to-single-task': it was 'its default' when the job's state was "
        "made, which a change would mix up; set it back, or begin from nothing by run-job "
        "--reset-state"
    )
    assert len(stream.log) == written
    ConfigManager(stream).replace(
        Config({k: v for k, v in config().items() if not k.startswith("stores.")}), "job-runner"
    )
    require_unchanged(stream, changed)


def test_an_input_that_has_other_partitions_is_reported(
    stream: InMemoryCoordinatorStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No key changed: the facts did. Expansion, where it is on, says so in its own words."""
    counts_are(monkeypatch, 1)
    with pytest.raises(ConfigError, match=r"input kafka\.in has 1 partitions and had 2"):
        require_unchanged(stream, config())
    fixed = config().merged({"job.systemstreampartition.input.expansion.enabled": "false"})
    ConfigManager(stream).replace(fixed, "job-runner")
    with pytest.raises(ConfigError, match=r"it was .task 'Partition 1' of kafka\.in#1. when"):
        require_unchanged(stream, fixed)


def test_an_unfinished_reset_must_be_finished_first(stream: InMemoryCoordinatorStream) -> None:
    """Whatever the configuration says."""
    StateResetManager(stream).write(StateReset(1, ResetPhase.BEGUN))
    stream.catch_up()
    with pytest.raises(ConfigError, match="finish it by run-job --reset-state"):
        require_unchanged(stream, config())
