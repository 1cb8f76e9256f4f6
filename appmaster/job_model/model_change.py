"""The next JobModel of a job that runs: how it is computed, and what it changes.

SHELL: ``ModelPlanner`` asks Kafka. A large model takes seconds, so the call is off the event loop.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from homeport.appmaster.job_model import live_configuration
from homeport.appmaster.job_model.input_acceptance import InputAcceptance
from homeport.appmaster.job_model.inputs_in_force import in_force
from homeport.appmaster.job_model.job_model_store import JobModelStore
from homeport.appmaster.job_model.publication import is_in_force
from homeport.appmaster.job_model.reading_ahead import taken_back
from homeport.appmaster.yarn.submission_file import Submitted
from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.settings.sections import StandbyConfig, TaskConfig
from homeport.config.settings.stores_section import StorageConfig
from homeport.config.settings.validation import validate
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model, input_streams
from homeport.job_coordinator.grouper.mixed_failover import Failover, failed_over
from homeport.job_coordinator.grouper.mixed_standbys import NOWHERE, Places
from homeport.job_coordinator.grouper.one_time_configuration import (
    has_state,
    require_same_keys,
    require_same_tasks,
)
from homeport.job_coordinator.history.writer import HistoryWriter
from homeport.job_coordinator.kafka.topics import checkpoint_topic_spec
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.recorded_model import recorded_model
from homeport.job_coordinator.metadata.task_assignment import LocalityManager
from homeport.job_coordinator.metadata.upgrade import RollingRestartManager
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStream,
    TaskMode,
)
from homeport.job_coordinator.model.upgrade import RollingRestart
from homeport.job_coordinator.planning import next_model

log = logging.getLogger("driver")


@dataclass(frozen=True)
class ModelChange:
    """A JobModel that is to follow the one in force; it is saved as ``version``.

    ``why``: for people. ``restarts_all``: whether every container has to restart, for a key that
    only a start reads. ``rolling``: the record by which they restart one after the other; None:
    they do not. ``is_by_itself``: whether it follows from a loss or a start alone.
    """

    version: int
    model: JobModel
    why: str
    restarts_all: bool = False
    rolling: RollingRestart | None = None
    is_by_itself: bool = False

    @property
    def messages(self) -> list[CoordinatorStreamMessage]:
        """The records that are written with the JobModel."""
        return [] if self.rolling is None else [RollingRestartManager.message(self.rolling)]


def note_change(history: HistoryWriter, before: JobModel | None, change: ModelChange) -> None:
    """Write the change into the history, before it is published.

    If the driver dies in between, the history has an event too many, but no change lacks its event.
    ``before``: the model in force; None: this attempt has none yet.
    """
    nothing = JobModel(change.model.config, {})
    history.event(
        "model-change",
        version=change.version,
        why=change.why,
        restarts_all=change.restarts_all,
        changed=changed_containers(before or nothing, change.model),
    )


def changed_containers(before: JobModel, after: JobModel) -> dict[ProcessorId, dict[str, Any]]:
    """Return {processor: its tasks before and after} for those that ``after`` changes.

    The tasks are {task: [changelog partition, its input partitions]}; None: no such processor. Of
    mixed containers only active tasks count: a change of standbys is none of a container.
    """
    is_mixed = StandbyConfig.of(after.config).is_mixed
    found: dict[ProcessorId, dict[str, Any]] = {}
    for processor_id in sorted({*before.containers, *after.containers}):
        old, new = before.containers.get(processor_id), after.containers.get(processor_id)
        if is_mixed:
            old, new = _active_part(old), _active_part(new)
        if old != new:
            found[processor_id] = {"before": _shown(old), "after": _shown(new)}
    return found


def _active_part(container: ContainerModel | None) -> ContainerModel | None:
    if container is None:
        return None
    tasks = container.tasks.items()
    return replace(container, tasks={n: t for n, t in tasks if t.task_mode is TaskMode.ACTIVE})


def _shown(container: ContainerModel | None) -> dict[str, list[Any]] | None:
    if container is None:
        return None
    return {
        name: [task.changelog_partition, [ssp.name for ssp in task.system_stream_partitions]]
        for name, task in container.tasks.items()
    }


class ModelPlanner:
    """Computes and saves the JobModel that is to follow the one in force.

    ``stream`` has the previous assignment, as of its last catch-up. ``counts`` returns {stream:
    partitions} for the inputs of a configuration now. ``places``: where containers run, or hold a
    host, of a job that mixes roles; to be set before each computation.
    """

    def __init__(
        self,
        stream: CoordinatorStream,
        job_models: JobModelStore,
        counts: Callable[[Config], Mapping[SystemStream, int]] | None = None,
        create_topics: Callable[[JobModel, CoordinatorStream], None] = next_model.create_topics,
        places: Places = NOWHERE,
    ) -> None:
        self._stream = stream
        self._job_models = job_models
        self._counts = counts or next_model.counts_now
        self._create_topics = create_topics
        self.places = places

    def reconfigured(self, config: Config) -> JobModel:
        """Return the model in force under another configuration.

        The partitions of its inputs stay: see ``expanded``.

        ConfigError: the configuration gives no JobModel, or does not fit the job's state.
        WireError: the stream lacks the changelog partition of a task.
        UnavailableError: Kafka did not answer.
        """
        before = self._job_models.model
        known = before.partition_counts()
        # The model has only single partitions of the other streams, the broadcast ones.
        kept = {s: known[s] for s in TaskConfig.of(before.config).inputs if s in known}
        is_known = kept.keys() >= set(input_streams(config))
        return self._computed(config, kept if is_known else {**self._counts(config), **kept})

    def expanded(self, counts: Mapping[SystemStream, int]) -> JobModel:
        """Return the model in force with its inputs as they have grown.

        ConfigError: the job has state, and its tasks would change (H6).
        WireError: as above.
        UnavailableError: Kafka did not answer.
        """
        return self._computed(self._job_models.model.config, counts)

    def failed_over(self, lost: Collection[ProcessorId]) -> Failover:
        """Return the model that follows the loss of these containers, where they run now.

        With none lost, only standbys move. It takes neither Kafka nor a grouper.
        """
        files = LocalityManager(self._stream).read_tasks()
        return failed_over(self._job_models.model, lost, self.places, files)

    def _computed(self, config: Config, counts: Mapping[SystemStream, int]) -> JobModel:
        before, assigned = self._job_models.model, next_model.previous_assignment(self._stream)
        require_same_keys(before.config, config, assigned)
        model = calculate_job_model(config, counts, assigned, places=self.places)
        require_same_tasks(config, assigned, model)
        gone = sorted(before.active_tasks().keys() - model.active_tasks().keys())
        if gone and has_state(before.config, assigned):
            log.warning("without an input, with their state kept: tasks %s", ", ".join(gone))
        if _topics(model) != _topics(before):
            self._create_topics(model, self._stream)
        return model

    def saved(
        self,
        model: JobModel,
        why: str,
        *,
        restarts_all: bool = False,
        rolling: RollingRestart | None = None,
        is_by_itself: bool = False,
    ) -> ModelChange:
        """Save the model as the next version; return the change to it."""
        version = self._job_models.version + 1
        self._job_models.save(version, model)
        return ModelChange(version, model, why, restarts_all, rolling, is_by_itself)


def _topics(model: JobModel) -> tuple[object, ...]:
    """Return what decides the job's own topics: models with the same value need the same topics."""
    config, task = model.config, TaskConfig.of(model.config)
    has_checkpoints = task.checkpoint_enabled
    return (
        checkpoint_topic_spec(task) if has_checkpoints else None,
        task.checkpoint_system if has_checkpoints else None,
        StorageConfig.of(config),
        model.max_change_log_stream_partitions,
    )


