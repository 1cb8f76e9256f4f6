"""The metadata store that lives in memory."""

from __future__ import annotations

from homeport.job_coordinator.metadata.metadata_store import InMemoryMetadataStore, MetadataStore


def test_namespaces_hold_keys_of_their_own() -> None:
    """Writes are read back at once, in their namespace only, until they are deleted."""
    store: MetadataStore = InMemoryMetadataStore()
    store.put("a", "k", b"1")
    store.put_all("a", {"z": b"3", "b": b"2"})
    store.flush()
    assert store.get("a", "k") == b"1"
    assert store.get("b", "k") is None
    assert list(store.all("a").items()) == [("b", b"2"), ("k", b"1"), ("z", b"3")]
    store.delete("a", "k")
    store.delete("b", "never there")
    assert store.get("a", "k") is None
    assert store.all("b") == {}
