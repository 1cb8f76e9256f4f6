"""What every MetadataStore must do, whatever it keeps its values in.

A new implementation is tested by a class of two lines: it inherits ``MetadataStoreConformance`` and
has a fixture ``open_store``, which returns a function that opens one more client on the same data.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from homeport.job_coordinator.metadata.metadata_store import MetadataStore

OpenStore = Callable[[], MetadataStore]
BYTES = ("samza-startpoint-v1", "samza-startpoint-v1-fan-out", "samza-drain-v1", "ours")
"""Namespaces whose values are any bytes."""
TEXT = ("set-config", "set-container-host-assignment", "set-task-container-assignment")
"""Namespaces whose values are texts."""
ODD_KEYS = ("", " ", "a.b-c_d", '{"system":"kafka","partition":0}', "größe/→", "\x1f\\u001f\n\"'")


class MetadataStoreConformance:
    """The tests; each opens stores with nothing in them."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """How one more client is opened on the data of this test."""
        raise AssertionError("each kind of store says how it is opened")

    @pytest.mark.parametrize("namespace", [*BYTES, *TEXT])
    def test_a_value_is_read_back_at_once(self, open_store: OpenStore, namespace: str) -> None:
        """G28: read after write, several updates, after delete, and a key that is unknown."""
        store = open_store()
        assert store.get(namespace, "k") is None
        for value in (b"1", b"2", b"1"):
            store.put(namespace, "k", value)
        assert store.get(namespace, "k") == b"1"
        store.delete(namespace, "k")
        assert store.get(namespace, "k") is None
        store.delete(namespace, "never there")
        assert store.all(namespace) == {}

    @pytest.mark.parametrize("namespace", [*BYTES, *TEXT])
    def test_all_are_listed_by_key(self, open_store: OpenStore, namespace: str) -> None:
        """G28: put_all and all entries, in sorted order; keys that it does not name keep theirs."""
        store = open_store()
        store.put(namespace, "k", b"1")
        store.put_all(namespace, {"z": b"3", "b": b"2"})
        store.put_all(namespace, {})
        assert list(store.all(namespace).items()) == [("b", b"2"), ("k", b"1"), ("z", b"3")]

    def test_namespaces_hold_keys_of_their_own(self, open_store: OpenStore) -> None:
        """The same key in two namespaces is two keys, written and deleted apart."""
        store = open_store()
        names = [*BYTES, *TEXT]
        for number, namespace in enumerate(names):
            store.put(namespace, "k", str(number).encode())
        store.delete(names[0], "k")
        found = {n: store.get(n, "k") for n in names}
        assert found == {names[0]: None} | {n: str(i).encode() for i, n in enumerate(names) if i}

    @pytest.mark.parametrize("namespace", BYTES)
    def test_values_are_bytes(self, open_store: OpenStore, namespace: str) -> None:
        """Nothing is made of a value: not of what is no text, not of what looks like a record."""
        store = open_store()
        values = {
            "none": b"",
            "no text": bytes(range(256)),
            "json": b'{"values":{"value":null}}',
            "null": b"null",
            "long": b"x" * 500_000,
        }
        store.put_all(namespace, values)
        assert store.all(namespace) == dict(sorted(values.items()))

    @pytest.mark.parametrize("namespace", [BYTES[0], TEXT[0]])
    def test_any_text_is_a_key(self, open_store: OpenStore, namespace: str) -> None:
        """Keys are texts of any characters, each a key of its own; empty texts are values."""
        store = open_store()
        values = {key: f"value of {key}".encode() for key in ODD_KEYS}
        store.put_all(namespace, values)
        store.put(namespace, "empty", b"")
        assert store.all(namespace) == dict(sorted({**values, "empty": b""}.items()))
        for key in ODD_KEYS:
            store.delete(namespace, key)
        assert store.all(namespace) == {"empty": b""}

    def test_flushed_values_are_seen_by_others(self, open_store: OpenStore) -> None:
        """A value, its change and its deletion reach another client, also one opened later."""
        writer, reader = open_store(), open_store()
        writer.put("ours", "k", b"1")
        writer.flush()
        assert reader.get("ours", "k") == b"1"
        writer.put("ours", "k", b"2")
        writer.put("ours", "gone", b"1")
        writer.delete("ours", "gone")
        writer.flush()
        writer.flush()
        assert reader.all("ours") == open_store().all("ours") == {"k": b"2"}

    def test_the_last_of_two_writers_wins(self, open_store: OpenStore) -> None:
        """Each sees the same value in the end, and neither undoes the other's keys."""
        one, two = open_store(), open_store()
        for round_ in range(5):
            for name, store in (("one", one), ("two", two)):
                store.put("ours", "shared", f"{name} {round_}".encode())
                store.put("ours", name, str(round_).encode())
                store.flush()
        two.delete("ours", "one")
        two.flush()
        expected = {"shared": b"two 4", "two": b"4"}
        assert one.all("ours") == two.all("ours") == open_store().all("ours") == expected