def first_model(
    submitted: Submitted, stream: CoordinatorStream, *, is_submission: bool = False
) -> JobModel:
    """Return the JobModel that an attempt begins with; create its topics.

    If the stream's configuration gives none, as after a mistake in a value, or may not follow the
    one in force, use the submission's, with the inputs and stores in force: a running job does not
    fail by that mistake, so a new attempt must not either.

    ``is_submission``: whether this is the first attempt of its submission.

    ConfigError: the configuration in force gives none either.
    UnavailableError: Kafka did not answer.
    """
    before = live_configuration.read(submitted, in_force(submitted.config, stream)).config
    try:
        config = live_configuration.read(submitted, ConfigManager(stream).deployed()).config
        require_same_keys(before, config, next_model.previous_assignment(stream))
        return _first(config, submitted, stream, is_submission=is_submission)
    except ConfigError as error:
        log.error("the submission's values, and the inputs in force, are used: %s", error)  # noqa: TRY400 - the line is enough
    return _first(before, submitted, stream, is_submission=is_submission)


def _first(
    config: Config, submitted: Submitted, stream: CoordinatorStream, *, is_submission: bool
) -> JobModel:
    if input_streams(config) != input_streams(submitted.config):
        InputAcceptance(config, stream).check()
    for warning in validate(config):
        log.warning("%s", warning)
    recorded = recorded_model(stream, config) if StandbyConfig.of(config).is_mixed else None
    if recorded is not None and _is_settled(recorded) and is_in_force(recorded, stream):
        # Tasks are where a failover has brought them; no user orders another move here.
        next_model.create_topics(recorded, stream, is_submission=is_submission)
        return recorded
    before, counts = next_model.previous_assignment(stream), next_model.counts_now(config)
    return next_model.next_model(config, stream, before, counts, is_submission=is_submission)


def _is_settled(recorded: JobModel) -> bool:
    """Return whether nothing in it was read ahead for a change that is wanted no more."""
    return taken_back(recorded, NOWHERE).containers == recorded.containers
