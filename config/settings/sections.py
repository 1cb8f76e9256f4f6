"""Typed views of a configuration, each built by ``of(config)``.

The first fault found raises ConfigError.

A view holds what its readers need, with Samza's fall-backs already applied: a reader never looks a
key up itself. Keys, types and defaults are in ``keys``; what a value must look like beyond its type
is checked here and in ``validation``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from homeport.config.config import INT_MAX, Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import TextKey, stream_named, values_of
from homeport.config.errors import ConfigError
from homeport.config.java_names import Kind, class_name
from homeport.config.kafka_names import (
    Role,
    connection_properties,
    map_client_properties,
    security_properties,
)
from homeport.config.path_names import job_folder
from homeport.config.settings.input_section import (
    AS_INPUTS,
    InputPolicy,
    Repartition,
    batch_max_bytes,
    repartition_name,
    repartition_topic,
)
from homeport.config.settings.memory_rule import MemoryShares, divide, fits_warm_spare
from homeport.config.settings.pipeline_section import has_pipeline
from homeport.config.settings.serde_names import ConfiguredSerde, serde_name
from homeport.config.system_stream import SystemStream

_DEFAULT_SEGMENT_BYTES = 26214400
COORDINATOR_TOPICS = "__samza_coordinator_"
"""The beginning of the name of every job's coordinator stream."""
_REPARTITION_NAME = re.compile(r"[a-zA-Z0-9_-]+")
CHECKPOINTS_OFF = "none"
"""Value of ``task.checkpoint.factory`` that turns checkpoints off."""


def coordinator_topic(job_name: str, job_id: str) -> str:
    """Return the name of the job's coordinator stream.

    Source: COORD, "Coordinator Stream Naming".
    """
    return f"{COORDINATOR_TOPICS}{job_name.replace('_', '-')}_{job_id.replace('_', '-')}"


def checkpoint_topic(job_name: str, job_id: str) -> str:
    """Return the name of the job's checkpoint topic, as Samza forms it."""
    return f"__samza_checkpoint_ver_1_for_{job_name.replace('_', '-')}_{job_id.replace('_', '-')}"


def system_or_default(config: Config, key: TextKey) -> str:
    """Return the system that ``key`` names, else the default one; ConfigError without either."""
    system = key.read(config) or keys.JOB_DEFAULT_SYSTEM.read(config)
    if system is None:
        rule = f"it is required where {keys.JOB_DEFAULT_SYSTEM.name} is not set"
        raise key.error(None, rule, f"set {keys.JOB_DEFAULT_SYSTEM.name}, such as kafka")
    return system


def stream_or_topic(
    config: Config, key: str, text: str, system_key: TextKey, remedy: str
) -> SystemStream:
    """Return the stream that ``text`` of ``key`` names, with its system or without.

    ConfigError: it has another form, or ``system_key`` is needed and names no system.
    """
    stream = SystemStream.parse(text)
    if stream is None and "." in text:
        raise ConfigError(key, text, "it must have the form system.stream or stream", remedy)
    return stream or SystemStream(system_or_default(config, system_key), text)


def job_name(config: Config) -> str:
    """Return ``job.name``; ConfigError where it is missing, though Samza has it by another key."""
    samzas = config.get_str("app.name")
    remedy = "give the job a name" if samzas is None else f"write {samzas}, as app.name has it"
    return config.require(keys.JOB_NAME.name, remedy)


def _job_id(config: Config) -> str:
    return keys.JOB_ID.read(config) or "1"


