"""The rules by which a schema of Avro reads the values of another one. PURE.

They are Avro's schema resolution, less what would change a value: a number that becomes another
one, a time in another unit. The library takes more in some places, and reads other values then.
"""

from collections.abc import Mapping, Sequence
from typing import Any

_NAMED = ("record", "error", "enum", "fixed")
_WIDER = {("int", "long"), ("int", "double"), ("float", "double"), ("string", "bytes")}
_LOSSY = {("int", "float"), ("long", "float"), ("long", "double")}
_TAKEN = _WIDER | _LOSSY | {("bytes", "string")}
"""The pairs of types that the library takes for one another."""
Path = tuple[str, ...]


def avro_fault(writer: Any, reader: Any) -> str | None:  # noqa: ANN401 - schemas with full names
    """Return why values of ``writer`` are not read by ``reader``, with the field; None: they are.

    Both are JSON, without logical types that Avro ignores.
    """
    return _Pair(writer, reader).fault(writer, reader, ())


def at(path: Path, rule: str) -> str:
    """Return the rule with the field of ``path``; without one, the rule alone."""
    return f"field {'.'.join(path)}: {rule}" if path else rule


class _Pair:
    """A schema of a writer and one of a reader, and the records in both that were compared."""

    def __init__(self, writer: Any, reader: Any) -> None:  # noqa: ANN401 - as above
        self._writers: dict[str, Mapping[str, Any]] = {}
        self._readers: dict[str, Mapping[str, Any]] = {}
        _name(writer, self._writers)
        _name(reader, self._readers)
        self._seen: set[tuple[str, str]] = set()

    def fault(self, writer: Any, reader: Any, path: Path, *, in_union: bool = False) -> str | None:  # noqa: ANN401 - as above
        """Return the first fault. ``in_union``: the writer's type is one of a union."""
        if isinstance(writer, list):
            if not isinstance(reader, list) and any(self._is_named(b) for b in writer):
                return at(path, "a union is read as a union alone")
            found = (self.fault(b, reader, path, in_union=True) for b in writer)
            return next((fault for fault in found if fault is not None), None)
        if isinstance(reader, list):
            return self._of_reader_union(writer, reader, path, in_union=in_union)
        return self._of_types(_full(writer, self._writers), _full(reader, self._readers), path)

    def _of_reader_union(
        self,
        writer: Any,  # noqa: ANN401 - as above
        branches: Sequence[Any],
        path: Path,
        *,
        in_union: bool,
    ) -> str | None:
        if not in_union and self._is_named(writer) and sum(b != "null" for b in branches) > 1:
            return at(path, f"{self._label(writer)} is read as a union of it and null alone")
        for branch in branches:  # the library takes the first that may fit
            if self._may_fit(writer, branch):
                if branch == "bytes" and self._label(writer) == "string" in branches:
                    return at(path, "a string of the union would be read as bytes")
                return self.fault(writer, branch, path)
        return at(path, f"{self._label(writer)} is no type of the union")

    def _of_types(
        self, writer: Mapping[str, Any], reader: Mapping[str, Any], path: Path
    ) -> str | None:
        was, now = _kind(writer), _kind(reader)
        if was in _NAMED and now in _NAMED:
            return self._of_named(writer, reader, path)
        for kind, part, place in (("array", "items", "[]"), ("map", "values", "{}")):
            if was == now == kind:
                return self.fault(writer[part], reader[part], (*path, place))
        if (was, now) in _LOSSY:
            return at(path, f"a number of {was} may be another one as {now}")
        is_wider = (was, now) in _WIDER and "logicalType" not in {*writer, *reader}
        return None if is_wider else _of_logical(writer, reader, path)

    def _of_named(
        self, writer: Mapping[str, Any], reader: Mapping[str, Any], path: Path
    ) -> str | None:
        was, now = _kind(writer), _kind(reader)
        if was != now or not _is_called(writer, reader):
            rule = f"{was} {writer['name']} is no {now} {reader['name']}"
            return at(path, f"{rule}, which has no such alias" if was == now else rule)
        if was == "enum":
            missing = [symbol for symbol in writer["symbols"] if symbol not in reader["symbols"]]
            if not missing or reader.get("default"):
                return None
            return at(path, f"symbol {missing[0]} is missing, and there is no default")
        if was == "fixed":
            sizes = writer["size"], reader["size"]
            rule = f"{sizes[0]} bytes are no {sizes[1]}"
            is_same = sizes[0] == sizes[1]
            return _of_logical(writer, reader, path) if is_same else at(path, rule)
        pair = writer["name"], reader["name"]
        if pair in self._seen:
            return None
        self._seen.add(pair)
        return self._of_fields(writer["fields"], reader["fields"], path)

    def _of_fields(
        self, writer: Sequence[Mapping[str, Any]], reader: Sequence[Mapping[str, Any]], path: Path
    ) -> str | None:
        own = {field["name"]: field for field in reader}
        aliases = {alias: field for field in reader for alias in field.get("aliases", ())}
        read: set[str] = set()
        for field in writer:
            found = own.get(field["name"], aliases.get(field["name"]))
            if found is None:
                continue
            inside = (*path, found["name"])
            if found["name"] in read:
                return at(inside, "two fields are read as this one")
            read.add(found["name"])
            fault = self.fault(field["type"], found["type"], inside)
            if fault is not None:
                return fault
        for name, field in own.items():
            if name not in read and "default" not in field:
                return at((*path, name), "it is missing in older values, and has no default")
        return None

    def _may_fit(self, writer: Any, reader: Any) -> bool:  # noqa: ANN401 - as above
        one, other = _full(writer, self._writers), _full(reader, self._readers)
        was, now = _kind(one), _kind(other)
        if was in _NAMED and now in _NAMED:
            return one.get("size") == other.get("size") and _is_called(one, other)
        return was == now or (was, now) in _TAKEN

    def _is_named(self, schema: Any) -> bool:  # noqa: ANN401 - as above
        return _kind(_full(schema, self._writers)) in _NAMED

    def _label(self, schema: Any) -> str:  # noqa: ANN401 - as above
        full = _full(schema, self._writers)
        return f"{_kind(full)} {full['name']}" if "name" in full else _shown(full)


