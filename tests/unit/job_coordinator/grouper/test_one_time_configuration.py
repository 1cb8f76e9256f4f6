"""What is settled once a job has state, and what run-job refuses to change of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from own_records import put
from stream_in_memory import InMemoryCoordinatorStream

from homeport.cli.yarn import state_check
from homeport.cli.yarn.state_check import require_unchanged
from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.one_time_configuration import (
    changed_key,
    changed_tasks,
    changed_use,
    has_state,
    refusal,
    require_leaders_use,
    require_same_keys,
)
from homeport.job_coordinator.grouper.previous_assignment import NOTHING, PreviousAssignment
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.state_reset import ResetPhase, StateReset, StateResetManager
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
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


BOTH = config(task_inputs="kafka.in,kafka.more")


@pytest.mark.parametrize("more", [1, 3, 4])
def test_an_input_that_the_job_did_not_have_is_no_change(more: int) -> None:
    """It joins the tasks that there are; and it may leave again."""
    with_more = model(BOTH, {"in": 4, "more": more})
    assert changed_tasks(BEFORE, with_more) is None
    assert changed_tasks(assigned(with_more), model(config(), {"in": 4})) is None


def test_a_broadcast_input_comes_and_goes() -> None:
    """Every task reads it, and no key of another input moves."""
    broad = config(task_broadcast_inputs="kafka.rules#[0-1]")
    with_rules = model(broad, {"in": 4, "rules": 2})
    assert changed_tasks(BEFORE, with_rules) is None
    assert changed_tasks(assigned(with_rules), model(config(), {"in": 4})) is None


def test_an_input_that_makes_a_task_of_its_own_is_refused() -> None:
    """Its task has no changelog partition; one line names what would do."""
    found = str(changed_tasks(BEFORE, model(BOTH, {"in": 4, "more": 5})))
    assert "it was \"no task 'Partition 4'\" when" in found
    assert "no partition of the changelogs; give it 4 partitions, as many as the job has" in found


def test_a_task_without_any_input_left_is_refused() -> None:
    """Nothing would read its state; the line names it."""
    before = assigned(model(BOTH, {"in": 4, "more": 5}))
    found = str(changed_tasks(before, model(config(), {"in": 4})))
    assert found.startswith("task.inputs = \"no task 'Partition 4'\": it was")
    assert "nothing would read that state any more; leave an input with its partition; or" in found
    assert "set job.changelogs.grow=true, and the task goes until an input brings it back" in found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (config(), config(task_inputs="kafka.other")),
        (
            config(task_broadcast_inputs="kafka.rules#0"),
            config(task_inputs="kafka.other", task_broadcast_inputs="kafka.rules#0"),
        ),
    ],
)
def test_an_input_in_the_place_of_another_is_refused(before: Config, after: Config) -> None:
    """Whose keys may be elsewhere; a broadcast input, which all tasks read, makes no difference."""
    counts = {"in": 4, "other": 4, "rules": 1}
    found = str(changed_tasks(assigned(model(before, counts)), model(after, counts)))
    assert "and none of the inputs that made its state would stay; add the new input first" in found


def test_an_input_that_becomes_a_broadcast_one_is_refused() -> None:
    """Its keys would be in every task."""
    before = assigned(model(BOTH, {"in": 2, "more": 2}))
    broad = config(task_broadcast_inputs="kafka.more#[0-1]")
    assert changed_tasks(before, model(broad, {"in": 2, "more": 2})) is not None


STREAMS = st.dictionaries(st.sampled_from("abcd"), st.integers(1, 4), min_size=1)
GROUPERS = st.sampled_from(["group-by-partition", "group-by-system-stream-partition"])


@given(STREAMS, STREAMS, GROUPERS, st.sampled_from(["false", "true"]))
def test_whatever_comes_and_goes_no_key_of_an_input_that_stays_moves(
    before: dict[str, int], wanted: dict[str, int], grouper: str, grows: str
) -> None:
    """An accepted change leaves each task its changelog partition and its share of the inputs.

    Where changelogs grow, those that come or go share no input with what was there, or stays.
    """
    after = {name: before.get(name, count) for name, count in wanted.items()}
    own = {GROUPER: grouper, "job.changelogs.grow": grows}
    jobs = [
        config(task_inputs=",".join(f"kafka.{n}" for n in names), **own)
        for names in (before, after)
    ]
    old = assigned(model(jobs[0], before))
    streams = {SystemStream("kafka", name): count for name, count in after.items()}
    new = calculate_job_model(jobs[1], streams, old)
    accepted = changed_tasks(old, new) is None
    tasks = len(old.task_partitions)
    stay = [before[name] for name in {*before} & {*after}]
    fit = all(n <= tasks or n % tasks == 0 for name, n in after.items() if name not in before)
    if grouper == "group-by-partition" and fit and max(stay, default=0) == tasks:
        assert accepted
    if not accepted:
        return
    found = new.active_tasks()
    gone, came = (
        old.task_partitions.keys() - found.keys(),
        found.keys() - old.task_partitions.keys(),
    )
    assert grows == "true" or not gone | came
    assert gone != old.task_partitions.keys()
    for name in gone:
        assert not {s.stream for s in old.task_partitions[name]} & {*after}
    for name in came:
        assert not {s.stream for s in found[name].system_stream_partitions} & {*before}
        assert found[name].changelog_partition not in old.changelog_partitions.values()
    for name in found.keys() - came:
        task = found[name]
        assert task.changelog_partition == old.changelog_partitions[name]
        staying = {s for s in old.task_partitions[name] if s.stream in after}
        assert staying
        assert {s for s in task.system_stream_partitions if s.stream in before} == staying


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


def test_a_multiple_is_a_remedy_only_where_it_finds_place_in_the_tasks() -> None:
    """That is, where inputs expand into the tasks that there are."""
    fixed = BOTH.merged({"job.systemstreampartition.input.expansion.enabled": "false"})
    found = str(changed_tasks(BEFORE, model(fixed, {"in": 4, "more": 8})))
    assert "as many as the job has tasks, or fewer; with a grouper" in found
    found = str(changed_tasks(BEFORE, model(BOTH, {"in": 4, "more": 7})))
    assert "as many as the job has tasks, or fewer, or a multiple; with a grouper" in found


GROWS = {"job_changelogs_grow": "true"}


def test_a_task_of_new_inputs_comes_where_changelogs_grow() -> None:
    """It gets the next number; without the key the refusal names it."""
    both = config(task_inputs="kafka.in,kafka.more", **GROWS)
    counts = {SystemStream("kafka", "in"): 4, SystemStream("kafka", "more"): 6}
    wanted = calculate_job_model(both, counts, BEFORE)
    assert changed_tasks(BEFORE, wanted) is None
    assert wanted.max_change_log_stream_partitions == 6
    assert "or set job.changelogs.grow=true, and" in str(
        changed_tasks(BEFORE, model(BOTH, {"in": 4, "more": 6}))
    )


def test_a_task_without_inputs_goes_where_changelogs_grow_and_comes_back() -> None:
    """With the partition of before; what has come meanwhile has another one."""
    both = config(task_inputs="kafka.in,kafka.more", **GROWS)
    counts = {SystemStream("kafka", "in"): 4, SystemStream("kafka", "more"): 6}
    grown = assigned(calculate_job_model(both, counts, BEFORE))
    without = calculate_job_model(config(**GROWS), counts, grown)
    assert changed_tasks(grown, without) is None
    kept = replace(assigned(without), changelog_partitions=grown.changelog_partitions)
    assert len(kept.task_partitions) == 4
    back = calculate_job_model(both, counts, kept)
    assert changed_tasks(kept, back) is None
    assert assigned(back).changelog_partitions == grown.changelog_partitions


def test_a_task_goes_beside_one_that_stays() -> None:
    """Of a job that reads nothing any more of what made its state, all would be left behind."""
    ssp = {GROUPER: "group-by-system-stream-partition"}
    before = assigned(model(config(**GROWS).merged(ssp), {"in": 2}))
    other = model(config(task_inputs="kafka.other", **GROWS).merged(ssp), {"other": 2})
    found = str(changed_tasks(before, other))
    assert "nothing would read that state any more; leave an input with its partition, or" in found
    beside = config(task_inputs="kafka.in,kafka.other", **GROWS).merged(ssp)
    both = model(beside, {"in": 2, "other": 2})
    assert changed_tasks(before, both) is None
    assert changed_tasks(assigned(both), other) is None


def test_a_task_whose_input_others_read_does_not_go() -> None:
    """Its keys would be in tasks without their state; a broadcast input is read by each task."""
    broad = {"task_broadcast_inputs": "kafka.all#0"}
    both = config(task_inputs="kafka.in,kafka.more", **GROWS, **broad)
    before = assigned(model(both, {"in": 2, "more": 3, "all": 1}))
    assert changed_tasks(before, model(config(**GROWS, **broad), {"in": 2, "all": 1})) is None
    fewer = model(both, {"in": 2, "more": 2, "all": 1})
    assert "which a change would mix up" in str(changed_tasks(before, fewer))


def test_each_task_is_judged_behind_one_that_may_come() -> None:
    """Partition 2 is of an input that the job did not have; Partition 3 was of one that stays."""
    expected = "which a change would mix up"
    before = assigned(model(config(), {"in": 4}))
    gone = before.task_partitions.keys() - {"Partition 2"}
    fewer = replace(before, task_partitions={n: before.task_partitions[n] for n in gone})
    fewer = replace(fewer, task_processors=dict.fromkeys(gone, ProcessorId("0")))
    both = config(task_inputs="kafka.in,kafka.more", **GROWS)
    assert expected in str(changed_tasks(fewer, model(both, {"in": 2, "more": 3})))


def test_fewer_partitions_of_a_broadcast_input_are_a_change() -> None:
    """The state has been made with those that nothing reads any more."""
    wide, narrow = (config(task_broadcast_inputs=f"kafka.rules#{n}") for n in ("[0-1]", "0"))
    before = assigned(model(wide, {"in": 4, "rules": 2}))
    assert changed_tasks(before, model(narrow, {"in": 4, "rules": 2})) is not None


def test_keys_are_settled_with_state_alone() -> None:
    """Before the first JobModel, or without a changelog, each may change."""
    changed = config(**{GROUPER: "all-ssp-to-single-task"})
    require_same_keys(config(), changed, NOTHING)
    require_same_keys(config(stores_s_changelog=None), changed, BEFORE)
    with pytest.raises(ConfigError, match="begin from nothing"):
        require_same_keys(config(), changed, BEFORE)


def test_a_broadcast_input_is_none_that_a_new_task_shares_keys_by() -> None:
    """Each task reads it, those that come too."""
    broadcast = config(task_broadcast_inputs="kafka.all#0")
    both = config(task_inputs="kafka.in,kafka.more", task_broadcast_inputs="kafka.all#0", **GROWS)
    before = assigned(model(broadcast, {"in": 4, "all": 1}))
    wanted = model(both, {"in": 4, "more": 6, "all": 1})
    assert changed_tasks(before, wanted) is None


def test_keys_never_move_where_changelogs_grow() -> None:
    """An input that has grown by a part, whose keys would be at other tasks than their state."""
    fixed = {
        GROUPER: "group-by-partition",
        "job.systemstreampartition.input.expansion.enabled": "false",
    }
    grown = model(config(**GROWS).merged(fixed), {"in": 6})
    assert "which a change would mix up" in str(changed_tasks(BEFORE, grown))


def test_the_same_job_again_is_no_change(stream: InMemoryCoordinatorStream) -> None:
    """Nothing is written, whatever is found."""
    written = len(stream.log)
    require_unchanged(stream, config().merged({"job.container.count": "2", "task.commit.ms": "1"}))
    assert len(stream.log) == written


def test_a_resubmission_may_bring_an_input_and_take_it_away(
    stream: InMemoryCoordinatorStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that moves state is refused in one line."""
    counts = {SystemStream("kafka", name): n for name, n in (("in", 2), ("more", 2), ("three", 3))}
    monkeypatch.setattr(state_check, "counts_now", lambda _config: counts)
    written = len(stream.log)
    require_unchanged(stream, BOTH)
    require_unchanged(stream, config(task_broadcast_inputs="kafka.three#[0-2]"))
    with pytest.raises(ConfigError, match="give it 2 partitions, as many as the job has tasks"):
        require_unchanged(stream, config(task_inputs="kafka.in,kafka.three"))
    assert len(stream.log) == written


