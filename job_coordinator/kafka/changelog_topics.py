"""Changelog topics: their required form, the check of existing ones, and their creation.

A topic that would lose state, or could take no record, is refused. The log has the value in force
of every other setting that differs from the configuration.

The tasks of a job with state do not change, though their inputs may grow. So a changelog keeps its
number of partitions, and must have exactly that number. With ``job.changelogs.grow`` a new input
may bring tasks: the job's own changelogs get further partitions before the JobModel is written
(safety S9). After a death in between they have more than there are tasks. A task that is gone keeps
its partition, and has one in each changelog that is made meanwhile. Nothing else of a topic is
altered.

Source: Samza 1.8, ChangelogStreamManager and KafkaConfig.
"""

import time
from collections.abc import Mapping

from confluent_kafka import TopicPartition

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError, InvariantViolation
from homeport.config.kafka_names import policies
from homeport.config.settings.sections import SystemConfig
from homeport.config.settings.stores_section import StorageConfig, StoreConfig
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.kafka import clients
from homeport.job_coordinator.kafka.topics import (
    DELETE_RETENTION,
    MIN_IN_SYNC,
    FoundTopic,
    TopicAdmin,
    TopicSpec,
)
from homeport.job_coordinator.metadata.state_facts import ChangelogPartitionManager, repair
from homeport.job_coordinator.metadata.topics import (
    ChangelogTopicManager,
    ChangelogTopicRecord,
    left_behind,
    lost_state,
)
from homeport.job_coordinator.model.ids import TaskName

_CLEANUP = "cleanup.policy"
_COMPACT = "compact"
_DELETE = "delete"
_MAX_MESSAGE = "max.message.bytes"
_SIZES = frozenset({_MAX_MESSAGE, "segment.bytes"})
_SEGMENT_BYTES = 536870912
_REPLICATION = 2
"""Replicas of a changelog for which no key sets their number."""
_POLL_S = 0.5
_PATIENCE_S = 30.0


def changelog_topic_spec(store: StoreConfig, partitions: int) -> TopicSpec:
    """Return the changelog of ``store``, with exactly ``partitions`` partitions.

    It is compacted; if the store keeps its entries only for a time, it is deleted by age.
    ``stores.<store>.changelog.kafka.*`` wins over every setting. Samza also sets
    ``min.compaction.lag.ms``, because its restore may have to go back to a checkpoint. Our stores
    never have changes that no checkpoint covers. So the lag is set only if it is configured, and a
    restore from the beginning has less to read.
    """
    if store.changelog is None:
        raise InvariantViolation(f"store {store.name!r} has no changelog to describe")
    config = {
        "segment.bytes": str(_SEGMENT_BYTES),
        DELETE_RETENTION: str(store.changelog_delete_retention_ms),
    }
    if store.ttl_ms is None:
        config |= {_CLEANUP: _COMPACT, _MAX_MESSAGE: str(store.changelog_max_message_bytes)}
    else:
        config |= {_CLEANUP: _DELETE, "retention.ms": str(store.ttl_ms)}
    if store.changelog_min_compaction_lag_ms is not None:
        config["min.compaction.lag.ms"] = str(store.changelog_min_compaction_lag_ms)
    return TopicSpec(
        store.changelog.stream,
        partitions,
        store.changelog_replication_factor or _REPLICATION,
        keys.STORE_CHANGELOG_REPLICATION_FACTOR.named(store.name),
        config | dict(store.changelog_overrides),
        is_default=store.changelog_replication_factor is None,
    )


