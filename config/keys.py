"""Every configuration key once: name, type, default, unit, meaning and source.

Keys of the cluster manager and of YARN stand in ``cluster_keys`` and are offered here too.

``ALL`` lists every key; validation and the reference table go over it.
"""

from __future__ import annotations

from homeport.config.cluster_keys import *  # noqa: F403 - its keys are keys of this module too
from homeport.config.cluster_keys import OWN, SAMZA
from homeport.config.key_types import BoolKey, IntKey, Key, ListKey, TextKey

# ---------------------------------------------------------------------------------------------- job

JOB_NAME = TextKey(name="job.name", meaning="name of the job; required", source=SAMZA)
JOB_ID = TextKey(name="job.id", default="1", meaning="tells jobs of one name apart", source=SAMZA)
JOB_DEFAULT_SYSTEM = TextKey(
    name="job.default.system", meaning="system of streams that name none", source=SAMZA
)
JOB_COORDINATOR_SYSTEM = TextKey(
    name="job.coordinator.system",
    meaning="system of the coordinator stream; default job.default.system",
    source="COORD",
)
JOB_COORDINATOR_REPLICATION_FACTOR = IntKey(
    name="job.coordinator.replication.factor",
    minimum=1,
    meaning="replicas of the coordinator stream; default the system's, else 3",
    source=SAMZA,
)
JOB_COORDINATOR_SEGMENT_BYTES = IntKey(
    name="job.coordinator.segment.bytes",
    minimum=14,
    unit="bytes",
    meaning="segment size of the coordinator stream; default the system's, else 26214400",
    source=SAMZA,
)
JOB_COORDINATOR_CATCH_UP_INTERVAL_MS = IntKey(
    name="job.coordinator.catch-up.interval.ms",
    default=1000,
    minimum=1,
    unit="ms",
    meaning="how often the driver reads new records of the coordinator stream",
    source=OWN,
)
JOB_COORDINATOR_ISOLATION_MAX_MS = IntKey(
    name="job.coordinator.isolation.max.ms",
    default=30000,
    minimum=1,
    unit="ms",
    meaning="how long leases are renewed without an answer from the coordinator stream",
    source=OWN,
)
JOB_CHANGELOG_SYSTEM = TextKey(
    name="job.changelog.system",
    meaning="system of changelogs that name none; default job.default.system",
    source=SAMZA,
)
JOB_CONTAINER_COUNT = IntKey(
    name="job.container.count",
    default=1,
    minimum=1,
    meaning="number of containers",
    source=SAMZA,
    legacy=("yarn.container.count",),
)
JOB_HOST_AFFINITY_ENABLED = BoolKey(
    name="job.host-affinity.enabled",
    default=False,
    meaning="containers come back to the host that has their state",
    source="HA-YARN",
    legacy=("yarn.samza.host-affinity.enabled",),
)
JOB_SSP_GROUPER_FACTORY = TextKey(
    name="job.systemstreampartition.grouper.factory",
    default="group-by-partition",
    meaning="how partitions become tasks",
    source="COORD",
)
JOB_LOGGED_STORE_BASE_DIR = TextKey(
    name="job.logged.store.base.dir",
    meaning="root of the state directories where LOGGED_STORE_BASE_DIR is not set",
    source=SAMZA,
)
JOB_HISTORY_DIR = TextKey(
    name="job.history.dir",
    meaning="folder of the history files; default .history below the job's state directory",
    source=OWN,
)
JOB_HOT_STANDBY_ENABLED = BoolKey(
    name="job.hotstandby.enabled",
    default=False,
    meaning="standby containers follow the changelogs of the active ones",
    source="STANDBY",
)
JOB_HOT_STANDBY_REPLICATION_COUNT = IntKey(
    name="job.hotstandby.replicationcount",
    default=1,
    minimum=1,
    meaning="standby containers per active one",
    source="STANDBY",
)
JOB_HOT_STANDBY_PREWARM = BoolKey(
    name="job.hotstandby.prewarm", default=False, meaning="standbys prepare a start", source=OWN
)
JOB_STANDBY_TASKS_REPLICATION_FACTOR = IntKey(
    name="job.standbytasks.replication.factor",
    minimum=1,
    meaning="job.hotstandby.replicationcount + 1, in Samza's words",
    source=SAMZA,
)

# --------------------------------------------------------------------------------------------- task

