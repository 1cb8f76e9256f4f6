"""Makes and checks the topics that a job needs, and asks brokers about them and their offsets.

An existing topic is never altered: a wrong one is refused, with the fault.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from confluent_kafka import (
    OFFSET_INVALID,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    ClusterMetadata,
    ConfigEntry,
    ConfigResource,
    ListOffsetsResultInfo,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
    TopicDescription,
)

from homeport.config.config import Config
from homeport.config.errors import ConfigError, UnavailableError
from homeport.config.kafka_names import policies
from homeport.config.settings.sections import JobConfig, SystemConfig, TaskConfig
from homeport.job_coordinator.kafka import clients
from homeport.job_coordinator.kafka.transient_errors import is_transient
from homeport.job_coordinator.model.job_model import SystemStream

_LOG = logging.getLogger(__name__)
# The library gives these two no types.
EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # untyped there
LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # untyped there
CONTACT_S = 7.0
"""How long a tool waits for Kafka's first answer: what is there answers, and a user watches."""
_PATIENCE_S = 3.0
_T = TypeVar("_T")
DELETE_RETENTION = "delete.retention.ms"
"""A property of compacted topics: how long they keep deletions."""
MIN_IN_SYNC = "min.insync.replicas"
"""A property of topics: with fewer replicas in sync a topic takes no record."""
_COMPACT = "compact"
_METADATA_POLL_S = 0.05
_UNANSWERED = frozenset({KafkaError._TRANSPORT, KafkaError._TIMED_OUT})  # noqa: SLF001 - public names of the library
_SPREAD_S = 10.0
"""How long some brokers may not know a new topic."""
_REFUSED_GROWTH = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.POLICY_VIOLATION,
        KafkaError.INVALID_PARTITIONS,
    }
)
"""Answers that do not change by themselves; the last one also where another has done it."""
_REPLICATION = 3
"""Replicas of a topic for which no key sets their number."""
_MADE: dict[tuple[str, str], float] = {}
"""{(bootstrap servers, topic): when this process made it, or found it made}, monotonic seconds."""
_OF_ONE_BROKER: set[str] = set()
"""Bootstrap servers of each Kafka that has had its line about one broker."""


@dataclass(frozen=True)
class TopicSpec:
    """The required form of a topic.

    ``replication_key``: the configuration key that sets its replication. ``is_default``: no key
    sets it; a Kafka that has had one broker alone, as for development, has one replica then.
    """

    name: str
    partitions: int
    replication: int
    replication_key: str
    config: Mapping[str, str] = field(default_factory=dict)
    is_default: bool = False

    @property
    def cleanup_policy(self) -> str:
        """``cleanup.policy`` that the topic must have."""
        return self.config.get("cleanup.policy", "delete")


@dataclass(frozen=True)
class FoundTopic:
    """A topic as the brokers have it.

    ``topic_id``: a recreated topic has another one. ``replication``: how many replicas the
    partition with the fewest has. Shapes: ``config`` {property: value}, with defaults.
    """

    topic_id: str
    partitions: int
    replication: int
    config: Mapping[str, str]


def coordinator_topic_spec(job: JobConfig) -> TopicSpec:
    """Return the coordinator stream: one compacted partition.

    Source: COORD, "Coordinator Stream Naming"; settings as Samza creates it.
    """
    return TopicSpec(
        job.coordinator_topic,
        1,
        job.coordinator_replication_factor or _REPLICATION,
        "job.coordinator.replication.factor",
        {"cleanup.policy": _COMPACT, "segment.bytes": str(job.coordinator_segment_bytes)},
        is_default=job.coordinator_replication_factor is None,
    )


def checkpoint_topic_spec(task: TaskConfig) -> TopicSpec:
    """Return the checkpoint topic: one compacted partition, as Samza creates it."""
    return TopicSpec(
        task.checkpoint_topic,
        1,
        task.checkpoint_replication_factor or _REPLICATION,
        "task.checkpoint.replication.factor",
        {
            "cleanup.policy": _COMPACT,
            "segment.bytes": str(task.checkpoint_segment_bytes),
            "max.message.bytes": str(task.checkpoint_max_message_bytes),
        },
        is_default=task.checkpoint_replication_factor is None,
    )


