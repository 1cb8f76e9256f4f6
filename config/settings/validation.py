"""Static checks of a configuration: all that needs neither Kafka nor YARN nor a file.

The first fault is raised as ConfigError, in the order in which a user would read the file; what is
only suspicious comes back as warnings. Keys that are not known here are allowed: Samza passes them
to user code, and so do we.
"""

import re
from collections.abc import Iterator

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.unknown_keys import warnings_about
from homeport.config.errors import ConfigError
from homeport.config.java_names import ALL_SSP_TO_SINGLE_TASK, Kind, is_user_class, short_name
from homeport.config.number_text import NUMBER_SERDES
from homeport.config.secret_names import shown_value
from homeport.config.settings.adjunct_section import AdjunctsConfig, adjunct_warnings
from homeport.config.settings.memory_rule import (
    STANDBY_MB,
    WARM_SPARE_MB,
    fits_warm_spare,
    least_with_warm_spare,
)
from homeport.config.settings.pipeline_section import PipelineConfig
from homeport.config.settings.reporters_section import snapshot_reporters
from homeport.config.settings.sections import (
    ClusterManagerConfig,
    JobConfig,
    StandbyConfig,
    SystemConfig,
    TaskConfig,
    YarnConfig,
    checkpoint_topic,
    coordinator_topic,
    job_name,
    named_inputs,
    repartitions,
)
from homeport.config.settings.stores_section import LargeValues, StorageConfig, StoreConfig
from homeport.config.settings.timers_section import TimersConfig
from homeport.config.settings.used_systems import (
    broadcast_streams,
    declared_outputs,
    require_own_topics,
    require_systems,
    used_systems,
)
from homeport.config.storage_engines import ROCKSDB
from homeport.config.system_stream import SystemStream, is_topic_name

_LABEL = re.compile(r"[0-9a-zA-Z][0-9a-zA-Z_-]{0,254}")
_ANOTHER_KEY = (
    "where tasks read what they send, by another key, set task.repartition.<name> and send "
    "to that name"
)
_STORE_NAME = re.compile(r"[a-zA-Z0-9._-]+")


def validate(config: Config) -> tuple[str, ...]:
    """Require that ``config`` breaks no rule that can be checked without its surroundings.

    Returns warnings, one line each: likely misspellings, properties without effect, things this
    version does not do.

    ConfigError: the first fault found.
    """
    _check_topic_names(config, job_name(config))
    _check_work(config)
    _check_types(config)
    unknown = warnings_about(config)
    job, task = JobConfig.of(config), TaskConfig.of(config)
    broadcast = broadcast_streams(config)
    _check_inputs(named_inputs(config), broadcast)
    require_systems(config)
    storage = StorageConfig.of(config)
    _check_stores(storage)
    adjuncts = AdjunctsConfig.of(config)
    TimersConfig.of(config)
    systems = _check_systems(config, task, storage, broadcast)
    _check_outputs(config, task)
    _check_repartitions(config, task, adjuncts)
    for reporter in snapshot_reporters(config):
        SystemConfig.of(config, reporter.stream.system)
    _check_pipeline_output(config)
    require_own_topics(config)
    _check_standby(config, job, storage, adjuncts)
    _check_prewarmed_standbys(config, task)
    _check_prewarmed_containers(config, task)
    _check_sizes(config)
    _check_labels(YarnConfig.of(config))
    return (
        *unknown,
        *(
            f"{key} = {shown_value(key, config[key])} has no effect: {why}"
            for system in systems
            for key, why in system.ignored.items()
        ),
        *store_warnings(config, storage),
        *adjunct_warnings(config, adjuncts),
        *_repartition_warnings(config),
        *_standby_warnings(config, adjuncts),
        *_prewarm_warnings(config, task),
        *_memory_warnings(config, task),
    )


