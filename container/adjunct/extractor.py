"""Makes entries, as bytes, of the records of an adjunct stream, a whole table at a time.

PURE. Source: ADJUNCT, "Key and Value": by default an entry has the record's own key and value, else
those that the job's extractor takes from the record.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from homeport.config.errors import HomeportError, in_one_line
from homeport.container.api import IncomingMessage, KeyValueExtractor
from homeport.container.callables import object_fault
from homeport.container.progress.transaction_plan import RESERVED_PREFIX
from homeport.container.serde.arrow_serdes import arrow_form
from homeport.container.serde.columns import reason_of
from homeport.container.serde.serdes import Serde, SerdeFailedError

Bytes = Sequence[bytes | None]
Recode = Callable[[bytes | None], bytes | None]
Refuse = Callable[[Mapping[str, Any], str], None]
"""Gets the row of a record that cannot be stored, and why; it may raise to end the container."""
MessagesOf = Callable[[pa.Table], Iterable[IncomingMessage]]
"""The messages of a table's rows, in their order; a row that cannot be read may be left out."""

_NOTHING: tuple[bytes | None, bytes | None] = (None, None)
"""The entry of a record that cannot be read: it is not stored."""


class ExtractorFailedError(HomeportError):
    """The extractor of a job failed, or returned what the store's serdes cannot carry."""


@dataclass(frozen=True, slots=True)
class Serdes:
    """The serdes of keys and of values; None: they are bytes."""

    key: Serde | None
    msg: Serde | None


class KeyAndValue:
    """The default: the record's own key and value.

    Bytes are passed on as they are where the stream has no serde, or the store's (``kept``).
    ``refuse`` gets each record that has no key, or that the stream's serdes cannot read.
    """

    def __init__(self, store: str, stream: Serdes, kept: Serdes, refuse: Refuse) -> None:
        self._store = store
        self._refuse = refuse
        self._key = _recoder(stream.key, kept.key)
        self._msg = _recoder(stream.msg, kept.msg)

    def of(self, rows: pa.Table) -> tuple[Bytes, Bytes]:
        """Return the bytes of keys and values, in the order of the rows of one partition.

        A key that is None is not stored; a value that is None deletes its key.

        Raises:
            ExtractorFailedError: the store's serde cannot carry an object of the stream's serde.
            SerdeFailedError: a serde failed; the record need not be at fault.
        """
        keys: Bytes = rows["key"].to_pylist()
        values: Bytes = rows["value"].to_pylist()
        try:
            found = _recoded(keys, self._key)
            if not (None in found or has_reserved(found)):
                return found, _recoded(values, self._msg)
        except TypeError as error:
            raise _failed(self._store, error) from error
        except SerdeFailedError:
            raise
        except (HomeportError, ValueError, RecursionError):
            pass  # at least one of them is bad; the next step finds it
        return self._one_by_one(rows, keys, values)

    def _one_by_one(self, rows: pa.Table, keys: Bytes, values: Bytes) -> tuple[Bytes, Bytes]:
        found = []
        for index, pair in enumerate(zip(keys, values, strict=True)):
            entry, reason = _NOTHING, ""
            try:
                key = self._key(pair[0])
                if key is None:
                    reason = f"it has no key, under which store {self._store} would keep it"
                elif has_reserved([key]):
                    reason = f"store {self._store} cannot keep it: its key is a reserved one"
                else:
                    entry = key, self._msg(pair[1])
            except TypeError as error:
                raise _failed(self._store, error) from error
            except SerdeFailedError:
                raise
            except (HomeportError, ValueError, RecursionError) as error:
                reason = f"store {self._store} cannot keep it: {reason_of(error)}"
            if reason:
                self._refuse(rows.slice(index, 1).to_pylist()[0], reason)
            found.append(entry)
        return [key for key, _ in found], [value for _, value in found]


