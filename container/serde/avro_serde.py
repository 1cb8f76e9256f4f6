"""The serde avro: values of one schema, in Avro's binary form, without header or schema id.

In a column, a union has null and one type. Values that Spark has no type for (uuid, time of day,
duration) stand in a column as the number, text or bytes that carry them in Avro.

The library is an extra of homeport, imported only here: a job without Avro needs none.
"""

import io
import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from homeport.config.errors import ConfigError, WireError, in_one_line
from homeport.config.settings.serde_names import AVRO
from homeport.container.serde.avro_bounds import bounds_of
from homeport.container.serde.avro_defaults import with_defaults
from homeport.container.serde.avro_layout import avro_layout
from homeport.container.serde.avro_values import (
    READERS,
    from_avro,
    has_union,
    read_by,
    sound,
    to_avro,
)
from homeport.container.serde.columns import Columns, object_columns, reason_of
from homeport.container.serde.evolution.avro_rules import avro_fault
from homeport.container.serde.serdes import Serde, not_installed

_PRIMITIVES = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}
_LOGICAL = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("us", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
    "time-millis": pa.int32(),
    "time-micros": pa.int64(),
    "uuid": pa.string(),
}
_MEANT = (
    *("type", "name", "fields", "symbols", "items", "values", "size"),
    *("logicalType", "precision", "scale"),
)
_READ = ("default", "aliases")
_WHOLE = "HomeportWhole"
_STREAM = re.compile(" from <[^>]*>$")
"""What the library adds to a reason: an address, which differs from record to record."""


def avro_serde(key: str, schema: str) -> Serde:
    """Return the serde of ``schema``, which is JSON.

    Raises:
        ConfigError: the library is not installed, or it is no schema; the line names ``key``.
    """
    parsed = parsed_schema(key, schema)
    import fastavro  # noqa: PLC0415 - an extra: only for a job with avro

    exact, require_bounds = to_avro(parsed), bounds_of(parsed)

    def to_bytes(value: Any) -> bytes:  # noqa: ANN401 - a user's value
        data = io.BytesIO()
        try:
            fastavro.schemaless_writer(data, parsed, exact(value), strict=True)
            if require_bounds is not None:
                require_bounds(data.getvalue())
        except Exception as error:  # noqa: BLE001 - fastavro has no common error
            raise TypeError(
                f"the schema of the serde 'avro' cannot carry it: {reason_of(error)}"
            ) from None
        return data.getvalue()

    def columns() -> Columns:
        read = from_avro_bytes(reader_of(parsed, is_column=True))
        found = object_columns(column_type(parsed), read)
        return replace(found, layout=avro_layout(parsed))

    return Serde(AVRO, to_bytes, from_avro_bytes(reader_of(parsed)), columns=columns)


