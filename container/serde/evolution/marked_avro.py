"""Avro values of several schemas in one store.

Plain Avro does not name its schema. Values of the first schema stay as they are; those of each
later one begin with the mark of Avro's single-object encoding: two bytes, and the fingerprint of
the schema. A value of the first schema that begins so by chance gets a mark too, unless it is older
than the second schema: then eight more bytes must agree by chance.

Source: Avro 1.11, "Single-object encoding" and "Parsing Canonical Form".
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from homeport.config.errors import WireError
from homeport.config.settings.serde_names import SchemaSerde
from homeport.container.serde.avro_serde import (
    fingerprint_of,
    from_avro_bytes,
    parsed_schema,
    reader_of,
)
from homeport.container.serde.evolution.avro_rules import avro_fault
from homeport.container.serde.evolution.readable import schema_in
from homeport.container.serde.forms import form_of, shown
from homeport.container.serde.schema_serde import schema_of
from homeport.container.serde.serdes import Serde

_MARK = b"\xc3\x01"
_MARK_BYTES = 10


def mark_of(form: str) -> bytes:
    """Return what the bytes of a value in this form begin with, where it is not the first form."""
    return _MARK + fingerprint_of(schema_in(form))


def avro_of_one_schema(entry: SchemaSerde, plain: Serde, first: str) -> Serde:
    """Return the serde that reads values of the schema of ``entry`` alone.

    The schemas of others are not at hand. ``first``: the form of unmarked values, in brief.
    """
    # Not by the form, which lacks a long schema.
    mark = _MARK + fingerprint_of(json.loads(schema_of(entry)))
    is_first = shown(form_of(entry)) == first

    def from_bytes(data: bytes) -> Any:  # noqa: ANN401 - a user's value
        if data.startswith(mark):
            return plain.from_bytes(data[_MARK_BYTES:])
        if not is_first or data.startswith(_MARK):
            raise WireError(f"of another schema: {data[:80]!r}")
        return plain.from_bytes(data)

    return replace(plain, from_bytes=from_bytes, columns=None)


def marked_avro(entry: SchemaSerde, plain: Serde, writers: Sequence[str]) -> Serde:
    """Return the serde of values that ``writers`` wrote, the first one without marks.

    ``plain``: the serde of the schema of ``entry``, which one of the writers had.
    """
    own = parsed_schema(entry.schema_key, schema_of(entry))
    brief = shown(form_of(entry))

    def reader(form: str) -> Callable[[bytes], Any]:
        if shown(form) == brief:
            return plain.from_bytes
        written = parsed_schema(entry.schema_key, json.dumps(schema_in(form)))
        return from_avro_bytes(reader_of(written, own))

    readers = {mark: reader(form) for mark, form in _widest(writers).items()}
    first_mark = mark_of(writers[0])
    of_first = readers[first_mark]
    own_mark = mark_of(next(form for form in writers if shown(form) == brief))
    is_first = own_mark == first_mark

    def to_bytes(value: Any) -> bytes:  # noqa: ANN401 - a user's value
        data = plain.to_bytes(value)
        return data if is_first and not data.startswith(_MARK) else own_mark + data

    def from_bytes(data: bytes) -> Any:  # noqa: ANN401 - a user's value
        marked = readers.get(data[:_MARK_BYTES]) if data.startswith(_MARK) else None
        return of_first(data) if marked is None else marked(data[_MARK_BYTES:])

    return replace(plain, to_bytes=to_bytes, from_bytes=from_bytes, columns=None)


def _widest(writers: Sequence[str]) -> dict[bytes, str]:
    """Return the form of each mark; of those that differ in digits of decimals, the widest one."""
    found: dict[bytes, str] = {}
    for form in writers:
        mark = mark_of(form)
        former = found.get(mark)
        if former is None or avro_fault(schema_in(former), schema_in(form)) is None:
            found[mark] = form
    return found