def topic_fault(store: StoreConfig, spec: TopicSpec, found: FoundTopic) -> ConfigError | None:
    """Return why the topic cannot be the changelog of ``store``; None if it can."""
    if found.partitions != spec.partitions:
        return ConfigError(
            "topic",
            spec.name,
            f"it has {found.partitions} partitions and must have {spec.partitions}, one for each "
            "task",
            f"name another topic by {keys.STORE_CHANGELOG.named(store.name)}, or, where it holds "
            f"the job's state, set {keys.JOB_CHANGELOGS_GROW.name}=true, or begin from nothing by "
            "run-job --reset-state",
        )
    wanted, policy = spec.config[_CLEANUP], found.config.get(_CLEANUP, "")
    if _DELETE in policies(policy) and _DELETE not in policies(wanted):
        return ConfigError(
            "topic",
            spec.name,
            f"its cleanup.policy is {policy!r} and must be {wanted!r}: records that grow old would "
            f"be deleted, and with them state of store {store.name!r}",
            f"set cleanup.policy={wanted} on the topic, or, if that is meant, "
            f"{keys.STORE_CHANGELOG_KAFKA.named(store.name, _CLEANUP)}={policy}",
        )
    needed = int(found.config.get(MIN_IN_SYNC, "1"))
    if needed > found.replication:
        return ConfigError(
            "topic",
            spec.name,
            f"its min.insync.replicas is {needed} and it has {found.replication} replicas, so that "
            "no transaction can be written",
            "give it more replicas, or lower min.insync.replicas of the topic or of the brokers",
        )
    largest, taken = spec.config.get(_MAX_MESSAGE), found.config.get(_MAX_MESSAGE)
    if largest is not None and taken is not None and int(taken) < int(largest):
        rule = f"topic {spec.name!r} takes records of at most {taken} bytes"
        remedy = f"write {taken}, or raise max.message.bytes of the topic"
        return keys.STORE_CHANGELOG_MAX_MESSAGE_BYTES.error(largest, rule, remedy, store.name)
    return None


def task_beyond(numbers: Mapping[TaskName, int], partitions: int) -> ConfigError | None:
    """Return the error for a task whose number is beyond the state's ``partitions``, if any.

    The state itself is not lost: the operator corrects the task's record.
    """
    for task, number in sorted(numbers.items()):
        if number >= partitions:
            free = sorted(set(range(partitions)) - set(numbers.values()))
            rule = f"the changelogs that hold the state have the partitions 0 to {partitions - 1}"
            remedy = repair(task, " or ".join(map(str, free)) or "PARTITION")
            return ConfigError(f"set-changelog {task}", str(number), rule, remedy)
    return None


def differences(store: StoreConfig, spec: TopicSpec, found: FoundTopic) -> list[str]:
    """Return one line for each setting that differs from the configuration without being a fault.

    Leave out sizes that are not configured.
    """
    said = [
        f"changelog {spec.name}: {name} in force is {found.config[name]}, configured is {value}"
        for name, value in sorted(spec.config.items())
        if (name not in _SIZES or name in store.changelog_overrides)
        and name in found.config
        and policies(found.config[name]) != policies(value)
    ]
    if found.replication < spec.replication and not spec.is_default:
        said.append(
            f"changelog {spec.name}: it has {found.replication} replicas, "
            f"configured are {spec.replication}"
        )
    return said


