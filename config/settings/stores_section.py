"""Typed views of the job's stores and their changelogs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import values_of
from homeport.config.errors import ConfigError
from homeport.config.java_names import Kind, class_name
from homeport.config.settings.rocksdb_section import RocksDbConfig
from homeport.config.settings.sections import stream_or_topic
from homeport.config.settings.serde_names import ConfiguredSerde, SchemaSerde, serde_name
from homeport.config.storage_engines import ROCKSDB, STORAGE_ENGINES
from homeport.config.system_stream import SystemStream

_DEFAULT_MAX_MESSAGE_BYTES = 1000012
_MIN_COMPACTION_LAG = "min.compaction.lag.ms"


class LargeValues(Enum):
    """What becomes of a value that is larger than the store's limit."""

    SEND = "sent like any other: whether it fits its changelog shows there"
    REFUSE = "its put is an error"
    DROP = "its put is skipped"


@dataclass(frozen=True)
class StoreConfig:
    """One store. ``factory`` is our name, such as ``rocksdb``.

    ``large_values``: what becomes of a value of more than ``large_value_bytes``.
    ``clean_on_start``: what a container finds of it is removed, and all is read again.

    Shapes: ``changelog_overrides`` {topic property: value}.
    """

    name: str
    factory: str
    changelog: SystemStream | None
    key_serde: ConfiguredSerde
    msg_serde: ConfiguredSerde
    changelog_replication_factor: int | None
    changelog_max_message_bytes: int
    changelog_delete_retention_ms: Annotated[int, keys.STORE_CHANGELOG_DELETE_RETENTION_MS]
    changelog_min_compaction_lag_ms: int | None
    changelog_overrides: Mapping[str, str]
    clean_on_start: Annotated[bool, keys.STORE_CLEAN_ON_CONTAINER_START]
    large_values: LargeValues
    large_value_bytes: Annotated[int, keys.STORE_CHANGELOG_MAX_MESSAGE_SIZE_BYTES]
    rocksdb: RocksDbConfig

    @property
    def is_persistent(self) -> bool:
        """Return whether its files can outlive the container that wrote them."""
        return STORAGE_ENGINES[self.factory].is_persistent

    @property
    def is_kept(self) -> bool:
        """Return whether a container that starts uses what it finds in the store's directory.

        Source: Samza 1.8: stores without a changelog, in-memory ones and those to be cleaned
        begin empty.
        """
        return self.is_persistent and self.changelog is not None and not self.clean_on_start

    @staticmethod
    def of(config: Config, store: str) -> StoreConfig:
        """Return the view of the store named ``store``; factory and both serdes are required."""
        changelog = _changelog(config, store)
        system = changelog.system if changelog else ""
        known = " or ".join(STORAGE_ENGINES)
        factory = config.require(keys.STORE_FACTORY.named(store), f"write {known}")
        return StoreConfig(
            name=store,
            factory=class_name(Kind.STORE, keys.STORE_FACTORY.named(store), factory),
            changelog=changelog,
            key_serde=_store_serde(config, keys.STORE_KEY_SERDE.named(store)),
            msg_serde=_store_serde(config, keys.STORE_MSG_SERDE.named(store)),
            changelog_replication_factor=keys.STORE_CHANGELOG_REPLICATION_FACTOR.find(config, store)
            or keys.STORES_DEFAULT_CHANGELOG_REPLICATION_FACTOR.find(config)
            or keys.SYSTEM_REPLICATION_FACTOR.find(config, system),
            changelog_max_message_bytes=keys.STORE_CHANGELOG_MAX_MESSAGE_BYTES.find(config, store)
            or keys.SYSTEM_MAX_MESSAGE_BYTES.find(config, system)
            or _DEFAULT_MAX_MESSAGE_BYTES,
            changelog_min_compaction_lag_ms=_min_compaction_lag_ms(config, store),
            changelog_overrides=_changelog_overrides(config, store),
            large_values=_large_values(config, store),
            rocksdb=RocksDbConfig.of(config, store),
            **values_of(StoreConfig, config, store),
        )

    @property
    def ttl_ms(self) -> int | None:
        """Return the age from which entries may be removed; None: they stay, as outside RocksDB."""
        return self.rocksdb.ttl_ms if self.factory == ROCKSDB else None


def _large_values(config: Config, store: str) -> LargeValues:
    # As in Samza 1.8: the guard that refuses stands above the one that drops.
    if keys.STORE_DISALLOW_LARGE_MESSAGES.read(config, store):
        return LargeValues.REFUSE
    drop = keys.STORE_DROP_LARGE_MESSAGES.read(config, store)
    return LargeValues.DROP if drop else LargeValues.SEND


def _min_compaction_lag_ms(config: Config, store: str) -> int | None:
    own = keys.STORE_CHANGELOG_MIN_COMPACTION_LAG_MS.find(config, store)
    return keys.STORES_DEFAULT_CHANGELOG_MIN_COMPACTION_LAG_MS.find(config) if own is None else own


def _changelog_overrides(config: Config, store: str) -> dict[str, str]:
    overrides = dict(config.subset(keys.STORE_CHANGELOG_KAFKA.named(store, "")))
    if _MIN_COMPACTION_LAG in overrides:
        rule = "the lag has a key of its own"
        remedy = f"set {keys.STORE_CHANGELOG_MIN_COMPACTION_LAG_MS.named(store)}"
        raise keys.STORE_CHANGELOG_KAFKA.error(
            overrides[_MIN_COMPACTION_LAG], rule, remedy, store, _MIN_COMPACTION_LAG
        )
    return overrides


def _store_serde(config: Config, key: str) -> ConfiguredSerde:
    name = config.require(key, "write string, json or bytes")
    serde = serde_name(config, key, name)
    if isinstance(serde, SchemaSerde) and serde.registry:
        rule = "a serde of a Schema Registry is one of streams"
        raise ConfigError(key, name, rule, "use a serde without schema.registry.url")
    return serde


def _changelog(config: Config, store: str) -> SystemStream | None:
    text = keys.STORE_CHANGELOG.read(config, store)
    if text is None:
        return None
    key, remedy = keys.STORE_CHANGELOG.named(store), f"write a topic, such as {store}-changelog"
    return stream_or_topic(config, key, text, keys.JOB_CHANGELOG_SYSTEM, remedy)


@dataclass(frozen=True)
class StorageConfig:
    """All stores, by name in sorted order."""

    stores: Mapping[str, StoreConfig]

    @staticmethod
    def of(config: Config) -> StorageConfig:
        """Return the view of ``config``.

        A store is declared by any of its required keys, its changelog, or what fills it.
        """
        declaring = (
            keys.STORE_FACTORY,
            keys.STORE_KEY_SERDE,
            keys.STORE_MSG_SERDE,
            keys.STORE_CHANGELOG,
            keys.STORE_ADSTORE_INPUT,
            keys.STORE_SIDE_INPUTS,
        )
        names = {
            parts[0]
            for name in config
            if name.startswith("stores.")
            and (key := keys.declared(name)) in declaring
            and (parts := key.parts_of(name))
        }
        return StorageConfig({name: StoreConfig.of(config, name) for name in sorted(names)})
