"""Standby containers in the JobModel."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import pytest
from backup_choices import most_backed
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.mixed_standbys import on_backups
from homeport.job_coordinator.grouper.previous_assignment import NOTHING, PreviousAssignment
from homeport.job_coordinator.grouper.ssp_grouper import SystemStreamPartitionGrouper
from homeport.job_coordinator.grouper.standby_models import (
    standby_task,
    temporary_standby,
    with_standbys,
)
from homeport.job_coordinator.grouper.validation import first_fault
from homeport.job_coordinator.model.codec import decode_job_model, encode_job_model
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskMode,
    TaskModel,
)


def _actives(groups: dict[str, list[str]]) -> dict[ProcessorId, ContainerModel]:
    found = {}
    number = 0
    for id_, names in groups.items():
        tasks = {}
        for name in names:
            ssp = SystemStreamPartition("kafka", "a.b-c", number)
            tasks[TaskName(name)] = TaskModel(TaskName(name), (ssp,), number)
            number += 1
        found[ProcessorId(id_)] = ContainerModel(ProcessorId(id_), tasks)
    return found


def test_a_temporary_standby_keeps_the_state_of_its_active() -> None:
    """Its tasks have the inputs and the changelog partitions of the active ones."""
    (active,) = _actives({"0": ["Partition 2", "Partition 0"]}).values()
    standby = temporary_standby(active)
    assert standby.processor_id == "0-warm"
    assert (standby.role, standby.active_processor) == (TaskMode.STANDBY, "0")
    assert list(standby.tasks) == ["Standby-Partition 0-warm", "Standby-Partition 2-warm"]
    kept = {task.state_of: task.changelog_partition for task in standby.tasks.values()}
    assert kept == {name: task.changelog_partition for name, task in active.tasks.items()}
    (other,) = _actives({"1": ["Partition 1"]})[ProcessorId("1")].tasks.values()
    replica = standby_task(other, 0)
    mixed = replace(active, tasks={**active.tasks, replica.task_name: replica})
    assert temporary_standby(mixed) == standby
    (left,) = temporary_standby(mixed, {TaskName("Partition 0")}).tasks
    assert left == "Standby-Partition 2-warm"


def test_each_active_container_has_its_replicas() -> None:
    """S3: 0-0 and 0-1, Standby-<task>-0 and -1, same inputs and changelog partition."""
    actives = _actives({"0": ["Partition 0", "Partition 2"], "1": ["Partition 1"]})
    containers = with_standbys(actives, 2)
    assert sorted(containers) == ["0", "0-0", "0-1", "1", "1-0", "1-1"]
    standby = containers[ProcessorId("0-1")]
    assert standby.role is TaskMode.STANDBY
    assert standby.active_processor == "0"
    assert list(standby.tasks) == ["Standby-Partition 0-1", "Standby-Partition 2-1"]
    task = standby.tasks[TaskName("Standby-Partition 2-1")]
    active = actives[ProcessorId("0")].tasks[TaskName("Partition 2")]
    assert (task.task_mode, task.active_task) == (TaskMode.STANDBY, "Partition 2")
    assert task.mirror == active.mirror
    assert containers[ProcessorId("0")] == actives[ProcessorId("0")]
    assert containers[ProcessorId("0")].role is TaskMode.ACTIVE
    assert first_fault(JobModel(Config(), containers)) is None


@pytest.mark.parametrize(
    ("groups", "clash"),
    [
        ({"0": ["a"], "0-0": ["b"]}, "an active container has the id '0-0'"),
        ({"0": ["a"], "1": ["Standby-a-0"]}, "an active task has the id 'Standby-a-0'"),
    ],
)
def test_an_id_that_a_standby_is_to_have_is_refused(
    groups: dict[str, list[str]], clash: str
) -> None:
    """Two containers or tasks of one id would be one."""
    with pytest.raises(ConfigError, match=clash):
        with_standbys(_actives(groups), 1)


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@settings(deadline=None)  # the machine may be busy
@given(st.lists(_TEXT, min_size=1, max_size=5, unique=True), st.integers(1, 3), st.data())
def test_the_active_of_a_standby_survives_json_for_any_names(
    names: list[str], replicas: int, data: st.DataObject
) -> None:
    """Defect 17.1: hyphens, Standby- in front, any script: JSON keeps the active without a field.

    Samza takes a hyphen for the mark of a standby, and cuts names at the first two.
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(data.draw(st.sampled_from(["0", "a-b", "7e-ü"])), []).append(name)
    try:
        containers = with_standbys(_actives(groups), replicas)
    except ConfigError:  # a name that its neighbour's standby would have
        return
    model = JobModel(Config(), dict(sorted(containers.items())))
    read = decode_job_model(encode_job_model(model, mask_secrets=False))
    assert read == model
    assert first_fault(read) is None


