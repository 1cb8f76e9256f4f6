"""From configuration, partition counts and what was assigned before to the JobModel.

PURE. The same arguments, in whatever order their mappings are filled, give the same JobModel, byte
for byte. Nothing is known here of hosts, versions or who asks.

Two things are kept for ever, because state hangs on them: a task's changelog partition, and (with
host affinity) a task's container as long as the count of containers stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from homeport.config import keys
from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.sections import JobConfig, TaskConfig
from homeport.job_coordinator.grouper.broadcast_inputs import broadcast_partitions
from homeport.job_coordinator.grouper.previous_assignment import PreviousAssignment
from homeport.job_coordinator.grouper.ssp_grouper import ssp_grouper
from homeport.job_coordinator.grouper.task_name_grouper import task_name_grouper
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStream,
    SystemStreamPartition,
    TaskModel,
)


def input_streams(config: Config) -> tuple[SystemStream, ...]:
    """All streams whose partition counts the JobModel needs, sorted: inputs and broadcast inputs.

    Raises:
        ConfigError: an input is not of the form it must have.
    """
    broadcast = {ssp.system_stream for ssp in broadcast_partitions(config)}
    return tuple(sorted(broadcast.union(TaskConfig.of(config).inputs)))


def calculate_job_model(
    config: Config,
    partition_counts: Mapping[SystemStream, int],
    before: PreviousAssignment,
    processor_ids: Sequence[ProcessorId] | None = None,
) -> JobModel:
    """The JobModel of this job.

    Args:
        config: of the job; the JobModel carries it.
        partition_counts: {stream: partitions} of at least ``input_streams(config)``.
        before: what was assigned last; ``NOTHING`` at a first start.
        processor_ids: the processors there are; None: "0" to ``job.container.count`` - 1.

    Source: COORD, job model; Samza 1.8, JobModelCalculator (reference, section 3). Without host
    affinity the previous assignment does not matter: no host has state to come back to.

    Raises:
        ConfigError: an input stream is not there, or the configuration does not fit the inputs.
    """
    job = JobConfig.of(config)
    broadcast = broadcast_partitions(config)
    _check_broadcast(broadcast, partition_counts)
    partitions = [
        SystemStreamPartition(stream.system, stream.stream, number)
        for stream in TaskConfig.of(config).inputs
        for number in range(_count(stream, partition_counts, keys.TASK_INPUTS.name))
    ]
    task_partitions = ssp_grouper(job.ssp_grouper_factory).group(partitions, broadcast)
    numbers = assign_changelog_partitions(task_partitions, before.changelog_partitions)
    groups = task_name_grouper(job.task_name_grouper_factory).group(
        tuple(task_partitions),
        before.task_processors if job.host_affinity_enabled else {},
        job.container_count if processor_ids is None else len(processor_ids),
    )
    if processor_ids is not None:
        groups = dict(zip(processor_ids, groups.values(), strict=True))
    return JobModel(
        config,
        {
            processor_id: ContainerModel(
                processor_id,
                {name: TaskModel(name, task_partitions[name], numbers[name]) for name in names},
            )
            for processor_id, names in groups.items()
        },
    )


def assign_changelog_partitions(
    tasks: Iterable[TaskName], known: Mapping[TaskName, int]
) -> dict[TaskName, int]:
    """The changelog partition of each of ``tasks``.

    A known task keeps its number. New ones get the numbers after the highest known one, a vanished
    task's included, in lexicographic order of their names: ``Partition 10`` comes before
    ``Partition 2``.

    Source: Samza 1.8, JobModelCalculator (reference, section 3.3).
    """
    numbers = dict(known)
    following = max(known.values(), default=-1) + 1
    wanted = sorted(set(tasks))
    for name in wanted:
        if name not in numbers:
            numbers[name] = following
            following += 1
    return {name: numbers[name] for name in wanted}


def _count(stream: SystemStream, partition_counts: Mapping[SystemStream, int], key: str) -> int:
    count = partition_counts.get(stream, 0)
    if count < 1:
        raise ConfigError(
            key,
            str(stream),
            f"the input stream must exist, and system {stream.system!r} has no {stream.stream!r}",
            "create it or correct the name",
        )
    return count


def _check_broadcast(
    broadcast: frozenset[SystemStreamPartition], partition_counts: Mapping[SystemStream, int]
) -> None:
    key = keys.TASK_BROADCAST_INPUTS.name
    for ssp in sorted(broadcast):
        count = _count(ssp.system_stream, partition_counts, key)
        if ssp.partition >= count:
            raise ConfigError(
                key,
                f"{ssp.system_stream}#{ssp.partition}",
                f"the stream has only the partitions 0 to {count - 1}",
                "name partitions that it has",
            )