ADJUNCT = {
    "task_inputs": "kafka.in,kafka.a,kafka.b",
    **{f"stores_{name}_factory": "rocksdb" for name in "xy"},
    **{f"stores_{name}_{part}_serde": "string" for name in "xy" for part in ("key", "msg")},
}


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("ab", "ab", None),
        ("a", "ab", "stores.y.adstore.input = 'kafka.b': the stream is an input already, and its"),
        ("ab", "a", "stores.y.adstore.input is missing: the stream is an input already, and its"),
        ("ab", "ba", "its records go to store 'x': store 'y' would lack those before the commit"),
    ],
)
def test_an_input_that_stays_keeps_its_reader(before: str, after: str, line: str | None) -> None:
    """The tasks, or the one store that it fills: two stores do not swap their inputs either."""
    filled = [
        {f"stores_{s}_adstore_input": f"kafka.{name}" for s, name in zip("xy", names, strict=False)}
        for names in (before, after)
    ]
    fault = changed_use(*(config(**ADJUNCT, **more) for more in filled))
    assert str(line) in str(fault)


def test_a_store_that_begins_at_the_oldest_record_may_take_an_input_over() -> None:
    """It lacks nothing; the tasks would, and so would a store without bootstrap."""
    tasks, store = config(**ADJUNCT), config(**ADJUNCT, stores_x_adstore_input="kafka.a")
    assert changed_use(tasks, store) is not None
    whole = store.merged({"systems.kafka.streams.a.samza.bootstrap": "true"})
    assert changed_use(tasks, whole) is None
    assert changed_use(whole, tasks) is not None
    assert changed_use(tasks, whole.merged({"stores.y.adstore.input": "kafka.b"})) is not None
    assert changed_use(store, config()) is None  # it goes with its store


