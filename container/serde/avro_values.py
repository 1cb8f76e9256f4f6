"""Exact conversions between values of Avro and of Python. PURE.

The library alone would write 1 for 1.5, and an infinity for a large float. It would cut times, and
take a time without a zone for one in the host's zone. It would write the first branch of a union
that fits, so that a record leaves as another record with the same fields. It would read an int of
64 bits.
"""

import datetime as dt
import decimal
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from homeport.container.serde.exact_values import (
    Convert,
    double,
    map_of,
    octets,
    of_class,
    or_null,
    single,
    text,
    truth,
    whole,
)

DAY_US = 86_400_000_000
EXACT = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
"""A context that rounds no decimal."""
_CARRIED = ("time-millis", "time-micros", "uuid")
"""Logical types for which a column has the carrying numbers or texts, not the values."""
_EXACTLY, _AS_CARRIED = "homeport-", "homeport-carried-"
_MIDNIGHT = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_UUID = re.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def reader_name(logical: str, *, is_column: bool) -> str:
    """Return the name by which the library finds the reader of a logical type.

    ``is_column``: read the carrier of each value that no column has.
    """
    if logical in _CARRIED and is_column:
        return _AS_CARRIED + logical
    return _EXACTLY + logical if logical in _CARRIED or logical == "decimal" else logical


def _decimal_out(data: bytes, schema: Mapping[str, Any], _: object = None) -> Decimal:
    unscaled = int.from_bytes(data, "big", signed=True)
    if abs(unscaled) >= 10 ** schema["precision"]:
        raise ValueError(f"{unscaled} has more digits than the precision {schema['precision']}")
    return Decimal(unscaled).scaleb(-schema.get("scale", 0), EXACT)


def _time_out(step: int) -> Callable[..., dt.time]:
    """Return the reader of a time of day; ``step``: the number's unit in microseconds."""
    checked = _of_a_day(step)
    return lambda number, *_: (_MIDNIGHT + dt.timedelta(microseconds=checked(number) * step)).time()


def _of_a_day(step: int) -> Callable[..., int]:
    def checked(number: int, *_: object) -> int:
        if not 0 <= number * step < DAY_US:
            raise ValueError(f"{number} is no time of a day")
        return number

    return checked


def uuid_text(text: str, *_: object) -> str:
    """Return ``text``; ValueError where it is no UUID of RFC 4122: Python accepts more forms."""
    if not _UUID.fullmatch(text):
        raise ValueError(f"{text[:80]!r} is no UUID")
    return text


READERS: Mapping[str, Callable[..., Any]] = {
    f"bytes-{_EXACTLY}decimal": _decimal_out,
    f"fixed-{_EXACTLY}decimal": _decimal_out,
    f"int-{_EXACTLY}time-millis": _time_out(1000),
    f"long-{_EXACTLY}time-micros": _time_out(1),
    f"string-{_EXACTLY}uuid": lambda text, *_: uuid.UUID(uuid_text(text)),
    f"int-{_AS_CARRIED}time-millis": _of_a_day(1000),
    f"long-{_AS_CARRIED}time-micros": _of_a_day(1),
    f"string-{_AS_CARRIED}uuid": uuid_text,
}
"""{The library's name for a type with a name of ``reader_name``: the reader}."""


_NAMED = ("record", "error", "enum", "fixed")
_UNNAMED = ("array", "map")
_INT = "int"
_LOGICAL_TYPE, _DECIMAL = "logicalType", "decimal"
_INT_LIMIT = 1 << 31
_FIRST_MS, _BEHIND_MS = -62_135_596_800_000, 253_402_300_800_000
"""The years 1 to 9999, as Python has them."""


def to_avro(schema: Any, *, is_whole: bool = True) -> Convert:  # noqa: ANN401 - a schema that fastavro has parsed
    """Return a conversion of a user's value to one that the library writes exactly.

    It raises TypeError or ValueError for what the schema cannot carry. ``is_whole``: a record must
    have exactly the fields of its schema.
    """
    return _Writer(is_whole=is_whole).of(schema)


