"""TypedStore: the KeyValueStore that user code sees, objects in and out, over bytes."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, Self

import pyarrow as pa

from homeport.config.errors import in_one_line
from homeport.config.settings.stores_section import LargeValues, StoreConfig
from homeport.container.api import RecordTooLargeError
from homeport.container.serde.arrow_serdes import ArrowForm, arrow_form
from homeport.container.serde.key_order import is_by_text, parts_of_range
from homeport.container.serde.serdes import Serde, serde
from homeport.container.storage.adjunct.read_only_entries import ReadOnlyEntries
from homeport.container.storage.overlay import Overlay, Pairs, no_key
from homeport.job_coordinator.model.ids import TaskName

_LOG = logging.getLogger(__name__)
_SHOWN = 80
_PAIRS = 11
"""One more than a view of a store shows."""


class ValueGuard:
    """Refuses or drops values that are larger than their store's limit.

    Source: Samza 1.8, ``disallow.large.messages`` and ``drop.large.messages``. ``dropped``: the
    number of puts that were skipped so far.
    """

    @staticmethod
    def of(config: StoreConfig, task_name: TaskName) -> ValueGuard | None:
        """Return the store's guard; None where it takes values of any size."""
        return None if config.large_values is LargeValues.SEND else ValueGuard(config, task_name)

    def __init__(self, config: StoreConfig, task_name: TaskName) -> None:
        self._refuses = config.large_values is LargeValues.REFUSE
        self._limit = config.large_value_bytes
        self.store = config.name
        self.task_name = task_name
        self.dropped = 0

    def admitted(self, entries: Mapping[bytes, bytes | None]) -> Mapping[bytes, bytes | None]:
        """Return those of ``entries`` that may be put.

        Raises:
            RecordTooLargeError: a value is over the limit and the store refuses such.
        """
        limit = self._limit
        large = [key for key, value in entries.items() if value is not None and len(value) > limit]
        if not large:
            return entries
        for key in large:
            self._met(key, len(entries[key] or b""))
        return {key: value for key, value in entries.items() if key not in large}

    def _met(self, key: bytes, size: int) -> None:
        said = (
            f"store {self.store} of task {self.task_name!r}: the value of key {key[:_SHOWN]!r} "
            f"has {size} bytes, stores.{self.store}.changelog.max.message.size.bytes is "
            f"{self._limit}"
        )
        if self._refuses:
            raise RecordTooLargeError(f"{said}; put less, or raise the limit")
        self.dropped += 1
        _LOG.warning("skipped a put: %s (%d so far)", said, self.dropped)


