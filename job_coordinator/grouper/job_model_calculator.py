"""From configuration, partition counts and what was assigned before to the JobModel.

PURE. The same arguments, in whatever order their mappings are filled, give the same JobModel, byte
for byte. Nothing is known here of hosts, versions or readers.

Two things are kept for ever, because state hangs on them: a task's changelog partition, and (with
host affinity) a task's container as long as the count of containers stays.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError, HomeportError, InvariantViolation
from homeport.config.java_names import is_user_class
from homeport.config.settings.sections import JobConfig, StandbyConfig, TaskConfig
from homeport.job_coordinator.grouper.answers import partition_answer_fault, task_answer_fault
from homeport.job_coordinator.grouper.factories import (
    OWN_GROUPER_REMEDY,
    own_fault,
    ssp_grouper,
    task_name_grouper,
)
from homeport.job_coordinator.grouper.input_expansion import expanded
from homeport.job_coordinator.grouper.mixed_standbys import (
    NOWHERE,
    Places,
    on_backups,
    with_mixed_standbys,
)
from homeport.job_coordinator.grouper.previous_assignment import PreviousAssignment
from homeport.job_coordinator.grouper.ssp_grouper import broadcast_partitions
from homeport.job_coordinator.grouper.standby_models import with_standbys
from homeport.job_coordinator.grouper.task_name_grouper import TaskLocality, grouped_by
from homeport.job_coordinator.grouper.validation import first_fault
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStream,
    SystemStreamPartition,
    TaskModel,
)

_Answer = TypeVar("_Answer")


def input_streams(config: Config) -> tuple[SystemStream, ...]:
    """Return all streams whose partition counts the JobModel needs, sorted, broadcast ones too.

    ConfigError: an input is not of the form it must have.
    """
    broadcast = {ssp.system_stream for ssp in broadcast_partitions(config)}
    return tuple(sorted(broadcast.union(TaskConfig.of(config).inputs)))


def calculate_job_model(
    config: Config,
    partition_counts: Mapping[SystemStream, int],
    before: PreviousAssignment,
    processor_ids: Sequence[ProcessorId] | None = None,
    places: Places = NOWHERE,
) -> JobModel:
    """Return the JobModel of this job.

    Args:
        config: the job's configuration; the JobModel carries it.
        partition_counts: {stream: partitions} of at least ``input_streams(config)``.
        before: what was assigned last; ``NOTHING`` at a first start.
        processor_ids: the processors there are; None: "0" to ``job.container.count`` - 1.
        places: the containers on YARN that run, or hold a host; of no use where none are mixed.

    With hot standby the model has standby containers. Where processors were given, or containers
    are mixed, each has standbys of other ones' tasks instead. A given processor also has its
    location. ``first_fault`` finds no fault in the model.

    Source: COORD, job model; Samza 1.8, JobModelCalculator.

    ConfigError: an input stream is not there, the configuration does not fit the inputs, or a
    grouper of the job's own fails or answers what is no JobModel.
    """
    ids = _processor_ids(config, processor_ids)
    broadcast = broadcast_partitions(config)
    partitions = _input_partitions(config, partition_counts, broadcast)
    tasks = _tasks(config, partitions, broadcast, before, ids)
    if processor_ids is None:
        containers = _numbered_containers(config, tasks, before, ids, places)
    else:
        containers = _given_processors(config, tasks, before, ids)
    model = JobModel(config, containers)
    fault = first_fault(model)
    if fault is not None:
        raise InvariantViolation(f"the groupers built a wrong JobModel: {fault}")
    return model


def _processor_ids(config: Config, given: Sequence[ProcessorId] | None) -> tuple[ProcessorId, ...]:
    if given is None:
        return tuple(ProcessorId(str(i)) for i in range(JobConfig.of(config).container_count))
    if len(set(given)) < len(given):
        raise InvariantViolation(f"processors were given twice: {', '.join(sorted(given))}")
    return tuple(given)


def _input_partitions(
    config: Config,
    partition_counts: Mapping[SystemStream, int],
    broadcast: frozenset[SystemStreamPartition],
) -> tuple[SystemStreamPartition, ...]:
    _check_broadcast(broadcast, partition_counts)
    counts = {
        stream: _count(stream, partition_counts, keys.TASK_INPUTS.name)
        for stream in TaskConfig.of(config).inputs
    }
    every = (
        SystemStreamPartition(stream.system, stream.stream, number)
        for stream in sorted(counts)  # and so the partitions are: sorting many of them is slow
        for number in range(counts[stream])
    )
    return tuple(ssp for ssp in every if ssp not in broadcast) if broadcast else tuple(every)


def _tasks(
    config: Config,
    partitions: tuple[SystemStreamPartition, ...],
    broadcast: frozenset[SystemStreamPartition],
    before: PreviousAssignment,
    processor_ids: tuple[ProcessorId, ...],
) -> dict[TaskName, TaskModel]:
    key, name = keys.JOB_SSP_GROUPER_FACTORY.name, JobConfig.of(config).ssp_grouper_factory
    grouper = ssp_grouper(config)
    grouped = _answer(key, name, lambda: grouper.group(partitions, processor_ids))
    if is_user_class(name):
        fault = partition_answer_fault(grouped, partitions)
        if fault is not None:
            raise _faulty(key, name, fault)
    grouped = expanded(config, grouped, before.task_partitions)
    numbers = assign_changelog_partitions(grouped, before.changelog_partitions)
    _refuse_shared(numbers, before.changelog_partitions)
    return {
        task: TaskModel(task, tuple(sorted(broadcast.union(grouped[task]))), number)
        for task, number in numbers.items()
    }


def _numbered_containers(
    config: Config,
    tasks: Mapping[TaskName, TaskModel],
    before: PreviousAssignment,
    ids: tuple[ProcessorId, ...],
    places: Places,
) -> dict[ProcessorId, ContainerModel]:
    containers, standby = _grouped(config, tasks, before, ids), StandbyConfig.of(config)
    if standby.is_mixed:
        there = {p: host for p, host in places.hosts.items() if p in containers}
        places = replace(places.by(config), hosts=there)
        return with_mixed_standbys(containers, places, before, standby.replication_count)
    return with_standbys(containers, standby.replication_count) if standby.enabled else containers


def _given_processors(
    config: Config,
    tasks: Mapping[TaskName, TaskModel],
    before: PreviousAssignment,
    ids: tuple[ProcessorId, ...],
) -> dict[ProcessorId, ContainerModel]:
    standby, hosts = StandbyConfig.of(config), before.processor_hosts
    known = on_backups(before, ids, tasks) if standby.enabled else before
    containers = _grouped(config, tasks, known, ids)
    _check_processors(config, containers, ids)
    if standby.enabled:
        places = Places({p: hosts.get(p, Host(p)) for p in ids})
        containers = with_mixed_standbys(containers, places, before, standby.replication_count)
    return {p: replace(c, location_id=hosts.get(p)) for p, c in containers.items()}


def _grouped(
    config: Config,
    tasks: Mapping[TaskName, TaskModel],
    before: PreviousAssignment,
    processor_ids: tuple[ProcessorId, ...],
) -> dict[ProcessorId, ContainerModel]:
    """Return the containers with their active tasks, in the grouper's order.

    Without host affinity the former assignment does not matter: no host keeps state to return to.
    Where containers are mixed it does: standbys are elsewhere than their tasks.
    """
    job = JobConfig.of(config)
    hosts: Mapping[ProcessorId, Host] = {}
    locality: Mapping[TaskName, TaskLocality] = {}
    if job.host_affinity_enabled or StandbyConfig.of(config).is_mixed:
        hosts = before.processor_hosts
        standbys = {name for own in before.standbys.values() for name in own}
        names = before.task_processors.keys() | (before.task_hosts.keys() - standbys)
        locality = {
            task: TaskLocality(before.task_processors.get(task), before.task_hosts.get(task))
            for task in sorted(names)
        }
    grouper = task_name_grouper(config)
    key, name = keys.TASK_NAME_GROUPER_FACTORY.name, job.task_name_grouper_factory
    processors = {p: hosts.get(p) for p in processor_ids}
    models = tuple(tasks.values())
    groups = _answer(key, name, lambda: grouped_by(grouper, models, locality, processors))
    fault = task_answer_fault(groups, tasks)
    if fault is not None:
        raise _faulty(key, name, fault)
    return {
        p: ContainerModel(p, {n: tasks[n] for n in sorted(names)}) for p, names in groups.items()
    }


def _check_processors(
    config: Config, groups: Collection[ProcessorId], processor_ids: Collection[ProcessorId]
) -> None:
    for processor_id in groups:
        if processor_id not in processor_ids:
            raise keys.TASK_NAME_GROUPER_FACTORY.error(
                JobConfig.of(config).task_name_grouper_factory,
                f"it has made container {processor_id!r}, and there is no such processor",
                f"correct the grouper, or {keys.PROCESSOR_ID.name}",
            )


def _answer(key: str, name: str, group: Callable[[], _Answer]) -> _Answer:
    if not is_user_class(name):
        return group()
    try:
        return group()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the job's own code may raise anything
        raise own_fault(key, name, error) from None


def _faulty(key: str, name: str, fault: str) -> HomeportError:
    """Return an error of the job's own grouper; of one of ours the error of a bug."""
    if is_user_class(name):
        rule = f"its answer makes no JobModel: {fault}"
        return ConfigError(key, name, rule, OWN_GROUPER_REMEDY)
    return InvariantViolation(f"{key} = {name!r} built a wrong JobModel: {fault}")