@dataclass(frozen=True)
class JobConfig:
    """The job as a whole.

    ``ssp_grouper_factory`` and ``task_name_grouper_factory`` are Java names.
    """

    name: str
    id: str
    container_count: Annotated[int, keys.JOB_CONTAINER_COUNT]
    host_affinity_enabled: Annotated[bool, keys.JOB_HOST_AFFINITY_ENABLED]
    default_system: Annotated[str | None, keys.JOB_DEFAULT_SYSTEM]
    coordinator_system: str
    coordinator_replication_factor: int | None
    coordinator_segment_bytes: int
    coordinator_topic: str
    ssp_grouper_factory: str
    task_name_grouper_factory: str
    history_dir: Annotated[str | None, keys.JOB_HISTORY_DIR]
    history_max_mb: Annotated[int, keys.JOB_HISTORY_MAX_MB]
    logged_store_base_dir: Annotated[str | None, keys.JOB_LOGGED_STORE_BASE_DIR]
    catch_up_interval_ms: Annotated[int, keys.JOB_COORDINATOR_CATCH_UP_INTERVAL_MS]
    isolation_max_ms: Annotated[int, keys.JOB_COORDINATOR_ISOLATION_MAX_MS]

    @staticmethod
    def of(config: Config) -> JobConfig:
        """Return the view of ``config``."""
        name, job_id = job_name(config), _job_id(config)
        system = system_or_default(config, keys.JOB_COORDINATOR_SYSTEM)
        return JobConfig(
            name=name,
            id=job_id,
            coordinator_system=system,
            coordinator_replication_factor=keys.JOB_COORDINATOR_REPLICATION_FACTOR.find(config)
            or keys.SYSTEM_REPLICATION_FACTOR.find(config, system),
            coordinator_segment_bytes=keys.JOB_COORDINATOR_SEGMENT_BYTES.find(config)
            or keys.SYSTEM_SEGMENT_BYTES.find(config, system)
            or _DEFAULT_SEGMENT_BYTES,
            coordinator_topic=coordinator_topic(name, job_id),
            ssp_grouper_factory=_factory(
                config, keys.JOB_SSP_GROUPER_FACTORY, Kind.SSP_GROUPER, java=True
            ),
            task_name_grouper_factory=_factory(
                config, keys.TASK_NAME_GROUPER_FACTORY, Kind.TASK_NAME_GROUPER, java=True
            ),
            **values_of(JobConfig, config),
        )

    @property
    def directory_name(self) -> str:
        """Return the job's folder below the root of state directories: ``<job.name>-<job.id>``."""
        return job_folder(self.name, self.id)


def _factory(config: Config, key: TextKey, kind: Kind, *parts: str, java: bool = False) -> str:
    return class_name(kind, key.named(*parts), key.read(config, *parts) or "", java=java)


@dataclass(frozen=True)
class StandbyConfig:
    """Hot standby: whether it is on, and how many standby containers each active one has.

    ``is_mixed``: whether containers on YARN have standby tasks beside active ones in their place.

    Source: STANDBY; Samza's ``job.standbytasks.replication.factor`` counts the active one too.
    """

    enabled: bool
    replication_count: int
    is_mixed: bool = False

    @staticmethod
    def of(config: Config) -> StandbyConfig:
        """Return the view of ``config``; ConfigError where both ways of saying it disagree."""
        enabled = keys.JOB_HOT_STANDBY_ENABLED.read(config)
        count = keys.JOB_HOT_STANDBY_REPLICATION_COUNT.read(config)
        factor = keys.JOB_STANDBY_TASKS_REPLICATION_FACTOR.find(config)
        mixes = keys.JOB_CONTAINER_MIXED_ROLES.read(config)
        if factor is None:
            return StandbyConfig(enabled, count, enabled and mixes)
        own_is_set = keys.JOB_HOT_STANDBY_ENABLED.is_set(
            config
        ) or keys.JOB_HOT_STANDBY_REPLICATION_COUNT.is_set(config)
        if own_is_set and factor - 1 != (count if enabled else 0):
            raise keys.JOB_STANDBY_TASKS_REPLICATION_FACTOR.error(
                factor,
                f"{keys.JOB_HOT_STANDBY_ENABLED.name} and "
                f"{keys.JOB_HOT_STANDBY_REPLICATION_COUNT.name} say something else "
                "(it is the replication count + 1)",
                "remove one of the two",
            )
        return StandbyConfig(factor > 1, max(1, factor - 1), factor > 1 and mixes)