class ChangelogTopics:
    """The changelogs of one job's stores, in Kafka and in the coordinator stream.

    ``stream``: read to its head.

    UnavailableError: (from every method) Kafka did not answer.
    """

    def __init__(self, config: Config, stream: CoordinatorStream) -> None:
        self._config = config
        self._manager = ChangelogTopicManager(stream)
        self._partitions = ChangelogPartitionManager(stream)
        stores = StorageConfig.of(config).stores.values()
        self._stores = {s.changelog: s for s in stores if s.changelog is not None}
        self._may_grow = keys.JOB_CHANGELOGS_GROW.read(config)
        systems = sorted({changelog.system for changelog in self._stores})
        self._admins = {name: TopicAdmin(SystemConfig.of(config, name)) for name in systems}

    def check(self, partitions: int | None, *, may_be_replaced: bool) -> list[str]:
        """Check that no existing changelog has a fault, and that no state is gone; make nothing.

        Args:
            partitions: how many the tasks need; None: as many as each changelog has.
            may_be_replaced: whether a recreated topic with records counts as the former one, as the
                records were copied back. A submission allows that.

        Returns:
            Differences from the configuration that are no fault, state that no store has any more,
            and at a submission changelogs with records that the job has not written.

        Raises:
            ConfigError: a changelog has a fault, or its state is gone.
        """
        found, known, numbers = self._found(), self._manager.read(), self._partitions.read()
        partitions = None if partitions is None else self._for_all(partitions)
        lines = list(left_behind(known, self._stores))
        for changelog, store in self._stores.items():
            topic = found.get(changelog)
            topic_id = None if topic is None else topic.topic_id
            lost = lost_state(changelog, known.get(changelog), topic_id)
            if lost is not None:
                if topic is None or not (may_be_replaced and self._holds_records(changelog, topic)):
                    raise lost
                lines.append(
                    f"changelog {changelog} was recreated, and the state is what it holds now"
                )
            if topic is None:
                continue
            if may_be_replaced and changelog not in known and self._holds_records(changelog, topic):
                key = keys.STORE_CHANGELOG.named(store.name)
                lines.append(
                    f"changelog {changelog} holds records that this job has not written: they "
                    f"become the state of store {store.name}, of a Samza job those up to its last "
                    f"checkpoint; where they are another job's, name another topic in {key}"
                )
            grows = self._may_grow and changelog in known
            wanted = topic.partitions if grows or partitions is None else partitions
            spec = changelog_topic_spec(store, wanted)
            beyond = task_beyond(numbers, topic.partitions) if changelog in known else None
            fault = beyond or topic_fault(store, spec, topic)
            if fault is not None:
                raise fault
            lines += differences(store, spec, topic)
        return lines

    def make(self, partitions: int) -> None:
        """Make each changelog, and write its id into the stream; ``check`` comes first.

        One of the job that has too few partitions gets the further ones.
        """
        found, partitions = self._found(), self._for_all(partitions)
        for changelog, store in self._stores.items():
            admin = self._admins[changelog.system]
            if changelog not in found:
                admin.ensure(changelog_topic_spec(store, partitions))
            elif self._may_grow and found[changelog].partitions < partitions:
                admin.grow(changelog.stream, partitions)
        found = self._found()
        self._manager.write(
            {
                changelog: ChangelogTopicRecord(found[changelog].topic_id, store.name)
                for changelog, store in self._stores.items()
            }
        )

    def _for_all(self, partitions: int) -> int:
        """Return how many partitions there are with those of tasks that may come back."""
        return max(partitions, *(n + 1 for n in self._partitions.read().values()), 0)

    def _found(self) -> dict[SystemStream, FoundTopic]:
        return {
            SystemStream(system, name): topic
            for system, admin in self._admins.items()
            for name, topic in admin.described(
                [c.stream for c in self._stores if c.system == system]
            ).items()
        }

    def _holds_records(self, changelog: SystemStream, topic: FoundTopic) -> bool:
        system = SystemConfig.of(self._config, changelog.system)
        return holds_records(system, changelog.stream, topic.partitions)


def holds_records(system: SystemConfig, topic: str, partitions: int) -> bool:
    """Return whether any partition of the topic has a committed record.

    UnavailableError: Kafka does not answer.
    """
    consumer = clients.consumer(system, clients.COMMITTED)
    left = set(range(partitions))
    deadline = time.monotonic() + _PATIENCE_S
    try:
        consumer.assign([TopicPartition(topic, p, 0) for p in left])
        while left and time.monotonic() < deadline:
            message = consumer.poll(_POLL_S)
            error = None if message is None else message.error()
            if message is not None and error is None:
                return True
            if message is not None and error is not None and clients.is_end(error):
                left.discard(message.partition() or 0)
    finally:
        consumer.close()
    if left:
        raise clients.unavailable(system, f"reading {topic}", f"no end in {_PATIENCE_S:g} s")
    return False
