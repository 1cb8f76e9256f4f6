"""VersionReads: what the history says of the versions that tasks read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from homeport.container.adjunct.version_text import PARTS_KEY
from homeport.container.engine.storage_engine import StorageEngine
from homeport.container.storage.adjunct.filled_store import FilledStore


class VersionReads:
    """Which engine the tasks had of each store when it was last noted."""

    def __init__(self) -> None:
        """Nothing was noted."""
        self._engines: dict[str, StorageEngine] = {}

    def note(self, stores: Iterable[FilledStore], batch: int, history: Callable[..., None]) -> None:
        """The history has an event of each store whose tasks have another engine than before.

        What it says of the version comes from the engine itself: whether each partition has ended
        it, and where.
        """
        for store in stores:
            engine = store.entries.engine
            if self._engines.get(store.name) is engine:
                continue
            self._engines[store.name] = engine
            history("version-read", batch=batch, **_read(store, engine))


def _read(store: FilledStore, engine: StorageEngine) -> dict[str, Any]:
    text = engine.get(PARTS_KEY)
    planned = store.planned
    return {
        "store": store.name,
        "version": store.facts().version,
        "bootstrap": planned.store.is_bootstrap,
        "topic_id": store.topic_id,
        "partitions": [partition.name for partition in planned.partitions],
        "parts": {} if text is None else json.loads(text),
    }
