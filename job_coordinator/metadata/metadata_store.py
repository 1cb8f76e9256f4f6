"""MetadataStore: what a coordinator keeps under (namespace, key), wherever it keeps it.

Every implementation passes the same tests: ``tests/support/metadata_store_conformance.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class MetadataStore(Protocol):
    """A durable map {namespace: {key: value}} that many may read and write at once.

    A write is durable after ``flush``, and read back by its own writer at once. Others see it once
    it is durable. Of two writers of a key the last one wins.
    """

    def get(self, namespace: str, key: str) -> bytes | None:
        """The value, None where there is none."""

    def put(self, namespace: str, key: str, value: bytes) -> None:
        """``key`` has ``value``."""

    def put_all(self, namespace: str, values: Mapping[str, bytes]) -> None:
        """Every key of ``values`` has its value; keys not named keep theirs."""

    def delete(self, namespace: str, key: str) -> None:
        """``key`` has no value, as it may have been before."""

    def all(self, namespace: str) -> dict[str, bytes]:
        """{key: value} of one namespace, by key in sorted order."""

    def flush(self) -> None:
        """All writes so far are durable when this returns."""


class InMemoryMetadataStore:
    """A MetadataStore that lives in this process; nothing outlives it."""

    def __init__(self) -> None:
        self._values: dict[str, dict[str, bytes]] = {}

    def get(self, namespace: str, key: str) -> bytes | None:
        """The value, None where there is none."""
        return self._values.get(namespace, {}).get(key)

    def put(self, namespace: str, key: str, value: bytes) -> None:
        """``key`` has ``value``."""
        self._values.setdefault(namespace, {})[key] = value

    def put_all(self, namespace: str, values: Mapping[str, bytes]) -> None:
        """Every key of ``values`` has its value; keys not named keep theirs."""
        self._values.setdefault(namespace, {}).update(values)

    def delete(self, namespace: str, key: str) -> None:
        """``key`` has no value, as it may have been before."""
        self._values.get(namespace, {}).pop(key, None)

    def all(self, namespace: str) -> dict[str, bytes]:
        """{key: value} of one namespace, by key in sorted order."""
        return dict(sorted(self._values.get(namespace, {}).items()))

    def flush(self) -> None:
        """Nothing to do: nothing here is durable."""
