"""Makes the outputs of a job that do not exist, and records which topics those are."""

import logging

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.settings.reporters_section import snapshot_reporters
from homeport.config.settings.sections import SystemConfig
from homeport.config.settings.used_systems import declared_outputs
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.metadata.topics import OutputTopicManager

_LOG = logging.getLogger(__name__)
_BROKERS_DEFAULT = -1


def create_outputs(config: Config, stream: CoordinatorStream) -> tuple[str, ...]:
    """Create missing declared outputs and topics of snapshot reporters, if that is configured.

    An existing topic stays as it is, whatever its number of partitions. ``stream``, read to its
    head, gets the id of each new one: the end of the job is the end of these. Return the names,
    system.stream, of the new ones.

    ConfigError: Kafka refuses to create one.
    UnavailableError: Kafka did not answer.
    """
    partitions = keys.TASK_OUTPUTS_CREATE_PARTITIONS.read(config)
    if partitions == 0:
        return ()
    made = []
    declared = [output for _, output in declared_outputs(config)]
    reporters = [reporter.stream for reporter in snapshot_reporters(config)]
    for output in dict.fromkeys([*declared, *reporters]):
        system = SystemConfig.of(config, output.system)
        admin = TopicAdmin(system)
        if admin.partition_counts([output.stream]):
            continue
        replication = system.default_replication_factor or _BROKERS_DEFAULT
        if admin.create(output.stream, partitions, replication, {}):
            topic_id = admin.topic_ids([output.stream])[output.stream]
            OutputTopicManager(stream).write(output, topic_id)
            made.append(str(output))
            _LOG.info("created the output %s with %d partitions", output, partitions)
    return tuple(made)
