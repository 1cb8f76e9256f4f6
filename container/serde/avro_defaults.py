"""The values of defaults in schemas of Avro, which JSON has in a form of its own. PURE.

The library gives a record the default as JSON has it: text for bytes, a number for a time, the
fields of a record that stand there alone, and one list for all records.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any

from homeport.container.serde.exact_values import Convert

_DEFAULT = "default"
_NAMED = ("record", "error", "enum", "fixed")
Readers = Mapping[str, Callable[..., Any]]
"""{the library's name of a logical type: its reader}."""


def with_defaults(schema: Any, readers: Readers, *, has_names: bool) -> Convert:  # noqa: ANN401 - a schema that fastavro has parsed
    """Give each default in ``schema`` its value; return a copy of what is read, where it needs one.

    ``schema``: of the reader; None: the writer's, without defaults. ``has_names``: a value of a
    named type in a union is a pair of name and value.
    """
    defaults = _Defaults(readers, has_names=has_names)
    defaults.name(schema)
    return copy.deepcopy if defaults.set_all() else lambda value: value


class _Defaults:
    def __init__(self, readers: Readers, *, has_names: bool) -> None:
        self._readers = readers
        self._has_names = has_names
        self._named: dict[str, Any] = {}
        self._fields: list[Any] = []

    def name(self, schema: Any) -> None:  # noqa: ANN401 - JSON
        if isinstance(schema, list):
            for branch in schema:
                self.name(branch)
        elif isinstance(schema, Mapping):
            if "name" in schema:
                self._named[schema["name"]] = schema
            for part in ("type", "items", "values"):
                self.name(schema.get(part))
            for field in schema.get("fields", ()):
                self._fields.append(field)
                self.name(field["type"])

    def set_all(self) -> bool:
        """Set the value of each default; return whether one of them can be changed in a record."""
        found = [
            (field, self._value(field["type"], field[_DEFAULT]))
            for field in self._fields
            if _DEFAULT in field
        ]
        for field, value in found:
            field[_DEFAULT] = value
        return any(isinstance(value, list | dict | tuple) for _, value in found)

    def _value(self, schema: Any, default: Any) -> Any:  # noqa: ANN401 - JSON
        if isinstance(schema, list):
            return self._of_union(schema, default)
        full = self._full(schema)
        kind = full["type"]
        if kind in {"record", "error"}:
            return {f["name"]: self._of_field(f, default) for f in full["fields"]}
        if kind == "array":
            return [self._value(full["items"], item) for item in default]
        if kind == "map":
            return {key: self._value(full["values"], part) for key, part in default.items()}
        if kind in {"bytes", "fixed"} and isinstance(default, str):
            default = default.encode("latin-1")
        elif kind in {"float", "double"}:
            default = float(default)
        read = self._readers.get(f"{kind}-{full.get('logicalType')}")
        return default if read is None else read(default, full, None)

    def _of_field(self, field: Mapping[str, Any], given: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
        name = field["name"]
        return self._value(field["type"], given[name] if name in given else field[_DEFAULT])

    def _of_union(self, branches: list[Any], default: Any) -> Any:  # noqa: ANN401 - JSON
        for branch in branches:
            full = self._full(branch)
            if _may_be(full["type"], default):
                value = self._value(branch, default)
                is_pair = self._has_names and full["type"] in _NAMED
                return (full["name"], value) if is_pair else value
        raise ValueError(f"{default!r} is no value of the union")

    def _full(self, schema: Any) -> Mapping[str, Any]:  # noqa: ANN401 - JSON
        found: Mapping[str, Any] = schema
        if isinstance(schema, str):
            found = self._named.get(schema, {"type": schema})
        return self._full(found["type"]) if isinstance(found["type"], Mapping) else found


_JSON: Mapping[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    **dict.fromkeys(("int", "long"), (int,)),
    **dict.fromkeys(("float", "double"), (int, float, str)),
    **dict.fromkeys(("bytes", "string", "enum", "fixed"), (str,)),
    **dict.fromkeys(("record", "error", "map"), (dict,)),
    "array": (list,),
}


def _may_be(kind: str, default: object) -> bool:
    return isinstance(default, _JSON[kind]) and (kind == "boolean") == isinstance(default, bool)
