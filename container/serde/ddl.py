"""Arrow types from schemas in Spark's DDL, such as ``carrier STRING, delay INT``. PURE."""

import re

import pyarrow as pa

_TOKEN = re.compile(
    r"\s*(?:(`(?:[^`]|``)+`)|([A-Za-z_]\w*)|([0-9]+)|('(?:[^'\\]|\\.)*')|([<>(),:]))"
)
_SIMPLE: dict[str, pa.DataType] = {
    "string": pa.string(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}
_KNOWN = (
    "string, tinyint, smallint, int, bigint, float, double, boolean, binary, date, timestamp, "
    "decimal(p, s), array<t>, map<k, v> or struct<name: t, ...>"
)
_MOST_DIGITS = 38
_DEEPEST = 50


def struct_of_ddl(text: str) -> pa.StructType:
    """Return the type of a record with the columns of ``text``; each may be null.

    Raises:
        ValueError: it is no DDL; the message has the fault and its place.
    """
    return pa.struct(_fields(_Reader(text), end=None, depth=0))


class _Reader:
    """Reads the tokens of a text, one after the other; ``""`` is the end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.token = ""
        self.is_quoted = False
        self.step()

    def step(self) -> str:
        passed = self.token
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            rest = self._text[self._at :].strip()
            if rest:
                raise ValueError(f"{rest[:20]!r} is not of a schema")
            self.token, self.is_quoted = "", False
            return passed
        self._at = match.end()
        self.is_quoted = match[1] is not None
        self.token = match[1][1:-1].replace("``", "`") if self.is_quoted else match[0].strip()
        return passed

    def passes(self, *words: str) -> bool:
        """Pass the present token if it is one of ``words``, in any case; return whether it was."""
        is_there = not self.is_quoted and self.token.lower() in words
        if is_there:
            self.step()
        return is_there

    def take(self, word: str) -> None:
        if not self.passes(word):
            raise ValueError(f"{word!r} is expected where {self.token or 'the end'!r} stands")


def _fields(reader: _Reader, end: str | None, depth: int) -> list[pa.Field]:
    fields: list[pa.Field] = []
    seen: set[str] = set()
    while True:
        if not reader.is_quoted and not re.fullmatch(r"[A-Za-z_]\w*", reader.token):
            raise ValueError(f"a name is expected where {reader.token or 'the end'!r} stands")
        name = reader.step()
        if name.lower() in seen:
            raise ValueError(f"the field {name!r} stands there twice")
        seen.add(name.lower())
        reader.passes(":")
        fields.append(pa.field(name, _type(reader, depth)))
        # NOT NULL and COMMENT change no value: each field may be null.
        if reader.passes("not"):
            reader.take("null")
        if reader.passes("comment"):
            if not reader.token.startswith("'"):
                raise ValueError("COMMENT needs a text in single quotes")
            reader.step()
        if not reader.passes(","):
            break
    if end is not None:
        reader.take(end)
    elif reader.token:
        raise ValueError(f"',' is expected where {reader.token!r} stands")
    return fields


def _type(reader: _Reader, depth: int) -> pa.DataType:
    if depth > _DEEPEST:
        raise ValueError(f"types are nested deeper than {_DEEPEST}")
    word = "" if reader.is_quoted else reader.token.lower()
    if word in _SIMPLE:
        reader.step()
        return _SIMPLE[word]
    if reader.passes("decimal", "dec", "numeric"):
        return _decimal(reader)
    if word not in {"array", "map", "struct"}:
        raise ValueError(f"{reader.token or 'the end'!r} is no type: write {_KNOWN}")
    reader.step()
    reader.take("<")
    if word == "struct":
        return pa.struct(_fields(reader, ">", depth + 1))
    first = _type(reader, depth + 1)
    if word == "array":
        reader.take(">")
        return pa.list_(first)
    if not (pa.types.is_string(first) or pa.types.is_integer(first)):
        raise ValueError("the key of a map is a string or a whole number")
    reader.take(",")
    second = _type(reader, depth + 1)
    reader.take(">")
    return pa.map_(first, second)


def _decimal(reader: _Reader) -> pa.DataType:
    digits = [10, 0]
    if reader.passes("("):
        digits = [_number(reader), 0]
        if reader.passes(","):
            digits[1] = _number(reader)
        reader.take(")")
    if not (1 <= digits[0] <= _MOST_DIGITS and digits[1] <= digits[0]):
        raise ValueError(f"a decimal has 1 to {_MOST_DIGITS} digits, and no more after its point")
    return pa.decimal128(*digits)


def _number(reader: _Reader) -> int:
    if reader.is_quoted or not reader.token.isdecimal():
        raise ValueError(f"a number is expected where {reader.token or 'the end'!r} stands")
    return int(reader.step())