_BASE = {
    "job.name": "j",
    "job.default.system": "kafka",
    "task.class": "m:C",
    "task.inputs": "kafka.in",
    "task.name.grouper.factory": "group-by-container-ids",
    "job.host-affinity.enabled": "true",
    "systems.kafka.consumer.bootstrap.servers": "a:1",
    "stores.s.factory": "rocksdb",
    "stores.s.changelog": "kafka.c",
    "stores.s.key.serde": "string",
    "stores.s.msg.serde": "string",
}


def planned(
    places: Mapping[str, str],
    tasks: int,
    before: JobModel | None = None,
    factor: int = 2,
    files: Mapping[TaskName, Host] = MappingProxyType({}),
) -> JobModel:
    """The JobModel of processors at these places, after ``before``, where ``files`` are."""
    config = Config({**_BASE, "job.standbytasks.replication.factor": str(factor)})
    hosts = {ProcessorId(p): Host(place) for p, place in places.items()}
    known = NOTHING if before is None else _known(before)
    known = PreviousAssignment(
        task_processors=known.task_processors,
        standbys=known.standbys,
        task_hosts=files,
        processor_hosts=hosts,
    )
    counts = {SystemStream("kafka", "in"): tasks}
    return calculate_job_model(config, counts, known, [ProcessorId(p) for p in places])


def _known(model: JobModel) -> PreviousAssignment:
    owners: dict[TaskName, ProcessorId] = {}
    standbys: dict[TaskName, dict[TaskName, ProcessorId]] = {}
    for processor_id, container in model.containers.items():
        for name, task in container.tasks.items():
            if task.task_mode is TaskMode.ACTIVE:
                owners[name] = processor_id
            else:
                standbys.setdefault(task.state_of, {})[name] = processor_id
    return PreviousAssignment(task_processors=owners, standbys=standbys)


def sizes(model: JobModel, mode: TaskMode | None = None) -> list[int]:
    """How many tasks the processors have, of one mode or of both; sorted."""
    return sorted(
        sum(mode in {None, task.task_mode} for task in container.tasks.values())
        for container in model.containers.values()
    )


def require_apart(model: JobModel, places: Mapping[str, str]) -> None:
    """Invariant-1, by location."""
    found = Counter(
        (places[p], task.state_of) for p, c in model.containers.items() for task in c.tasks.values()
    )
    assert set(found.values()) <= {1}


def unbacked(before: JobModel, after: JobModel) -> int:
    """How many tasks whose processor is gone start where they had no standby."""
    was, now = _known(before), _known(after)
    lost = [t for t, p in was.task_processors.items() if p not in after.containers]
    return sum(now.task_processors[t] not in was.standbys.get(t, {}).values() for t in lost)