def test_an_input_that_fills_a_store_makes_no_state_of_a_task() -> None:
    """Nor does it keep one where the inputs of the tasks go; without any, broadcast ones do."""
    filled = {**ADJUNCT, "stores_x_adstore_input": "kafka.a", "task_inputs": "kafka.in,kafka.a"}
    counts = {"in": 2, "a": 2, "other": 2, "rules": 1, "more": 1}
    before = assigned(model(config(**filled), counts))
    other = config(**filled | {"task_inputs": "kafka.other,kafka.a"})
    assert "none of the inputs that made its state" in str(
        changed_tasks(before, model(other, counts))
    )
    alone = {**filled, "task_inputs": "kafka.a"}
    both, fewer = (
        model(config(**alone, task_broadcast_inputs=broad), counts)
        for broad in ("kafka.rules#0,kafka.more#0", "kafka.rules#0")
    )
    assert changed_tasks(assigned(both), fewer) is None


def test_a_processor_whose_file_gives_an_input_another_reader_is_refused() -> None:
    """Its tasks would get records that fill a store; other inputs are no matter of its."""
    tasks, store = config(**ADJUNCT), config(**ADJUNCT, stores_x_adstore_input="kafka.a")
    a, b = SystemStream("kafka", "a"), SystemStream("kafka", "b")
    for leader, own in ((tasks, tasks), (store, store)):
        require_leaders_use(leader, own, {a, b})
    require_leaders_use(store, tasks, {b})
    with pytest.raises(ConfigError, match="the tasks, by the leader's to store 'x'; give all"):
        require_leaders_use(store, tasks, {a, b})
    with pytest.raises(ConfigError, match="to store 'x', by the leader's to the tasks; give all"):
        require_leaders_use(tasks, store, {a})


