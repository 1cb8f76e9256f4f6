"""The keys that a running container takes over."""

from __future__ import annotations

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import Liveness
from homeport.config.settings.config_diff import ConfigDiff
from homeport.config.settings.tuning import Tuning


def test_the_defaults() -> None:
    """Ten seconds between flushes, one between transactions, 32 MiB, no windows."""
    assert Tuning.of(Config({})) == Tuning(10_000, 1000, 32 * 1024 * 1024, None)


def test_every_key_that_containers_take_over_is_read_here() -> None:
    """A value of each such key changes the tuning, and no restart is needed."""
    found = [key for key in keys.ALL if key.liveness is Liveness.RETUNES_CONTAINERS]
    assert len(found) == 4
    for key in found:
        config = Config({key.name: "7"})
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