class TopicAdmin:
    """Looks at and creates topics of one system.

    An answer may take ``timeout_s`` seconds. Requests are repeated for that time after transient
    errors.

    UnavailableError: (from every method) Kafka did not answer in time.
    """

    def __init__(
        self, system: SystemConfig, timeout_s: float = 30.0, client: AdminClient | None = None
    ) -> None:
        """Send no request yet; ``client``: None: it makes its own."""
        self._system = system
        self._timeout_s = timeout_s
        self._admin = clients.admin(system) if client is None else client

    def require_reachable(self) -> None:
        """Require that a broker of the system answers."""
        self._metadata()

    def await_reachable(
        self, log: logging.Logger, may_go_on: Callable[[], object] = lambda: None
    ) -> None:
        """Wait without a limit for a broker of the system, and log that.

        ``may_go_on`` is called before each look; an exception from it ends the wait.
        """
        while True:
            may_go_on()
            try:
                self.require_reachable()
            except UnavailableError as error:
                log.warning("waiting for Kafka: %s", error)
            else:
                return

    def names(self) -> frozenset[str]:
        """Return the names of all topics."""
        return frozenset(self._metadata().topics)

    def partition_counts(self, streams: Iterable[str]) -> dict[str, int]:
        """Return {topic: its number of partitions} for those of ``streams`` that exist."""
        names = list(streams)
        while True:
            topics = self._metadata().topics
            found = {
                name: len(topics[name].partitions)
                for name in names
                if name in topics and topics[name].error is None
            }
            if not any(name not in found and self._is_new(name) for name in names):
                return found
            time.sleep(_METADATA_POLL_S)

    def create(
        self, name: str, partitions: int, replication: int, config: Mapping[str, str]
    ) -> bool:
        """Create the topic and wait until the brokers' metadata has it; return whether it is new.

        ConfigError: it exists with another shape, or Kafka refuses to create it.
        """
        return self.ensure(TopicSpec(name, partitions, replication, self._general_key(), config))

    def ensure(self, spec: TopicSpec) -> bool:
        """Create the topic of ``spec``, as ``create``."""
        new = NewTopic(
            spec.name,
            num_partitions=spec.partitions,
            replication_factor=self._replication(spec),
            config=dict(spec.config),
        )
        limits = {"operation_timeout": self._timeout_s, "request_timeout": self._timeout_s}
        try:
            self._answer(
                lambda: self._admin.create_topics([new], **limits)[spec.name],
                f"creating topic {spec.name!r}",
            )
        except KafkaException as exception:
            self._explain_creation(spec, clients.error_of(exception))
            created = False
        else:
            created = True
        _MADE[self._system.cluster, spec.name] = time.monotonic()
        self._await_in_metadata(spec.name)
        self.validate(spec.name, spec.partitions, spec.cleanup_policy)
        return created

    def grow(self, name: str, partitions: int) -> None:
        """Give the topic so many partitions, and wait until each has a leader.

        ConfigError: Kafka refuses it.
        """
        what = f"giving topic {name!r} {partitions} partitions"
        limits = {"operation_timeout": self._timeout_s, "request_timeout": self._timeout_s}
        wanted = [NewPartitions(name, partitions)]
        try:
            self._answer(lambda: self._admin.create_partitions(wanted, **limits)[name], what)
        except KafkaException as exception:
            error = clients.error_of(exception)
            if error.code() not in _REFUSED_GROWTH:
                raise clients.unavailable(self._system, what, error) from None
            if self.partition_counts([name]).get(name, 0) < partitions:
                rule = f"Kafka refuses to give it {partitions} partitions ({error.str()})"
                remedy = "let the user of the job's coordinator ALTER the topic, or do it by hand"
                raise ConfigError("topic", name, rule, remedy) from None
        self._await_in_metadata(name, partitions)

    def _replication(self, spec: TopicSpec) -> int:
        if not spec.is_default or not self._is_of_one_broker():
            return spec.replication
        level = logging.DEBUG if self._system.cluster in _OF_ONE_BROKER else logging.INFO
        _OF_ONE_BROKER.add(self._system.cluster)
        _LOG.log(
            level,
            "topics such as %s get one replica, not %d, as this Kafka has one broker; %s sets "
            "their number",
            spec.name,
            spec.replication,
            self._general_key(),
        )
        return 1

    def _is_of_one_broker(self) -> bool:
        """Return whether Kafka has one broker; of several that are down, replicas remain listed."""
        found = self._metadata()
        parts = (part for topic in found.topics.values() for part in topic.partitions.values())
        return len({*found.brokers, *(replica for part in parts for replica in part.replicas)}) == 1

    def delete(self, name: str) -> None:
        """Delete the topic of that name, as far as one broker knows.

        ConfigError: the brokers do not let topics be deleted.
        """
        what = f"deleting topic {name!r}"
        _MADE.pop((self._system.cluster, name), None)
        limits = {"operation_timeout": self._timeout_s, "request_timeout": self._timeout_s}
        try:
            self._answer(lambda: self._admin.delete_topics([name], **limits)[name], what)
        except KafkaException as exception:
            error = clients.error_of(exception)
            if error.code() in {
                KafkaError.TOPIC_DELETION_DISABLED,
                KafkaError.TOPIC_AUTHORIZATION_FAILED,
            }:
                rule = f"Kafka refuses to delete it ({error.str()})"
                remedy = "let topics be deleted (delete.topic.enable, or the right to do so)"
                raise ConfigError("topic", name, rule, remedy) from None
            if error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise clients.unavailable(self._system, what, error) from None
        self._await(lambda: name not in self._metadata().topics, f"{what}: waiting for its end")

    def validate(self, name: str, partitions: int, cleanup: str) -> None:
        """Check that the topic has exactly ``partitions`` partitions, and the policy ``cleanup``.

        ConfigError: it is missing, or differs.
        """
        found = self.partition_counts([name]).get(name)
        if found is None:
            raise ConfigError("topic", name, "it does not exist", "create it, or run the job once")
        if found != partitions:
            rule = f"it has {found} partitions and must have {partitions}"
            remedy = "delete the topic if it belongs to no other job, or give this job another name"
            raise ConfigError("topic", name, rule, remedy)
        policy = self.topic_config(name).get("cleanup.policy", "")
        if not policies(cleanup) <= policies(policy):
            rule = f"its cleanup.policy is {policy!r} and must be {cleanup!r}"
            raise ConfigError("topic", name, rule, f"set cleanup.policy={cleanup} on the topic")

    def topic_config(self, name: str) -> dict[str, str]:
        """Return {property: value} of an existing topic, defaults included."""
        return self.topic_configs([name])[name]

    def topic_configs(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        """Return as ``topic_config`` for each of ``names``, which are requested together."""
        found, asked = {}, dict(self._describing_configs(names))

        def ask(name: str) -> Future[dict[str, ConfigEntry]]:
            return asked.pop(name, None) or self._describing_configs([name])[name]

        for name in names:
            what = f"reading the configuration of topic {name!r}"
            try:
                entries = self._answer(partial(ask, name), what, name)
            except KafkaException as exception:
                error = clients.error_of(exception)
                raise clients.unavailable(self._system, what, error) from None
            found[name] = {
                k: entry.value for k, entry in entries.items() if entry.value is not None
            }
        return found

    def _describing_configs(
        self, names: Sequence[str]
    ) -> dict[str, Future[dict[str, ConfigEntry]]]:
        if not names:
            return {}
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in dict.fromkeys(names)]
        futures: dict[ConfigResource, Future[dict[str, ConfigEntry]]] = (
            self._admin.describe_configs(resources, request_timeout=self._timeout_s)
        )
        return {resource.name: future for resource, future in futures.items()}

    def end_offset(
        self, name: str, partition: int, level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    ) -> int:
        """Return the end of the partition, as readers of this level see it (safety K1).

        UnavailableError: it does not exist, or Kafka did not answer in time.
        """
        place = TopicPartition(name, partition)
        what = f"asking the end of topic {name!r}"
        deadline = time.monotonic() + self._timeout_s
        while True:
            futures = self._admin.list_offsets(
                {place: LATEST}, isolation_level=level, request_timeout=self._timeout_s
            )
            try:
                return reported_offset(futures[place], self._timeout_s + 1)
            except KafkaException as exception:
                error = clients.error_of(exception)
                if not is_transient(error) or time.monotonic() >= deadline:
                    raise clients.unavailable(self._system, what, error) from None
            except TimeoutError:
                raise self._no_answer(what) from None
            time.sleep(_METADATA_POLL_S)
            with contextlib.suppress(KafkaException):  # the next request reports it too
                # The client goes on with the leader that it knows, until it has to look for it.
                self._admin.list_topics(name, self._timeout_s)

    def topic_ids(self, names: Sequence[str]) -> dict[str, str]:
        """Return {topic: its id}; a recreated topic has another one.

        UnavailableError: a topic does not exist, or Kafka did not answer in time.
        """
        found = self.existing_ids(names)
        missing = next((name for name in names if name not in found), None)
        if missing is not None:
            what = f"asking for topic {missing!r}"
            raise clients.unavailable(self._system, what, "it does not exist")
        return found

    def existing_ids(self, names: Sequence[str]) -> dict[str, str]:
        """Return as ``topic_ids``, for the topics that exist."""
        return {name: str(topic.topic_id) for name, topic in self._descriptions(names).items()}

    def described(self, names: Sequence[str]) -> dict[str, FoundTopic]:
        """Return {topic: its form} for those of ``names`` that exist."""
        return {
            name: FoundTopic(
                str(topic.topic_id),
                len(topic.partitions),
                min(len(partition.replicas) for partition in topic.partitions),
                self.topic_config(name),
            )
            for name, topic in self._descriptions(names).items()
        }

    def _descriptions(self, names: Sequence[str]) -> dict[str, TopicDescription]:
        if not names:
            return {}
        # Kafka refuses a request that names one twice, as systems on the same brokers may.
        names = list(dict.fromkeys(names))
        found = {}
        # A copy: the library finds the futures of its answer in its own.
        asked = dict(self._describing(names))

        def ask(name: str) -> Future[TopicDescription]:
            return asked.pop(name, None) or self._describing([name])[name]

        for name in names:
            what = f"asking for topic {name!r}"
            try:
                found[name] = self._answer(partial(ask, name), what, name)
            except KafkaException as exception:
                error = clients.error_of(exception)
                if error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise clients.unavailable(self._system, what, error) from None
        return found

    def _describing(self, names: Sequence[str]) -> dict[str, Future[TopicDescription]]:
        futures: dict[str, Future[TopicDescription]] = self._admin.describe_topics(
            TopicCollection(list(names)), request_timeout=self._timeout_s
        )
        return futures

    def _general_key(self) -> str:
        return f"systems.{self._system.name}.default.stream.replication.factor"

    def _no_answer(self, what: str) -> Exception:
        return clients.unavailable(self._system, what, f"no answer within {self._timeout_s:g} s")

    def _is_new(self, name: str) -> bool:
        """Return whether the topic was just made, so that some brokers may not know it yet."""
        made_s = _MADE.get((self._system.cluster, name))
        return made_s is not None and time.monotonic() - made_s < _SPREAD_S

    def _answer(self, ask: Callable[[], Future[_T]], what: str, existing: str | None = None) -> _T:
        """Return the brokers' answer; repeat the request after a transient error, in time.

        ``existing``: a topic; while it is new, the error that it is unknown is transient.

        KafkaException: the brokers refuse, or the error has not passed in time.
        UnavailableError: the brokers do not answer in time.
        """
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                return ask().result(self._timeout_s + 1)
            except KafkaException as exception:
                error = clients.error_of(exception)
                is_behind = (
                    error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
                    and existing is not None
                    and self._is_new(existing)
                )
                if not (is_behind or is_transient(error)) or time.monotonic() > deadline:
                    raise
                _LOG.info("%s: %s: asking again", what, error.str())
                time.sleep(_METADATA_POLL_S)  # Kafka does not announce that it can answer
            except TimeoutError:
                raise self._no_answer(what) from None

    def _metadata(self) -> ClusterMetadata:
        """Return the metadata of all topics: a request with a name may create the topic.

        A line is logged where no answer comes for some seconds.
        """
        first_s = min(_PATIENCE_S, self._timeout_s)
        more_s = self._timeout_s - first_s
        clients.unresolved(self._admin)  # what an earlier outage had is no cause of a later one
        try:
            return self._admin.list_topics(timeout=first_s)
        except KafkaException as exception:
            error = clients.error_of(exception)
        if error.code() in _UNANSWERED and more_s > 0:
            where = self._system.bootstrap_servers
            _LOG.warning("no answer from Kafka at %s yet: waiting %.0f s more", where, more_s)
            try:
                return self._admin.list_topics(timeout=more_s)
            except KafkaException as exception:
                error = clients.error_of(exception)
        unresolved = clients.unresolved(self._admin)
        why = error.str() if unresolved is None else f"{error.str()} ({unresolved})"
        raise clients.unavailable(self._system, "listing topics", why, error) from None

    def _explain_creation(self, spec: TopicSpec, error: KafkaError) -> None:
        """Return if the topic exists already; else raise the error with the remedy."""
        code = error.code()
        if code == KafkaError.TOPIC_ALREADY_EXISTS:
            return
        if code in {KafkaError.INVALID_REPLICATION_FACTOR, KafkaError.POLICY_VIOLATION}:
            rule = f"Kafka refuses to create topic {spec.name!r} ({error.str()})"
            remedy = f"set {self._general_key()} to the number of brokers or fewer"
            raise ConfigError(spec.replication_key, str(spec.replication), rule, remedy)
        if code in {KafkaError.TOPIC_EXCEPTION, KafkaError.INVALID_CONFIG}:
            rule = f"Kafka refuses to create it ({error.str()})"
            remedy = "correct the name or property that it names"
            raise ConfigError("topic", spec.name, rule, remedy)
        raise clients.unavailable(self._system, f"creating topic {spec.name!r}", error)

    def _await_in_metadata(self, name: str, partitions: int = 1) -> None:
        """Wait until the brokers' metadata has so many partitions, and a leader of each."""

        def is_there() -> bool:
            topic = self._metadata().topics.get(name)
            if topic is None or topic.error is not None:
                return False
            found = topic.partitions.values()
            return len(found) >= partitions and all(p.leader >= 0 for p in found)

        self._await(is_there, f"waiting for topic {name!r} to appear")

    def _await(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + self._timeout_s
        while not holds():
            if time.monotonic() > deadline:
                raise self._no_answer(what)
            # brokers announce no changes, so poll
            time.sleep(_METADATA_POLL_S)


def topics_of(config: Config, system: str) -> frozenset[str]:
    """Return the topics of a system of ``config``; raise as ``SystemConfig.of`` and ``names``."""
    return TopicAdmin(SystemConfig.of(config, system)).names()


def reported_offset(asked: Future[ListOffsetsResultInfo], timeout_s: float | None = None) -> int:
    """Return the answer to a request with ``AdminClient.list_offsets``.

    Measured with a frozen broker, or with lost answers: when the request's time is over, the
    library reports no error, but a result without an offset. As the end of a changelog that number
    would mean that there is nothing to read, or that the store is ahead of it.

    KafkaException: the broker refused, or did not answer.
    TimeoutError: nothing came within ``timeout_s``.
    """
    offset = int(asked.result(timeout_s).offset)
    if offset == OFFSET_INVALID:
        why = "the broker did not answer with the offset in time"
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, why))  # noqa: SLF001 - a public name of the library
    return offset


class StreamMetadataCache:
    """Asks for partition counts of a job's streams; it has one client for each system in use.

    ``config`` describes the systems.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._admins: dict[str, TopicAdmin] = {}

    def partition_counts(self, streams: Iterable[SystemStream]) -> dict[SystemStream, int]:
        """Return {stream: partitions} as of now; a stream that does not exist is absent.

        ConfigError: a system is not described in the configuration.
        UnavailableError: a system did not answer.
        """
        wanted: dict[str, list[str]] = {}
        for stream in sorted(set(streams)):
            wanted.setdefault(stream.system, []).append(stream.stream)
        return {
            SystemStream(system, name): count
            for system, names in wanted.items()
            for name, count in sorted(self._admin(system).partition_counts(names).items())
        }

    def _admin(self, system: str) -> TopicAdmin:
        if system not in self._admins:
            self._admins[system] = TopicAdmin(SystemConfig.of(self._config, system))
        return self._admins[system]
