"""ColumnReader: records of a known schema, as JSON or Avro, into columns by the native library."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa

from homeport.container.native import library
from homeport.container.native.library import ArrowArray, NoLibraryError
from homeport.container.serde.columns import JSON, PARTS, Columns, Layout

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
    pa.binary(),
)
"""Types of fields in the order of the library's ``Kind``; the first one is a struct."""
_MOST_PARTS = 64
_HEADER_BYTES = 5
"""Of values of a schema registry."""


class _Field(NamedTuple):
    kind: int
    object: int
    name: bytes
    is_made: bool
    form: int = 0


def natively(columns: Columns) -> Columns:
    """Return ``columns`` with the native reader, where their ``layout`` is one that it reads.

    It reads what it is sure about; Python decodes each other value, so that values and refusals
    stay what they are. The same ``columns`` return where the library is missing.
    """
    layout = columns.layout
    if layout is None or not _is_read(columns.type, layout.language) or not is_there():
        return columns

    @lru_cache(PARTS)
    def reader(wanted: pa.StructType) -> ColumnReader:
        return ColumnReader(columns.type, wanted, layout)

    def read(values: pa.Array, wanted: pa.StructType) -> tuple[pa.Array, Sequence[int]]:
        header = b""
        if columns.has_layout is not None:
            header = next((own.as_py()[:_HEADER_BYTES] for own in values if own.is_valid), b"")
            if not columns.has_layout(header):
                return pa.nulls(len(values), wanted), range(len(values))
        return reader(wanted).read(values, header)

    return replace(columns, read=read)


def is_there() -> bool:
    """Return whether this installation has the native reader."""
    try:
        _native()
    except NoLibraryError:
        return False
    return True


class ColumnReader:
    """Reads values of one schema."""

    def __init__(self, kind: pa.StructType, wanted: pa.StructType, layout: Layout) -> None:
        """``kind``: the schema; ``wanted``: some of its fields, which become columns."""
        self._native = _native()
        self._read = getattr(self._native, f"homeport_{layout.language}_read")
        self._wanted = wanted
        names = {own.name for own in wanted}
        fields = [_Field(0, 0, b"", is_made=True)]
        for own in kind:
            is_made = own.name in names
            fields += _fields(own, (own.name,), 0, len(fields), layout.forms, is_made=is_made)
        count = len(fields)
        self._reader: int | None = self._native.homeport_columns_open(
            count,
            (ctypes.c_int32 * count)(*(field.kind for field in fields)),
            (ctypes.c_int32 * count)(*(field.object for field in fields)),
            (ctypes.c_char_p * count)(*(field.name for field in fields)),
            (ctypes.c_bool * count)(*(field.is_made for field in fields)),
            (ctypes.c_int32 * count)(*(field.form for field in fields)),
        )
        if not self._reader:
            raise MemoryError

    def read(self, values: pa.Array, header: bytes = b"") -> tuple[pa.StructArray, list[int]]:
        """Return the column of ``values``, an array of binary, and the places left to Python.

        ``header``: the bytes before what is read of each value; others are left to Python.
        The column has an element for each value; those of the places have no meaning.
        """
        rows = len(values)
        unsure, array = (ctypes.c_int32 * rows)(), ArrowArray()
        valid, ends, data = values.buffers()
        left = self._read(
            self._reader,
            header,
            len(header),
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
            self._native.homeport_columns_close(reader)


def _fields(
    own: pa.Field,
    path: tuple[str, ...],
    of: int,
    number: int,
    forms: Mapping[tuple[str, ...], int],
    *,
    is_made: bool,
) -> Iterator[_Field]:
    """Yield ``own``, which gets ``number``, and its parts; ``of``: the number of its object."""
    is_struct = pa.types.is_struct(own.type)
    kind = 0 if is_struct else KINDS.index(own.type)
    yield _Field(kind, of, own.name.encode(), is_made, forms.get(path, 0))
    after = number + 1
    for part in own.type if is_struct else ():
        for found in _fields(part, (*path, part.name), number, after, forms, is_made=is_made):
            yield found
            after += 1


def _is_read(kind: pa.DataType, language: str) -> bool:
    """Return whether the library has ``kind``."""
    if pa.types.is_struct(kind):
        parts = list(kind)
        return len(parts) <= _MOST_PARTS and all(_is_read(own.type, language) for own in parts)
    # JSON has bytes as Base64.
    return kind in KINDS and not (pa.types.is_binary(kind) and language == JSON)


@functools.cache
def _native() -> ctypes.CDLL:
    native = library.load()
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    native.homeport_columns_open.restype = pointer
    native.homeport_columns_open.argtypes = (ctypes.c_int32, *(pointer,) * 5)
    for read in (native.homeport_json_read, native.homeport_avro_read):
        read.restype = number
        read.argtypes = (
            *(pointer, ctypes.c_char_p, number, pointer, pointer, pointer),
            *(number, number, pointer, pointer),
        )
    native.homeport_columns_close.restype = None
    native.homeport_columns_close.argtypes = (pointer,)
    return native
