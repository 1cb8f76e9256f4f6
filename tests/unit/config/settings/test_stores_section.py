"""Typed views of stores: which of Samza's keys are honoured, refused, reported; their values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.unknown_keys import warnings_about
from homeport.config.errors import ConfigError
from homeport.config.settings.rocksdb_section import RocksDbConfig
from homeport.config.settings.stores_section import LargeValues, StorageConfig, StoreConfig
from homeport.config.settings.validation import store_warnings
from homeport.config.storage_engines import STORAGE_ENGINES, EngineEntry

STORE = {"stores.s.factory": "rocksdb", "stores.s.key.serde": "long", "stores.s.msg.serde": "long"}

LIMIT = "stores.s.changelog.max.message.size.bytes"

HONOURED = """
factory key.serde msg.serde changelog changelog.replication.factor changelog.max.message.bytes
changelog.max.message.size.bytes changelog.delete.retention.ms changelog.min.compaction.lag.ms
changelog.kafka.segment.ms disallow.large.messages drop.large.messages clean.on.container.start
container.write.buffer.size.bytes rocksdb.ttl.ms rocksdb.compression rocksdb.compaction.style
rocksdb.block.size.bytes rocksdb.num.write.buffers rocksdb.max.log.file.size.bytes
rocksdb.keep.log.file.num rocksdb.delete.obsolete.files.period.micros rocksdb.max.open.files
rocksdb.max.file.opening.threads rocksdb.max.manifest.file.size rocksdb.max.background.jobs
rocksdb.compaction.num.levels rocksdb.compaction.level0.file.num.compaction.trigger
rocksdb.compaction.target.file.size.base rocksdb.compaction.target.file.size.multiplier
rocksdb.compaction.universal.size.ratio rocksdb.compaction.universal.min.merge.width
rocksdb.compaction.universal.max.merge.width
rocksdb.compaction.universal.max.size.amplification.percent
rocksdb.compaction.universal.compression.size.percent
side.inputs side.inputs.processor.factory
"""
REFUSED = {
    "accesslog.enabled": "true",
    "backup.factories": "org.apache.samza.storage.blobstore.BlobStoreStateBackendFactory",
    "restore.factories": "org.apache.samza.storage.blobstore.BlobStoreStateBackendFactory",
    "rocksdb.wal.enabled": "true",
    "rocksdb.compaction.style": "fifo",
    "rocksdb.compression": "deflate",
}
TOLD = """
accesslog.sampling.ratio write.batch.size object.cache.size container.cache.size.bytes
rocksdb.compaction.max.background.compactions rocksdb.any.other.option
"""


def _store() -> StoreConfig:
    return StoreConfig.of(Config(STORE), "s")


def _with(option: str, value: str) -> StoreConfig:
    return StoreConfig.of(Config({**STORE, f"stores.s.{option}": value}), "s")


def test_each_key_of_samzas_stores_is_honoured_refused_or_reported() -> None:
    """The reference's table of stores.<s>.* in 5.1: none is passed over in silence."""
    for option in HONOURED.split():
        assert keys.declared(f"stores.s.{option}") is not None, option
        assert warnings_about(Config({f"stores.s.{option}": "1"})) == ()
    for option, value in REFUSED.items():
        config = Config({**STORE, f"stores.s.{option}": value})
        with pytest.raises(ConfigError, match=f"stores.s.{option} = "):
            _ = warnings_about(config), StorageConfig.of(config)
    for option in TOLD.split():
        (stated,) = warnings_about(Config({f"stores.s.{option}": "1"}))
        assert stated.startswith(f"stores.s.{option} is known to Samza and has no effect here: ")


def test_a_key_with_the_only_supported_value_is_no_warning() -> None:
    """Samza's default, written out."""
    value = "org.apache.samza.storage.KafkaChangelogStateBackendFactory"
    assert warnings_about(Config({"stores.backup.factories": value})) == ()


@pytest.mark.parametrize(
    ("more", "is_persistent", "is_kept"),
    [
        ({"changelog": "k.log"}, True, True),
        ({}, True, False),
        ({"changelog": "k.log", "clean.on.container.start": "true"}, True, False),
        ({"changelog": "k.log", "factory": "in-memory"}, False, False),
    ],
)
def test_which_stores_are_kept_from_start_to_start(
    more: dict[str, str], *, is_persistent: bool, is_kept: bool
) -> None:
    """Those on the disk, with a changelog, that are not to be cleaned."""
    config = Config({**STORE, **{f"stores.s.{name}": value for name, value in more.items()}})
    store = StoreConfig.of(config, "s")
    assert (store.is_persistent, store.is_kept) == (is_persistent, is_kept)


