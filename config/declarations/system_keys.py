"""Configuration keys of systems, their streams and serdes; ``keys`` offers them with all others."""

from __future__ import annotations

from homeport.config.declarations.key_types import (
    OWN,
    REPLICAS_MAX,
    SAMZA,
    IntKey,
    Liveness,
    TextKey,
)

SYSTEM_FACTORY = TextKey(
    name="systems.<system>.samza.factory",
    default="kafka",
    meaning="kind of the system",
    source=SAMZA,
    liveness=Liveness.NEEDS_REDEPLOY,
)
SYSTEM_CONSUMER = TextKey(
    name="systems.<system>.consumer.<property>",
    meaning="a property of the Kafka consumer, in Java's or librdkafka's words",
    source=SAMZA,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
SYSTEM_PRODUCER = TextKey(
    name="systems.<system>.producer.<property>",
    meaning="a property of the Kafka producer, in Java's or librdkafka's words",
    source=SAMZA,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
SYSTEM_REPLICATION_FACTOR = IntKey(
    name="systems.<system>.default.stream.replication.factor",
    minimum=1,
    maximum=REPLICAS_MAX,
    meaning="replicas of topics that say nothing else",
    source=SAMZA,
    liveness=Liveness.NEEDS_REDEPLOY,
)
SYSTEM_SEGMENT_BYTES = IntKey(
    name="systems.<system>.default.stream.segment.bytes",
    minimum=14,
    unit="bytes",
    meaning="segment size of topics that say nothing else",
    source=SAMZA,
    liveness=Liveness.NEEDS_REDEPLOY,
)
SYSTEM_MAX_MESSAGE_BYTES = IntKey(
    name="systems.<system>.default.stream.max.message.bytes",
    minimum=1,
    unit="bytes",
    meaning="largest record of topics that say nothing else",
    source=SAMZA,
    liveness=Liveness.NEEDS_REDEPLOY,
)
OFFSET_DEFAULTS = ("upcoming", "oldest")
SYSTEM_OFFSET_DEFAULT = TextKey(
    name="systems.<system>.samza.offset.default",
    default="upcoming",
    choices=OFFSET_DEFAULTS,
    meaning="where a task without a checkpoint begins",
    source=SAMZA,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
SYSTEM_KEY_SERDE = TextKey(
    name="systems.<system>.samza.key.serde",
    meaning="serde of keys",
    source=SAMZA,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
SYSTEM_MSG_SERDE = TextKey(
    name="systems.<system>.samza.msg.serde",
    meaning="serde of values",
    source=SAMZA,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
STREAM_OFFSET_DEFAULT = TextKey(
    name="systems.<system>.streams.<stream>.samza.offset.default",
    choices=OFFSET_DEFAULTS,
    meaning="the same, for one stream",
    source=SAMZA,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
STREAM_KEY_SERDE = TextKey(
    name="systems.<system>.streams.<stream>.samza.key.serde",
    meaning="serde of one stream's keys",
    source=SAMZA,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
STREAM_MSG_SERDE = TextKey(
    name="systems.<system>.streams.<stream>.samza.msg.serde",
    meaning="serde of one stream's values",
    source=SAMZA,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
SERIALIZERS_REGISTRY_CLASS = TextKey(
    name="serializers.registry.<name>.class",
    meaning="class of a serde: Samza's, module:Class of the job's own, or avro; "
    "string, json, bytes, integer, long and double need no entry",
    source=SAMZA,
    liveness=Liveness.NEEDS_REDEPLOY,
)
SERIALIZERS_REGISTRY_SCHEMA = TextKey(
    name="serializers.registry.<name>.schema",
    meaning="schema of an avro serde, as JSON in one line; values are Avro's binary form, bare",
    source=OWN,
    liveness=Liveness.NEEDS_REDEPLOY,
)
