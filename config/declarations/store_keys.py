"""Configuration keys of stores and their changelogs; ``keys`` offers them with all others."""

from __future__ import annotations

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
    name="stores.default.changelog.replication.factor",
    minimum=1,
    maximum=REPLICAS_MAX,
    meaning="replicas of changelogs that say nothing else",
)
STORES_DEFAULT_CHANGELOG_MIN_COMPACTION_LAG_MS = IntKey(
    name="stores.default.changelog.min.compaction.lag.ms",
    maximum=LONG_MAX,
    meaning="age below which changelogs that say nothing else are not compacted",
)
STORE_FACTORY = TextKey(
    name="stores.<store>.factory",
    meaning="kind of the store, rocksdb or in-memory; required",
    liveness=Liveness.NEVER_WITH_STATE,
)
STORE_KEY_SERDE = TextKey(
    name="stores.<store>.key.serde",
    meaning="serde of keys; required",
    liveness=Liveness.NEVER_WITH_STATE,
    reach=Reach.CLASS,
)
STORE_MSG_SERDE = TextKey(
    name="stores.<store>.msg.serde",
    meaning="serde of values; required",
    liveness=Liveness.NEVER_WITH_STATE,
    reach=Reach.CLASS,
)
STORE_CHANGELOG = TextKey(
    name="stores.<store>.changelog",
    meaning="changelog topic, system.stream or stream; without it the state is not recovered",
    liveness=Liveness.NEVER_WITH_STATE,
)
STORE_CHANGELOG_REPLICATION_FACTOR = IntKey(
    name="stores.<store>.changelog.replication.factor",
    minimum=1,
    maximum=REPLICAS_MAX,
    meaning="replicas of the changelog; default that of all stores, the system's, else 2",
)
STORE_CHANGELOG_MAX_MESSAGE_BYTES = IntKey(
    name="stores.<store>.changelog.max.message.bytes",
    minimum=1,
    meaning="largest record of the changelog; default the system's, else 1000012",
)
STORE_CHANGELOG_DELETE_RETENTION_MS = IntKey(
    name="stores.<store>.changelog.delete.retention.ms",
    default=86400000,
    maximum=LONG_MAX,
    meaning="how long the changelog keeps deletions",
)
STORE_CHANGELOG_MIN_COMPACTION_LAG_MS = IntKey(
    name="stores.<store>.changelog.min.compaction.lag.ms",
    maximum=LONG_MAX,
    meaning="age below which the changelog is not compacted",
)
STORE_CHANGELOG_KAFKA = TextKey(
    name="stores.<store>.changelog.kafka.<property>",
    meaning="a topic property of the changelog; wins over all of the above",
)
STORE_CLEAN_ON_CONTAINER_START = BoolKey(
    name="stores.<store>.clean.on.container.start",
    default=False,
    meaning="whether each start of a container empties the store and reads all of its changelog",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
STORE_CONTAINER_WRITE_BUFFER_SIZE_BYTES = IntKey(
    name="stores.<store>.container.write.buffer.size.bytes",
    minimum=1,
    maximum=LONG_MAX,
    meaning="write buffers of the store in one container, at most; default what its budget gives",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
STORE_DISALLOW_LARGE_MESSAGES = BoolKey(
    name="stores.<store>.disallow.large.messages",
    default=False,
    meaning="whether a put of a value above changelog.max.message.size.bytes is refused",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
STORE_DROP_LARGE_MESSAGES = BoolKey(
    name="stores.<store>.drop.large.messages",
    default=False,
    meaning="whether such a put is skipped, with a line in the log",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
STORE_CHANGELOG_MAX_MESSAGE_SIZE_BYTES = IntKey(
    name="stores.<store>.changelog.max.message.size.bytes",
    default=1048576,
    minimum=1,
    meaning="the largest value for which neither of the two does anything",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