class TypedStore:
    """One task's part of one store; implements ``homeport.container.api.KeyValueStore``."""

    def __init__(
        self,
        entries: Overlay | ReadOnlyEntries,
        key_serde: Serde,
        msg_serde: Serde,
        guard: ValueGuard | None = None,
    ) -> None:
        self._entries = entries
        self._guard = guard
        self._key = key_serde
        self._msg = msg_serde
        self._has_warned = False
        if guard is None and isinstance(entries, Overlay):
            own = bytes if key_serde is serde("bytes") else None
            calls = key_serde.to_bytes, msg_serde.to_bytes, msg_serde.from_bytes
            vars(self).update(entries.of_objects(*calls, own))

    def __repr__(self) -> str:
        """Show the types and the first pairs, or why they cannot be read."""
        what = f"store of {self._key.name} and {self._msg.name}"
        try:
            with self.all() as pairs:
                found = [f"{key!r}: {value!r:.{_SHOWN}}" for key, value in islice(pairs, _PAIRS)]
        except Exception as error:  # noqa: BLE001 - a view of it fails nothing
            return f"<{what}: {in_one_line(error)}>"
        return f"<{what}: {{{', '.join([*found[:-1], '...'] if len(found) == _PAIRS else found)}}}>"

    def get(self, key: Any, default: Any = None) -> Any:  # noqa: ANN401 - the type is the serde's
        """Return the value of ``key``; ``default`` where there is none."""
        data = self._entries.get(self._key_bytes(key))
        return default if data is None else self._msg.from_bytes(data)

    def get_all(self, keys: Iterable[Any]) -> dict[Any, Any]:
        """Return the values of those of ``keys`` that have one."""
        wanted = list(keys)
        values = self._entries.get_all([self._key_bytes(key) for key in wanted])
        from_bytes = self._msg.from_bytes
        return {
            key: from_bytes(data)
            for key, data in zip(wanted, values, strict=True)
            if data is not None
        }

    def get_arrow(self, keys: pa.Array | pa.ChunkedArray) -> pa.Array:
        """Return the values of ``keys``, in their order; null where there is none."""
        form = _form(self._msg)
        _require_keys(keys)
        # Joins ask for few keys many times.
        wanted, places = _form(self._key).distinct(keys)
        return form.from_bytes(self._entries.get_all(wanted)).take(places)

    def put(self, key: Any, value: Any) -> None:  # noqa: ANN401 - the type is the serde's
        """Give ``key`` the value; None deletes it."""
        data = None if value is None else self._msg.to_bytes(value)
        self._put_all({self._key_bytes(key): data})

    def put_all(self, pairs: Mapping[Any, Any]) -> None:
        """Give each key its value; None deletes it."""
        to_bytes = self._msg.to_bytes
        self._put_all(
            {
                self._key_bytes(key): None if value is None else to_bytes(value)
                for key, value in pairs.items()
            }
        )

    def put_arrow(
        self, keys: pa.Array | pa.ChunkedArray, values: pa.Array | pa.ChunkedArray
    ) -> None:
        """Give each key the value at its place, the last one if a key comes again; null deletes it.

        Raises:
            ValueError: there are not as many values as keys.
        """
        data = _form(self._msg).to_bytes(values)
        _require_keys(keys)
        key_data: list[Any] = _form(self._key).to_bytes(keys)
        self._put_all(dict(zip(key_data, data, strict=True)))

    def delete(self, key: Any) -> None:  # noqa: ANN401 - the type is the serde's
        """Delete the value of ``key``."""
        self._entries.put(self._key_bytes(key), None)

    def delete_all(self, keys: Iterable[Any]) -> None:
        """Delete the values of ``keys``."""
        self._entries.put_all(dict.fromkeys(map(self._key_bytes, keys)))

    def range(self, start: Any, end: Any) -> TypedPairs:  # noqa: ANN401 - the type is the serde's
        """Return the pairs with start <= key < end, as they stand now; whole numbers in order.

        Other keys are in the order of their bytes.

        Raises:
            ValueError: by that order the range would be wrong.
        """
        if start is None or end is None:
            raise no_key()
        parts = parts_of_range(self._key, start, end)
        if not self._has_warned and is_by_text(self._key, start):
            self._has_warned = True
            _LOG.warning(
                "range(%r, %r) goes by the text of the serde 'json', in which 10 comes before 9: "
                "it is that of the numbers only where all have one width",
                start,
                end,
            )
        return self._typed(chain.from_iterable([self._entries.scan(*part) for part in parts]))

    def prefix(self, prefix: str | bytes) -> TypedPairs:
        """Return pairs whose key's bytes begin with ``prefix``, as they stand; str: its UTF-8."""
        start = prefix.encode() if isinstance(prefix, str) else prefix
        return self._typed(self._entries.scan(start, _end_of_prefix(start)))

    def all(self) -> TypedPairs:
        """Return all pairs in the order of the key's bytes, as they stand now."""
        return self._typed(self._entries.scan())

    def all_arrow(self, rows: int = 65536) -> Generator[pa.RecordBatch, None, None]:
        """Yield all pairs in the order of ``all``, as they stand now, in batches of ``rows``."""
        return _batches(self._entries.scan(), _form(self._key), _form(self._msg), rows)

    def _put_all(self, entries: Mapping[bytes, bytes | None]) -> None:
        self._entries.put_all(entries if self._guard is None else self._guard.admitted(entries))

    def _key_bytes(self, key: Any) -> bytes:  # noqa: ANN401 - the type is the serde's
        if key is None:
            raise no_key()
        return self._key.to_bytes(key)

    def _typed(self, pairs: Iterable[tuple[bytes, bytes]]) -> TypedPairs:
        return TypedPairs(_decoded(pairs, self._key, self._msg))


class TypedPairs:
    """Implements ``homeport.container.api.KeyValueIterator``."""

    def __init__(self, pairs: Generator[tuple[Any, Any], None, None]) -> None:
        self._pairs = pairs

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        # Not itself: a loop over a generator costs less.
        return self._pairs

    def __next__(self) -> tuple[Any, Any]:
        return next(self._pairs)

    def close(self) -> None:
        """End the pairs; what held them is let go."""
        self._pairs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _decoded(
    pairs: Iterable[tuple[bytes, bytes]], key: Serde, msg: Serde
) -> Generator[tuple[Any, Any], None, None]:
    key_from, msg_from = key.from_bytes, msg.from_bytes
    for key_bytes, msg_bytes in pairs:
        yield key_from(key_bytes), msg_from(msg_bytes)


def _batches(
    pairs: Pairs, key: ArrowForm, msg: ArrowForm, rows: int
) -> Generator[pa.RecordBatch, None, None]:
    while part := list(islice(pairs, rows)):
        # Not by zip(*part): so many arguments cost seven times this.
        columns = [key.from_bytes([k for k, _ in part]), msg.from_bytes([v for _, v in part])]
        yield pa.record_batch(columns, names=["key", "value"])


def _require_keys(keys: pa.Array | pa.ChunkedArray) -> None:
    if keys.null_count:
        raise ValueError("a store's key may not be null")


def _form(serde: Serde) -> ArrowForm:
    form = arrow_form(serde.name)
    if form is None:
        raise TypeError(f"the serde {serde.name!r} has no Arrow type: use get_all and put_all")
    return form


def _end_of_prefix(prefix: bytes) -> bytes | None:
    """Return the first key behind all that begin with ``prefix``; None: there is none."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None
