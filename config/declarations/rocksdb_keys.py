"""Configuration keys of RocksDB's options; ``all_keys`` has them beside all others.

Names are Samza's. A default is RocksDB's own, else Samza's, unless its text explains another.
"""

from homeport.config.config import INT_MAX, LONG_MAX
from homeport.config.declarations.key_types import IntKey, Liveness, TextKey

_THREADS_MAX = 1_000
"""RocksDB starts all of them at once."""
_LEVELS_MAX = 100


def _count(
    option: str, meaning: str, default: int | None = None, minimum: int = 1, maximum: int = INT_MAX
) -> IntKey:
    return IntKey(
        name=f"stores.<store>.rocksdb.{option}",
        default=default,
        minimum=minimum,
        maximum=maximum,
        meaning=meaning,
        liveness=Liveness.RESTARTS_CONTAINERS,
    )


def _bytes(
    option: str, meaning: str, default: int | None = None, maximum: int = LONG_MAX
) -> IntKey:
    return IntKey(
        name=f"stores.<store>.rocksdb.{option}",
        default=default,
        maximum=maximum,
        own_unit="bytes",
        meaning=meaning,
        liveness=Liveness.RESTARTS_CONTAINERS,
    )


ROCKSDB_TTL_MS = IntKey(
    "stores.<store>.rocksdb.ttl.ms",
    "age from which compaction may remove an entry, at least 1000; -1: none is removed",
    minimum=-1,
    maximum=LONG_MAX,
)
ROCKSDB_COMPRESSION = TextKey(
    "stores.<store>.rocksdb.compression",
    "compression of blocks; Samza's default is snappy",
    default="lz4",
    choices=("snappy", "bzip2", "zlib", "lz4", "lz4hc", "zstd", "none"),
    liveness=Liveness.RESTARTS_CONTAINERS,
)
ROCKSDB_COMPACTION_STYLE = TextKey(
    "stores.<store>.rocksdb.compaction.style",
    "how files are merged; Samza's default is universal; fifo would drop entries",
    default="level",
    choices=("level", "universal"),
    liveness=Liveness.RESTARTS_CONTAINERS,
)
ROCKSDB_BLOCK_SIZE_BYTES = _bytes(
    "block.size.bytes", "size of a block before compression", 4096, INT_MAX
)
ROCKSDB_NUM_WRITE_BUFFERS = _count(
    "num.write.buffers", "write buffers of one store at most; Samza's default is 3", 2
)
ROCKSDB_MAX_LOG_FILE_SIZE_BYTES = _bytes(
    "max.log.file.size.bytes", "size of RocksDB's own log; Samza's default is 64 MiB", 8388608
)
ROCKSDB_KEEP_LOG_FILE_NUM = _count(
    "keep.log.file.num", "how many of RocksDB's own logs are kept", 2
)
ROCKSDB_DELETE_OBSOLETE_FILES_PERIOD_MICROS = IntKey(
    "stores.<store>.rocksdb.delete.obsolete.files.period.micros",
    "how often files that nothing needs are looked for",
    default=21600000000,
    minimum=0,
    maximum=LONG_MAX,
    own_unit="us",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
ROCKSDB_MAX_OPEN_FILES = _count("max.open.files", "files held open; -1: all", -1, -1)
ROCKSDB_MAX_FILE_OPENING_THREADS = _count(
    "max.file.opening.threads",
    "threads that open files at the start; fewer of each of very many stores",
    16,
    maximum=_THREADS_MAX,
)
ROCKSDB_MAX_MANIFEST_FILE_SIZE = _bytes(
    "max.manifest.file.size",
    "size from which a new manifest begins; default that of all stores, else 1 GiB",
)
STORES_DEFAULT_MAX_MANIFEST_FILE_SIZE = IntKey(
    "stores-default.rocksdb.max.manifest.file.size.bytes",
    "size from which a new manifest begins, of stores without a size of their own",
    default=1073741824,
    maximum=LONG_MAX,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
ROCKSDB_MAX_BACKGROUND_JOBS = _count(
    "max.background.jobs",
    "flushes and compactions at once; default RocksDB's own",
    maximum=_THREADS_MAX,
)
ROCKSDB_NUM_LEVELS = _count(
    "compaction.num.levels", "levels; default RocksDB's own", maximum=_LEVELS_MAX
)
ROCKSDB_LEVEL0_TRIGGER = _count(
    "compaction.level0.file.num.compaction.trigger",
    "files in level 0 that begin a compaction; default RocksDB's own",
)
ROCKSDB_TARGET_FILE_SIZE_BASE = _bytes(
    "compaction.target.file.size.base", "size of files of level 1; default RocksDB's own"
)
ROCKSDB_TARGET_FILE_SIZE_MULTIPLIER = _count(
    "compaction.target.file.size.multiplier",
    "how many times larger the files of each next level are; default RocksDB's own",
)
ROCKSDB_UNIVERSAL_SIZE_RATIO = _count(
    "compaction.universal.size.ratio",
    "percent by which files merged together may differ in size",
    1,
    0,
)
ROCKSDB_UNIVERSAL_MIN_MERGE_WIDTH = _count(
    "compaction.universal.min.merge.width", "fewest files in one compaction", 2, 2
)
ROCKSDB_UNIVERSAL_MAX_MERGE_WIDTH = _count(
    "compaction.universal.max.merge.width", "most files in one compaction", 2147483647, 2
)
ROCKSDB_UNIVERSAL_MAX_SIZE_AMPLIFICATION_PERCENT = _count(
    "compaction.universal.max.size.amplification.percent",
    "percent of room that all files may take beyond that of their entries",
    200,
)
ROCKSDB_UNIVERSAL_COMPRESSION_SIZE_PERCENT = _count(
    "compaction.universal.compression.size.percent",
    "least percent of the data that is compressed; -1: all",
    -1,
    -1,
)
