"""RocksDB's options, from the words of the configuration to the binding's."""

from __future__ import annotations

from rocksdict import DBCompactionStyle, DBCompressionType, Options, UniversalCompactOptions

from homeport.config.settings.rocksdb_section import RocksDbConfig, UniversalCompaction

_COMPRESSIONS = {
    "snappy": DBCompressionType.snappy,
    "bzip2": DBCompressionType.bz2,
    "zlib": DBCompressionType.zlib,
    "lz4": DBCompressionType.lz4,
    "lz4hc": DBCompressionType.lz4hc,
    "zstd": DBCompressionType.zstd,
    "none": DBCompressionType.none,
}


def compression_type(config: RocksDbConfig) -> DBCompressionType:
    """How the store's files are compressed."""
    return _COMPRESSIONS[config.compression]()


def set_file_options(options: Options, config: RocksDbConfig) -> None:
    """``options`` say how files are written, opened and removed."""
    options.set_compression_type(compression_type(config))
    options.set_keep_log_file_num(config.log_files)
    options.set_max_log_file_size(config.log_file_bytes)
    options.set_delete_obsolete_files_period_micros(config.obsolete_files_period_us)
    options.set_max_open_files(config.open_files)
    options.set_max_file_opening_threads(config.file_opening_threads)
    options.set_max_manifest_file_size(config.manifest_bytes)


def set_compaction_options(options: Options, config: RocksDbConfig) -> None:
    """``options`` say how files are merged; RocksDB's own where the configuration says nothing."""
    for value, set_value in (
        (config.background_jobs, options.set_max_background_jobs),
        (config.levels, options.set_num_levels),
        (config.level0_trigger, options.set_level_zero_file_num_compaction_trigger),
        (config.target_file_bytes, options.set_target_file_size_base),
        (config.target_file_multiplier, options.set_target_file_size_multiplier),
    ):
        if value is not None:
            set_value(value)
    if config.universal is not None:
        options.set_compaction_style(DBCompactionStyle.universal())
        options.set_universal_compaction_options(_universal(config.universal))


def _universal(config: UniversalCompaction) -> UniversalCompactOptions:
    options = UniversalCompactOptions()
    options.size_ratio = config.size_ratio
    options.min_merge_width = config.min_merge_width
    options.max_merge_width = config.max_merge_width
    options.max_size_amplification_percent = config.max_size_amplification_percent
    options.compression_size_percent = config.compression_size_percent
    return options