@pytest.mark.parametrize(
    ("given", "ttl_ms"), [("-1", None), ("0", 1000), ("999", 1000), ("60000", 60000)]
)
def test_a_time_to_live_is_at_least_a_second(given: str, ttl_ms: int | None) -> None:
    """Reference 6.9; a negative one is none, and an in-memory store has none."""
    assert _with("rocksdb.ttl.ms", given).ttl_ms == ttl_ms
    in_memory = Config({**STORE, "stores.s.factory": "in-memory", "stores.s.rocksdb.ttl.ms": given})
    assert StoreConfig.of(in_memory, "s").ttl_ms is None


def test_the_refusal_of_large_values_wins_over_their_dropping() -> None:
    """As in Samza, where it stands above; without either they are sent."""
    assert _store().large_values is LargeValues.SEND
    assert _with("drop.large.messages", "true").large_values is LargeValues.DROP
    both = Config(
        {
            **STORE,
            "stores.s.drop.large.messages": "true",
            "stores.s.disallow.large.messages": "true",
        }
    )
    assert StoreConfig.of(both, "s").large_values is LargeValues.REFUSE
    assert _store().large_value_bytes == 1048576
    assert _with("changelog.max.message.size.bytes", "10").large_value_bytes == 10


def test_rocksdbs_options_are_read() -> None:
    """The defaults; the manifest's size of all stores, and the store's own before it."""
    defaults = _store().rocksdb
    assert defaults == RocksDbConfig.of(Config({}), "any")
    assert (defaults.compression, defaults.universal, defaults.levels) == ("lz4", None, None)
    assert (defaults.write_buffers, defaults.open_files) == (2, -1)
    general = {"stores-default.rocksdb.max.manifest.file.size.bytes": "5"}
    assert RocksDbConfig.of(Config(general), "s") == replace(defaults, manifest_bytes=5)
    own = {**general, "stores.s.rocksdb.max.manifest.file.size": "6"}
    assert RocksDbConfig.of(Config(own), "s") == replace(defaults, manifest_bytes=6)
    assert _with("rocksdb.compaction.universal.size.ratio", "3").rocksdb == defaults
    universal = Config(
        {
            "stores.s.rocksdb.compaction.style": "universal",
            "stores.s.rocksdb.compaction.universal.size.ratio": "3",
        }
    )
    found = RocksDbConfig.of(universal, "s").universal
    assert found is not None
    assert (found.size_ratio, found.min_merge_width) == (3, 2)


def test_a_key_that_another_one_makes_idle_is_reported() -> None:
    """Options of RocksDB on a store in memory, those of another style, a limit without effect."""
    in_memory = {
        "stores.s.factory": "in-memory",
        "stores.s.rocksdb.ttl.ms": "1000",
        "stores.s.container.write.buffer.size.bytes": "1",
        "stores.s.clean.on.container.start": "true",
        "stores.s.changelog.replication.factor": "1",
        LIMIT: "1",
    }
    config = Config({**STORE, **in_memory})
    assert set(store_warnings(config, StorageConfig.of(config))) == {
        "stores.s.rocksdb.ttl.ms has no effect: the store is in memory",
        "stores.s.container.write.buffer.size.bytes has no effect: the store is in memory",
        "stores.s.clean.on.container.start has no effect: the store is in memory",
        "stores.s.changelog.replication.factor has no effect: the store has no changelog",
        f"{LIMIT} has no effect: neither disallow.large.messages nor drop.large.messages is true",
    }
    style = "stores.s.rocksdb.compaction.style"
    option = "stores.s.rocksdb.compaction.universal.size.ratio"
    for given, stated in (
        ("level", (f"{option} has no effect: the store's rocksdb.compaction.style is level",)),
        ("universal", ()),
    ):
        config = Config({**STORE, option: "2", style: given, "stores.s.changelog": "k.log"})
        assert tuple(store_warnings(config, StorageConfig.of(config))) == stated


def test_the_compaction_lag_is_no_topic_property() -> None:
    """Reference 6.7: among changelog.kafka.* it is refused; it has a key of its own."""
    with pytest.raises(ConfigError, match=r"changelog\.kafka\.min\.compaction\.lag\.ms = '5'"):
        _with("changelog.kafka.min.compaction.lag.ms", "5")
    assert _with("changelog.min.compaction.lag.ms", "5").changelog_min_compaction_lag_ms == 5


def test_options_of_rocksdb_have_no_effect_on_another_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither as an age of its entries, nor without a warning."""
    entry = EngineEntry("org.example.Other", is_persistent=True, factory="other:Factory")
    monkeypatch.setitem(STORAGE_ENGINES, "other", entry)
    config = Config({**STORE, "stores.s.rocksdb.ttl.ms": "1000"})
    store = replace(StoreConfig.of(config, "s"), factory="other")
    assert store.ttl_ms is None
    assert list(store_warnings(config, StorageConfig({"s": store}))) == [
        "stores.s.rocksdb.ttl.ms has no effect: the store's factory is other"
    ]
