"""The systems that a job needs to start, of those that its configuration declares.

PURE. Another declared system may get outputs: the first send to it waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import stream_named
from homeport.config.errors import ConfigError
from homeport.config.settings.pipeline_section import PipelineConfig
from homeport.config.settings.records_section import RecordsConfig
from homeport.config.settings.reporters_section import snapshot_reporters
from homeport.config.settings.sections import (
    JobConfig,
    SystemConfig,
    TaskConfig,
    named_inputs,
    repartitions,
)
from homeport.config.settings.stores_section import StorageConfig
from homeport.config.system_stream import SystemStream


def used_systems(config: Config) -> tuple[str, ...]:
    """Return the systems of coordinator stream, inputs, transactions, changelogs and outputs.

    Each once. Checkpoints and transactions are in one system, which a job without checkpoints has
    too. ConfigError: an input, a store or an output is not of the form it must have.
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
    """Return (key, output stream) of dead letters, of a pipeline's and of a task's outputs.

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
    key = keys.TASK_OUTPUTS
    return tuple(stream_named(key.name, item, "totals", "each") for item in key.read(config))


_INPUT, _OUTPUT = "an input of the job", "an output of the job"
_APART = frozenset({_INPUT, _OUTPUT})
"""Uses that exclude each other: what is sent would be read again, for ever."""


def require_systems(config: Config) -> None:
    """Require that the system of each stream is configured: ``web.clicks`` may be a topic alone.

    ConfigError: no key and no default names one.
    """
    default = keys.JOB_DEFAULT_SYSTEM.read(config)
    for use in _uses(config):
        system = use.stream.system
        prefix = f"systems.{system}."
        if use.key == keys.JOB_NAME.name or system == default:
            continue
        if not any(name.startswith(prefix) for name in config):
            meant = (
                "" if default is None else f"write {default}.{use.stream}, if that is meant, or "
            )
            rule = f"no system {system!r} is configured: no key begins with {prefix}"
            remedy = f"{meant}set {keys.SYSTEM_CONSUMER.named(system, 'bootstrap.servers')}"
            raise ConfigError(use.key, str(use.stream), rule, remedy)


def require_own_topics(config: Config) -> None:
    """Raise ConfigError where a topic that only the job may write has another use too.

    A changelog that is an input would feed the job its own changes, for ever. Two stores in one
    changelog would mix their keys. Any other record in a changelog, a checkpoint topic or a
    coordinator stream would be read as what it is not. Systems on the same brokers have the same
    topics.
    """
    found: dict[tuple[str, str], list[_Use]] = {}
    for use in _uses(config):
        topic = SystemConfig.of(config, use.stream.system).cluster, use.stream.stream
        before = found.setdefault(topic, [])
        for other in before:
            if use.what != other.what and (
                use.is_own or other.is_own or {use.what, other.what} == _APART
            ):
                rule = f"{use.what} would be the topic that is {other.what} too ({other.key})"
                remedy = "name another topic, which nothing else uses"
                raise ConfigError(use.key, str(use.stream), rule, remedy)
        before.append(use)


@dataclass(frozen=True)
class _Use:
    """What a topic is for, by which key. ``is_own``: only the job may write it, for this alone."""

    key: str
    stream: SystemStream
    what: str
    is_own: bool = False


def _uses(config: Config) -> Iterator[_Use]:
    job, task, name = JobConfig.of(config), TaskConfig.of(config), keys.JOB_NAME.name
    coordinator = SystemStream(job.coordinator_system, job.coordinator_topic)
    yield _Use(name, coordinator, "the job's coordinator stream", is_own=True)
    checkpoints = SystemStream(task.checkpoint_system, task.checkpoint_topic)
    yield _Use(name, checkpoints, "the job's checkpoint topic", is_own=True)
    for stream in named_inputs(config):
        yield _Use(keys.TASK_INPUTS.name, stream, _INPUT)
    for own in repartitions(config):
        yield _Use(own.key, own.stream, f"the topic of the repartition {own.name!r}", is_own=True)
    for stream in broadcast_streams(config):
        yield _Use(keys.TASK_BROADCAST_INPUTS.name, stream, _INPUT)
    for store in StorageConfig.of(config).stores.values():
        if store.changelog is not None:
            key = keys.STORE_CHANGELOG.named(store.name)
            what = f"the changelog of store {store.name!r}"
            yield _Use(key, store.changelog, what, is_own=True)
    for key, stream in declared_outputs(config):
        yield _Use(key, stream, _OUTPUT)
    for reporter in snapshot_reporters(config):
        key = keys.METRICS_REPORTER_STREAM.named(reporter.name)
        yield _Use(key, reporter.stream, "the stream of a metrics reporter")


def uses_of(config: Config) -> Iterator[tuple[SystemStream, str]]:
    """Yield (stream, its use in words) of all streams that the configuration names."""
    return ((use.stream, use.what) for use in _uses(config))


def broadcast_streams(config: Config) -> tuple[SystemStream, ...]:
    """Return the streams of the broadcast inputs; which of their partitions, the grouper reads."""
    found = []
    for item in keys.TASK_BROADCAST_INPUTS.read(config):
        stream = SystemStream.parse(item.partition("#")[0])
        if stream is None or "#" not in item:
            rule = "each must have the form system.stream#partition or system.stream#[first-last]"
            remedy = "write it as in kafka.rules#0 or kafka.rules#[0-3]"
            raise ConfigError(keys.TASK_BROADCAST_INPUTS.name, item, rule, remedy)
        found.append(stream)
    return tuple(found)
