"""How records of an Avro schema are laid out, for a reader without objects. PURE."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from homeport.container.serde.columns import AVRO, MILLIS, NULL_SECOND, OPTIONAL, Layout

_PLAIN: Mapping[tuple[str, str | None], int] = {
    **{(name, None): 0 for name in ("boolean", "int", "long", "float", "double")},
    **{(name, None): 0 for name in ("bytes", "string")},
    ("int", "date"): 0,
    ("long", "timestamp-millis"): MILLIS,
    ("long", "timestamp-micros"): 0,
}
"""{(type, logical type): its form}."""
_RECORDS = ("record", "error")
_Forms = Iterator[tuple[tuple[str, ...], int]]


class _OtherError(Exception):
    """The schema has a type without a layout."""


def avro_layout(schema: Any) -> Layout | None:  # noqa: ANN401 - a schema that fastavro has parsed
    """Return the layout of ``schema``, which ``column_type`` takes.

    None: it is no record, or a field is none of the plain types, a time, a record, or a union of
    one of these with null.
    """
    if not isinstance(schema, Mapping) or schema["type"] not in _RECORDS:
        return None
    try:
        return Layout(AVRO, dict(_of_record(schema, (), {})))
    except _OtherError:
        return None


def _of_record(
    schema: Mapping[str, Any], path: tuple[str, ...], named: dict[str, Mapping[str, Any]]
) -> _Forms:
    named[schema["name"]] = schema
    for own in schema["fields"]:
        yield from _of_field(own["type"], (*path, own["name"]), named)


def _of_field(
    kind: Any,  # noqa: ANN401 - JSON
    path: tuple[str, ...],
    named: dict[str, Mapping[str, Any]],
) -> _Forms:
    form = 0
    if isinstance(kind, list):
        if len(kind) != 2 or "null" not in kind:  # noqa: PLR2004 - null and one more
            raise _OtherError
        form = OPTIONAL | (NULL_SECOND if kind[1] == "null" else 0)
        kind = kind[kind[0] == "null"]
    kind = named.get(kind, kind) if isinstance(kind, str) else kind
    name = kind if isinstance(kind, str) else kind["type"]
    logical = None if isinstance(kind, str) else kind.get("logicalType")
    if name in _RECORDS:
        yield path, form
        yield from _of_record(kind, path, named)
    elif (name, logical) in _PLAIN:
        yield path, form | _PLAIN[name, logical]
    else:
        raise _OtherError
