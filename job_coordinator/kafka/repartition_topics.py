"""Topics of repartitions: their required form, the check of existing ones, and their creation.

A topic holds what tasks have sent and not read yet, so that it never deletes by age or size: the
containers delete what is committed (``Purge``). Its number of partitions is settled at its
creation, as it decides which task has a key.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.config.kafka_names import policies
from homeport.config.settings.adjunct_section import AdjunctsConfig
from homeport.config.settings.input_section import Repartition
from homeport.config.settings.sections import (
    SystemConfig,
    named_inputs,
    own_repartition,
    repartitions,
)
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.kafka.topics import FoundTopic, TopicAdmin, TopicSpec
from homeport.job_coordinator.metadata.state_reset import OPTION
from homeport.job_coordinator.metadata.topics import InputTopicManager
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_REPLICATION = 2
"""Replicas of a topic for which no key sets their number, as of a changelog."""
_KEPT = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "CreateTime",
}
"""Properties without which records, or their times, would be lost."""
_SEGMENT_BYTES = 52_428_800
"""As Kafka Streams has it: a broker deletes whole segments, and keeps the last one."""


def internal_topics(config: Config) -> tuple[SystemStream, ...]:
    """Return the topics that the job makes for its tasks alone, beside changelogs."""
    return tuple(own.stream for own in repartitions(config))


def with_repartitions(
    config: Config, counts: Mapping[SystemStream, int]
) -> dict[SystemStream, int]:
    """Return ``counts`` with the partitions that each repartition of the job has, or will get.

    A number in the configuration stands, whatever the topic has: ``RepartitionTopics.check``
    compares the two. Without one a topic that is there keeps its partitions.

    Shapes: {input: partitions}; an input that does not exist is absent.
    """
    found = dict(counts)
    adjuncts = AdjunctsConfig.of(config)
    outer = [s for s in named_inputs(config) if s in counts]
    of_tasks = [s for s in outer if adjuncts.of_stream(s) is None] or outer
    most = max((counts[s] for s in of_tasks), default=None)
    for own in repartitions(config):
        number = own.partitions or counts.get(own.stream) or most
        if number is not None:
            found[own.stream] = number
    return found


def repartition_topic_spec(own: Repartition, partitions: int) -> TopicSpec:
    """Return the topic of ``own``, with so many partitions."""
    return TopicSpec(
        own.stream.stream,
        partitions,
        own.replication or _REPLICATION,
        keys.TASK_REPARTITION_REPLICATION_FACTOR.named(own.name),
        {**_KEPT, "segment.bytes": str(_SEGMENT_BYTES)},
        is_default=own.replication is None,
    )


def topic_fault(own: Repartition, partitions: int, found: FoundTopic) -> ConfigError | None:
    """Return why the topic cannot be the one of ``own``; None if it can."""
    if found.partitions != partitions:
        return ConfigError(
            own.key,
            str(partitions),
            f"topic {own.stream.stream!r} has {found.partitions} partitions, by which its records "
            "are placed",
            f"write {found.partitions}, or begin from nothing by run-job {OPTION}",
        )
    for name, wanted in _KEPT.items():
        value = found.config.get(name, wanted)
        if policies(value) != policies(wanted):
            return ConfigError(
                "topic",
                own.stream.stream,
                f"its {name} is {value!r} and must be {wanted!r}: records that no task has read "
                "would be lost or changed",
                f"set {name}={wanted} on the topic",
            )
    return None


class RepartitionTopics:
    """The topics of one job's repartitions, in Kafka and in the coordinator stream.

    ``stream``: read to its head.

    UnavailableError: (from every method) Kafka did not answer.
    """

    def __init__(self, config: Config, stream: CoordinatorStream) -> None:
        self._config = config
        self._known = InputTopicManager(stream)
        self._own = repartitions(config)
        systems = sorted({own.stream.system for own in self._own})
        self._admins = {name: TopicAdmin(SystemConfig.of(config, name)) for name in systems}

    def check(self, counts: Mapping[SystemStream, int] | None = None) -> list[str]:
        """Check that no existing topic has a fault, and that none is gone; make nothing.

        Return a line for each topic of a repartition that the job had, and has no more.

        ``counts``: {input: its partitions} of the JobModel; None: those of the configuration.

        ConfigError: a topic has a fault, or was deleted with what it held.
        """
        may_be_new = keys.JOB_INPUT_RECREATED.read(self._config) == keys.RECREATED_BEGIN
        known = self._known.ids()
        for own in self._own:
            topic = self._found(own)
            if topic is not None:
                count = own.partitions or (counts or {}).get(own.stream) or topic.partitions
                fault = topic_fault(own, count, topic)
                if fault is not None:
                    raise fault
            elif own.stream in known and not may_be_new:
                raise ConfigError(
                    own.key,
                    self._config.get(own.key),
                    f"topic {own.stream.stream!r} was deleted, and with it what the tasks had sent "
                    "and not read",
                    f"begin from nothing by run-job {OPTION}, or go on without that by "
                    f"{keys.JOB_INPUT_RECREATED.name}={keys.RECREATED_BEGIN}",
                )
        return list(self._left_behind(known))

    def require_unread(self, before: Mapping[TaskName, Collection[SystemStreamPartition]]) -> None:
        """Require that a repartition which tasks did not read before begins without records.

        Its tasks have no position in a topic of an earlier time, and read all that is there.

        Shapes: ``before`` {task: its input partitions in the last JobModel}.

        ConfigError: there are records, which the job may have counted.
        """
        read = {ssp.system_stream for ssps in before.values() for ssp in ssps}
        for own in self._own:
            topic = self._found(own) if own.stream not in read else None
            if topic is not None and self._has_records(own, topic):
                raise ConfigError(
                    own.key,
                    self._config.get(own.key),
                    f"topic {own.stream.stream!r} has records of an earlier time, and some of them "
                    "may be counted already",
                    f"give the repartition another name, or begin from nothing by run-job {OPTION}",
                )

    def _has_records(self, own: Repartition, topic: FoundTopic) -> bool:
        admin, name = self._admins[own.stream.system], own.stream.stream
        return any(admin.end_offset(name, number) for number in range(topic.partitions))

    def _left_behind(self, known: Iterable[SystemStream]) -> Iterator[str]:
        used = internal_topics(self._config)
        for stream in sorted(known):
            name = own_repartition(self._config, stream)
            if name is not None and stream not in used:
                yield (
                    f"topic {stream} is of the repartition {name!r}, which the job has no more: "
                    "what tasks had sent and not read stays there, and the topic may be deleted"
                )

    def make(self, counts: Mapping[SystemStream, int]) -> None:
        """Make each topic that is missing, with its partitions in ``counts``; ``check`` first."""
        for own in self._own:
            if self._found(own) is None:
                spec = repartition_topic_spec(own, counts[own.stream])
                self._admins[own.stream.system].ensure(spec)

    def _found(self, own: Repartition) -> FoundTopic | None:
        topic = own.stream.stream
        return self._admins[own.stream.system].described([topic]).get(topic)
