"""Input expansion: an input stream gets more partitions, and the tasks with their state stay.

PURE. Kafka's partitioners put a key into partition hash modulo count. When the count grows to a
multiple, the keys of partition p were all in partition p modulo the previous count: given to the
task that had that one, every key stays with its state. 32 partitions grown to 64 are still 32
tasks, and ``Partition i`` reads i and i + 32.

Source: Samza 1.8, SSPGrouperProxy and HashSystemStreamPartitionMapper.
"""

from collections.abc import Mapping

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.config.settings.stores_section import StorageConfig
from homeport.job_coordinator.grouper.ssp_grouper import TaskPartitions
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStream, SystemStreamPartition, counts_of

_KEY = keys.JOB_SSP_INPUT_EXPANSION_ENABLED.name


def expanded(
    config: Config,
    grouped: TaskPartitions,
    before: Mapping[TaskName, frozenset[SystemStreamPartition]],
) -> TaskPartitions:
    """Return ``grouped``, but with every partition in the task that had its keys before.

    ``grouped`` comes back as it is where the key is off, the job has no store, or nothing was
    assigned before. A stream that was not read before stays where it is grouped, unless the job has
    a changelog and so many tasks that the stream's count is a multiple: partition p then joins
    partition p modulo that number, with the keys of the other inputs. A partition that several
    tasks read before stays where it is grouped. A task without any partition is left out.

    ``grouped``: what the grouper answered, without broadcast partitions. ``before``: {task: its
    input partitions} of the previous assignment.

    ConfigError: a stream has fewer partitions than before, or a count that is no multiple.
    """
    enabled = keys.JOB_SSP_INPUT_EXPANSION_ENABLED.read(config)
    if not (enabled and before and StorageConfig.of(config).stores):
        return grouped
    if before.keys() == grouped.keys() and all(before[t] == own for t, own in grouped.items()):
        return grouped  # as at most versions of a job; what follows takes long with many tasks
    owners = _single_owners(before)
    counts_before = counts_of(ssp for ssps in before.values() for ssp in ssps)
    counts = counts_of(ssp for ssps in grouped.values() for ssp in ssps)
    for stream in sorted(counts.keys() & counts_before.keys()):
        _check(SystemStream(*stream), counts_before[stream], counts[stream])
    folded = _folded(config, grouped, before, counts)
    moved: dict[TaskName, set[SystemStreamPartition]] = {}
    for task, ssps in grouped.items():
        for ssp in ssps:
            count = counts_before.get((ssp.system, ssp.stream))
            owner = folded.get(ssp) if count is None else owners.get(_ancestor(ssp, count))
            moved.setdefault(owner or task, set()).add(ssp)
    return moved


def _folded(
    config: Config,
    grouped: TaskPartitions,
    before: Mapping[TaskName, frozenset[SystemStreamPartition]],
    counts: Mapping[tuple[str, str], int],
) -> dict[SystemStreamPartition, TaskName]:
    """Return {partition that would make a new task of a job with state: the task that it joins}."""
    if not any(store.changelog for store in StorageConfig.of(config).stores.values()):
        return {}
    tasks = {ssp: task for task, ssps in grouped.items() for ssp in ssps}
    found = {}
    for ssp, task in tasks.items():
        if task in before or counts[ssp.system, ssp.stream] % len(before):
            continue
        joined = tasks.get(_ancestor(ssp, len(before)))
        if joined is not None and joined in before:
            found[ssp] = joined
    return found


def _ancestor(ssp: SystemStreamPartition, count: int) -> SystemStreamPartition:
    if ssp.partition < count:
        return ssp
    return SystemStreamPartition(ssp.system, ssp.stream, ssp.partition % count)


def _single_owners(
    before: Mapping[TaskName, frozenset[SystemStreamPartition]],
) -> dict[SystemStreamPartition, TaskName]:
    owners: dict[SystemStreamPartition, TaskName] = {}
    shared = set()
    for task, ssps in before.items():
        for ssp in ssps:
            if owners.setdefault(ssp, task) != task:
                shared.add(ssp)
    return {ssp: task for ssp, task in owners.items() if ssp not in shared}


def _check(stream: SystemStream, before: int, now: int) -> None:
    if now < before:
        rule = (
            f"input {stream} has {now} partitions and had {before}: a stream that shrinks takes "
            "state along"
        )
    elif now % before:
        rule = (
            f"input {stream} has {now} partitions and had {before}: keys stay with their state "
            "only where the count grows to a multiple"
        )
    else:
        return
    remedy = f"give it a multiple of {before} partitions, or set {_KEY}=false and reset the state"
    raise ConfigError(_KEY, "true", rule, remedy)
