"""Keys of stores that have no effect because of another one of the same store.

PURE.
"""

from __future__ import annotations

from collections.abc import Iterator

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.settings.stores_section import LargeValues, StorageConfig, StoreConfig


def store_warnings(config: Config, storage: StorageConfig) -> Iterator[str]:
    """One line for each such key."""
    for store in storage.stores.values():
        prefix = f"stores.{store.name}."
        for option in config.subset(prefix):
            reason = _reason(store, option)
            if reason is not None:
                yield f"{prefix}{option} has no effect: {reason}"


def _reason(store: StoreConfig, option: str) -> str | None:
    of_rocksdb = option.startswith("rocksdb.") or option == _WRITE_BUFFER
    if not store.is_persistent and (of_rocksdb or option == _CLEAN):
        return "the store is in memory"
    if option.startswith("rocksdb.compaction.universal.") and store.rocksdb.universal is None:
        return "the store's rocksdb.compaction.style is level"
    if option == _LARGE and store.large_values is LargeValues.SEND:
        return "neither disallow.large.messages nor drop.large.messages is true"
    if option.startswith("changelog.") and store.changelog is None and option != _LARGE:
        return "the store has no changelog"
    return None


def _option(name: str) -> str:
    return name.removeprefix("stores.<store>.")


_WRITE_BUFFER = _option(keys.STORE_CONTAINER_WRITE_BUFFER_SIZE_BYTES.name)
_CLEAN = _option(keys.STORE_CLEAN_ON_CONTAINER_START.name)
_LARGE = _option(keys.STORE_CHANGELOG_MAX_MESSAGE_SIZE_BYTES.name)
