"""The columns of a class whose fields have types: a dataclass, a msgspec Struct or a TypedDict."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa
from msgspec import inspect as types

from homeport.container.serde.columns import JSON, NEEDED, Columns, Layout, object_columns

Convert = Callable[[Any], Any]


class _Column(NamedTuple):
    """``type``: of the column; ``convert``: makes what Arrow takes of a value; None: it is that."""

    type: pa.DataType
    convert: Convert | None = None


_SIMPLE: dict[type[types.Type], _Column] = {
    types.StrType: _Column(pa.string()),
    types.IntType: _Column(pa.int64()),
    types.FloatType: _Column(pa.float64()),
    types.BoolType: _Column(pa.bool_()),
    types.BytesType: _Column(pa.binary()),
    types.DateType: _Column(pa.date32()),
    types.DateTimeType: _Column(pa.timestamp("us", "UTC")),
    types.DecimalType: _Column(pa.decimal128(38, 18)),
    types.UUIDType: _Column(pa.string(), str),
}
"""A decimal has the digits that Spark gives it where nothing else is known."""
_WITHOUT_RULES = (
    *(types.StrType(), types.IntType(), types.FloatType(), types.BoolType()),
    *(types.DateType(), types.DateTimeType()),
)
"""Each value of such a type is one of its column, with no bounds, patterns or zones required."""
_LISTS = (types.ListType, types.VarTupleType, types.SetType, types.FrozenSetType)
_RECORDS = (types.DataclassType, types.StructType, types.TypedDictType)


def class_columns(record: type, decode: Callable[[bytes], Any]) -> Columns:
    """Return how bytes become a column of structs with the fields of ``record``.

    ``decode`` makes an object of the class.

    Raises:
        ValueError: a field has a type that no column has.
    """
    column = _struct(types.type_info(record), record.__name__)
    convert = column.convert
    assert convert is not None  # noqa: S101 - a struct always has one
    columns = object_columns(column.type, lambda data: convert(decode(data)))
    return replace(columns, layout=_layout(record))


def _layout(record: type) -> Layout | None:
    """Return the layout of JSON of ``record``; None: the class has rules of its own."""
    found: Any = types.type_info(record)
    if hasattr(record, "__post_init__") or not all(
        _plain(own.type) in _WITHOUT_RULES for own in found.fields
    ):
        return None
    if isinstance(found, types.StructType) and (
        found.array_like or found.forbid_unknown_fields or found.tag is not None
    ):
        return None
    is_dict = isinstance(found, types.TypedDictType)
    needed = [own.encode_name for own in found.fields if not _may_lack(own, is_dict=is_dict)]
    return Layout(JSON, {(name,): NEEDED for name in needed})


def _may_lack(field: types.Field, *, is_dict: bool) -> bool:
    """Return whether null, and JSON without the field, both mean None."""
    found = field.type.type if isinstance(field.type, types.Metadata) else field.type
    takes_null = isinstance(found, types.UnionType) and found.includes_none
    return takes_null and (not field.required if is_dict else field.default is None)


def _struct(found: Any, name: str) -> _Column:  # noqa: ANN401 - one of _RECORDS
    columns = {own.encode_name: _column(own.type, own.encode_name) for own in found.fields}
    if not columns:
        raise ValueError(f"{name} has no field")
    names = [(own.encode_name, own.name, columns[own.encode_name].convert) for own in found.fields]
    is_dict = isinstance(found, types.TypedDictType)

    def convert(value: Any) -> dict[str, Any]:  # noqa: ANN401 - an object of the class
        get: Callable[[str], Any] = value.get if is_dict else value.__getattribute__
        return {
            encoded: part if make is None or part is None else make(part)
            for encoded, own, make in names
            for part in [get(own)]
        }

    return _Column(pa.struct([(own, column.type) for own, column in columns.items()]), convert)


def _column(found: types.Type, name: str) -> _Column:
    found = _plain(found)
    if type(found) in _SIMPLE:
        return _SIMPLE[type(found)]
    if isinstance(found, _RECORDS):
        return _struct(found, name)
    if isinstance(found, _LISTS):
        return _list(_column(found.item_type, name))
    if isinstance(found, types.DictType):
        return _map(_column(found.key_type, name), _column(found.value_type, name))
    values: Sequence[object] = found.values if isinstance(found, types.LiteralType) else ()
    get: Convert | None = None
    if isinstance(found, types.EnumType):
        values, get = [member.value for member in found.cls], lambda member: member.value
    for kind, column in ((str, pa.string()), (int, pa.int64())):
        if values and all(isinstance(value, kind) for value in values):
            return _Column(column, get)
    raise ValueError(f"no column has the type of the field {name}, {type(found).__name__}")


def _list(item: _Column) -> _Column:
    convert = item.convert or (lambda value: value)

    def convert_all(values: Iterable[Any]) -> list[Any]:
        return [None if value is None else convert(value) for value in values]

    return _Column(pa.list_(item.type), convert_all)


def _map(key: _Column, value: _Column) -> _Column:
    of_key, of_values = key.convert or (lambda part: part), _list(value).convert
    assert of_values is not None  # noqa: S101 - a list always has one

    def convert(found: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
        return list(zip(map(of_key, found), of_values(found.values()), strict=True))

    return _Column(pa.map_(key.type, value.type), convert)


def _plain(found: types.Type) -> types.Type:
    if isinstance(found, types.Metadata):
        return _plain(found.type)
    if isinstance(found, types.UnionType):
        some = [each for each in found.types if not isinstance(each, types.NoneType)]
        if len(some) == 1:
            return _plain(some[0])
    return found