def _standby_warnings(config: Config, adjuncts: AdjunctsConfig) -> Iterator[str]:
    if StandbyConfig.of(config).enabled:
        for store in adjuncts.stores.values():
            if store.is_kept:
                continue
            stream, key = store.stream, keys.STREAM_BOOTSTRAP
            what = f"fills it from {stream}"
            if not store.is_bootstrap:
                name = key.named(stream.system, stream.stream)
                what = f"has what {stream} brings from then on alone; set {name}=true"
            yield (
                f"stores.{store.name} is not kept by standbys, as no start uses what it finds of "
                f"it: after a failover its container {what}"
            )


def _check_labels(yarn: YarnConfig) -> None:
    if yarn.am_label and not yarn.container_label:
        rule = f"without {keys.YARN_CONTAINER_LABEL.name} YARN would give containers this label too"
        remedy = f"write {keys.YARN_CONTAINER_LABEL.name}, with the same label or with another"
        raise keys.YARN_AM_LABEL.error(yarn.am_label, rule, remedy)
    for key, label in (
        (keys.YARN_CONTAINER_LABEL.name, yarn.container_label),
        (keys.YARN_AM_LABEL.name, yarn.am_label),
    ):
        if label is not None and not _LABEL.fullmatch(label):
            rule = (
                "a node label has 1 to 255 letters, digits, '_' and '-', and YARN takes one label"
            )
            raise ConfigError(key, label, rule, "name one label of the cluster")


def _check_topic_names(config: Config, name: str) -> None:
    job_id = keys.JOB_ID.read(config) or "1"
    for key, value in ((keys.JOB_NAME.name, name), (keys.JOB_ID.name, job_id)):
        if not re.fullmatch(r"[a-zA-Z0-9._-]+", value):
            rule = "it becomes part of topic names: letters, digits, '.', '_' and '-' only"
            raise ConfigError(key, value, rule, "use only these")
    for topic in (coordinator_topic(name, job_id), checkpoint_topic(name, job_id)):
        if not is_topic_name(topic):
            rule = f"the topic name {topic!r} would have more than the 249 characters of Kafka"
            raise keys.JOB_NAME.error(name, rule, "use a shorter name")


def _check_work(config: Config) -> None:
    if not (keys.TASK_CLASS.is_set(config) or keys.TASK_PIPELINE_OUTPUT.is_set(config)):
        raise keys.TASK_CLASS.error(
            None,
            "it is required, with a pipeline too: only a task keeps and sends",
            "name what the job does, such as my_job.task:MyTask, or set "
            f"{keys.TASK_PIPELINE_OUTPUT.name} where a pipeline's rows are to leave as they are",
        )
    for key in (keys.TASK_CLASS, keys.TASK_PIPELINE_CLASS):
        value = key.read(config)
        if value is not None and not is_user_class(value):
            remedy = "write the module, a colon and the name in it, such as my_job.task:MyTask"
            raise key.error(value, "it must have the form module:Name", remedy)


def _check_types(config: Config) -> None:
    for name in config:
        key = keys.declared(name)
        if key is not None:
            key.check(config, name)


def _check_inputs(named: tuple[SystemStream, ...], broadcast: tuple[SystemStream, ...]) -> None:
    if not named:
        raise keys.TASK_INPUTS.error(
            None, "a job needs at least one input", "name a stream, such as kafka.flights"
        )
    for stream in named:
        _check_stream(keys.TASK_INPUTS.name, stream)
    for stream in broadcast:
        _check_stream(keys.TASK_BROADCAST_INPUTS.name, stream)


def _check_stream(key: str, stream: SystemStream) -> None:
    if not is_topic_name(stream.stream):
        rule = f"{stream.stream!r} cannot be the name of a Kafka topic"
        remedy = "use letters, digits, '.', '_' and '-', at most 249 of them"
        raise ConfigError(key, str(stream), rule, remedy)


def _check_stores(storage: StorageConfig) -> None:
    for store in storage.stores.values():
        if not _STORE_NAME.fullmatch(store.name) or store.name in {".", ".."}:
            rule = "the store's name becomes the name of a folder"
            remedy = "use only letters, digits, '.', '_' and '-' in it"
            raise ConfigError(f"stores.{store.name}.factory", store.factory, rule, remedy)
        if store.changelog is not None:
            _check_stream(keys.STORE_CHANGELOG.named(store.name), store.changelog)