def test_active_and_standby_tasks_are_evenly_mixed() -> None:
    """STANDBY, part 4. The names are Samza's, and so are the bytes: task-mode Standby."""
    places = {"p": "a", "q": "b", "r": "c"}
    model = planned(places, 6)
    assert sizes(model, TaskMode.ACTIVE) == sizes(model, TaskMode.STANDBY) == [2, 2, 2]
    require_apart(model, places)
    assert first_fault(model) is None
    text = encode_job_model(model, mask_secrets=False)
    assert decode_job_model(text) == model
    task = (
        b'"Standby-Partition 0-0":{"task-name":"Standby-Partition 0-0","system-stream-partitions":'
        b'[{"system":"kafka","partition":0,"stream":"in","keyBucket":-1}],"changelog-partition":0,'
        b'"task-mode":"Standby"}'
    )
    assert task in text


def test_the_tasks_of_a_dead_processor_start_where_their_standbys_are() -> None:
    """Half of them here, half there; each has a standby again; nothing else moves."""
    places = {"p": "a", "q": "b", "r": "c"}
    before = planned(places, 6)
    after = planned({"p": "a", "q": "b"}, 6, before)
    assert unbacked(before, after) == 0
    assert sizes(after, TaskMode.ACTIVE) == sizes(after, TaskMode.STANDBY) == [3, 3]
    for processor_id, container in after.containers.items():
        kept = before.containers[processor_id].tasks.items()
        actives = {n for n, task in kept if task.task_mode is TaskMode.ACTIVE}
        assert actives <= container.tasks.keys()
    again = planned({"p": "a", "q": "b"}, 6, after)
    assert again == after


def test_a_task_that_has_the_name_of_a_standby_is_refused() -> None:
    """One line."""
    config = Config({**_BASE, "job.standbytasks.replication.factor": "2"})
    key = "job.systemstreampartition.grouper.factory"
    own = config.merged({key: f"{__name__}:Clashing"})
    hosts = {ProcessorId("p"): Host("a"), ProcessorId("q"): Host("b")}
    known = PreviousAssignment(processor_hosts=hosts)
    with pytest.raises(ConfigError, match="an active task has the id 'Standby-x-0'"):
        calculate_job_model(own, {SystemStream("kafka", "in"): 2}, known, list(hosts))


class Clashing(SystemStreamPartitionGrouper):
    """One task is named as the other's standby."""

    def group(
        self,
        partitions: Iterable[SystemStreamPartition],
        processor_ids: Sequence[ProcessorId],  # noqa: ARG002 - of the base class
    ) -> dict[TaskName, list[SystemStreamPartition]]:
        """Two tasks of two partitions."""
        first, second = partitions
        return {TaskName("x"): [first], TaskName("Standby-x-0"): [second]}


def test_a_larger_size_passes_on_where_that_makes_room() -> None:
    """Of four tasks on three processors one may have two: not q, where b need not be."""
    gone, (p, q, r) = ProcessorId("x"), (ProcessorId(name) for name in "pqr")
    of = {"a": [q], "b": [q, r], "c": [p], "d": [p]}
    standbys = {
        TaskName(task): {TaskName(f"s{task}{at}"): at for at in there} for task, there in of.items()
    }
    owners = dict.fromkeys(map(TaskName, of), gone)
    before = PreviousAssignment(task_processors=owners, standbys=standbys)
    after = on_backups(before, [p, q, r], list(owners))
    assert after.task_processors == {"a": q, "b": r, "c": p, "d": p}


@settings(max_examples=150)
@given(st.data())
def test_no_choice_of_standbys_places_more(data: st.DataObject) -> None:
    """The matching is a maximum one, compared with every choice."""
    processors = [ProcessorId(p) for p in "pqrs"[: data.draw(st.integers(1, 4))]]
    gone = ProcessorId("x")
    names = [TaskName(f"t{i}") for i in range(data.draw(st.integers(1, 7)))]
    owners = {n: data.draw(st.sampled_from([gone, *processors])) for n in names}
    standbys = {
        n: {
            TaskName(f"s{n}{i}"): p
            for i, p in enumerate(data.draw(st.lists(st.sampled_from(processors), max_size=2)))
        }
        for n in names
    }
    before = PreviousAssignment(task_processors=owners, standbys=standbys)
    after = on_backups(before, processors, names)
    lost = [n for n in names if owners[n] == gone]
    placed = [n for n in lost if after.task_processors[n] != gone]
    assert all(after.task_processors[n] in standbys[n].values() for n in placed)
    kept = Counter(p for p in owners.values() if p != gone)
    of = {n: sorted(set(standbys[n].values())) for n in lost}
    assert len(placed) == most_backed(lost, of, kept, processors, len(names))


