"""Typed view of the keys that a running container takes over without a restart."""

from __future__ import annotations

from dataclasses import dataclass

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys


@dataclass(frozen=True, slots=True)
class Tuning:
    """How often a container commits, flushes and calls windows.

    Only the container's loop reads these values, and it reads them once per turn. No store, topic,
    client or process is set up from them.

    Units: ``..._ms`` milliseconds, ``..._bytes`` bytes. ``window_ms``: None where windows are off.
    """

    commit_ms: int
    transaction_ms: int
    transaction_max_bytes: int
    window_ms: int | None = None

    @staticmethod
    def of(config: Config) -> Tuning:
        """The view of ``config``."""
        window_ms = keys.TASK_WINDOW_MS.read(config)
        return Tuning(
            commit_ms=keys.TASK_COMMIT_MS.read(config),
            transaction_ms=keys.TASK_TRANSACTION_MS.read(config),
            transaction_max_bytes=keys.TASK_TRANSACTION_MAX_BYTES.read(config),
            window_ms=window_ms if window_ms > 0 else None,
        )

    def ends_transaction(self, age_ms: float, size_bytes: int) -> bool:
        """Whether a transaction of this age, since its first record, and of this size ends now."""
        return age_ms >= self.transaction_ms or size_bytes >= self.transaction_max_bytes
