"""Configuration keys of systems, their streams and serdes; ``keys`` offers them with all others."""

from __future__ import annotations

from homeport.config.config import INT_MAX
from homeport.config.declarations.key_types import (
    OWN,
    REPLICAS_MAX,
    BoolKey,
    IntKey,
    Liveness,
    Reach,
    TextKey,
)

SYSTEM_FACTORY = TextKey(
    name="systems.<system>.samza.factory", default="kafka", meaning="kind of the system"
)
SYSTEM_CONSUMER = TextKey(
    name="systems.<system>.consumer.<property>",
    meaning="a property of the Kafka consumer, in Java's or librdkafka's words",
    liveness=Liveness.RESTARTS_CONTAINERS,
    reach=Reach.PLACE,
)
SYSTEM_PRODUCER = TextKey(
    name="systems.<system>.producer.<property>",
    meaning="a property of the Kafka producer, in Java's or librdkafka's words",
    liveness=Liveness.RESTARTS_CONTAINERS,
    reach=Reach.PLACE,
)
SYSTEM_REPLICATION_FACTOR = IntKey(
    name="systems.<system>.default.stream.replication.factor",
    minimum=1,
    maximum=REPLICAS_MAX,
    meaning="replicas of topics that say nothing else",
)
SYSTEM_SEGMENT_BYTES = IntKey(
    name="systems.<system>.default.stream.segment.bytes",
    minimum=14,
    meaning="segment size of topics that say nothing else",
)
SYSTEM_MAX_MESSAGE_BYTES = IntKey(
    name="systems.<system>.default.stream.max.message.bytes",
    minimum=1,
    meaning="largest record of topics that say nothing else",
)
OFFSET_DEFAULTS = ("upcoming", "oldest")
SYSTEM_OFFSET_DEFAULT = TextKey(
    name="systems.<system>.samza.offset.default",
    default="upcoming",
    choices=OFFSET_DEFAULTS,
    meaning="where a task without a checkpoint begins",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
LOST_INPUT = ("fail", "earliest", "latest")
SYSTEM_LOST_INPUT = TextKey(
    name="systems.<system>.input.lost",
    default="fail",
    choices=LOST_INPUT,
    meaning="what a task does where Kafka has deleted records that it has not read: fail, or go on "
    "at the earliest or behind the latest record",
    source=OWN,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
SYSTEM_KEY_SERDE = TextKey(
    name="systems.<system>.samza.key.serde",
    meaning="serde of keys",
    liveness=Liveness.RESTARTS_CONTAINERS,
    reach=Reach.CLASS,
)
SYSTEM_MSG_SERDE = TextKey(
    name="systems.<system>.samza.msg.serde",
    meaning="serde of values",
    liveness=Liveness.RESTARTS_CONTAINERS,
    reach=Reach.CLASS,
)
STREAM_OFFSET_DEFAULT = TextKey(
    name="systems.<system>.streams.<stream>.samza.offset.default",
    choices=OFFSET_DEFAULTS,
    meaning="the same, for one stream",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
STREAM_START_TIME = TextKey(
    name="systems.<system>.streams.<stream>.start.time",
    meaning="a task without a checkpoint begins at the first record of this time or later, not at "
    "samza.offset.default: ms since 1970, or ISO 8601 with a time zone",
    source=OWN,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
STREAM_RESET_OFFSET = BoolKey(
    name="systems.<system>.streams.<stream>.samza.reset.offset",
    default=False,
    meaning="each start of a container ignores the checkpoint and begins as without one",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
STREAM_BOOTSTRAP = BoolKey(
    name="systems.<system>.streams.<stream>.samza.bootstrap",
    default=False,
    meaning="each start reads the stream to its end before any other, and later before all others",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
STREAM_PRIORITY = IntKey(
    name="systems.<system>.streams.<stream>.samza.priority",
    default=0,
    minimum=-1,
    maximum=INT_MAX - 1,
    meaning="while streams of a higher priority have records, the others wait; -1 is 0",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
STREAM_LOST_INPUT = TextKey(
    name="systems.<system>.streams.<stream>.input.lost",
    choices=LOST_INPUT,
    meaning="systems.<system>.input.lost, for one stream",
    source=OWN,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
STREAM_KEY_SERDE = TextKey(
    name="systems.<system>.streams.<stream>.samza.key.serde",
    meaning="serde of one stream's keys",
    liveness=Liveness.RESTARTS_CONTAINERS,
    reach=Reach.CLASS,
)
STREAM_MSG_SERDE = TextKey(
    name="systems.<system>.streams.<stream>.samza.msg.serde",
    meaning="serde of one stream's values",
    liveness=Liveness.RESTARTS_CONTAINERS,
    reach=Reach.CLASS,
)
SERIALIZERS_REGISTRY_CLASS = TextKey(
    name="serializers.registry.<name>.class",
    meaning="class of a serde: Samza's, module:Class of the job's own, json with a schema, avro or "
    "protobuf; string, json, bytes, integer, long and double need no entry",
    reach=Reach.CLASS,
)
SERIALIZERS_REGISTRY_SCHEMA = TextKey(
    name="serializers.registry.<name>.schema",
    meaning="schema of a json serde, as DDL (carrier STRING, delay INT), or of an avro serde, as "
    "JSON in one line; a BatchTask and a pipeline get values with a schema as columns; that of a "
    "store's serde is settled with the state",
    source=OWN,
)
SERIALIZERS_REGISTRY_SCHEMA_FILE = TextKey(
    name="serializers.registry.<name>.schema.file",
    meaning="file with that schema, in the job's package; of a protobuf serde, its descriptor set "
    "(protoc --include_imports --descriptor_set_out)",
    source=OWN,
    reach=Reach.CODE,
)
SERIALIZERS_REGISTRY_MESSAGE = TextKey(
    name="serializers.registry.<name>.message",
    meaning="full name of a protobuf serde's message",
    source=OWN,
)
SERIALIZERS_REGISTRY_URL = TextKey(
    name="serializers.registry.<name>.schema.registry.url",
    meaning="address of a Confluent Schema Registry: values have its wire format, and the schemas "
    "that they were written by are its",
    source=OWN,
    reach=Reach.CODE,
)
SERIALIZERS_REGISTRY_PROPERTY = TextKey(
    name="serializers.registry.<name>.schema.registry.<property>",
    meaning="a property of confluent-kafka's client of the registry, such as basic.auth.user.info",
    source=OWN,
    reach=Reach.CODE,
)
