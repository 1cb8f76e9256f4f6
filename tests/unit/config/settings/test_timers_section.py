"""Timers and event time, as the configuration has them."""

from __future__ import annotations

import pytest

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.settings.timers_section import TimersConfig

STORE = {
    "stores.t.factory": "rocksdb",
    "stores.t.changelog": "kafka.t",
    "stores.t.key.serde": "string",
    "stores.t.msg.serde": "long",
    "job.default.system": "kafka",
    "systems.kafka.consumer.bootstrap.servers": "b:1",
}
KEY = {"task.timers.store": "t"}


def test_timers_are_in_memory_unless_a_store_is_named() -> None:
    """No event time either."""
    found = TimersConfig.of(Config({}))
    assert (found.store, found.lateness_ms) == (None, None)
    assert TimersConfig.of(Config({**STORE, **KEY})).store == "t"
    assert TimersConfig.of(Config({"task.watermark.idle.ms": "-1"})).idle_ms is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"task.timers.store": "other"}, "it must name a store of the job; it has t"),
        ({"stores.t.changelog": ""}, "a store without changelog does not outlive its container"),
        ({"stores.t.msg.serde": "json"}, "timers need a store of their own"),
        ({"stores.t.key.serde": "long"}, "timers need a store of their own"),
        ({"stores.t.rocksdb.ttl.ms": "5000"}, "without a time to live"),
    ],
)
def test_a_store_that_cannot_hold_timers_is_refused(change: dict[str, str], said: str) -> None:
    """In one line."""
    values = {k: v for k, v in {**STORE, **KEY, **change}.items() if v}
    with pytest.raises(ConfigError, match=said):
        TimersConfig.of(Config(values))
