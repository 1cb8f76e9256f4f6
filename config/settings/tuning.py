"""Typed view of the keys that a running container takes over without a restart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import values_of
from homeport.config.settings.pipeline_section import has_pipeline

_PIPELINE_LINGER_MS = 100
"""A micro-batch through Spark costs the same, however few rows it has."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """How often a container takes input, commits, flushes and calls windows.

    Only the container's loop reads these values, and it reads them once per turn. No store, topic,
    client or process is set up from them; the level of the log follows them.

    Units: ``..._ms`` milliseconds, ``..._bytes`` bytes. ``window_ms``: None where windows are off.
    ``drains``: whether the container ends once it has processed what its input holds.
    ``log_level``: the least level that is logged.
    ``idle_ms``: None where no transaction ends early. ``linger_ms``: 0 where no batch fills.
    """

    commit_ms: Annotated[int, keys.TASK_COMMIT_MS]
    transaction_ms: Annotated[int, keys.TASK_TRANSACTION_MS]
    transaction_max_bytes: Annotated[int, keys.TASK_TRANSACTION_MAX_BYTES]
    window_ms: int | None = None
    idle_ms: int | None = None
    linger_ms: int = 0
    batch_target_ms: Annotated[int, keys.TASK_BATCH_TARGET_MS] = 500
    drains: Annotated[bool, keys.JOB_DRAIN] = False
    log_level: Annotated[str, keys.JOB_LOG_LEVEL] = "INFO"

    @staticmethod
    def of(config: Config) -> Tuning:
        """Return the view of ``config``."""
        window_ms = keys.TASK_WINDOW_MS.read(config)
        idle_ms = keys.TASK_TRANSACTION_IDLE_MS.read(config)
        linger_ms = keys.TASK_BATCH_LINGER_MS.find(config)
        if linger_ms is None:
            linger_ms = _PIPELINE_LINGER_MS if has_pipeline(config) else 0
        return Tuning(
            window_ms=window_ms if window_ms > 0 else None,
            idle_ms=idle_ms if idle_ms >= 0 else None,
            linger_ms=linger_ms,
            **values_of(Tuning, config),
        )

    def ends_transaction(self, age_ms: float, size_bytes: int) -> bool:
        """Return whether a transaction ends now: by its age since its first record, or its size."""
        return age_ms >= self.transaction_ms or size_bytes >= self.transaction_max_bytes