def _check_systems(
    config: Config, task: TaskConfig, storage: StorageConfig, broadcast: tuple[SystemStream, ...]
) -> tuple[SystemConfig, ...]:
    systems = tuple(SystemConfig.of(config, name) for name in used_systems(config))
    for system in systems:
        for stream in (*task.inputs, *broadcast):
            if stream.system == system.name:
                system.key_serde(stream.stream)
                system.msg_serde(stream.stream)
                system.input_policy(stream.stream)
    _check_one_transaction(task, storage)
    return systems


def _check_one_transaction(task: TaskConfig, storage: StorageConfig) -> None:
    """Check that changelogs and checkpoints are in one cluster: one transaction writes both."""
    for store in storage.stores.values():
        if (
            task.checkpoint_enabled
            and store.changelog
            and store.changelog.system != task.checkpoint_system
        ):
            raise keys.STORE_CHANGELOG.error(
                store.changelog,
                f"changelog and checkpoint are one transaction, and checkpoints are in system "
                f"{task.checkpoint_system!r}",
                f"put both into one system, or set {keys.TASK_CHECKPOINT_SYSTEM.name}",
                store.name,
            )


def _check_outputs(config: Config, task: TaskConfig) -> None:
    for key, stream in declared_outputs(config):
        _check_stream(key, stream)
        if stream in task.inputs:
            rule = f"it is one of {keys.TASK_INPUTS.name}, and would be read again"
            raise ConfigError(key, str(stream), rule, f"name another stream; {_ANOTHER_KEY}")
        cluster = SystemConfig.of(config, task.checkpoint_system).cluster
        is_reached = SystemConfig.of(config, stream.system).cluster == cluster
        if task.exactly_once and not is_reached:
            raise ConfigError(
                key,
                str(stream),
                "it has other brokers than the job's checkpoints, and one transaction cannot reach "
                "both",
                f"name a stream of the system {task.checkpoint_system}, or set "
                f"{keys.TASK_EXACTLY_ONCE.name}=false",
            )


_NOT_OF_REPARTITIONS = (
    keys.STREAM_OFFSET_DEFAULT,
    keys.STREAM_START_TIME,
    keys.STREAM_RESET_OFFSET,
    keys.STREAM_BOOTSTRAP,
    keys.STREAM_LOST_INPUT,
    keys.STREAM_KEY_SERDE,
    keys.STREAM_MSG_SERDE,
)
"""Keys of a stream that its repartition's rules leave without effect."""


def _check_repartitions(config: Config, task: TaskConfig, adjuncts: AdjunctsConfig) -> None:
    streams = {*named_inputs(config), *(stream for _, stream in declared_outputs(config))}
    names = {stream.stream for stream in streams}
    grouper = short_name(Kind.SSP_GROUPER, JobConfig.of(config).ssp_grouper_factory)
    for own in repartitions(config):
        _check_stream(own.key, own.stream)
        filled = adjuncts.of_stream(own.stream)
        fault = None
        if own.name in names:
            fault = "an input or an output of the job has this name", "give it another name"
        elif filled is not None:
            rule = f"it fills the store {filled.name}, and records that are committed are deleted"
            fault = rule, "let a task write what comes into a store of its own"
        elif not task.checkpoint_enabled:
            rule = (
                f"{keys.TASK_CHECKPOINT_FACTORY.name} is none, so each start would read all of it"
            )
            fault = rule, f"remove {keys.TASK_CHECKPOINT_FACTORY.name}"
        elif grouper == ALL_SSP_TO_SINGLE_TASK:
            rule = f"with {keys.JOB_SSP_GROUPER_FACTORY.name}={grouper} every task reads all of it"
            fault = rule, "use group-by-partition"
        elif keys.JOB_DRAIN.read(config):
            rule = f"{keys.JOB_DRAIN.name} is true, and no container knows when others have sent"
            remedy = "end the job by --operation=kill once its lag is 0: what waits stays"
            fault = rule, remedy
        if fault is not None:
            raise ConfigError(own.key, config[own.key], *fault)


