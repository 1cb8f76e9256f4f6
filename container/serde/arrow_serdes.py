"""Serdes over Arrow: from a column to the bytes of its elements and back, as a whole.

PURE. The bytes are those of the serde of the same name in ``serdes``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from homeport.config.errors import WireError


@dataclass(frozen=True, slots=True)
class ArrowForm:
    """The serde ``name`` for columns of ``type``; null is None.

    Raises:
        TypeError: ``to_bytes`` was given a column of another type, or a number that does not fit.
        WireError: ``from_bytes`` was given bytes that are not of this serde.
    """

    name: str
    type: pa.DataType
    accepts: Callable[[pa.DataType], bool]
    _encode: Callable[[pa.Array], pa.Array]
    _decode: Callable[[Sequence[bytes | None]], pa.Array]

    def to_bytes(self, column: pa.Array | pa.ChunkedArray) -> list[bytes | None]:
        """Return the bytes of each element."""
        elements: list[bytes | None] = self.encoded(column).to_pylist()
        return elements

    def distinct(self, column: pa.Array | pa.ChunkedArray) -> tuple[list[bytes], pa.Array]:
        """Return the bytes of the distinct elements, and the index of each element among them.

        ``column`` has no null.
        """
        found = self.encoded(column).dictionary_encode()
        return found.dictionary.to_pylist(), found.indices

    def encoded(self, column: pa.Array | pa.ChunkedArray) -> pa.Array:
        """Return the bytes of each element as a column."""
        array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if not self.accepts(array.type):
            raise TypeError(f"the serde {self.name!r} carries {self.type}, not {array.type}")
        try:
            return self._encode(array.cast(self.type))
        except pa.ArrowInvalid as error:
            raise TypeError(f"a number does not fit the serde {self.name!r}: {error}") from None

    def from_bytes(self, data: Sequence[bytes | None]) -> pa.Array:
        """Return the column of the elements with these bytes."""
        try:
            return self._decode(data)
        except pa.ArrowInvalid as error:
            raise WireError(f"not of the serde {self.name!r}: {error}") from None


def arrow_form(name: str) -> ArrowForm | None:
    """Return the Arrow form of the serde ``name``; None where it has none."""
    return _FORMS.get(name)


def is_binary(kind: pa.DataType) -> bool:
    """Return whether elements of this type are bytes, or all null."""
    return kind == pa.null() or _is_bytes(kind)


def whole_binary(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column of bytes as one array of large_binary; their data are not copied."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return array.cast(pa.large_binary())


def lengths(column: pa.Array) -> pa.Array:
    """Return the number of bytes of each element of such a column; 0 of null."""
    return pc.binary_length(column).fill_null(0)


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _bytes_out(data: Sequence[bytes | None]) -> pa.Array:
    return pa.array(data, pa.binary())


def _numbers(name: str, kind: pa.DataType, accepts: Callable[[pa.DataType], bool]) -> ArrowForm:
    native = np.dtype(kind.to_pandas_dtype())
    big_endian = native.newbyteorder(">")
    packed = pa.binary(native.itemsize)

    def encode(array: pa.Array) -> pa.Array:
        data = pa.py_buffer(array.fill_null(0).to_numpy().astype(big_endian))
        elements = pa.Array.from_buffers(packed, len(array), [None, data])
        if array.null_count:
            return pc.if_else(array.is_valid(), elements, pa.scalar(None, packed))
        return elements

    def decode(data: Sequence[bytes | None]) -> pa.Array:
        elements = pa.array(data, packed)
        validity, values = elements.buffers()
        numbers = np.frombuffer(values, big_endian, len(elements)).astype(native)
        return pa.Array.from_buffers(kind, len(elements), [validity, pa.py_buffer(numbers)])

    return ArrowForm(name, kind, accepts, encode, decode)


_FORMS = {
    form.name: form
    for form in (
        ArrowForm("bytes", pa.binary(), _is_bytes, lambda array: array, _bytes_out),
        ArrowForm(
            "string",
            pa.string(),
            _is_text,
            lambda array: array.cast(pa.binary()),
            lambda data: _bytes_out(data).cast(pa.string()),
        ),
        _numbers("integer", pa.int32(), pa.types.is_integer),
        _numbers("long", pa.int64(), pa.types.is_integer),
        _numbers(
            "double", pa.float64(), lambda k: pa.types.is_floating(k) or pa.types.is_integer(k)
        ),
    )
}
