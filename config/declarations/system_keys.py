"""Configuration keys of systems, their streams and serdes; ``keys`` offers them with all others."""

from homeport.config.config import INT_MAX
from homeport.config.declarations.key_types import (
    REPLICAS_MAX,
    BoolKey,
    ClassKey,
    IntKey,
    ListKey,
    Liveness,
    OwnTextKey,
    Reach,
    TextKey,
)
from homeport.config.java_names import Kind, all_names

BROKERS_VARIABLE = "HOMEPORT_BOOTSTRAP_SERVERS"
"""Names the brokers of ``job.default.system`` where no key does; ``homeport local env`` sets it."""
SYSTEM_FACTORY = ClassKey(
    "systems.<system>.samza.factory",
    "kind of the system",
    default="kafka",
    what=Kind.SYSTEM.value,
    known=all_names(Kind.SYSTEM),
    otherwise="write kafka, or take the system's keys and streams out of the job: a job reads and "
    "writes Kafka alone",
)
SYSTEM_CONSUMER = TextKey(
    "systems.<system>.consumer.<property>",
    "a property of the Kafka consumer, in Java's or librdkafka's words",
    liveness=Liveness.RESTARTS_CONTAINERS,
    reach=Reach.PLACE,
)
SYSTEM_PRODUCER = TextKey(
    "systems.<system>.producer.<property>",
    "a property of the Kafka producer, in Java's or librdkafka's words",
    liveness=Liveness.RESTARTS_CONTAINERS,
    reach=Reach.PLACE,
)
SYSTEM_REPLICATION_FACTOR = IntKey(
    "systems.<system>.default.stream.replication.factor",
    "replicas of topics that say nothing else",
    maximum=REPLICAS_MAX,
)
SYSTEM_SEGMENT_BYTES = IntKey(
    "systems.<system>.default.stream.segment.bytes",
    "segment size of topics that say nothing else",
    minimum=14,
)
SYSTEM_MAX_MESSAGE_BYTES = IntKey(
    "systems.<system>.default.stream.max.message.bytes",
    "largest record of topics that say nothing else",
)
OFFSET_DEFAULTS = ("upcoming", "oldest")
SYSTEM_OFFSET_DEFAULT = TextKey(
    "systems.<system>.samza.offset.default",
    "where a task without a checkpoint begins",
    default="upcoming",
    choices=OFFSET_DEFAULTS,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
LOST_INPUT = ("fail", "earliest", "latest")
SYSTEM_LOST_INPUT = OwnTextKey(
    "systems.<system>.input.lost",
    "what a task does where Kafka has deleted records that it has not read: fail, or go on at the "
    "earliest or behind the latest record",
    default="fail",
    choices=LOST_INPUT,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
SYSTEM_KEY_SERDE = TextKey(
    "systems.<system>.samza.key.serde",
    "serde of keys",
    liveness=Liveness.RESTARTS_CONTAINERS,
    reach=Reach.CLASS,
)
SYSTEM_MSG_SERDE = TextKey(
    "systems.<system>.samza.msg.serde",
    "serde of values",
    liveness=Liveness.RESTARTS_CONTAINERS,
    reach=Reach.CLASS,
)
STREAM_OFFSET_DEFAULT = TextKey(
    "systems.<system>.streams.<stream>.samza.offset.default",
    "the same, for one stream",
    choices=OFFSET_DEFAULTS,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
STREAM_START_TIME = OwnTextKey(
    "systems.<system>.streams.<stream>.start.time",
    "a task without a checkpoint begins at the first record of this time or later, not at "
    "samza.offset.default: ms since 1970, or ISO 8601 with a time zone",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
STREAM_RESET_OFFSET = BoolKey(
    "systems.<system>.streams.<stream>.samza.reset.offset",
    "each start of a container ignores the checkpoint and begins as without one",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
STREAM_BOOTSTRAP = BoolKey(
    "systems.<system>.streams.<stream>.samza.bootstrap",
    "each start reads the stream to its end before any other, and later before all others; that "
    "of an adjunct store holds only the tasks that read the store",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
STREAM_PRIORITY = IntKey(
    "systems.<system>.streams.<stream>.samza.priority",
    "while streams of a higher priority have records, the others wait; -1 is 0",
    default=0,
    minimum=-1,
    maximum=INT_MAX - 1,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
STREAM_LOST_INPUT = OwnTextKey(
    "systems.<system>.streams.<stream>.input.lost",
    "systems.<system>.input.lost, for one stream",
    choices=LOST_INPUT,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
STREAM_KEY_SERDE = TextKey(
    "systems.<system>.streams.<stream>.samza.key.serde",
    "serde of one stream's keys",
    liveness=Liveness.RESTARTS_CONTAINERS,
    reach=Reach.CLASS,
)
STREAM_MSG_SERDE = TextKey(
    "systems.<system>.streams.<stream>.samza.msg.serde",
    "serde of one stream's values",
    liveness=Liveness.RESTARTS_CONTAINERS,
    reach=Reach.CLASS,
)
SERIALIZERS_REGISTRY_CLASS = TextKey(
    "serializers.registry.<name>.class",
    "class of a serde: Samza's, module:Class of the job's own, json with a schema, avro or "
    "protobuf; string, json, bytes, integer, long and double need no entry",
    reach=Reach.CLASS,
)
SERIALIZERS_REGISTRY_SCHEMA = OwnTextKey(
    "serializers.registry.<name>.schema",
    "schema of a json serde, as DDL (carrier STRING, delay INT), or of an avro serde, as JSON in "
    "one line; a BatchTask and a pipeline get values with a schema as columns; a store's "
    "values may get one that reads the older ones",
)
SERIALIZERS_REGISTRY_SCHEMA_FILE = OwnTextKey(
    "serializers.registry.<name>.schema.file",
    "file with that schema, in the job's package; of a protobuf serde, its descriptor set (protoc "
    "--include_imports --descriptor_set_out)",
    reach=Reach.CODE,
)
SERIALIZERS_REGISTRY_MESSAGE = OwnTextKey(
    "serializers.registry.<name>.message", "full name of a protobuf serde's message"
)
SERIALIZERS_REGISTRY_URL = OwnTextKey(
    "serializers.registry.<name>.schema.registry.url",
    "address of a Confluent Schema Registry: values have its wire format, and the schemas that "
    "they were written by are its",
    reach=Reach.CODE,
)
SERIALIZERS_REGISTRY_PROPERTY = OwnTextKey(
    "serializers.registry.<name>.schema.registry.<property>",
    "a property of confluent-kafka's client of the registry, such as basic.auth.user.info",
    reach=Reach.CODE,
)


METRICS_REPORTERS = ListKey(
    "metrics.reporters", "names of reporters, each with its keys below metrics.reporter.<reporter>"
)
METRICS_REPORTER_CLASS = TextKey(
    "metrics.reporter.<reporter>.class",
    "org.apache.samza.metrics.reporter.MetricsSnapshotReporterFactory; a JmxReporterFactory is "
    "taken and does nothing",
)
METRICS_REPORTER_STREAM = TextKey(
    "metrics.reporter.<reporter>.stream",
    "where a snapshot reporter sends its snapshots, as system.stream",
)
METRICS_REPORTER_INTERVAL = IntKey(
    "metrics.reporter.<reporter>.interval",
    "how often a snapshot reporter sends",
    default=60,
    maximum=86_400,
    own_unit="s",
)