@dataclass(frozen=True)
class TaskConfig:
    """Tasks, their input and checkpoints; ``Tuning`` has the rest.

    Shapes: ``spark_conf`` {property: value}.
    Units: ``..._ms`` milliseconds, ``..._bytes`` bytes, ``..._mb`` 1024 x 1024 bytes.
    ``callback_timeout_ms``: None where a call may last for ever.
    """

    task_class: Annotated[str | None, keys.TASK_CLASS]
    has_pipeline: bool
    inputs: tuple[SystemStream, ...]
    shutdown_ms: Annotated[int, keys.TASK_SHUTDOWN_MS]
    hang_ms: Annotated[int, keys.TASK_HANG_MS]
    callback_timeout_ms: int | None
    batch_max_bytes: int
    input_native: Annotated[bool, keys.TASK_INPUT_NATIVE]
    exactly_once: Annotated[bool, keys.TASK_EXACTLY_ONCE]
    checkpoint_enabled: bool
    checkpoint_system: str
    checkpoint_topic: str
    checkpoint_replication_factor: int | None
    checkpoint_segment_bytes: Annotated[int, keys.TASK_CHECKPOINT_SEGMENT_BYTES]
    checkpoint_max_message_bytes: Annotated[int, keys.TASK_CHECKPOINT_MAX_MESSAGE_BYTES]
    spark_conf: Mapping[str, str] = field(repr=False)
    memory: MemoryShares

    @staticmethod
    def of(config: Config) -> TaskConfig:
        """Return the view of ``config``."""
        system = system_or_default(config, keys.TASK_CHECKPOINT_SYSTEM)
        memory = divide(
            keys.CONTAINER_MEMORY_MB.read(config),
            has_pipeline=has_pipeline(config),
            heap_mb=keys.TASK_SPARK_DRIVER_MEMORY_MB.find(config),
            has_warm_spare=keys.JOB_CONTAINER_PREWARM.read(config),
        )
        timeout_ms = keys.TASK_CALLBACK_TIMEOUT_MS.read(config)
        return TaskConfig(
            has_pipeline=has_pipeline(config),
            inputs=tuple(
                dict.fromkeys((*named_inputs(config), *(r.stream for r in repartitions(config))))
            ),
            callback_timeout_ms=timeout_ms if timeout_ms > 0 else None,
            batch_max_bytes=batch_max_bytes(config, memory),
            checkpoint_enabled=_checkpoint_enabled(config),
            checkpoint_system=system,
            checkpoint_topic=checkpoint_topic(job_name(config), _job_id(config)),
            checkpoint_replication_factor=keys.TASK_CHECKPOINT_REPLICATION_FACTOR.find(config)
            or keys.SYSTEM_REPLICATION_FACTOR.find(config, system),
            spark_conf=dict(config.subset(keys.TASK_SPARK_CONF.named(""))),
            memory=memory,
            **values_of(TaskConfig, config),
        )


def has_spark_beside(config: Config, task: TaskConfig, *, is_temporary: bool) -> bool:
    """Return whether a standby's spare starts the pipeline's Spark before its permit comes.

    Beside the job's own standbys where ``job.hotstandby.prewarm`` says so: most of them never need
    it. Beside a temporary one (``is_temporary``) wherever the memory holds it: its place is taken
    within the minute.
    """
    if not task.has_pipeline:
        return False
    if is_temporary:
        return fits_warm_spare(task.memory)
    return keys.JOB_HOT_STANDBY_PREWARM.read(config)


def _checkpoint_enabled(config: Config) -> bool:
    value = keys.TASK_CHECKPOINT_FACTORY.read(config) or ""
    if value == CHECKPOINTS_OFF:
        return False
    class_name(Kind.CHECKPOINT, keys.TASK_CHECKPOINT_FACTORY.name, value)
    return True