def _name(schema: Any, found: dict[str, Mapping[str, Any]]) -> None:  # noqa: ANN401 - as above
    if isinstance(schema, list):
        for branch in schema:
            _name(branch, found)
    elif isinstance(schema, Mapping):
        if "name" in schema:
            found[schema["name"]] = schema
        for part in ("type", "items", "values"):
            _name(schema.get(part), found)
        for field in schema.get("fields", ()):
            _name(field["type"], found)


def _full(schema: Any, named: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:  # noqa: ANN401 - as above
    if isinstance(schema, str):
        return named.get(schema, {"type": schema})
    found: Mapping[str, Any] = schema
    return _full(found["type"], named) if isinstance(found["type"], Mapping) else found


def _kind(schema: Mapping[str, Any]) -> str:
    return "record" if schema["type"] == "error" else str(schema["type"])


def _is_called(writer: Mapping[str, Any], reader: Mapping[str, Any]) -> bool:
    name, aliases = str(writer["name"]), reader.get("aliases", ())
    short = name.rpartition(".")[2]
    return short == reader["name"].rpartition(".")[2] or name in aliases or short in aliases


def _of_logical(writer: Mapping[str, Any], reader: Mapping[str, Any], path: Path) -> str | None:
    was, now = writer.get("logicalType"), reader.get("logicalType")
    if was != now or _kind(writer) != _kind(reader):
        return at(path, f"{_shown(writer)} is no {_shown(reader)}")
    if was == "decimal" and (
        writer.get("scale", 0) != reader.get("scale", 0)
        or writer["precision"] > reader["precision"]
    ):
        return at(path, "a decimal keeps its scale, and loses no digits")
    return None


def _shown(schema: Mapping[str, Any]) -> str:
    return str(schema.get("logicalType", schema["type"]))
