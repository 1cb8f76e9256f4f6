"""The next JobModel: computed from configuration, Kafka and what was assigned before.

The application master and the leader of a standalone job both compute it so. The job's own topics
are made before the model is used, and their ids are recorded in the coordinator stream.
"""

import logging
from collections.abc import Mapping, Sequence

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model, input_streams
from homeport.job_coordinator.grouper.one_time_configuration import require_same_tasks
from homeport.job_coordinator.grouper.previous_assignment import PreviousAssignment, assigned_by
from homeport.job_coordinator.kafka.changelog_topics import ChangelogTopics
from homeport.job_coordinator.kafka.checkpoint_topic import CheckpointTopic
from homeport.job_coordinator.kafka.output_topics import create_outputs
from homeport.job_coordinator.kafka.repartition_topics import (
    RepartitionTopics,
    internal_topics,
    with_repartitions,
)
from homeport.job_coordinator.kafka.topics import StreamMetadataCache
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.recorded_model import recorded_model
from homeport.job_coordinator.metadata.state_facts import ChangelogPartitionManager
from homeport.job_coordinator.metadata.task_assignment import (
    LocalityManager,
    TaskAssignmentManager,
    TaskModeManager,
    TaskPartitionManager,
)
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import JobModel, SystemStream, TaskMode

_LOG = logging.getLogger(__name__)


def previous_assignment(stream: CoordinatorStream) -> PreviousAssignment:
    """Return the last assignment by the stream's records, as of its last catch-up.

    Standby tasks of standby containers are left out: they follow from the active ones. A task
    without a mode is active (reference, section 3.7).

    WireError: a task's changelog partition cannot be read.
    """
    locality = LocalityManager(stream)
    modes = TaskModeManager(stream).read()
    standby = {task for task, mode in modes.items() if mode is TaskMode.STANDBY}
    owners, inputs = TaskAssignmentManager(stream).read(), TaskPartitionManager(stream)
    return PreviousAssignment(
        task_processors={task: p for task, p in owners.items() if task not in standby},
        task_partitions={t: ssps for t, ssps in inputs.read_inputs().items() if t not in standby},
        changelog_partitions=ChangelogPartitionManager(stream).read(),
        standbys=_mixed_standbys(stream) if standby else {},
        task_hosts=locality.read_tasks(),
        processor_hosts=locality.read_processors(),
    )


def _mixed_standbys(stream: CoordinatorStream) -> Mapping[TaskName, Mapping[TaskName, ProcessorId]]:
    config = ConfigManager(stream).read()
    is_mixed = keys.JOB_CONTAINER_MIXED_ROLES.read(config)
    return assigned_by(recorded_model(stream, config)).standbys if is_mixed else {}


def counts_now(config: Config, *, is_reset: bool = False) -> Mapping[SystemStream, int]:
    """Return {input of the configuration: its partitions now}; UnavailableError as below.

    Topics of repartitions have those with which they will be made. ``is_reset``: whether those that
    are there are deleted first.
    """
    found = StreamMetadataCache(config).partition_counts(input_streams(config))
    if is_reset:
        own = internal_topics(config)
        found = {stream: count for stream, count in found.items() if stream not in own}
    return with_repartitions(config, found)


def next_model(
    config: Config,
    stream: CoordinatorStream,
    before: PreviousAssignment,
    counts: Mapping[SystemStream, int],
    processors: Sequence[ProcessorId] | None = None,
    *,
    is_submission: bool = False,
    has_outputs: bool = True,
) -> JobModel:
    """Compute the JobModel of ``config``, and make the job's own topics.

    ``counts``: {input: its partitions now}. ``stream``: where the topics' ids are kept; read to its
    head. ``processors``: those that are present; None: as many as the configuration has.
    ``is_submission``, ``has_outputs``: as ``create_topics`` has them.

    ConfigError: the configuration does not fit the inputs, the job's state or its topics.
    UnavailableError: Kafka did not answer.
    """
    topics = RepartitionTopics(config, stream)
    topics.check()  # its refusal names the key, that of tasks an input
    topics.require_unread(before.task_partitions)
    model = calculate_job_model(config, counts, before, processors)
    require_same_tasks(config, before, model)
    create_topics(model, stream, is_submission=is_submission, has_outputs=has_outputs)
    return model


def create_topics(
    model: JobModel,
    stream: CoordinatorStream,
    *,
    is_submission: bool = False,
    has_outputs: bool = True,
) -> None:
    """Make the job's checkpoint topic, changelogs and repartitions where they are missing.

    Args:
        model: the job's model.
        stream: where the topics' ids are kept; read to its head.
        is_submission: whether the job is being submitted now: changelogs that were recreated are
            taken if records have been brought back into them.
        has_outputs: whether the job's outputs are there; else they are made before its own topics:
            where Kafka refuses one, nothing is left that the next start would have to fit.

    ConfigError: one exists in another shape, or is not the one any more that held state.
    UnavailableError: Kafka did not answer.
    """
    config = model.config
    checkpoints, changelogs = CheckpointTopic(config, stream), ChangelogTopics(config, stream)
    repartitions, counts = RepartitionTopics(config, stream), model.partition_counts()
    partitions = model.max_change_log_stream_partitions
    for line in changelogs.check(partitions, may_be_replaced=is_submission):
        _LOG.warning("%s", line)
    checkpoints.check()
    for line in repartitions.check(counts):
        _LOG.warning("%s", line)
    if not has_outputs:
        create_outputs(config, stream)
    checkpoints.make()
    changelogs.make(partitions)
    repartitions.make(counts)
