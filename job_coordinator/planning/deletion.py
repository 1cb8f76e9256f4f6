"""Which topics the end of a job deletes, and which it leaves, with the reason.

PURE. A job owns its checkpoints, changelogs and repartitions, and outputs that it has made. Each is
known by the broker's id: a topic that was recreated since is another's. A topic with a use in
another job's configuration stays, and so do all inputs. The name of a topic is compared alone:
other jobs may reach the same brokers under another address.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.kafka_names import policies
from homeport.config.settings.adjunct_section import AdjunctsConfig
from homeport.config.settings.reporters_section import snapshot_reporters
from homeport.config.settings.sections import TaskConfig, own_repartition, repartitions
from homeport.config.settings.used_systems import declared_outputs, uses_of
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.grouper.job_model_calculator import input_streams
from homeport.job_coordinator.metadata.topics import (
    ChangelogTopicManager,
    CheckpointTopicManager,
    InputTopicManager,
    OutputTopicManager,
)

KEEP_OUTPUTS = "--keep-outputs"
_COMPACT = "compact"


@dataclass(frozen=True, slots=True)
class OwnTopic:
    """A topic of the job. ``topic_id``: as the stream has it; None: the stream has none."""

    stream: SystemStream
    what: str
    topic_id: str | None
    is_output: bool = False


@dataclass(frozen=True, slots=True)
class FoundTopic:
    """A topic as the brokers have it."""

    topic_id: str
    cleanup_policy: str


@dataclass(frozen=True, slots=True)
class OtherJobs:
    """The other jobs in the Kafka of this one.

    ``unread``: coordinator streams whose configuration cannot be read. Shapes: ``uses`` {name of a
    topic: its first use, in words}.
    """

    uses: Mapping[str, str]
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of a topic that exists, and why."""

    topic: OwnTopic
    is_deleted: bool
    reason: str


def changelogs_of(config: Config) -> Iterator[tuple[str, SystemStream]]:
    """Yield (store, changelog), also of the rest of a configuration."""
    for name, text in config.items():
        parts = keys.STORE_CHANGELOG.parts_of(name)
        if parts is not None and text.strip():
            system = keys.JOB_CHANGELOG_SYSTEM.read(config) or keys.JOB_DEFAULT_SYSTEM.read(config)
            changelog = SystemStream.parse(text) or SystemStream(system or "", text.strip())
            yield parts[0], changelog


def deleting_changelogs(config: Config) -> Iterator[SystemStream]:
    """Yield those that are meant to delete by age: by a time to live, or by their policy."""
    for store, changelog in changelogs_of(config):
        ttl_ms = keys.ROCKSDB_TTL_MS.find(config, store)
        policy = config.get_str(keys.STORE_CHANGELOG_KAFKA.named(store, "cleanup.policy"), "")
        if (ttl_ms is not None and ttl_ms >= 0) or "delete" in policies(policy):
            yield changelog


def fault_of(
    topic: SystemStream,
    cleanup_policy: str,
    inputs: Collection[SystemStream],
    deleting: Collection[SystemStream],
) -> str | None:
    """Return why a topic that a key names is not the job's own; None: it looks like that."""
    if _COMPACT not in policies(cleanup_policy) and topic not in deleting:
        return f"its cleanup.policy is {cleanup_policy!r}, which is no changelog's"
    return "it is an input of the job" if topic in inputs else None


def own_topics(config: Config, stream: CoordinatorStream) -> tuple[OwnTopic, ...]:
    """Return checkpoints, changelogs, repartitions and outputs; not the coordinator stream.

    ``config``: what the job ran with last. ``stream``: read to its head; it also has those of
    former configurations.
    """
    if not keys.JOB_NAME.is_set(config):
        return ()
    task = TaskConfig.of(config)
    recorded, made = ChangelogTopicManager(stream).read(), OutputTopicManager(stream).read()
    found: dict[SystemStream, OwnTopic] = {}
    if task.checkpoint_enabled:
        topic = SystemStream(task.checkpoint_system, task.checkpoint_topic)
        topic_id = CheckpointTopicManager(stream).read(topic)
        found[topic] = OwnTopic(topic, "the checkpoint topic", topic_id)
    for store, topic in changelogs_of(config):
        record = recorded.get(topic)
        what = f"the changelog of store {store}"
        found.setdefault(topic, OwnTopic(topic, what, None if record is None else record.topic_id))
    for topic, record in sorted(recorded.items()):
        what = f"the former changelog of store {record.store}"
        found.setdefault(topic, OwnTopic(topic, what, record.topic_id))
    for topic, topic_id in sorted(InputTopicManager(stream).ids().items()):
        name = own_repartition(config, topic)
        if name is not None:
            found.setdefault(topic, OwnTopic(topic, f"the topic of repartition {name}", topic_id))
    declared = (stream for _, stream in declared_outputs(config))
    reported = (reporter.stream for reporter in snapshot_reporters(config))
    outputs = [*declared, *reported, *made]
    for topic in dict.fromkeys(outputs):
        found.setdefault(topic, OwnTopic(topic, "an output", made.get(topic), is_output=True))
    return tuple(found.values())


def uses_in_words(config: Config, job: str) -> Iterator[tuple[str, str]]:
    """Yield (name of a topic, its use by ``job`` in words); ConfigError: it cannot be known."""
    adjuncts = AdjunctsConfig.of(config).stores.values()
    for store in adjuncts:
        yield store.stream.stream, f"{job} has it as the input of store {store.name}"
    for stream, what in uses_of(config):
        yield stream.stream, f"{job} has it as {what}"


def fates(
    own: Collection[OwnTopic],
    found: Mapping[SystemStream, FoundTopic],
    config: Config,
    others: OtherJobs,
    *,
    keep_outputs: bool,
) -> tuple[Fate, ...]:
    """Return what becomes of each of the job's topics that exist, in order."""
    if not own:
        return ()  # a stream in which a run-job died has no configuration
    made = {one.stream for one in repartitions(config)}
    inputs, deleting = {*input_streams(config)} - made, {*deleting_changelogs(config)}
    judged = []
    for topic in own:
        if topic.stream in found:
            now = found[topic.stream]
            why = others.uses.get(topic.stream.stream) or _kept(topic, now, inputs, deleting)
            if why is None and topic.is_output:
                why = _kept_output(others, keep_outputs=keep_outputs)
            reason = topic.what if why is None else f"{topic.what}; {why}"
            judged.append(Fate(topic, why is None, reason))
    return tuple(judged)


def _kept(
    topic: OwnTopic,
    now: FoundTopic,
    inputs: Collection[SystemStream],
    deleting: Collection[SystemStream],
) -> str | None:
    if topic.stream in inputs:
        return "it is an input of the job"
    if topic.topic_id is not None:
        is_same = topic.topic_id == now.topic_id
        return None if is_same else "it was recreated since the job used it"
    if topic.is_output:
        return "the job did not make it"
    return fault_of(topic.stream, now.cleanup_policy, inputs, deleting)


def _kept_output(others: OtherJobs, *, keep_outputs: bool) -> str | None:
    if keep_outputs:
        return KEEP_OUTPUTS
    if others.unread:
        return f"{others.unread[0]} cannot be read, and its job may use it"
    return None