def test_sizes_become_even_by_a_chain_where_no_single_move_helps() -> None:
    """The largest processor's standbys are those of the smallest one's own tasks."""
    before = planned({p: p for p in "pqu"}, 6)
    after = planned({p: p for p in "qrst"}, 6, before)
    assert sizes(after) == [3, 3, 3, 3]


@settings(max_examples=120)
@given(st.data())
def test_standbys_are_apart_even_and_stay_through_any_change(data: st.DataObject) -> None:
    """Processors come, go and come back; with a location each, sizes are even within one."""
    tasks, factor = data.draw(st.integers(1, 9)), data.draw(st.integers(2, 3))
    all_apart = data.draw(st.booleans())
    model = None
    for _ in range(4):
        ids = data.draw(st.lists(st.sampled_from("pqrstu"), min_size=1, unique=True))
        places = {p: p if all_apart else "abc"[ord(p) % 3] for p in sorted(ids)}
        model = planned(places, tasks, model, factor)
        require_apart(model, places)
        assert first_fault(model) is None
        there = len(set(places.values()))
        wanted = tasks * min(factor - 1, there - 1)
        assert sum(sizes(model, TaskMode.STANDBY)) == wanted
        if all_apart:
            total = [0] * (len(places) - len(model.containers)) + sizes(model)
            assert max(total) - min(total) <= 1
        assert planned(places, tasks, model, factor) == model


@pytest.mark.parametrize(
    ("count", "tasks", "most"),
    [(3, 2, 0), (3, 6, 0), (4, 12, 0), (5, 20, 0), (11, 110, 0), (4, 6, 1), (5, 9, 1), (3, 10, 1)],
)
def test_after_a_first_start_any_one_processor_may_die(count: int, tasks: int, most: int) -> None:
    """Ideally 0 tasks are not started on their backups: where sizes are even before and after.

    Where they are not, that all are even within one may cost one.
    """
    places = {p: p for p in "pqrstuvwxyz"[:count]}
    before = planned(places, tasks)
    for dead in places:
        left = {p: at for p, at in places.items() if p != dead}
        assert unbacked(before, planned(left, tasks, before)) <= most


@settings(max_examples=60)
@given(st.data())
def test_a_standby_is_left_out_only_where_no_legal_place_exists(data: st.DataObject) -> None:
    """Through lives of processors that get another id at each start, with files of earlier ones.

    A legal place is a processor at a location that has no replica of the task.
    """
    tasks, factor = data.draw(st.integers(1, 12)), data.draw(st.integers(2, 4))
    locations = "abcd"[: data.draw(st.integers(2, 4))]
    model, files, born = None, dict[TaskName, Host](), itertools.count()
    places = {f"{at}{next(born)}": at for at in locations}
    for _ in range(data.draw(st.integers(2, 7))):
        model = planned(places, tasks, model, factor, files)
        replicas = {
            (places[p], task.state_of)
            for p, c in model.containers.items()
            for task in c.tasks.values()
        }
        require_apart(model, places)
        count = Counter(state for _, state in replicas)
        for state, found in count.items():
            free = [p for p, at in places.items() if (at, state) not in replicas]
            assert found == factor or not free, (places, state, free)
        files |= {n: Host(places[p]) for p, c in model.containers.items() for n in c.tasks}
        left = data.draw(st.lists(st.sampled_from(sorted(places)), min_size=1, unique=True))
        come = data.draw(st.lists(st.sampled_from(locations), max_size=2))
        places = {p: places[p] for p in left} | {f"{at}{next(born)}": at for at in come}
