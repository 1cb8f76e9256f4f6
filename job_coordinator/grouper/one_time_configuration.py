"""What is settled once a job has state: its one-time keys, its tasks and their input partitions.

PURE. Source: COORD, benefit 3: "Changing them in future deployment amounts to resetting the entire
state of the job because it may re-shuffle input partitions to the containers."
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.config.secret_names import shown_value
from homeport.config.settings.config_diff import ConfigDiff
from homeport.job_coordinator.grouper.previous_assignment import PreviousAssignment
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import JobModel, SystemStreamPartition, counts_of


def has_state(config: Config, before: PreviousAssignment) -> bool:
    """Return whether a job that ran with ``config`` may have left state behind in changelogs."""
    has_changelog = any(keys.STORE_CHANGELOG.matches(name) for name in config)
    return has_changelog and bool(before.changelog_partitions)


def changed_key(running: Config, wanted: Config) -> ConfigError | None:
    """Return the error of the first one-time key, by name, that ``wanted`` changes; None: none."""
    for key in ConfigDiff.between(running, wanted).never_with_state:
        return refusal(key, _shown(running, key), _shown(wanted, key))
    return None


def changed_tasks(before: PreviousAssignment, model: JobModel) -> ConfigError | None:
    """Return the error of the first task that is not as when the state was made; None: none.

    A grown input is no change where its new count is a multiple of the former count n, and each
    new partition p goes to the task of p modulo n, which has had its keys.
    """
    if not before.task_partitions:
        return None  # no record says what the tasks read
    after = {n: frozenset(t.system_stream_partitions) for n, t in model.active_tasks().items()}
    # A task with a processor has had inputs: where no record names one, another task has it now.
    names = sorted({*before.task_partitions, *before.task_processors, *after})
    counts = counts_of(ssp for ssps in before.task_partitions.values() for ssp in ssps)
    for name in names:
        old, new = before.task_partitions.get(name), after.get(name)
        if old is None or new is None or not _is_grown(old, new, counts):
            return refusal(keys.TASK_INPUTS.name, _task(name, old), _task(name, new))
    return None


def require_same_keys(running: Config, wanted: Config, before: PreviousAssignment) -> None:
    """Require that one-time keys stay, where a job with ``running`` has state.

    ConfigError: one means something else in ``wanted``.
    """
    fault = changed_key(running, wanted) if has_state(running, before) else None
    if fault is not None:
        raise fault


def require_same_tasks(config: Config, before: PreviousAssignment, model: JobModel) -> None:
    """Require that ``model`` fits the state that a job with ``config`` has.

    ConfigError: tasks or their input would differ from what the state was made of.
    """
    fault = changed_tasks(before, model) if has_state(config, before) else None
    if fault is not None:
        raise fault


def refusal(key: str, old: str, new: str) -> ConfigError:
    """Return the error of a key, or of a task's inputs, that may not change with state."""
    return ConfigError(
        key,
        new,
        f"it was {old!r} when the job's state was made, which a change would mix up",
        "set it back, or begin from nothing by run-job --reset-state",
    )


def _is_grown(
    old: frozenset[SystemStreamPartition],
    new: frozenset[SystemStreamPartition],
    counts: Mapping[tuple[str, str], int],
) -> bool:
    if not old <= new:
        return False
    for ssp in new - old:
        count = counts.get((ssp.system, ssp.stream), 0)
        if not count:
            return False
        if SystemStreamPartition(ssp.system, ssp.stream, ssp.partition % count) not in old:
            return False
    return True


def _shown(config: Config, key: str) -> str:
    return shown_value(key, config.get(key, "its default"))


def _task(name: TaskName, ssps: frozenset[SystemStreamPartition] | None) -> str:
    if ssps is None:
        return f"no task {name!r}"
    return f"task {name!r} of {', '.join(_listed(ssps))}"


def _listed(ssps: frozenset[SystemStreamPartition]) -> Iterator[str]:
    return (f"{ssp.system_stream}#{ssp.partition}" for ssp in sorted(ssps))