def assign_changelog_partitions(
    tasks: Iterable[TaskName], known: Mapping[TaskName, int]
) -> dict[TaskName, int]:
    """Return the changelog partition of each of ``tasks``.

    A known task keeps its number. New ones get the numbers after the highest known one, a vanished
    task's included, in lexicographic order of their names: ``Partition 10`` comes before
    ``Partition 2``.

    Source: Samza 1.8, JobModelCalculator.
    """
    numbers = dict(known)
    following = max(known.values(), default=-1) + 1
    wanted = sorted(set(tasks))
    for name in wanted:
        if name not in numbers:
            numbers[name] = following
            following += 1
    return {name: numbers[name] for name in wanted}


def _refuse_shared(numbers: Mapping[TaskName, int], known: Mapping[TaskName, int]) -> None:
    """Require that each task has a changelog partition of its own; name the record to write."""
    owners: dict[int, TaskName] = {}
    for task, number in numbers.items():
        other = owners.setdefault(number, task)
        if other == task:
            continue
        free = sorted(set(range(len(known))) - set(known.values())) or [max(known.values()) + 1]
        raise ConfigError(
            f"set-changelog {task}",
            str(number),
            f"task {other!r} has this changelog partition too, and no two may share one",
            "give the one whose state is elsewhere its own: coordinator-stream-writer "
            f"--type=set-changelog --key='{task}' --value={free[0]}; no task has: "
            f"{', '.join(map(str, free))}",
        )


def _count(stream: SystemStream, partition_counts: Mapping[SystemStream, int], key: str) -> int:
    count = partition_counts.get(stream, 0)
    if count < 1:
        rule = f"the input stream must exist, and system {stream.system!r} has no {stream.stream!r}"
        raise ConfigError(key, str(stream), rule, "create it or correct the name")
    return count


def _check_broadcast(
    broadcast: frozenset[SystemStreamPartition], partition_counts: Mapping[SystemStream, int]
) -> None:
    key = keys.TASK_BROADCAST_INPUTS.name
    for ssp in sorted(broadcast):
        count = _count(ssp.system_stream, partition_counts, key)
        if ssp.partition >= count:
            rule = f"the stream has only the partitions 0 to {count - 1}"
            remedy = "name partitions that it has"
            raise ConfigError(key, f"{ssp.system_stream}#{ssp.partition}", rule, remedy)
