"""The keys that a running container takes over."""

from __future__ import annotations

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import BoolKey, Liveness, TextKey
from homeport.config.settings.config_diff import ConfigDiff
from homeport.config.settings.tuning import Tuning


def test_the_defaults() -> None:
    """Ten seconds between flushes, one between transactions, 32 MiB, no windows.

    A transaction ends early where the input is idle, 10 ms after the one before; batches fill only
    before a pipeline.
    """
    assert Tuning.of(Config({})) == Tuning(10_000, 1000, 32 * 1024 * 1024, None, 10, 0)
    pipeline = {"task.pipeline.class": "module:function"}
    assert Tuning.of(Config(pipeline)).linger_ms == 100
    assert Tuning.of(Config({**pipeline, "task.batch.linger.ms": "0"})).linger_ms == 0


def test_no_transaction_ends_early_where_the_key_says_so() -> None:
    """-1 switches it off; 0 is the shortest distance."""
    assert Tuning.of(Config({"task.transaction.idle.ms": "-1"})).idle_ms is None
    assert Tuning.of(Config({"task.transaction.idle.ms": "0"})).idle_ms == 0


def test_every_key_that_containers_take_over_is_read_here() -> None:
    """A value of each such key changes the tuning, and no restart is needed."""
    found = [key for key in keys.ALL if key.liveness is Liveness.RETUNES_CONTAINERS]
    assert len(found) == 9
    for key in found:
        value = key.choices[-1] if isinstance(key, TextKey) else "7"
        config = Config({key.name: "true" if isinstance(key, BoolKey) else value})
        assert Tuning.of(config) != Tuning.of(Config({}))
        diff = ConfigDiff.between(Config({}), config)
        assert diff == ConfigDiff(retunes_containers=(key.name,))
        assert not diff.is_empty


def test_a_transaction_ends_by_age_or_by_size() -> None:
    """Whichever comes first."""
    tuning = Tuning(10_000, transaction_ms=1000, transaction_max_bytes=100)
    assert not tuning.ends_transaction(999.9, 99)
    assert tuning.ends_transaction(1000, 0)
    assert tuning.ends_transaction(0, 100)