def test_the_serde_of_a_repartitions_keys_stays_as_it_chose_their_tasks() -> None:
    """By whatever key it is given; a repartition comes and goes with its own."""
    key, own = "task.repartition.x.key.serde", {"task_repartition_x": "inputs"}
    text = config(**own, task_repartition_x_key_serde="string")
    for other, name in (
        (config(**own, task_repartition_x_key_serde="json"), "json"),
        (config(**own), "bytes"),
        (config(**own, systems_kafka_samza_key_serde="long"), "long"),
    ):
        rule = f"{key} = '{name}': it was 'string' when the job's state was made, and chose the"
        assert rule in str(changed_use(text, other))
        assert changed_use(other, other) is None
    for same in (text, config(), config(**own, systems_kafka_samza_key_serde="string")):
        assert changed_use(text, same) is None
        assert changed_use(same, text) is None


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


def test_a_partition_that_goes_to_another_task_is_a_change() -> None:
    """The stream stays whole, and the keys of one partition leave their state."""
    job = config()
    before = assigned(model(job, {"in": 2}))
    here, there = sorted(before.task_partitions)
    moved = {here: before.task_partitions[there], there: before.task_partitions[here]}
    other = PreviousAssignment(task_partitions=moved, changelog_partitions={here: 0, there: 1})
    fault = changed_tasks(other, model(job, {"in": 2}))
    assert fault is not None
    assert fault.key == "task.inputs"