def named_inputs(config: Config) -> tuple[SystemStream, ...]:
    """Return the streams of ``task.inputs``, each once; ConfigError: one has another form."""
    key = keys.TASK_INPUTS
    named = (stream_named(key.name, item, "flights", "each input") for item in key.read(config))
    return tuple(dict.fromkeys(named))


def repartitions(config: Config) -> tuple[Repartition, ...]:
    """Return the job's repartitions, by name.

    They are on the brokers of its checkpoints: one transaction writes to both.

    ConfigError: a name or a number breaks its rule.
    """
    key, found = keys.TASK_REPARTITION, []
    for given in sorted(config):
        if keys.declared(given) is not key:
            continue
        (name,) = key.parts_of(given) or ("",)
        require_repartition_name(given, config[given], name)
        system = system_or_default(config, keys.TASK_CHECKPOINT_SYSTEM)
        topic = repartition_topic(job_name(config), _job_id(config), name)
        partitions = _repartition_count(config, given)
        replication = keys.TASK_REPARTITION_REPLICATION_FACTOR.find(config, name)
        replication = replication or keys.SYSTEM_REPLICATION_FACTOR.find(config, system)
        found.append(Repartition(name, SystemStream(system, topic), partitions, replication))
    return tuple(found)


def _repartition_count(config: Config, key: str) -> int | None:
    text = config.get_str(key, AS_INPUTS)
    if text == AS_INPUTS:
        return None
    if re.fullmatch(r"-?[0-9]+", text):
        return config.get_int(key, 8, minimum=1, maximum=INT_MAX)
    rule = f"it must be a whole number, or {AS_INPUTS}: as many partitions as the inputs have"
    raise ConfigError(key, text, rule, f"write {AS_INPUTS}, or a number, such as 8")


def own_repartition(config: Config, stream: SystemStream) -> str | None:
    """Return the name of the job's repartition with that topic, also of a former one; None: none.

    ConfigError: the job has no name.
    """
    name = repartition_name(stream.stream)
    if name is None:
        return None
    own = repartition_topic(job_name(config), _job_id(config), name)
    return name if own == stream.stream else None


def require_repartition_name(key: str, value: str, name: str) -> None:
    """Require that ``name`` may be a repartition's; ConfigError, about ``key``: it may not."""
    if not _REPARTITION_NAME.fullmatch(name):
        rule = f"{name!r} becomes part of a topic's name: letters, digits, '_' and '-' only"
        raise ConfigError(key, value, rule, "use only these, as in task.repartition.by-airport")


_COUNTED = {
    "message.max.bytes": (1_000, 1_000_000_000),
    "max.request.size": (1_000, 1_000_000_000),
    "transaction.timeout.ms": (1_000, INT_MAX),
}
"""{property of the producer: its range}, which librdkafka has too, where we count by it as well."""


