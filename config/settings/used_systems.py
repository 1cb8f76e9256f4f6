"""Which of the systems that a configuration declares its job cannot begin without.

PURE. Another one that is declared may get outputs, or none: the first send to it waits for it.
"""

from __future__ import annotations

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.config.settings.pipeline_section import PipelineConfig
from homeport.config.settings.records_section import RecordsConfig
from homeport.config.settings.sections import JobConfig, TaskConfig
from homeport.config.settings.stores_section import StorageConfig
from homeport.config.system_stream import SystemStream


def used_systems(config: Config) -> tuple[str, ...]:
    """The systems of coordinator stream, inputs, transactions, changelogs and declared outputs.

    Each once. Checkpoints and transactions are in one system, which a job without checkpoints has
    too.

    Raises:
        ConfigError: an input, a store or an output is not of the form it must have.
    """
    task = TaskConfig.of(config)
    changelogs = (s.changelog for s in StorageConfig.of(config).stores.values())
    streams = (
        *task.inputs,
        *broadcast_streams(config),
        *(changelog for changelog in changelogs if changelog is not None),
    )
    names = [
        JobConfig.of(config).coordinator_system,
        *(stream.system for stream in streams),
        task.checkpoint_system,
        *(stream.system for _, stream in declared_outputs(config)),
    ]
    return tuple(dict.fromkeys(names))


def declared_outputs(config: Config) -> tuple[tuple[str, SystemStream], ...]:
    """(key, a stream that it names as an output): dead letters, a pipeline's and a task's outputs.

    Raises:
        ConfigError: one is not of the form it must have.
    """
    pipeline = PipelineConfig.of(config)
    found = [
        (keys.TASK_DEAD_LETTER_STREAM.name, RecordsConfig.of(config).dead_letter),
        (keys.TASK_PIPELINE_OUTPUT.name, None if pipeline is None else pipeline.output),
    ]
    own = [(keys.TASK_OUTPUTS.name, stream) for stream in _outputs(config)]
    return (*((key, stream) for key, stream in found if stream is not None), *own)


def _outputs(config: Config) -> tuple[SystemStream, ...]:
    found = []
    for item in keys.TASK_OUTPUTS.read(config):
        stream = SystemStream.parse(item)
        if stream is None:
            raise ConfigError(
                keys.TASK_OUTPUTS.name,
                item,
                "each must have the form system.stream",
                "write it as in kafka.totals",
            )
        found.append(stream)
    return tuple(found)


def broadcast_streams(config: Config) -> tuple[SystemStream, ...]:
    """The streams of the broadcast inputs; which of their partitions, the grouper reads."""
    found = []
    for item in keys.TASK_BROADCAST_INPUTS.read(config):
        stream = SystemStream.parse(item.partition("#")[0])
        if stream is None or "#" not in item:
            raise ConfigError(
                keys.TASK_BROADCAST_INPUTS.name,
                item,
                "each must have the form system.stream#partition or system.stream#[first-last]",
                "write it as in kafka.rules#0 or kafka.rules#[0-3]",
            )
        found.append(stream)
    return tuple(found)
