"""Configuration keys of stores and their changelogs; ``keys`` offers them with all others."""

from homeport.config.config import LONG_MAX
from homeport.config.declarations.key_types import (
    REPLICAS_MAX,
    BoolKey,
    IntKey,
    Liveness,
    Reach,
    TextKey,
)

STORES_DEFAULT_CHANGELOG_REPLICATION_FACTOR = IntKey(
    "stores.default.changelog.replication.factor",
    "replicas of changelogs that say nothing else",
    maximum=REPLICAS_MAX,
)
STORES_DEFAULT_CHANGELOG_MIN_COMPACTION_LAG_MS = IntKey(
    "stores.default.changelog.min.compaction.lag.ms",
    "age below which changelogs that say nothing else are not compacted",
    minimum=0,
    maximum=LONG_MAX,
)
STORE_FACTORY = TextKey(
    "stores.<store>.factory",
    "kind of the store, rocksdb or in-memory; required",
    liveness=Liveness.NEVER_WITH_STATE,
)
STORE_KEY_SERDE = TextKey(
    "stores.<store>.key.serde",
    "serde of keys; required",
    liveness=Liveness.NEVER_WITH_STATE,
    reach=Reach.CLASS,
)
STORE_MSG_SERDE = TextKey(
    "stores.<store>.msg.serde",
    "serde of values; required",
    liveness=Liveness.NEVER_WITH_STATE,
    reach=Reach.CLASS,
)
STORE_CHANGELOG = TextKey(
    "stores.<store>.changelog",
    "changelog topic, system.stream or stream; without it the state is not recovered",
    liveness=Liveness.NEVER_WITH_STATE,
)
STORE_CHANGELOG_REPLICATION_FACTOR = IntKey(
    "stores.<store>.changelog.replication.factor",
    "replicas of the changelog; default that of all stores, the system's, else 2, or 1 where Kafka "
    "has one broker",
    maximum=REPLICAS_MAX,
)
STORE_CHANGELOG_MAX_MESSAGE_BYTES = IntKey(
    "stores.<store>.changelog.max.message.bytes",
    "largest record of the changelog; default the system's, else 1000012",
)
STORE_CHANGELOG_DELETE_RETENTION_MS = IntKey(
    "stores.<store>.changelog.delete.retention.ms",
    "how long the changelog keeps deletions",
    default=86400000,
    minimum=0,
    maximum=LONG_MAX,
)
STORE_CHANGELOG_MIN_COMPACTION_LAG_MS = IntKey(
    "stores.<store>.changelog.min.compaction.lag.ms",
    "age below which the changelog is not compacted",
    minimum=0,
    maximum=LONG_MAX,
)
STORE_CHANGELOG_KAFKA = TextKey(
    "stores.<store>.changelog.kafka.<property>",
    "a topic property of the changelog; wins over all of the above",
)
STORE_CLEAN_ON_CONTAINER_START = BoolKey(
    "stores.<store>.clean.on.container.start",
    "whether each start of a container empties the store and reads all of its changelog",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
STORE_CONTAINER_WRITE_BUFFER_SIZE_BYTES = IntKey(
    "stores.<store>.container.write.buffer.size.bytes",
    "write buffers of the store in one container, at most; default what its budget gives",
    maximum=LONG_MAX,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
STORE_DISALLOW_LARGE_MESSAGES = BoolKey(
    "stores.<store>.disallow.large.messages",
    "whether a put of a value above changelog.max.message.size.bytes is refused",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
STORE_DROP_LARGE_MESSAGES = BoolKey(
    "stores.<store>.drop.large.messages",
    "whether such a put is skipped, with a line in the log",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
STORE_CHANGELOG_MAX_MESSAGE_SIZE_BYTES = IntKey(
    "stores.<store>.changelog.max.message.size.bytes",
    "the largest value for which neither of the two does anything",
    default=1048576,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
