"""keys: every key once, found by any of its names."""

from __future__ import annotations

import pytest

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import Key, Liveness


def test_every_name_belongs_to_one_key() -> None:
    """No two keys share a name, present or legacy; each says what it means."""
    names = [name for key in keys.ALL for name in (key.name, *key.legacy)]
    assert len(names) == len(set(names))
    assert all(
        key.meaning and key.source and isinstance(key.liveness, Liveness) for key in keys.ALL
    )


def test_every_default_is_of_its_keys_type() -> None:
    """A default would be accepted as a value of its key."""
    for key in keys.ALL:
        if key.default_text:
            key.check(Config({key.name: key.default_text}), key.name)


def test_fallbacks_are_keys() -> None:
    """The key that stands in for another is one of ours."""
    names = {key.name for key in keys.ALL}
    assert {key.fallback for key in keys.ALL if key.fallback} <= names


@pytest.mark.parametrize(
    ("name", "declared"),
    [
        ("job.container.count", keys.JOB_CONTAINER_COUNT),
        ("yarn.container.count", keys.JOB_CONTAINER_COUNT),
        ("systems.kafka.samza.offset.default", keys.SYSTEM_OFFSET_DEFAULT),
        ("systems.k.streams.a.b.samza.offset.default", keys.STREAM_OFFSET_DEFAULT),
        (
            "stores.default.changelog.replication.factor",
            keys.STORES_DEFAULT_CHANGELOG_REPLICATION_FACTOR,
        ),
        ("stores.s.changelog", keys.STORE_CHANGELOG),
        ("my.key", None),
        ("job.container.counts", None),
    ],
)
def test_declared_finds_the_key(name: str, declared: object) -> None:
    """Full, legacy and pattern names lead to their key; anything else to none."""
    assert keys.declared(name) is declared


def test_every_key_is_listed() -> None:
    """A key that a module of keys defines is checked, and printed, like all others."""
    defined = {id(key) for key in vars(keys).values() if isinstance(key, Key)}
    assert {id(key) for key in keys.ALL} == defined
    assert len(keys.ALL) == len(defined)