def _repartition_warnings(config: Config) -> Iterator[str]:
    own = (keys.TASK_REPARTITION_KEY_SERDE, keys.TASK_REPARTITION_MSG_SERDE)
    topics = {r.stream.stream: r for r in repartitions(config)}
    for given in sorted(config):
        key = keys.declared(given)
        parts = (key.parts_of(given) if key is not None else None) or ()
        for name in parts if key in own else ():
            needed = keys.TASK_REPARTITION.named(name)
            if needed not in config:
                yield f"{given} has no effect: {needed} is not set, so {name!r} is no repartition"
        found = topics.get(parts[-1]) if parts and key in _NOT_OF_REPARTITIONS else None
        if found is not None:
            yield (
                f"{given} has no effect: the topic of repartition {found.name!r} is "
                f"read from its first record on, by {found.key}.key.serde and "
                ".msg.serde"
            )


def _check_pipeline_output(config: Config) -> None:
    pipeline = PipelineConfig.of(config)
    if pipeline is None or pipeline.output is None:
        return
    filled = AdjunctsConfig.of(config).of_stream(pipeline.output)
    if filled is not None:
        rule = f"the stream fills the adjunct store {filled.name}, which the job only reads"
        remedy = "name another stream, and let another job write that one"
        raise keys.TASK_PIPELINE_OUTPUT.error(pipeline.output, rule, remedy)
    system, stream = pipeline.output.system, pipeline.output.stream
    view = SystemConfig.of(config, system)
    view.key_serde(stream)
    serde = view.msg_serde(stream)
    if serde in NUMBER_SERDES:
        rule = "a row of columns cannot leave as a number"
        remedy = "write json, avro, or string or bytes for a column 'value' as it is"
        raise keys.STREAM_MSG_SERDE.error(serde, rule, remedy, system, stream)


def _check_standby(
    config: Config, job: JobConfig, storage: StorageConfig, adjuncts: AdjunctsConfig
) -> None:
    if not StandbyConfig.of(config).enabled:
        return
    key = keys.JOB_HOT_STANDBY_ENABLED.name
    if not keys.JOB_HOT_STANDBY_ENABLED.is_set(config):
        key = keys.JOB_STANDBY_TASKS_REPLICATION_FACTOR.name
    if not job.host_affinity_enabled:
        remedy = f"set {keys.JOB_HOST_AFFINITY_ENABLED.name}=true, or turn hot standby off"
        raise ConfigError(key, config.get_str(key), "hot standby needs host affinity", remedy)
    is_filled = any(store.is_kept for store in adjuncts.stores.values())
    if not is_filled and not any(store.changelog for store in storage.stores.values()):
        rule = "no store has a changelog or is an adjunct one on disk: a standby follows such"
        remedy = f"set {keys.STORE_CHANGELOG.named('<store>')}, or turn hot standby off"
        raise ConfigError(key, config.get_str(key), rule, remedy)


def _prewarm_warnings(config: Config, task: TaskConfig) -> tuple[str, ...]:
    found = []
    for key in (keys.JOB_HOT_STANDBY_PREWARM, keys.JOB_CONTAINER_PREWARM):
        if not key.read(config):
            continue
        if key is keys.JOB_HOT_STANDBY_PREWARM and not StandbyConfig.of(config).enabled:
            found.append(f"{key.name} has no effect: hot standby is off")
        elif not task.has_pipeline:
            found.append(f"{key.name} has no effect: without a pipeline no Spark is started")
    return tuple(found)


def _check_prewarmed_standbys(config: Config, task: TaskConfig) -> None:
    key, enabled = keys.JOB_HOT_STANDBY_PREWARM, StandbyConfig.of(config).enabled
    if not key.read(config) or not enabled or not task.has_pipeline:
        return
    if not fits_warm_spare(task.memory):
        container_mb = keys.CONTAINER_MEMORY_MB.read(config)
        raise key.error(
            "true",
            f"a standby and a spare with a Spark need {STANDBY_MB + WARM_SPARE_MB} MB of Python's "
            f"share, which is {task.memory.python_mb} of {container_mb} MB",
            f"set {keys.CONTAINER_MEMORY_MB.name} to 1280 or more, or "
            f"{keys.TASK_SPARK_DRIVER_MEMORY_MB.name} lower",
        )


