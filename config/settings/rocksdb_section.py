"""Typed view of RocksDB's options of one store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import values_of

_SHORTEST_TTL_MS = 1000


@dataclass(frozen=True, kw_only=True)
class UniversalCompaction:
    """What holds with the style ``universal``; percents, and numbers of files."""

    size_ratio: Annotated[int, keys.ROCKSDB_UNIVERSAL_SIZE_RATIO]
    min_merge_width: Annotated[int, keys.ROCKSDB_UNIVERSAL_MIN_MERGE_WIDTH]
    max_merge_width: Annotated[int, keys.ROCKSDB_UNIVERSAL_MAX_MERGE_WIDTH]
    max_size_amplification_percent: Annotated[
        int, keys.ROCKSDB_UNIVERSAL_MAX_SIZE_AMPLIFICATION_PERCENT
    ]
    compression_size_percent: Annotated[int, keys.ROCKSDB_UNIVERSAL_COMPRESSION_SIZE_PERCENT]


@dataclass(frozen=True, kw_only=True)
class RocksDbConfig:
    """Options; None: RocksDB's own. ``universal`` is None with another style.

    ``ttl_ms`` None: nothing expires. ``write_buffer_bytes``: the most that all write buffers of
    this store take in one container; None: what the container's budget gives.
    """

    ttl_ms: int | None
    compression: Annotated[str, keys.ROCKSDB_COMPRESSION]
    write_buffer_bytes: Annotated[int | None, keys.STORE_CONTAINER_WRITE_BUFFER_SIZE_BYTES]
    write_buffers: Annotated[int, keys.ROCKSDB_NUM_WRITE_BUFFERS]
    block_size_bytes: Annotated[int, keys.ROCKSDB_BLOCK_SIZE_BYTES]
    log_file_bytes: Annotated[int, keys.ROCKSDB_MAX_LOG_FILE_SIZE_BYTES]
    log_files: Annotated[int, keys.ROCKSDB_KEEP_LOG_FILE_NUM]
    obsolete_files_period_us: Annotated[int, keys.ROCKSDB_DELETE_OBSOLETE_FILES_PERIOD_MICROS]
    open_files: Annotated[int, keys.ROCKSDB_MAX_OPEN_FILES]
    file_opening_threads: Annotated[int, keys.ROCKSDB_MAX_FILE_OPENING_THREADS]
    manifest_bytes: int
    background_jobs: Annotated[int | None, keys.ROCKSDB_MAX_BACKGROUND_JOBS]
    levels: Annotated[int | None, keys.ROCKSDB_NUM_LEVELS]
    level0_trigger: Annotated[int | None, keys.ROCKSDB_LEVEL0_TRIGGER]
    target_file_bytes: Annotated[int | None, keys.ROCKSDB_TARGET_FILE_SIZE_BASE]
    target_file_multiplier: Annotated[int | None, keys.ROCKSDB_TARGET_FILE_SIZE_MULTIPLIER]
    universal: UniversalCompaction | None

    @staticmethod
    def of(config: Config, store: str) -> RocksDbConfig:
        """Return the view of the store named ``store``."""
        manifest_bytes = keys.ROCKSDB_MAX_MANIFEST_FILE_SIZE.find(config, store)
        return RocksDbConfig(
            ttl_ms=_ttl_ms(config, store),
            manifest_bytes=manifest_bytes
            or keys.STORES_DEFAULT_MAX_MANIFEST_FILE_SIZE.read(config),
            universal=_universal(config, store),
            **values_of(RocksDbConfig, config, store),
        )


def _ttl_ms(config: Config, store: str) -> int | None:
    # As in Samza 1.8: below 1000 is raised to it, negative is none.
    ttl_ms = keys.ROCKSDB_TTL_MS.find(config, store)
    return None if ttl_ms is None or ttl_ms < 0 else max(_SHORTEST_TTL_MS, ttl_ms)


def _universal(config: Config, store: str) -> UniversalCompaction | None:
    if keys.ROCKSDB_COMPACTION_STYLE.read(config, store) != "universal":
        return None
    return UniversalCompaction(**values_of(UniversalCompaction, config, store))