def from_avro_bytes(read: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    """Return ``read``, a reader of ``reader_of``, that raises WireError for what it cannot read."""

    def from_bytes(data: bytes) -> Any:  # noqa: ANN401 - a user's value
        try:
            return read(data)
        except Exception as error:  # noqa: BLE001 - damaged bytes may raise anything
            reason = _STREAM.sub("", reason_of(error))
            raise WireError(f"not of the serde 'avro': {data[:80]!r} ({reason})") from None

    return from_bytes


def reader_of(
    written: Any,  # noqa: ANN401 - a parsed schema
    given: Any = None,  # noqa: ANN401 - as above
    *,
    is_column: bool = False,
) -> Callable[[bytes], Any]:
    """Return an exact reader of bytes that were written by the schema ``written``.

    ``given``: the schema of the values; None: the writer's. ``is_column``: the values are for a
    column of ``column_type``. The reader raises errors of any class.
    """
    import fastavro  # noqa: PLC0415 - as in ``avro_serde``

    def parsed(schema: Any) -> Any:  # noqa: ANN401 - as above
        read = read_by(schema, is_column=is_column)
        return fastavro.parse_schema(read if given is None else _in_record(read))

    fastavro.read.LOGICAL_READERS.update(READERS)
    own, other = parsed(written), None if given is None else parsed(given)
    wanted = written if given is None else given
    convert, has_names = from_avro(wanted), not is_column and has_union(wanted)
    require_bounds = bounds_of(written)
    own_copy = with_defaults(other, fastavro.read.LOGICAL_READERS, has_names=has_names)

    def read(data: bytes) -> Any:  # noqa: ANN401 - a user's value
        if require_bounds is not None:
            require_bounds(data)
        stream = io.BytesIO(data)
        value: Any = fastavro.schemaless_reader(stream, own, other, return_named_type=has_names)
        value = value if given is None else value[_WHOLE]
        if stream.tell() != len(data):
            raise ValueError("bytes are left over")
        return value if is_column else convert(own_copy(value))

    return read


def _in_record(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the record with one field of ``schema``, whose bytes are those of the field.

    The library parses an array, map or union at each value again, and refuses ``with_defaults``.
    """
    return {"type": "record", "name": _WHOLE, "fields": [{"name": _WHOLE, "type": schema}]}


def parsed_schema(key: str, schema: str) -> Any:  # noqa: ANN401 - JSON
    """Return ``schema``, which is JSON, with full names; errors as of ``avro_serde``."""
    try:
        import fastavro  # noqa: PLC0415 - an extra: only for a job with avro
    except ImportError:
        raise not_installed(key, AVRO, "fastavro", "avro") from None
    try:
        parsed = fastavro.parse_schema(sound(json.loads(schema)))
        to_avro(parsed)  # which refuses unions whose values look alike
    except Exception as error:  # noqa: BLE001 - fastavro has no common error
        raise ConfigError(
            key, schema, f"it is no Avro schema ({in_one_line(error)})", "correct it"
        ) from None
    return parsed


def column_type(schema: Any) -> pa.DataType:  # noqa: ANN401 - JSON
    """Return the type of a column of values of ``schema``.

    Raises:
        ValueError: no column has such values; the message names them.
    """
    import fastavro  # noqa: PLC0415 - as in ``avro_serde``

    # Parsed, each name is a full one: two records of one short name differ by their namespaces.
    return _type(fastavro.parse_schema(sound(schema)), {}, ())


def avro_meaning(key: str, schema: str) -> object:
    """Return Avro's canonical form with logical types; errors as of ``avro_serde``."""
    return _kept(parsed_schema(key, schema), _MEANT)


def avro_reading(key: str, schema: str) -> object:
    """Return ``avro_meaning`` with what decides how values of other schemas are read."""
    return _kept(parsed_schema(key, schema), (*_MEANT, *_READ))


def avro_read_fault(written: Any, given: Any) -> str | None:  # noqa: ANN401 - JSON
    """Return why values of ``written`` are not read by ``given``; None: they are."""
    fault = avro_fault(written, given)
    if fault is None:
        try:
            reader_of(written, given)
        except Exception as error:  # noqa: BLE001 - fastavro has no common error
            return f"it cannot be read by this schema ({in_one_line(error)})"
    return fault


def fingerprint_of(schema: Any) -> bytes:  # noqa: ANN401 - JSON
    """Return the fingerprint of Avro's single-object encoding: CRC-64-AVRO, little-endian."""
    from fastavro.schema import fingerprint, to_parsing_canonical_form  # noqa: PLC0415 - as above

    return bytes.fromhex(fingerprint(to_parsing_canonical_form(schema), "CRC-64-AVRO"))


def _kept(schema: object, parts: Collection[str]) -> object:
    if isinstance(schema, list):
        return [_kept(branch, parts) for branch in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept = {part: schema[part] for part in parts if part in schema}
    if "fields" in kept:
        kept["fields"] = [_kept_field(field, parts) for field in kept["fields"]]
    for part in ("type", "items", "values"):
        if part in kept:
            kept[part] = _kept(kept[part], parts)
    return kept["type"] if set(kept) == {"type"} else kept


def _kept_field(field: Mapping[str, Any], parts: Collection[str]) -> dict[str, Any]:
    about = {part: field[part] for part in _READ if part in parts and part in field}
    return {"name": field["name"], "type": _kept(field["type"], parts)} | about


def _type(
    schema: Any,  # noqa: ANN401 - JSON
    named: dict[str, Any],
    within: tuple[str, ...],
) -> pa.DataType:
    """Return the type. ``named``: definitions so far, by full names; ``within``: records around."""
    if isinstance(schema, list):
        others = [branch for branch in schema if branch != "null"]
        if len(others) != 1:
            raise ValueError(f"a union of {len(others)} types is no column: {json.dumps(schema)}")
        return _type(others[0], named, within)
    if isinstance(schema, str):
        return _of_name(schema, named, within)
    logical = schema.get("logicalType")
    if "name" in schema:
        named[schema["name"]] = schema
    if logical is not None:
        decimal = pa.decimal128(schema.get("precision", 1), schema.get("scale", 0))
        return _LOGICAL.get(logical, decimal)
    return _composed(schema, named, within)


def _composed(
    schema: Mapping[str, Any], named: dict[str, Any], within: tuple[str, ...]
) -> pa.DataType:
    kind = schema["type"]
    if kind == "array":
        return pa.list_(_type(schema["items"], named, within))
    if kind == "map":
        return pa.map_(pa.string(), _type(schema["values"], named, within))
    if kind in {"record", "error"}:
        inside = (*within, schema["name"])
        fields = [(f["name"], _type(f["type"], named, inside)) for f in schema["fields"]]
        return pa.struct(fields)
    return _of_name(kind, named, within)


def _of_name(name: str, named: dict[str, Any], within: tuple[str, ...]) -> pa.DataType:
    if name in _PRIMITIVES:
        return _PRIMITIVES[name]
    if name in within:
        raise ValueError(f"the record {name} holds itself, and so is no column")
    return _type(named[name], named, within)