def _check_prewarmed_containers(config: Config, task: TaskConfig) -> None:
    key, container_mb = keys.JOB_CONTAINER_PREWARM, keys.CONTAINER_MEMORY_MB.read(config)
    if not task.memory.warm_spare_mb or not task.memory.is_tight(container_mb):
        return
    heap_mb = keys.TASK_SPARK_DRIVER_MEMORY_MB.find(config)
    remedy = f"set {keys.CONTAINER_MEMORY_MB.name} to {least_with_warm_spare(heap_mb)} or more"
    if heap_mb is not None:
        remedy += f", or {keys.TASK_SPARK_DRIVER_MEMORY_MB.name} lower"
    raise key.error(
        "true",
        f"a spare with a Spark of its own needs {task.memory.warm_spare_mb} MB beside each "
        f"container, which leaves Python {task.memory.python_mb} of {container_mb} MB, less than a "
        "quarter",
        f"{remedy}, or leave the key out",
    )


def _memory_warnings(config: Config, task: TaskConfig) -> tuple[str, ...]:
    key = keys.CONTAINER_MEMORY_MB.name
    container_mb, memory = keys.CONTAINER_MEMORY_MB.read(config), task.memory
    if not memory.is_tight(container_mb):
        return ()
    warning = (
        f"{key} = {container_mb} leaves Python {memory.python_mb} MB beside a heap of "
        f"{memory.heap_mb}: YARN may kill containers for their memory"
    )
    return (warning,)


def _check_sizes(config: Config) -> None:
    manager = ClusterManagerConfig.of(config)
    heap_mb = keys.TASK_SPARK_DRIVER_MEMORY_MB.find(config)
    if heap_mb is not None and heap_mb >= manager.container_memory_mb:
        rule = f"it must be below {keys.CONTAINER_MEMORY_MB.name} ({manager.container_memory_mb})"
        remedy = "make it smaller, or the container larger"
        raise keys.TASK_SPARK_DRIVER_MEMORY_MB.error(heap_mb, rule, remedy)
    if manager.check_in_interval_ms >= manager.lease_ms:
        rule = f"it must be below {keys.CONTAINER_LEASE_MS.name} ({manager.lease_ms})"
        remedy = "make it smaller"
        raise keys.CONTAINER_CHECK_IN_INTERVAL_MS.error(manager.check_in_interval_ms, rule, remedy)


def store_warnings(config: Config, storage: StorageConfig) -> Iterator[str]:
    """Yield a line for each key of a store that has no effect."""
    for store in storage.stores.values():
        prefix = f"stores.{store.name}."
        for option in config.subset(prefix):
            reason = _reason(store, option)
            if reason is not None:
                yield f"{prefix}{option} has no effect: {reason}"


def _reason(store: StoreConfig, option: str) -> str | None:
    of_rocksdb = option.startswith("rocksdb.") or option == _WRITE_BUFFER
    if not store.is_persistent and (of_rocksdb or option == _CLEAN):
        return "the store is in memory"
    if of_rocksdb and store.factory != ROCKSDB:
        return f"the store's factory is {store.factory}"
    if option.startswith("rocksdb.compaction.universal.") and store.rocksdb.universal is None:
        return "the store's rocksdb.compaction.style is level"
    if option == _LARGE and store.large_values is LargeValues.SEND:
        return "neither disallow.large.messages nor drop.large.messages is true"
    if option.startswith("changelog.") and store.changelog is None and option != _LARGE:
        return "the store has no changelog"
    return None


def _option(name: str) -> str:
    return name.removeprefix("stores.<store>.")


_WRITE_BUFFER = _option(keys.STORE_CONTAINER_WRITE_BUFFER_SIZE_BYTES.name)
_CLEAN = _option(keys.STORE_CLEAN_ON_CONTAINER_START.name)
_LARGE = _option(keys.STORE_CHANGELOG_MAX_MESSAGE_SIZE_BYTES.name)
