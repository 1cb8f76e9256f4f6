"""ValueGuard: what becomes of values that are larger than their store's limit.

Source: Samza 1.8, ``disallow.large.messages`` and ``drop.large.messages``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from homeport.config.settings.stores_section import LargeValues, StoreConfig
from homeport.container.api import RecordTooLargeError
from homeport.job_coordinator.model.ids import TaskName

_LOG = logging.getLogger(__name__)
_SHOWN = 80


class ValueGuard:
    """Of one store of one task, which it names. ``dropped``: puts that were skipped so far."""

    @staticmethod
    def of(config: StoreConfig, task_name: TaskName) -> ValueGuard | None:
        """The store's guard; None where it takes values of any size."""
        return None if config.large_values is LargeValues.SEND else ValueGuard(config, task_name)

    def __init__(self, config: StoreConfig, task_name: TaskName) -> None:
        self._refuses = config.large_values is LargeValues.REFUSE
        self._limit = config.large_value_bytes
        self.store = config.name
        self.task_name = task_name
        self.dropped = 0

    def admitted(self, entries: Mapping[bytes, bytes | None]) -> Mapping[bytes, bytes | None]:
        """Those of ``entries`` that are to be put.

        Raises:
            RecordTooLargeError: a value is over the limit and the store refuses such.
        """
        limit = self._limit
        large = [key for key, value in entries.items() if value is not None and len(value) > limit]
        if not large:
            return entries
        for key in large:
            self._met(key, len(entries[key] or b""))
        return {key: value for key, value in entries.items() if key not in large}

    def _met(self, key: bytes, size: int) -> None:
        said = (
            f"store {self.store} of task {self.task_name!r}: the value of key {key[:_SHOWN]!r} "
            f"has {size} bytes, stores.{self.store}.changelog.max.message.size.bytes is "
            f"{self._limit}"
        )
        if self._refuses:
            raise RecordTooLargeError(f"{said}; put less, or raise the limit")
        self.dropped += 1
        _LOG.warning("skipped a put: %s (%d so far)", said, self.dropped)
