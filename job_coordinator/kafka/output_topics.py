"""The topics that a configuration names as outputs: those that are missing are created."""

from __future__ import annotations

import logging

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.settings.reporters_section import snapshot_reporters
from homeport.config.settings.sections import SystemConfig
from homeport.config.settings.used_systems import declared_outputs
from homeport.job_coordinator.kafka.topics import TopicAdmin

_LOG = logging.getLogger(__name__)
_BROKERS_DEFAULT = -1


def create_outputs(config: Config) -> tuple[str, ...]:
    """Each declared output exists, where the configuration says that it is to be created.

    So do the topics of snapshot reporters. One that exists stays as it is, whatever the number of
    its partitions. Returns the names, system.stream, of those that were created.

    Raises:
        ConfigError: Kafka refuses to create one.
        UnavailableError: Kafka did not answer.
    """
    partitions = keys.TASK_OUTPUTS_CREATE_PARTITIONS.read(config)
    if partitions == 0:
        return ()
    made = []
    declared = [stream for _, stream in declared_outputs(config)]
    reporters = [reporter.stream for reporter in snapshot_reporters(config)]
    for stream in dict.fromkeys([*declared, *reporters]):
        system = SystemConfig.of(config, stream.system)
        admin = TopicAdmin(system)
        if admin.partition_counts([stream.stream]):
            continue
        replication = system.default_replication_factor or _BROKERS_DEFAULT
        if admin.create(stream.stream, partitions, replication, {}):
            made.append(str(stream))
            _LOG.info("created the output %s with %d partitions", stream, partitions)
    return tuple(made)
