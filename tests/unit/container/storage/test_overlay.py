"""What the search over whole stores cannot say of the open transaction: sizes, reserved keys."""

from __future__ import annotations

import pytest

from homeport.container.engine.in_memory_store import InMemoryStore
from homeport.container.storage.overlay import Overlay


def test_reserved_keys_are_refused() -> None:
    """User code can neither read nor harm the position."""
    overlay = Overlay(InMemoryStore())
    with pytest.raises(ValueError, match="reserved"):
        overlay.put(b"\x00homeport.position", b"1")
    with pytest.raises(ValueError, match="reserved"):
        overlay.put_all({b"a": b"1", b"\x00homeport.position": b"1"})
    assert overlay.size_bytes == 0
    assert list(overlay.scan()) == []


def test_the_size_is_that_of_the_open_transaction() -> None:
    """Keys and values of every write; of what is on its way, or was dropped, nothing."""
    overlay = Overlay(InMemoryStore())
    overlay.put(b"a", b"22")
    overlay.put(b"a", None)
    overlay.put_all({b"b": b"333", b"cc": None})
    assert overlay.size_bytes == 3 + 1 + 4 + 2
    overlay.seal()
    assert overlay.size_bytes == 0
    assert overlay.sealed() == {b"a": None, b"b": b"333", b"cc": None}
    overlay.put(b"d", b"4")
    overlay.clear()
    assert (overlay.size_bytes, overlay.sealed()) == (0, {})
