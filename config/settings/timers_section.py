"""Typed view of timers and event time: where timers are kept, how far the input's time has come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import values_of
from homeport.config.settings.stores_section import StorageConfig

_KEY_SERDE, _MSG_SERDE = "string", "long"


@dataclass(frozen=True)
class TimersConfig:
    """``store``: None: timers are in memory. ``lateness_ms``: None: the job has no event time.

    ``idle_ms``: a partition that brings nothing for so long is left out; None: none ever is.
    ``ahead_ms``: how far ahead of the clock a time may be; None: as far as it likes.
    """

    store: str | None
    lateness_ms: Annotated[int | None, keys.TASK_WATERMARK_LATENESS_MS]
    idle_ms: int | None
    ahead_ms: Annotated[int | None, keys.TASK_WATERMARK_AHEAD_MS]

    @staticmethod
    def of(config: Config) -> TimersConfig:
        """Return the view of ``config``; ConfigError where the store cannot hold timers."""
        idle_ms = keys.TASK_WATERMARK_IDLE_MS.read(config)
        return TimersConfig(
            store=_store(config),
            idle_ms=idle_ms if idle_ms >= 0 else None,
            **values_of(TimersConfig, config),
        )


def require_lateness(windows: str, max_concurrency: int, lateness_ms: int | None) -> None:
    """Require a lateness where the records of ``windows``, a store, come in another order.

    ConfigError: calls are made side by side, and neither the windows nor the job have a lateness.
    """
    if max_concurrency > 1 and lateness_ms is None:
        raise keys.TASK_MAX_CONCURRENCY.error(
            str(max_concurrency),
            f"records come in another order then, and the windows {windows!r} lose late ones",
            "give late= to job.window or lateness_ms= to Windows, or set "
            f"{keys.TASK_WATERMARK_LATENESS_MS.name}",
        )


def _store(config: Config) -> str | None:
    key = keys.TASK_TIMERS_STORE
    name = key.read(config)
    if name is None:
        return None
    stores = StorageConfig.of(config).stores
    store = stores.get(name)
    if store is None:
        remedy = f"it has {', '.join(sorted(stores)) or 'none'}: configure stores.{name}.*"
        raise key.error(name, "it must name a store of the job", remedy)
    if store.changelog is None:
        rule = "a store without changelog does not outlive its container, and its timers neither"
        remedy = f"set stores.{name}.changelog, or remove the key: timers are in memory then"
        raise key.error(name, rule, remedy)
    found = (store.key_serde, store.msg_serde)
    if found != (_KEY_SERDE, _MSG_SERDE) or store.ttl_ms is not None:
        raise key.error(
            name,
            "timers need a store of their own, whose keys are strings and whose values are longs "
            "without a time to live",
            f"set stores.{name}.key.serde={_KEY_SERDE} and stores.{name}.msg.serde={_MSG_SERDE}, "
            f"and no stores.{name}.rocksdb.ttl.ms",
        )
    return name
