"""JsonReader: JSON objects of a known schema into columns, by the native library."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa

from homeport.container.native import library
from homeport.container.native.library import ArrowArray, NoLibraryError
from homeport.container.serde.columns import PARTS, Columns

KINDS: tuple[pa.DataType | None, ...] = (
    None,
    pa.string(),
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.timestamp("us", "UTC"),
    pa.date32(),
)
"""Types of fields in the order of the library's ``Kind``; the first one is a struct."""
_MOST_PARTS = 64


class _Field(NamedTuple):
    kind: int
    object: int
    name: bytes
    is_made: bool
    is_needed: bool = False


def natively(columns: Columns) -> Columns:
    """Return ``columns`` with the native reader, where values are JSON that it reads.

    It reads what it is sure about; Python decodes each other value, so that values and refusals
    stay what they are. The same ``columns`` return where the library is missing.
    """
    needs = columns.json_needs
    if needs is None or not _is_read(columns.type) or not is_there():
        return columns

    @lru_cache(PARTS)
    def reader(wanted: pa.StructType) -> JsonReader:
        return JsonReader(columns.type, wanted, needs)

    return replace(columns, read=lambda values, wanted: reader(wanted).read(values))


def is_there() -> bool:
    """Return whether this installation has the native reader."""
    try:
        _native()
    except NoLibraryError:
        return False
    return True


class JsonReader:
    """Reads values of one schema."""

    def __init__(
        self, kind: pa.StructType, wanted: pa.StructType, needs: frozenset[str] = frozenset()
    ) -> None:
        """``kind``: the schema; ``wanted``: some of its fields, which become columns.

        ``needs``: the fields without which a value is left to Python.
        """
        self._native = _native()
        self._wanted = wanted
        names = {own.name for own in wanted}
        fields = [_Field(0, 0, b"", is_made=True)]
        for own in kind:
            first, *parts = _fields(own, 0, len(fields), is_made=own.name in names)
            fields += [first._replace(is_needed=own.name in needs), *parts]
        count = len(fields)
        self._reader: int | None = self._native.homeport_json_open(
            count,
            (ctypes.c_int32 * count)(*(field.kind for field in fields)),
            (ctypes.c_int32 * count)(*(field.object for field in fields)),
            (ctypes.c_char_p * count)(*(field.name for field in fields)),
            (ctypes.c_bool * count)(*(field.is_made for field in fields)),
            (ctypes.c_bool * count)(*(field.is_needed for field in fields)),
        )
        if not self._reader:
            raise MemoryError

    def read(self, values: pa.Array) -> tuple[pa.StructArray, list[int]]:
        """Return the column of ``values``, an array of binary, and the places left to Python.

        The column has an element for each value; those of the places have no meaning.
        """
        rows = len(values)
        unsure, array = (ctypes.c_int32 * rows)(), ArrowArray()
        valid, ends, data = values.buffers()
        left = self._native.homeport_json_read(
            self._reader,
            ends.address if ends else None,
            data.address if data else None,
            valid.address if valid else None,
            values.offset,
            rows,
            unsure,
            array,
        )
        if left < 0:
            raise MemoryError
        column = pa.Array._import_from_c(ctypes.addressof(array), self._wanted)  # noqa: SLF001 - as Arrow's manual
        return column, unsure[:left]

    def __del__(self) -> None:
        """Free the reader: the cache of a serde drops readers, and nothing else knows when."""
        reader = getattr(self, "_reader", None)
        if reader:
            self._native.homeport_json_close(reader)


def _fields(own: pa.Field, of: int, number: int, *, is_made: bool) -> Iterator[_Field]:
    """Yield ``own``, which gets ``number``, and its parts; ``of``: the number of its object."""
    is_struct = pa.types.is_struct(own.type)
    kind = 0 if is_struct else KINDS.index(own.type)
    yield _Field(kind, of, own.name.encode(), is_made)
    after = number + 1
    for part in own.type if is_struct else ():
        for found in _fields(part, number, after, is_made=is_made):
            yield found
            after += 1


def _is_read(kind: pa.DataType) -> bool:
    """Return whether the library has ``kind``."""
    if not pa.types.is_struct(kind):
        return kind in KINDS
    parts = list(kind)
    return len(parts) <= _MOST_PARTS and all(_is_read(part.type) for part in parts)


@functools.cache
def _native() -> ctypes.CDLL:
    native = library.load()
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    native.homeport_json_open.restype = pointer
    native.homeport_json_open.argtypes = (ctypes.c_int32, *(pointer,) * 5)
    native.homeport_json_read.restype = number
    native.homeport_json_read.argtypes = (
        *(pointer, pointer, pointer, pointer),
        *(number, number, pointer, pointer),
    )
    native.homeport_json_close.restype, native.homeport_json_close.argtypes = None, (pointer,)
    return native
