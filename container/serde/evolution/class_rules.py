"""The rules by which a class reads the JSON of another one, or of itself as it was. PURE.

A class is described as {its name: its fields and types}, with the classes of its fields, the class
itself first. A field that JSON lacks has its default, and one that the class lacks is passed over.
"""

from collections.abc import Mapping
from typing import Any, get_args

import msgspec
from msgspec import inspect as types

from homeport.container.serde.evolution.avro_rules import Path, at

_RECORDS = (types.DataclassType, types.StructType, types.TypedDictType, types.NamedTupleType)
_DICTS = (types.DictType, getattr(types, "FrozenDictType", types.DictType))
_MANY = (types.ListType, types.SetType, types.FrozenSetType, types.VarTupleType)
_EMPTY = (list, dict, set)
"""The factories of defaults that JSON may lack; the library writes what others make."""
_RECORD = "record"
_COMPOSED = {"values", "dict", "tuple", *(each.__name__ for each in _MANY)}
Described = Mapping[str, Any]


def class_meaning(record: type) -> dict[str, Any]:
    """Return the description of ``record``; TypeError where JSON cannot become it."""
    found: dict[str, Any] = {}
    _describe(types.type_info(record), found)
    return found


def class_fault(writer: Described, reader: Described) -> str | None:
    """Return why JSON of ``writer`` does not become ``reader``, with the field; None: it does."""
    return _Pair(writer, reader).of_records(next(iter(writer)), next(iter(reader)), ())


def _describe(found: types.Type, known: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    """Return the description of a type; ``known`` gets the classes in it."""
    if isinstance(found, types.Metadata):
        return _describe(found.type, known)
    if isinstance(found, _RECORDS):
        about: Any = {_RECORD: _describe_record(found, known)}
    elif isinstance(found, types.UnionType):
        about = {"union": sorted((_describe(part, known) for part in found.types), key=repr)}
    elif isinstance(found, _MANY):
        about = {type(found).__name__: _describe(found.item_type, known)} | _bounds(found)
    elif isinstance(found, types.TupleType):
        about = {"tuple": [_describe(part, known) for part in found.item_types]}
    elif isinstance(found, _DICTS):
        parts = [_describe(part, known) for part in (found.key_type, found.value_type)]
        about = {"dict": parts} | _bounds(found)
    elif isinstance(found, types.EnumType):
        about = {"values": sorted((member.value for member in found.cls), key=repr)}
    elif isinstance(found, types.LiteralType):
        about = {"values": sorted(found.values, key=repr)}
    elif isinstance(found, types.CustomType):
        about = {"custom": f"{found.cls.__module__}.{found.cls.__qualname__}"}
    else:
        about = {"type": type(found).__name__} | _bounds(found)
    return about


def _bounds(found: types.Type) -> dict[str, Any]:
    given = {name: getattr(found, name) for name in type(found).__struct_fields__}
    return {name: value for name, value in given.items() if isinstance(value, int | float | str)}


def _describe_record(found: Any, known: dict[str, Any]) -> str:  # noqa: ANN401 - one of _RECORDS
    name = f"{found.cls.__module__}.{found.cls.__qualname__}"
    if arguments := get_args(found.cls):  # of a generic class
        name = f"{name}{list(arguments)}"
    if name in known:
        return name
    about: dict[str, Any] = {}
    known[name] = about
    settings = getattr(found.cls, "__struct_config__", None)
    omits = bool(settings and settings.omit_defaults)
    about["fields"] = {
        own.encode_name: _describe_field(own, known, omits=omits) for own in found.fields
    }
    for trait in ("array_like", "forbid_unknown_fields", "tag_field", "tag"):
        value = getattr(found, trait, None)
        if value is not None and value is not False:
            about[trait] = value
    if isinstance(found, types.NamedTupleType):
        about["array_like"] = True
    return name


def _describe_field(own: types.Field, known: dict[str, Any], *, omits: bool) -> dict[str, Any]:
    """Return the type of a field, whether JSON must have it, and what it is where JSON lacks it.

    ``omits``: JSON lacks a field that has its default.
    """
    about: dict[str, Any] = {"type": _describe(own.type, known)}
    if own.required:
        return about | {"required": True}
    has_default = own.default is not msgspec.NODEFAULT
    if not has_default and own.default_factory is msgspec.NODEFAULT:
        return about | {"omitted": ""}  # a key that a dict may lack, or UNSET
    is_omitted = omits and (has_default or own.default_factory in _EMPTY)
    return about | {"omitted": _shown(own)} if is_omitted else about


def _shown(own: types.Field) -> str:
    value = own.default if own.default_factory is msgspec.NODEFAULT else own.default_factory()
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, msgspec.MsgspecError):
        return type(value).__name__


