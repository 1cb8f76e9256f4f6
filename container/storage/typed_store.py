"""TypedStore: the KeyValueStore that user code sees, objects in and out, over one overlay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from homeport.container.serdes import Serde
from homeport.container.storage.overlay import Overlay


class TypedStore:
    """One task's part of one store; implements ``homeport.container.api.KeyValueStore``."""

    def __init__(self, overlay: Overlay, key_serde: Serde, msg_serde: Serde) -> None:
        self._overlay = overlay
        self._key = key_serde
        self._msg = msg_serde

    def get(self, key: Any) -> Any | None:  # noqa: ANN401 - the type is the serde's
        """The value of ``key``, None where there is none."""
        data = self._overlay.get(self._key_bytes(key))
        return None if data is None else self._msg.from_bytes(data)

    def get_all(self, keys: list[Any]) -> dict[Any, Any]:
        """The values of those of ``keys`` that have one."""
        by_bytes = {self._key_bytes(key): key for key in keys}
        found = self._overlay.get_all(by_bytes)
        return {by_bytes[data]: self._msg.from_bytes(value) for data, value in found.items()}

    def put(self, key: Any, value: Any) -> None:  # noqa: ANN401 - the type is the serde's
        """``key`` has ``value``; None deletes it."""
        data = None if value is None else self._msg.to_bytes(value)
        self._overlay.put(self._key_bytes(key), data)

    def delete(self, key: Any) -> None:  # noqa: ANN401 - the type is the serde's
        """``key`` has no value."""
        self._overlay.put(self._key_bytes(key), None)

    def range(self, start: Any, end: Any) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401 - a user's value
        """Pairs with start <= key < end, in the order of the key's bytes."""
        return self._typed(self._overlay.scan(self._key_bytes(start), self._key_bytes(end)))

    def all(self) -> Iterator[tuple[Any, Any]]:
        """All pairs in the order of the key's bytes."""
        return self._typed(self._overlay.scan())

    def _key_bytes(self, key: Any) -> bytes:  # noqa: ANN401 - a user's value
        if key is None:
            raise ValueError("a store's key may not be None")
        return self._key.to_bytes(key)

    def _typed(self, pairs: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[Any, Any]]:
        for key, value in pairs:
            yield self._key.from_bytes(key), self._msg.from_bytes(value)
