"""Typed view of RocksDB's options of one store."""

from __future__ import annotations

from dataclasses import dataclass

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys

_SHORTEST_TTL_MS = 1000


@dataclass(frozen=True, kw_only=True)
class UniversalCompaction:
    """What holds with the style ``universal``; percents, and numbers of files."""

    size_ratio: int
    min_merge_width: int
    max_merge_width: int
    max_size_amplification_percent: int
    compression_size_percent: int


@dataclass(frozen=True, kw_only=True)
class RocksDbConfig:
    """Options; None: RocksDB's own. ``universal``: None with another style.

    ``ttl_ms``: None: nothing expires. ``write_buffer_bytes``: of all write buffers that the tasks
    of one container have of this store, at most; None: what the container's budget gives.
    """

    ttl_ms: int | None
    compression: str
    write_buffer_bytes: int | None
    write_buffers: int
    block_size_bytes: int
    log_file_bytes: int
    log_files: int
    obsolete_files_period_us: int
    open_files: int
    file_opening_threads: int
    manifest_bytes: int
    background_jobs: int | None
    levels: int | None
    level0_trigger: int | None
    target_file_bytes: int | None
    target_file_multiplier: int | None
    universal: UniversalCompaction | None

    @staticmethod
    def of(config: Config, store: str) -> RocksDbConfig:
        """Return the view of the store named ``store``."""
        manifest_bytes = keys.ROCKSDB_MAX_MANIFEST_FILE_SIZE.find(config, store)
        return RocksDbConfig(
            ttl_ms=_ttl_ms(config, store),
            compression=keys.ROCKSDB_COMPRESSION.read(config, store) or "",
            write_buffer_bytes=keys.STORE_CONTAINER_WRITE_BUFFER_SIZE_BYTES.find(config, store),
            write_buffers=keys.ROCKSDB_NUM_WRITE_BUFFERS.read(config, store),
            block_size_bytes=keys.ROCKSDB_BLOCK_SIZE_BYTES.read(config, store),
            log_file_bytes=keys.ROCKSDB_MAX_LOG_FILE_SIZE_BYTES.read(config, store),
            log_files=keys.ROCKSDB_KEEP_LOG_FILE_NUM.read(config, store),
            obsolete_files_period_us=keys.ROCKSDB_DELETE_OBSOLETE_FILES_PERIOD_MICROS.read(
                config, store
            ),
            open_files=keys.ROCKSDB_MAX_OPEN_FILES.read(config, store),
            file_opening_threads=keys.ROCKSDB_MAX_FILE_OPENING_THREADS.read(config, store),
            manifest_bytes=manifest_bytes
            or keys.STORES_DEFAULT_MAX_MANIFEST_FILE_SIZE.read(config),
            background_jobs=keys.ROCKSDB_MAX_BACKGROUND_JOBS.find(config, store),
            levels=keys.ROCKSDB_NUM_LEVELS.find(config, store),
            level0_trigger=keys.ROCKSDB_LEVEL0_TRIGGER.find(config, store),
            target_file_bytes=keys.ROCKSDB_TARGET_FILE_SIZE_BASE.find(config, store),
            target_file_multiplier=keys.ROCKSDB_TARGET_FILE_SIZE_MULTIPLIER.find(config, store),
            universal=_universal(config, store),
        )


def _ttl_ms(config: Config, store: str) -> int | None:
    # As in Samza 1.8: below 1000 is raised to it, negative is none.
    ttl_ms = keys.ROCKSDB_TTL_MS.find(config, store)
    return None if ttl_ms is None or ttl_ms < 0 else max(_SHORTEST_TTL_MS, ttl_ms)


def _universal(config: Config, store: str) -> UniversalCompaction | None:
    if keys.ROCKSDB_COMPACTION_STYLE.read(config, store) != "universal":
        return None
    return UniversalCompaction(
        size_ratio=keys.ROCKSDB_UNIVERSAL_SIZE_RATIO.read(config, store),
        min_merge_width=keys.ROCKSDB_UNIVERSAL_MIN_MERGE_WIDTH.read(config, store),
        max_merge_width=keys.ROCKSDB_UNIVERSAL_MAX_MERGE_WIDTH.read(config, store),
        max_size_amplification_percent=(
            keys.ROCKSDB_UNIVERSAL_MAX_SIZE_AMPLIFICATION_PERCENT.read(config, store)
        ),
        compression_size_percent=(
            keys.ROCKSDB_UNIVERSAL_COMPRESSION_SIZE_PERCENT.read(config, store)
        ),
    )