TASK_CLASS = TextKey(name="task.class", meaning="task class, module:Class", source=SAMZA)
TASK_PIPELINE_CLASS = TextKey(
    name="task.pipeline.class", meaning="pipeline function, module:function", source=OWN
)
TASK_PIPELINE_UNORDERED = BoolKey(
    name="task.pipeline.unordered",
    default=False,
    meaning="the pipeline drops the column offset; the task gets rows in any order",
    source=OWN,
)
TASK_INPUTS = ListKey(
    name="task.inputs", meaning="input streams, system.stream, separated by commas", source=SAMZA
)
TASK_BROADCAST_INPUTS = ListKey(
    name="task.broadcast.inputs",
    meaning="partitions that every task reads, system.stream#0 or system.stream#[0-3]",
    source=SAMZA,
)
TASK_NAME_GROUPER_FACTORY = TextKey(
    name="task.name.grouper.factory",
    default="group-by-container-count",
    meaning="how tasks are dealt to containers",
    source=SAMZA,
)
TASK_COMMIT_MS = IntKey(
    name="task.commit.ms",
    default=10000,
    minimum=1,
    unit="ms",
    meaning="time between commits: stores flushed, OFFSET files written",
    source=SAMZA,
)
TASK_TRANSACTION_MS = IntKey(
    name="task.transaction.ms",
    default=1000,
    minimum=1,
    unit="ms",
    meaning="time between transactions: outputs, changelog and checkpoint become visible",
    source=OWN,
)
TASK_TRANSACTION_MAX_BYTES = IntKey(
    name="task.transaction.max.bytes",
    default=33554432,
    minimum=1,
    unit="bytes",
    meaning="a transaction with this much input or output ends early",
    source=OWN,
)
TASK_SHUTDOWN_MS = IntKey(
    name="task.shutdown.ms",
    default=30000,
    unit="ms",
    meaning="time that a container has to stop in order",
    source=SAMZA,
)
TASK_HANG_MS = IntKey(
    name="task.hang.ms",
    default=300000,
    minimum=1,
    unit="ms",
    meaning="a container without progress for this long is killed",
    source=OWN,
)
TASK_EXACTLY_ONCE = BoolKey(
    name="task.exactly.once",
    default=True,
    meaning="outputs are part of the transaction; false: they leave at once and may repeat",
    source=OWN,
)
TASK_DROP_DESERIALIZATION_ERRORS = BoolKey(
    name="task.drop.deserialization.errors",
    default=False,
    meaning="input records that cannot be read are skipped instead of failing the container",
    source=SAMZA,
)
TASK_DEAD_LETTER_STREAM = TextKey(
    name="task.dead.letter.stream",
    meaning="where records that are skipped go, system.stream; default: nowhere",
    source=OWN,
)
TASK_WINDOW_MS = IntKey(
    name="task.window.ms",
    default=-1,
    minimum=-1,
    unit="ms",
    meaning="time between the calls of a StreamTask's window; -1: it is never called",
    source=SAMZA,
)
TASK_IGNORED_EXCEPTIONS = ListKey(
    name="task.ignored.exceptions",
    meaning="exceptions of a StreamTask that are counted and skipped, class names or *",
    source=SAMZA,
)
TASK_CHECKPOINT_FACTORY = TextKey(
    name="task.checkpoint.factory",
    default="kafka",
    meaning="where checkpoints are kept; none: nowhere",
    source=SAMZA,
)
TASK_CHECKPOINT_SYSTEM = TextKey(
    name="task.checkpoint.system",
    meaning="system of the checkpoint topic; default job.default.system",
    source=SAMZA,
)
TASK_CHECKPOINT_REPLICATION_FACTOR = IntKey(
    name="task.checkpoint.replication.factor",
    minimum=1,
    meaning="replicas of the checkpoint topic; default the system's, else 3",
    source=SAMZA,
)
TASK_CHECKPOINT_SEGMENT_BYTES = IntKey(
    name="task.checkpoint.segment.bytes",
    default=26214400,
    minimum=14,
    unit="bytes",
    meaning="segment size of the checkpoint topic",
    source=SAMZA,
)
TASK_CHECKPOINT_MAX_MESSAGE_BYTES = IntKey(
    name="task.checkpoint.max.message.bytes",
    default=1000012,
    minimum=1,
    unit="bytes",
    meaning="largest checkpoint",
    source=SAMZA,
)
TASK_SPARK_CONF = TextKey(
    name="task.spark.conf.<property>", meaning="a property of the local Spark", source=OWN
)
TASK_SPARK_DRIVER_MEMORY_MB = IntKey(
    name="task.spark.driver.memory.mb",
    minimum=1,
    unit="MB",
    meaning="heap of the local Spark; default by the memory rule",
    source=OWN,
)

# ------------------------------------------------------------------------------------------ systems

