"""Ranges of keys: those of numbers, whatever the order of their bytes, or a refusal."""

from __future__ import annotations

import itertools
import logging
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.container.engine.in_memory_store import InMemoryStore
from homeport.container.serde.serdes import Serde, serde
from homeport.container.storage.overlay import Overlay
from homeport.container.storage.typed_store import TypedStore

_KEYS: dict[str, list[Any]] = {
    "integer": [-(1 << 31), -256, -255, -2, -1, 0, 1, 2, 255, 256, (1 << 31) - 1],
    "long": [-(1 << 63), -(1 << 32), -1, 0, 1, 1 << 32, (1 << 63) - 1],
    "string": ["", "a", "a!", "ab", "b", "é", "z", "\U0001f600", "\uffff"],
    "bytes": [b"", b"\x00", b"a", b"\x7f", b"\x80", b"\xff"],
}


def _store(key: Serde, keys: list[Any]) -> TypedStore:
    engine = InMemoryStore()
    engine.write({key.to_bytes(k): b"" for k in keys[::2]}, None)
    store = TypedStore(Overlay(engine), key, serde("bytes"))
    for own in keys[1::2]:
        store.put(own, b"")
    return store


@pytest.mark.parametrize("name", _KEYS)
def test_a_range_is_that_of_its_keys(name: str) -> None:
    """Negative numbers come before all others, and the end before the start gives none."""
    keys = _KEYS[name]
    store = _store(serde(name), keys)
    for start, end in itertools.product(keys, keys):
        with store.range(start, end) as pairs:
            assert [key for key, _ in pairs] == sorted(k for k in keys if start <= k < end)


@pytest.mark.search
@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.integers(-300, 300), max_size=40), st.integers(-301, 301), st.integers(-301, 301)
)
def test_a_range_of_whole_numbers_is_python_s(keys: list[int], start: int, end: int) -> None:
    """Over what is committed and what is not."""
    for name in ("integer", "long"):
        found = [key for key, _ in _store(serde(name), keys).range(start, end)]
        assert found == sorted({k for k in keys if start <= k < end})


def test_a_range_of_doubles_begins_at_0_or_is_refused() -> None:
    """By their bytes negative ones come last, the least of them at the end."""
    keys = [-2.5, -0.5, 0.0, 0.5, 2.0, 1e300, float("inf")]
    store = _store(serde("double"), keys)
    assert [k for k, _ in store.range(-0.0, 2.5)] == [0.0, 0.5, 2.0]
    assert [k for k, _ in store.range(2.5, 0.5)] == []
    for start, end in ((-2.5, -0.5), (-1.0, 5.0), (-0.5, -2.5), (float("nan"), 1.0)):
        with pytest.raises(ValueError, match=r"serde 'double' have the order of numbers from 0 on"):
            store.range(start, end)


_LITTLE = Serde(
    "own:Little",
    lambda value: int(value).to_bytes(4, "little"),
    lambda data: int.from_bytes(data, "little"),
    is_own=True,
)


@pytest.mark.parametrize(
    ("key", "start", "end"),
    [(serde("json"), 9, 10), (serde("json"), [2, "a"], [10, "a"]), (_LITTLE, 255, 256)],
)
def test_a_range_that_would_find_nothing_is_refused(key: Serde, start: object, end: object) -> None:
    """Where the bytes of its end come before those of its start."""
    with pytest.raises(ValueError, match="the second comes before the first") as error:
        _store(key, []).range(start, end)
    assert "\n" not in str(error.value)


def test_keys_without_an_order_of_their_own_go_by_their_bytes() -> None:
    """Such as objects of JSON; where the end comes before the start there is none."""
    store = _store(serde("json"), [{"a": 1}, {"b": 1}])
    assert list(store.range({"b": 0}, {"a": 0})) == []
    assert list(store.range(-1, -2)) == []


def test_a_range_by_the_text_of_numbers_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """As 10 comes before 9 there; text alone is as it looks."""
    store = _store(serde("json"), ["a", ["b", 1], True])
    with caplog.at_level(logging.WARNING):
        list(store.range("a", "b"))
        list(store.range([True], [True]))
        assert caplog.records == []
        for start, end in ((10, 20), ([10], [20]), ({"a": [1.5]}, {"b": 2})):
            list(store.range(start, end))
    assert [record.getMessage()[:20] for record in caplog.records] == ["range(10, 20) goes b"]


def test_a_bound_is_never_none() -> None:
    """As a key."""
    for start, end in ((None, 1), (1, None)):
        with pytest.raises(ValueError, match="may not be None"):
            _store(serde("long"), []).range(start, end)