@dataclass(frozen=True)
class SystemConfig:
    """One system, which is a Kafka cluster.

    ``consumer``, ``producer`` and ``admin`` hold librdkafka's properties, bootstrap servers
    included. ``ignored``: {full key of a given property: why it has no effect}. Consumer or
    producer without bootstrap servers, or without any property of TLS and SASL, has those of the
    other.
    """

    name: str
    bootstrap_servers: str
    consumer: Mapping[str, str] = field(repr=False)
    producer: Mapping[str, str] = field(repr=False)
    admin: Mapping[str, str] = field(repr=False)
    default_replication_factor: int | None
    ignored: Mapping[str, str] = field(repr=False)
    _config: Config = field(repr=False)

    @staticmethod
    def of(config: Config, system: str) -> SystemConfig:
        """Return the view of the system named ``system``.

        ConfigError where it has no bootstrap servers.
        """
        keys.SYSTEM_FACTORY.read(config, system)
        consumer_prefix = keys.SYSTEM_CONSUMER.named(system, "")
        producer_prefix = keys.SYSTEM_PRODUCER.named(system, "")
        consumer = map_client_properties(config.subset(consumer_prefix), Role.CONSUMER)
        producer = map_client_properties(config.subset(producer_prefix), Role.PRODUCER)
        connect = connection_properties(producer.properties) | connection_properties(
            consumer.properties
        )
        for name, (minimum, maximum) in _COUNTED.items():
            config.get_int(producer_prefix + name, minimum, minimum=minimum, maximum=maximum)
        servers = connect.get("bootstrap.servers", "").strip()
        if not servers:
            is_default = system == keys.JOB_DEFAULT_SYSTEM.read(config)
            rule = f"the system {system!r} needs the addresses of its brokers"
            remedy = f"set {consumer_prefix}bootstrap.servers, such as localhost:9092" + (
                f", or ${keys.BROKERS_VARIABLE}" if is_default else ""
            )
            raise ConfigError(f"{consumer_prefix}bootstrap.servers", None, rule, remedy)
        return SystemConfig(
            name=system,
            bootstrap_servers=servers,
            consumer=_reaching(servers, consumer.properties, producer.properties),
            producer=_reaching(servers, producer.properties, consumer.properties),
            admin=connect,
            default_replication_factor=keys.SYSTEM_REPLICATION_FACTOR.find(config, system),
            ignored={
                prefix + name: why.replace("<system>", system)
                for prefix, found in ((consumer_prefix, consumer), (producer_prefix, producer))
                for name, why in found.ignored.items()
            },
            _config=config,
        )

    @property
    def cluster(self) -> str:
        """Return the addresses in one order: systems with the same ones are one cluster."""
        return ",".join(sorted(address.strip() for address in self.bootstrap_servers.split(",")))

    def input_policy(self, stream: str) -> InputPolicy:
        """Return how ``stream`` is read; ConfigError where a value of it breaks its rule."""
        found = self._repartition(stream)
        if found is not None:
            return InputPolicy.of_repartition(self._config, found.stream)
        return InputPolicy.of(self._config, self.name, stream)

    def key_serde(self, stream: str) -> ConfiguredSerde | None:
        """Return the serde of the keys of ``stream``; None where none is configured."""
        return self._serde(self.key_serde_key(stream), keys.SYSTEM_KEY_SERDE)

    def msg_serde(self, stream: str) -> ConfiguredSerde | None:
        """Return the serde of the values of ``stream``; None where none is configured."""
        return self._serde(self.msg_serde_key(stream), keys.SYSTEM_MSG_SERDE)

    def key_serde_key(self, stream: str) -> str:
        """Return the configuration key of the serde of this stream's keys."""
        own = keys.TASK_REPARTITION_KEY_SERDE
        return self._serde_key(stream, keys.STREAM_KEY_SERDE, own)

    def msg_serde_key(self, stream: str) -> str:
        """Return the configuration key of the serde of this stream's values."""
        own = keys.TASK_REPARTITION_MSG_SERDE
        return self._serde_key(stream, keys.STREAM_MSG_SERDE, own)

    def _serde_key(self, stream: str, of_stream: TextKey, of_repartition: TextKey) -> str:
        found = self._repartition(stream)
        if found is not None:
            return of_repartition.named(found.name)
        return of_stream.named(self.name, stream)

    def _repartition(self, stream: str) -> Repartition | None:
        if repartition_name(stream) is None:
            return None
        own = SystemStream(self.name, stream)
        return next((r for r in repartitions(self._config) if r.stream == own), None)

    def _serde(self, own: str, general: TextKey) -> ConfiguredSerde | None:
        for key in (own, general.named(self.name)):
            name = self._config.get_str(key)
            if name is not None:
                return serde_name(self._config, key, name)
        return None