SYSTEM_FACTORY = TextKey(
    name="systems.<system>.samza.factory",
    default="kafka",
    meaning="kind of the system",
    source=SAMZA,
)
SYSTEM_CONSUMER = TextKey(
    name="systems.<system>.consumer.<property>",
    meaning="a property of the Kafka consumer, in Java's or librdkafka's words",
    source=SAMZA,
)
SYSTEM_PRODUCER = TextKey(
    name="systems.<system>.producer.<property>",
    meaning="a property of the Kafka producer, in Java's or librdkafka's words",
    source=SAMZA,
)
SYSTEM_REPLICATION_FACTOR = IntKey(
    name="systems.<system>.default.stream.replication.factor",
    minimum=1,
    meaning="replicas of topics that say nothing else",
    source=SAMZA,
)
SYSTEM_SEGMENT_BYTES = IntKey(
    name="systems.<system>.default.stream.segment.bytes",
    minimum=14,
    unit="bytes",
    meaning="segment size of topics that say nothing else",
    source=SAMZA,
)
SYSTEM_MAX_MESSAGE_BYTES = IntKey(
    name="systems.<system>.default.stream.max.message.bytes",
    minimum=1,
    unit="bytes",
    meaning="largest record of topics that say nothing else",
    source=SAMZA,
)
OFFSET_DEFAULTS = ("upcoming", "oldest")
SYSTEM_OFFSET_DEFAULT = TextKey(
    name="systems.<system>.samza.offset.default",
    default="upcoming",
    choices=OFFSET_DEFAULTS,
    meaning="where a task without a checkpoint begins",
    source=SAMZA,
)
SYSTEM_KEY_SERDE = TextKey(
    name="systems.<system>.samza.key.serde", meaning="serde of keys", source=SAMZA
)
SYSTEM_MSG_SERDE = TextKey(
    name="systems.<system>.samza.msg.serde", meaning="serde of values", source=SAMZA
)
STREAM_OFFSET_DEFAULT = TextKey(
    name="systems.<system>.streams.<stream>.samza.offset.default",
    choices=OFFSET_DEFAULTS,
    meaning="the same, for one stream",
    source=SAMZA,
)
STREAM_KEY_SERDE = TextKey(
    name="systems.<system>.streams.<stream>.samza.key.serde",
    meaning="serde of one stream's keys",
    source=SAMZA,
)
STREAM_MSG_SERDE = TextKey(
    name="systems.<system>.streams.<stream>.samza.msg.serde",
    meaning="serde of one stream's values",
    source=SAMZA,
)
SERIALIZERS_REGISTRY_CLASS = TextKey(
    name="serializers.registry.<name>.class",
    meaning="class of a serde; string, json, bytes, integer, long and double need no entry",
    source=SAMZA,
)

# ------------------------------------------------------------------------------------------- stores

STORES_DEFAULT_CHANGELOG_REPLICATION_FACTOR = IntKey(
    name="stores.default.changelog.replication.factor",
    minimum=1,
    meaning="replicas of changelogs that say nothing else",
    source=SAMZA,
)
STORE_FACTORY = TextKey(
    name="stores.<store>.factory", meaning="kind of the store; required", source=SAMZA
)
STORE_KEY_SERDE = TextKey(
    name="stores.<store>.key.serde", meaning="serde of keys; required", source=SAMZA
)
STORE_MSG_SERDE = TextKey(
    name="stores.<store>.msg.serde", meaning="serde of values; required", source=SAMZA
)
STORE_CHANGELOG = TextKey(
    name="stores.<store>.changelog",
    meaning="changelog topic, system.stream or stream; without it the state is not recovered",
    source=SAMZA,
)
STORE_CHANGELOG_REPLICATION_FACTOR = IntKey(
    name="stores.<store>.changelog.replication.factor",
    minimum=1,
    meaning="replicas of the changelog; default that of all stores, the system's, else 2",
    source=SAMZA,
)
STORE_CHANGELOG_MAX_MESSAGE_BYTES = IntKey(
    name="stores.<store>.changelog.max.message.bytes",
    minimum=1,
    unit="bytes",
    meaning="largest record of the changelog; default the system's, else 1000012",
    source=SAMZA,
)
STORE_CHANGELOG_DELETE_RETENTION_MS = IntKey(
    name="stores.<store>.changelog.delete.retention.ms",
    default=86400000,
    unit="ms",
    meaning="how long the changelog keeps deletions",
    source=SAMZA,
)
STORE_CHANGELOG_MIN_COMPACTION_LAG_MS = IntKey(
    name="stores.<store>.changelog.min.compaction.lag.ms",
    unit="ms",
    meaning="age below which the changelog is not compacted",
    source=SAMZA,
)
STORE_CHANGELOG_KAFKA = TextKey(
    name="stores.<store>.changelog.kafka.<property>",
    meaning="a topic property of the changelog; wins over all of the above",
    source=SAMZA,
)

ALL: tuple[Key, ...] = tuple(k for k in list(globals().values()) if isinstance(k, Key))
"""Every key, those of the cluster first."""
