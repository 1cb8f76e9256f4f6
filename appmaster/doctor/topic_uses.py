"""Lists the topics that a job uses. PURE."""

from collections.abc import Iterator

from homeport.appmaster.doctor.kafka_checks import OUTPUT, TopicUse
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.settings.adjunct_section import AdjunctsConfig
from homeport.config.settings.sections import JobConfig, TaskConfig, repartitions
from homeport.config.settings.stores_section import StorageConfig
from homeport.config.settings.used_systems import broadcast_streams, declared_outputs
from homeport.config.system_stream import SystemStream

_READ = frozenset({"READ", "DESCRIBE"})
_WRITE = frozenset({"WRITE", "DESCRIBE"})
_READ_CONFIG = frozenset({"DESCRIBE_CONFIGS"})
"""The right to read a topic's cleanup policy and how long it keeps deletions."""


def topic_uses(config: Config) -> dict[str, tuple[TopicUse, ...]]:
    """Return {system: the job's topics there}, each topic once, with the first use of it.

    ConfigError: the configuration of an input, a store or an output is malformed.
    """
    found: dict[SystemStream, TopicUse] = {}
    for stream, use in _uses(config):
        found.setdefault(stream, use)
    systems = dict.fromkeys(stream.system for stream in found)
    return {s: tuple(use for stream, use in found.items() if stream.system == s) for s in systems}


def _uses(config: Config) -> Iterator[tuple[SystemStream, TopicUse]]:
    """Yield each use of a topic: state before inputs, inputs before outputs."""
    job, task = JobConfig.of(config), TaskConfig.of(config)
    yield _state(job.coordinator_system, job.coordinator_topic, "coordinator stream")
    if task.checkpoint_enabled:
        yield _state(task.checkpoint_system, task.checkpoint_topic, "checkpoints")
    for store in StorageConfig.of(config).stores.values():
        if store.changelog is not None:
            what = f"changelog of the store {store.name}"
            yield _state(store.changelog.system, store.changelog.stream, what)
    for own in repartitions(config):
        rights = _READ | _WRITE | _READ_CONFIG | {"DELETE"}
        use = TopicUse(own.stream.stream, f"repartition {own.name}", rights, own.key, is_made=True)
        yield own.stream, use
    adjuncts = AdjunctsConfig.of(config)
    for stream in (*task.inputs, *broadcast_streams(config)):
        fills_adjunct = adjuncts.of_stream(stream) is not None
        rights = _READ | _READ_CONFIG if fills_adjunct else _READ
        yield stream, TopicUse(stream.stream, "input", rights, keys.TASK_INPUTS.name)
    creates_outputs = keys.TASK_OUTPUTS_CREATE_PARTITIONS.read(config) > 0
    for key, stream in declared_outputs(config):
        yield stream, TopicUse(stream.stream, OUTPUT, _WRITE, key, is_made=creates_outputs)


def _state(system: str, topic: str, what: str) -> tuple[SystemStream, TopicUse]:
    rights = _READ | _WRITE | _READ_CONFIG
    use = TopicUse(topic, what, rights, is_state=True, is_compacted=True, is_made=True)
    return SystemStream(system, topic), use