class _Pair:
    def __init__(self, writer: Described, reader: Described) -> None:
        self._writer, self._reader = writer, reader
        self._seen: set[tuple[str, str]] = set()

    def of_records(self, was: str, now: str, path: Path) -> str | None:
        """Return the first fault of two classes, by their full names."""
        if (was, now) in self._seen:
            return None
        before = set(self._seen)
        self._seen.add((was, now))
        fault = self._of_classes(self._writer[was], self._reader[now], path)
        if fault is not None:
            self._seen = before  # another type of a union may be compared next
        return fault

    def _of_classes(self, old: Described, new: Described, path: Path) -> str | None:
        for trait in ("tag_field", "tag"):
            if old.get(trait) != new.get(trait):
                return at(path, f"{trait} {old.get(trait)!r} is no {new.get(trait)!r}")
        if old.get("array_like") or new.get("array_like"):
            is_same = old == new and list(old["fields"]) == list(new["fields"])
            if not is_same:
                return at(path, "an array_like class keeps its fields")
        if new.get("forbid_unknown_fields"):
            gone = [name for name in old["fields"] if name not in new["fields"]]
            if gone:
                return at((*path, gone[0]), "older values have it, and the class forbids that")
        for name, field in new["fields"].items():
            fault = self._of_fields(old["fields"].get(name), field, (*path, name))
            if fault is not None:
                return fault
        return None

    def _of_fields(self, was: Described | None, now: Described, path: Path) -> str | None:
        if was is None:
            missing = "it is missing in older values, and has no default"
            return at(path, missing) if now.get("required") else None
        if "omitted" in was and now.get("omitted") != was["omitted"]:
            return at(path, "where older values lack it, it would be another value")
        return self._of_types(was["type"], now["type"], path)

    def _of_types(self, was: Described, now: Described, path: Path) -> str | None:
        if _RECORD in was and _RECORD in now:
            return self.of_records(was[_RECORD], now[_RECORD], path)
        if "union" in was:
            found = (self._of_types(part, now, path) for part in was["union"])
            return next((fault for fault in found if fault is not None), None)
        if "union" in now:
            faults = [self._of_types(was, part, path) for part in now["union"]]
            return None if None in faults else self._no(was, now, path)
        kind = next(iter(was))
        if kind == next(iter(now)) and kind in _COMPOSED:
            return self._of_composed(was, now, kind, path)
        # A type without bounds reads all that the same type with bounds has written.
        is_free = list(now) == ["type"] and now["type"] == was.get("type")
        return None if was == now or is_free else self._no(was, now, path)

    def _of_composed(self, was: Described, now: Described, kind: str, path: Path) -> str | None:
        old, new = was[kind], now[kind]
        if kind == "values":
            missing = [value for value in old if value not in new]
            return at(path, f"{missing[0]!r} is no value of it") if missing else None
        is_list = isinstance(old, Mapping)
        if {**was, kind: 0} != {**now, kind: 0} or (not is_list and len(old) != len(new)):
            return self._no(was, now, path)
        if is_list:
            return self._of_types(old, new, (*path, "[]"))
        found = (self._of_types(a, b, (*path, "{}")) for a, b in zip(old, new, strict=True))
        return next((fault for fault in found if fault is not None), None)

    def _no(self, was: Described, now: Described, path: Path) -> str | None:
        return at(path, f"{_named(was)} is no {_named(now)}")


def _named(found: Described) -> str:
    if "union" in found:
        return " | ".join(_named(part) for part in found["union"])
    kind, what = next(iter(found.items()))
    return (
        str(what)
        if kind == _RECORD
        else str(what if kind == "type" else kind).removesuffix("Type").lower()
    )