def from_avro(schema: Any) -> Convert:  # noqa: ANN401 - as above
    """Return a conversion of what the library reads, where unions come with the names of types.

    It removes each name that the value itself shows, and refuses an int of more than 32 bits.
    """
    return (_Reader() if has_union(schema) else _Ints()).of(schema)


def read_by(schema: Any, *, is_column: bool = False) -> Any:  # noqa: ANN401 - as above
    """Return the schema with which the library reads exactly, with ``READERS``.

    The library's own notes in ``schema`` are removed: else it would take a type that is named again
    for the former one. ``is_column``: read the carrier of each value that no column has.
    """
    return _with_logical(schema, lambda logical: reader_name(logical, is_column=is_column))


def sound(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """Return ``schema`` without the logical types that Avro ignores, as at other types."""
    return _with_logical(schema, lambda logical: logical)


def _with_logical(schema: Any, become: Callable[[str], str]) -> Any:  # noqa: ANN401 - JSON
    if isinstance(schema, list):
        return [_with_logical(branch, become) for branch in schema]
    if not isinstance(schema, Mapping):
        return schema
    found = {k: v for k, v in schema.items() if not k.startswith("__") and k != _LOGICAL_TYPE}
    if _has_logical(schema):
        found[_LOGICAL_TYPE] = become(schema[_LOGICAL_TYPE])
    for part in ("type", "items", "values"):
        if part in found:
            found[part] = _with_logical(found[part], become)
    if "fields" in found:
        found["fields"] = [_with_logical(field, become) for field in found["fields"]]
    return found


def _has_logical(schema: Mapping[str, Any]) -> bool:
    kind, logical = schema.get("type"), schema.get(_LOGICAL_TYPE)
    if logical == _DECIMAL:
        return kind in ("bytes", "fixed") and "precision" in schema
    return isinstance(kind, str) and (kind, logical) in _LOGICAL


def has_union(schema: Any) -> bool:  # noqa: ANN401 - as above
    """Return whether the schema has a union of several types beside null."""
    if isinstance(schema, list):
        return any(map(has_union, schema)) or sum(b != "null" for b in schema) > 1
    if not isinstance(schema, Mapping):
        return False
    parts = [schema[part] for part in ("type", "items", "values") if part in schema]
    return any(map(has_union, [*parts, *(f["type"] for f in schema.get("fields", ()))]))


class _Names(ABC):
    """The named types of one schema, and the conversion of each: a record may hold itself."""

    def __init__(self) -> None:
        self._schemas: dict[str, Mapping[str, Any]] = {}
        self._made: dict[str, Convert] = {}

    def of(self, schema: Any) -> Convert:  # noqa: ANN401 - as above
        if isinstance(schema, list):
            return self.of_union(schema)
        if isinstance(schema, str):
            if schema in self._schemas:
                # Looked up at the call: a record that holds itself is not made yet.
                return lambda value: self._made[schema](value)  # noqa: PLW0108 - as said above
            schema = {"type": schema}
        name = schema.get("name")
        if name in _KINDS_OF_TYPES:
            raise ValueError(f"a type is called {name!r}, which is a kind of types: name it else")
        if name is not None:
            self._schemas[name] = schema
        found = self.of_type(schema)
        if name is not None:
            self._made[name] = found
        return found

    def full(self, schema: Any) -> Mapping[str, Any]:  # noqa: ANN401 - as above
        if isinstance(schema, str):
            return self._schemas.get(schema, {"type": schema})
        found: Mapping[str, Any] = schema
        return found

    def label(self, schema: Any) -> str:  # noqa: ANN401 - as above
        full = self.full(schema)
        return str(full["name"] if full["type"] in _NAMED else full["type"])

    def is_mistakable(self, branch: Any, branches: Sequence[Any]) -> bool:  # noqa: ANN401 - as above
        own = self.full(branch)
        others = [self.full(other) for other in branches if other is not branch]
        if own["type"] == "enum":
            return any(
                other["type"] == "string" or {*own["symbols"]} & {*other.get("symbols", ())}
                for other in others
            )
        if own["type"] == "fixed":
            return any(
                other["type"] == "bytes" or other.get("size") == own["size"] for other in others
            )
        if own["type"] not in _NAMED:
            return False
        return any(other["type"] == "map" or _names(other) == _names(own) for other in others)

    @abstractmethod
    def of_union(self, branches: Sequence[Any]) -> Convert: ...

    @abstractmethod
    def of_type(self, schema: Mapping[str, Any]) -> Convert: ...


class _Writer(_Names):
    def __init__(self, *, is_whole: bool) -> None:
        super().__init__()
        self._is_whole = is_whole

    def of_union(self, branches: Sequence[Any]) -> Convert:
        made = [(self.of(b), b) for b in branches]
        others = {self.label(b): convert for convert, b in made if b != "null"}
        # A mistakable branch comes as a pair: a plain value is first tried as another branch.
        ranks = {
            self.label(b): (self.is_mistakable(b, branches), _rank(self.full(b))) for b in branches
        }
        fields = {self.label(b): _names(self.full(b)) for b in branches}
        if len(ranks) < len(branches):
            labels = ", ".join(self.label(b) for b in branches)
            raise ValueError(f"a union has one type twice: {labels}")
        has_null = len(others) < len(branches)
        if len(others) == 1:
            (only,) = others.values()
            return or_null(only) if has_null else only
        ordered = sorted(others, key=ranks.__getitem__)

        def convert(value: Any) -> Any:  # noqa: ANN401 - a user's value
            if value is None and has_null:
                return None
            if isinstance(value, tuple) and len(value) == 2 and value[0] in others:  # noqa: PLR2004 - a pair
                return value[0], others[value[0]](value[1])
            for label in ordered if self._is_whole else _nearest(value, ordered, fields):
                try:
                    return label, others[label](value)
                except (TypeError, ValueError):
                    continue
            raise TypeError(
                f"{type(value).__name__} is of no type of the union {', '.join(others)}"
            )

        return convert

    def of_type(self, schema: Mapping[str, Any]) -> Convert:
        kind = schema["type"]
        if kind in {"record", "error"}:
            parts = {f["name"]: self.of(f["type"]) for f in schema["fields"]}
            return _record_in(parts, is_whole=self._is_whole)
        if kind == "array":
            each = self.of(schema["items"])
            return lambda items: [each(item) for item in of_class(items, list, tuple)]
        if kind == "map":
            return map_of(text, self.of(schema["values"]))
        return _leaf_in(schema)


class _Reader(_Names):
    def of_union(self, branches: Sequence[Any]) -> Convert:
        made = {self.label(b): (b, self.of(b)) for b in branches}
        mistakable = {
            label for label, (branch, _) in made.items() if self.is_mistakable(branch, branches)
        }
        kinds: dict[Any, Convert] = {
            _KINDS.get(label): convert for label, (_, convert) in made.items()
        }
        if "long" in made:  # whose numbers look like those of an int
            kinds.pop(int, None)

        def convert(value: Any) -> Any:  # noqa: ANN401 - what the library read
            if isinstance(value, tuple):
                name, inner = value
                found = made[name][1](inner)
                return (name, found) if name in mistakable else found
            return kinds.get(type(value), _as_it_is)(value)

        return convert

    def of_type(self, schema: Mapping[str, Any]) -> Convert:
        kind = schema["type"]
        if kind in {"record", "error"}:
            parts = {f["name"]: self.of(f["type"]) for f in schema["fields"]}
            return lambda record: {name: part(record[name]) for name, part in parts.items()}
        if kind == "array":
            each = self.of(schema["items"])
            return lambda items: [each(item) for item in items]
        if kind == "map":
            of_value = self.of(schema["values"])
            return lambda entries: {key: of_value(part) for key, part in entries.items()}
        return _int_out(schema)


class _Ints(_Names):
    def of_union(self, branches: Sequence[Any]) -> Convert:
        made = [self.of(branch) for branch in branches if branch != "null"]
        return or_null(made[0]) if made and made[0] is not _as_it_is else _as_it_is

    def of_type(self, schema: Mapping[str, Any]) -> Convert:
        kind = schema["type"]
        if kind in {"record", "error"}:
            made = [(f["name"], self.of(f["type"])) for f in schema["fields"]]
            return _looked_at([(name, part) for name, part in made if part is not _as_it_is])
        if kind == "array":
            each = self.of(schema["items"])
            return _as_it_is if each is _as_it_is else lambda items: _all(each, items, items)
        if kind == "map":
            one = self.of(schema["values"])
            return _as_it_is if one is _as_it_is else lambda m: _all(one, m.values(), m)
        return _int_out(schema)


def _looked_at(parts: Sequence[tuple[str, Convert]]) -> Convert:
    def look(record: Any) -> Any:  # noqa: ANN401 - what the library read
        for name, part in parts:
            part(record[name])
        return record

    return look if parts else _as_it_is


def _all(look: Convert, parts: Iterable[Any], whole: Any) -> Any:  # noqa: ANN401 - as above
    for part in parts:
        look(part)
    return whole


def _int_out(schema: Mapping[str, Any]) -> Convert:
    return _as_it_is if schema["type"] != _INT or _has_logical(schema) else _narrow


_KINDS = {"array": list, "map": dict, _INT: int}


def _narrow(number: int) -> int:
    if not -_INT_LIMIT <= number < _INT_LIMIT:
        raise ValueError(f"{number} is beyond an int of 32 bits")
    return number


def _rank(schema: Mapping[str, Any]) -> int:
    """Return the rank of a branch among those that are tried.

    A whole number is first tried as a number, then as a date or decimal, then as a float. A list is
    first tried as an array, then as the pairs of a map.
    """
    if _has_logical(schema):
        return 1
    return {"map": 1, "double": 2, "float": 3}.get(schema["type"], 0)


def _names(schema: Mapping[str, Any]) -> set[str] | None:
    return {field["name"] for field in schema["fields"]} if "fields" in schema else None


def _nearest(
    value: object, labels: Sequence[str], fields: Mapping[str, set[str] | None]
) -> Sequence[str]:
    if not isinstance(value, Mapping):
        return labels
    names = set(value)
    return sorted(labels, key=lambda label: len(names ^ (fields[label] or names)))


def _as_it_is(value: Any) -> Any:  # noqa: ANN401 - of any type
    return value


def _leaf_in(schema: Mapping[str, Any]) -> Convert:
    kind, logical = schema["type"], schema.get(_LOGICAL_TYPE)
    if logical == _DECIMAL and _has_logical(schema):
        return _decimal_in(schema["precision"], schema.get("scale", 0))
    if kind == "enum":
        return lambda value: _symbol(value, schema["symbols"])
    if kind == "fixed":
        return lambda value: _fixed(value, schema["size"])
    return _LOGICAL.get((kind, logical)) or _PRIMITIVES[kind]


def _record_in(parts: Mapping[str, Convert], *, is_whole: bool) -> Convert:
    def convert(value: Any) -> dict[str, Any]:  # noqa: ANN401 - a user's value
        found: dict[str, Any] = {}
        for name, part in of_class(value, Mapping).items():
            if is_whole and name not in parts:
                raise ValueError(f"the record has no field {name!r}")
            try:
                found[name] = parts.get(name, _as_it_is)(part)
            except (TypeError, ValueError) as error:
                raise TypeError(f"{name}: {error}") from None
        if is_whole and len(found) < len(parts):
            missing = ", ".join(name for name in parts if name not in found)
            raise ValueError(f"the record misses {missing}")
        return found

    return convert


def _symbol(value: Any, symbols: Sequence[str]) -> str:  # noqa: ANN401 - a user's value
    if text(value) not in symbols:
        raise ValueError(f"the enum has no symbol {value!r}")
    return str(value)


def _fixed(value: Any, size: int) -> bytes:  # noqa: ANN401 - a user's value
    data = octets(value)
    if len(data) != size:
        raise ValueError(f"{len(data)} bytes are no {size}")
    return data


def _between(first: int, behind: int) -> Convert:
    def convert(value: Any) -> int:  # noqa: ANN401 - a user's value
        number = whole(value)
        if not first <= number < behind:
            raise ValueError(f"{number} is not from {first} to {behind - 1}")
        return number

    return convert


def _decimal_in(precision: int, scale: int) -> Convert:
    def convert(value: Any) -> Decimal:  # noqa: ANN401 - a user's value
        number = value if isinstance(value, Decimal) else Decimal(whole(value))
        if not number.is_finite():
            raise ValueError(f"Avro has no decimal {number}")
        unscaled = number.scaleb(scale, EXACT)
        if abs(unscaled) >= 10**precision or unscaled != int(unscaled):
            raise ValueError(f"{number} does not fit the decimal({precision}, {scale})")
        return Decimal(int(unscaled)).scaleb(-scale, EXACT)

    return convert


def _or_number(convert: Convert, first: int, behind: int) -> Convert:
    """Return ``convert`` that also takes the number which carries the value in Avro."""
    number = _between(first, behind)
    return lambda value: number(value) if isinstance(value, int) else convert(value)


def _date(value: Any) -> Any:  # noqa: ANN401 - a user's value
    if isinstance(value, dt.datetime):
        raise TypeError("date is expected, not datetime")
    return of_class(value, dt.date)


def _uuid(value: Any) -> uuid.UUID:  # noqa: ANN401 - a user's value
    return value if isinstance(value, uuid.UUID) else uuid.UUID(uuid_text(text(value)))


def _time(step: int, kind: type, *, is_local: bool) -> Convert:
    """Return the conversion. ``step``: microseconds in one unit; ``is_local``: without a zone."""

    def convert(value: Any) -> Any:  # noqa: ANN401 - a user's value
        time = of_class(value, kind)
        if time.microsecond % step or getattr(time, "nanosecond", 0):
            raise ValueError(f"{time} has digits that the schema has not")
        if is_local and time.tzinfo is not None:
            raise ValueError(f"{time} has a zone, and the schema has none")
        if is_local:
            return time
        if time.tzinfo is None:  # the library would take it for one in the host's zone
            return time.replace(tzinfo=dt.UTC)
        return time.astimezone(dt.UTC)

    return convert


_PRIMITIVES: dict[str, Convert] = {
    "boolean": truth,
    _INT: _between(-_INT_LIMIT, _INT_LIMIT),
    "long": _between(-(1 << 63), 1 << 63),
    "float": single,
    "double": double,
    "bytes": octets,
    "string": text,
    "null": lambda value: of_class(value, type(None)),
}
_KINDS_OF_TYPES = {*_NAMED, *_UNNAMED, *_PRIMITIVES}
_YEARS_MS, _YEARS_US = (_FIRST_MS, _BEHIND_MS), (_FIRST_MS * 1000, _BEHIND_MS * 1000)
_AT, _TIME = dt.datetime, dt.time
_LOGICAL: dict[tuple[str, str | None], Convert] = {
    ("int", "date"): _or_number(_date, -719_162, 2_932_897),
    ("long", "timestamp-millis"): _or_number(_time(1000, _AT, is_local=False), *_YEARS_MS),
    ("long", "timestamp-micros"): _or_number(_time(1, _AT, is_local=False), *_YEARS_US),
    ("long", "local-timestamp-millis"): _or_number(_time(1000, _AT, is_local=True), *_YEARS_MS),
    ("long", "local-timestamp-micros"): _or_number(_time(1, _AT, is_local=True), *_YEARS_US),
    ("int", "time-millis"): _or_number(_time(1000, _TIME, is_local=True), 0, DAY_US // 1000),
    ("long", "time-micros"): _or_number(_time(1, _TIME, is_local=True), 0, DAY_US),
    ("string", "uuid"): _uuid,
}