def _reaching(servers: str, own: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    locks = {} if security_properties(own) else security_properties(other)
    return {"bootstrap.servers": servers} | locks | dict(own)


@dataclass(frozen=True)
class ClusterManagerConfig:
    """Size, placement, retries and check-ins of containers.

    ``..._ms`` are milliseconds, memory is in MB.
    """

    container_memory_mb: Annotated[int, keys.CONTAINER_MEMORY_MB]
    container_cpu_cores: Annotated[int, keys.CONTAINER_CPU_CORES]
    request_timeout_ms: Annotated[int, keys.CONTAINER_REQUEST_TIMEOUT_MS]
    retry_count: Annotated[int, keys.CONTAINER_RETRY_COUNT]
    retry_window_ms: Annotated[int, keys.CONTAINER_RETRY_WINDOW_MS]
    last_retry_delay_ms: Annotated[int, keys.CONTAINER_LAST_RETRY_DELAY_MS]
    fail_job_after_retries: Annotated[bool, keys.CONTAINER_FAIL_JOB_AFTER_RETRIES]
    check_in_interval_ms: Annotated[int, keys.CONTAINER_CHECK_IN_INTERVAL_MS]
    check_in_timeout_ms: int
    lease_ms: Annotated[int, keys.CONTAINER_LEASE_MS]
    url_host: Annotated[str | None, keys.JOB_COORDINATOR_URL_HOST]
    url_port: Annotated[int, keys.JOB_COORDINATOR_URL_PORT]
    has_tls: Annotated[bool, keys.JOB_COORDINATOR_TLS]

    @staticmethod
    def of(config: Config) -> ClusterManagerConfig:
        """Return the view of ``config``."""
        return ClusterManagerConfig(
            check_in_timeout_ms=_check_in_timeout_ms(config),
            **values_of(ClusterManagerConfig, config),
        )


def _check_in_timeout_ms(config: Config) -> int:
    """Return the time-out; a host's first container unpacks the environment before it checks in."""
    key = keys.CONTAINER_CHECK_IN_TIMEOUT_MS
    travels = keys.YARN_PYTHON_ARCHIVE.read(config) is not None
    factor = 5 if travels and config.get(key.name) is None else 1
    return factor * key.read(config)


@dataclass(frozen=True)
class YarnConfig:
    """What the submission to YARN needs; memory is in MB."""

    package_path: Annotated[str | None, keys.YARN_PACKAGE_PATH]
    queue: Annotated[str, keys.YARN_QUEUE]
    container_label: Annotated[str | None, keys.YARN_CONTAINER_LABEL]
    am_label: Annotated[str | None, keys.YARN_AM_LABEL]
    am_memory_mb: Annotated[int, keys.YARN_AM_MEMORY_MB]
    am_cpu_cores: Annotated[int, keys.YARN_AM_CPU_CORES]
    python_executable: Annotated[str | None, keys.YARN_PYTHON_EXECUTABLE]
    python_archive: Annotated[str | None, keys.YARN_PYTHON_ARCHIVE]
    am_max_attempts: Annotated[int, keys.YARN_AM_MAX_ATTEMPTS]
    kerberos_principal: Annotated[str | None, keys.YARN_KERBEROS_PRINCIPAL]
    kerberos_keytab: Annotated[str | None, keys.YARN_KERBEROS_KEYTAB]

    @staticmethod
    def of(config: Config) -> YarnConfig:
        """Return the view of ``config``."""
        return YarnConfig(**values_of(YarnConfig, config))


def repartition_keys(config: Config) -> dict[SystemStream, tuple[str, ConfiguredSerde]]:
    """Return {topic of a repartition: (configuration key of its serde of keys, that serde)}."""
    found = {}
    for own in repartitions(config):
        system, topic = SystemConfig.of(config, own.stream.system), own.stream.stream
        found[own.stream] = system.key_serde_key(topic), system.key_serde(topic) or "bytes"
    return found