class ByExtractor:
    """The key and value that the job's ``extractor`` takes from each record.

    ``kept``: the serdes of the store. ``messages_of``: for an extractor that takes no tables.

    Raises:
        ExtractorFailedError: a call of one of its methods would not run it.
    """

    def __init__(
        self, store: str, extractor: KeyValueExtractor, kept: Serdes, messages_of: MessagesOf
    ) -> None:
        fault = object_fault(extractor, KeyValueExtractor)
        if fault is not None:
            raise ExtractorFailedError(f"store {store}: {fault}")
        self._store = store
        self._extractor = extractor
        self._kept = kept
        self._messages_of = messages_of

    def of(self, rows: pa.Table) -> tuple[Bytes, Bytes]:
        """Return the bytes as ``KeyAndValue``; ExtractorFailedError where the job's code raised."""
        try:
            columns = self._extractor.get_arrow(rows)
        except Exception as error:  # the job's own code may raise anything
            raise _failed(self._store, error) from error
        if columns is not None:
            keys, values = self._of_columns(rows.num_rows, *columns)
        else:
            found = {m.offset: self._of_message(m) for m in self._messages_of(rows)}
            pairs = [found.get(offset, _NOTHING) for offset in rows["offset"].to_pylist()]
            keys, values = [key for key, _ in pairs], [value for _, value in pairs]
        if has_reserved(keys):
            raise ExtractorFailedError(f"store {self._store}: its extractor made a reserved key")
        return keys, values

    def _of_columns(self, count: int, keys: pa.Array, values: pa.Array) -> tuple[Bytes, Bytes]:
        if (len(keys), len(values)) != (count, count):
            raise ExtractorFailedError(
                f"store {self._store}: get_arrow of {type(self._extractor).__name__} returned "
                f"{len(keys)} keys and {len(values)} values of {count} records"
            )
        try:
            return _column(self._kept.key, keys), _column(self._kept.msg, values)
        except TypeError as error:
            raise _failed(self._store, error) from error

    def _of_message(self, message: IncomingMessage) -> tuple[bytes | None, bytes | None]:
        try:
            key = self._extractor.get_key(message)
            value = None if key is None else self._extractor.get_value(message)
        except Exception as error:  # the job's own code may raise anything
            raise _failed(self._store, error) from error
        return encoded(self._store, self._kept, key, value)


Extraction = KeyAndValue | ByExtractor
"""Makes entries of records."""


def has_reserved(keys: Bytes) -> bool:
    """Return whether one of ``keys`` is one of this project's own."""
    return any(key is not None and key.startswith(RESERVED_PREFIX) for key in keys)


def _recoder(stream: Serde | None, kept: Serde | None) -> Recode:
    if stream is None or kept is None or stream == kept:
        return _same
    # Own ones of one name are of one class; a name like avro does not say which schema it is of.
    if stream.is_own and stream.name == kept.name:
        return _same
    return lambda data: None if data is None else kept.to_bytes(stream.from_bytes(data))


def _same(data: bytes | None) -> bytes | None:
    return data


def _recoded(data: Bytes, recode: Recode) -> Bytes:
    return data if recode is _same else list(map(recode, data))


def _column(serde: Serde | None, column: pa.Array | pa.ChunkedArray) -> Bytes:
    name = "bytes" if serde is None else serde.name
    form = arrow_form(name)
    if form is None:
        raise TypeError(f"the serde {name!r} has no Arrow type: leave get_arrow out")
    return form.to_bytes(column)


def encoded(
    store: str, kept: Serdes, key: object, value: object
) -> tuple[bytes | None, bytes | None]:
    """Return their bytes; ExtractorFailedError where the store's serdes cannot carry them."""
    try:
        return _one(kept.key, key), _one(kept.msg, value)
    except TypeError as error:
        raise _failed(store, error) from error


def _one(serde: Serde | None, part: Any) -> bytes | None:  # noqa: ANN401 - the type is the serde's
    if part is None:
        return None
    if serde is not None:
        return serde.to_bytes(part)
    if not isinstance(part, bytes):
        raise TypeError(f"without a serde it must be bytes, not {type(part).__name__}")
    return part


def _failed(store: str, error: Exception) -> ExtractorFailedError:
    return ExtractorFailedError(f"store {store}: its key and value: {in_one_line(error)}")
