"""Compares the native reader of JSON with the serde in Python, on values of any form.

``python json_fuzz.py LIBRARY SEEDS``: the same with another build of the library.
"""

from __future__ import annotations

import ctypes
import json
import random
import sys

import pyarrow as pa

from homeport.container.native import library
from homeport.container.native.column_reader import KINDS, ColumnReader, natively
from homeport.container.serde.columns import Columns, part_type
from homeport.container.serde.json_schema_serde import json_columns

_ODD = (
    *("null", "true", "false", "nul", "tru", "{}", "[]", "[1,null,[]]", "[1,]", '{"f0":1,}', "'x'"),
    *('{"a":{"b":[true,false,"x\\n"]}}', "[" * 70 + "]" * 70, "[" * 10 + "]" * 10, "NaN", "-"),
    *("0", "-0", "1", "-1", "01", "1.0", "-0.0", "0.0", "1.", ".5", "+1", "1e2", "1E+2", "1e-2"),
    *("0e0", "1e", "1e400", "1e-400", "1e39", "4.9e-324", "2.2250738585072011e-308"),
    *("127", "128", "-128", "-129", "32767", "32768", "-32769", "2147483647", "2147483648"),
    *("-2147483649", "999999999999999999", "9223372036854775807", "9223372036854775808"),
    *(
        "-9223372036854775808",
        "9" * 40,
        "0." + "1" * 40,
        "9" * 19 + ".25",
        "18446744073709551616.0",
        "9007199254740993",
        "0.1",
        "1.005",
    ),
    *("9007199254740993.0", "0.30000000000000004", "3.4028235e38", "3.4028234663852886e38"),
    *("3.4028234663852887e38", "1.1754943508222875e-38", "1e-45", "123456789012345678.5"),
    *('""', '"x"', '"seven b"', '"eight by"', '"nine byte"', '"\\""', '"\\\\"', '"a\\/\\b\\f\\n"'),
    *('"\\r\\t"', '"\\u0041\\u00e9\\u20ac"', '"\\ud83d\\ude00"', '"\\ud83d"', '"\\ude00"', '"\\x"'),
    *('"\\ud83d\\u0041"', '"\\u12"', '"\\u12g4"', '"\\u0000"', '"ü€😀"', '"a\tb"', '"open', '"\\'),
    *('"2020-02-29"', '"2021-02-29"', '"2000-02-29"', '"1900-02-29"', '"0001-01-01"', '"12-1-1"'),
    *(
        '"9999-12-31"',
        '"2020-13-01"',
        '"2020-00-10"',
        '"2020-01-00"',
        '"2020-1-01"',
        '"1969-12-31"',
    ),
    *('"2020-01-01T00:00:00Z"', '"2020-01-01T00:00:00"', '"2020-01-01 00:00:00.5+05:30"'),
    *('"0001-01-01T00:00:00+05:00"', '"9999-12-31T23:59:59.999999-05:00"'),
    *('"2020-06-30T23:59:60Z"', '"2020-01-01T24:00:00Z"', '"2020-01-01T00:00:00+00"'),
    *('"2020-01-01T00:00:00.123456789Z"', '"2020-01-01T00:00:00.Z"', '"2020-01-01T00:60:00Z"'),
    *('"1969-12-31T23:59:59.9-00:01"', '"2020-02-29T23:59:59.999999+23:59"'),
    *('"2020-01-01T00:00:00.1234567Z"', '"2020-01-01t00:00:00z"', '"2020-01-01T00:00:00-24:00"'),
    *('"2020-01-01T00:00:00-00:00"', '"2020-01-01T00:00:00+05:60"', '"2020-01-01T00:00"'),
)
_SPACES = ("", "", "", " ", "\n\t\r", "\x0b", "\xa0")
_PLAIN = (
    *("null", "true", "false", "0", "-7", "12", "100", "1.5", "-0.25", "1e3", "123456.789"),
    *('"text"', '"2020-02-29"', '"2020-02-29T01:02:03.5+01:00"', '"a much longer text"', "{}"),
)


LEAVES = tuple(kind for kind in KINDS if kind not in {None, pa.binary()})


def any_type(
    random_: random.Random, depth: int = 2, leaves: tuple[pa.DataType, ...] = LEAVES
) -> pa.StructType:
    """Return the type of a record; its fields are of ``leaves``, all that the library has."""
    fields = [
        pa.field(
            random_.choice((f"f{n}", f"ü{n}")),
            any_type(random_, depth - 1, leaves)
            if depth and random_.random() < 0.2
            else random_.choice(leaves),
        )
        for n in range(random_.randint(1, 5))
    ]
    return pa.struct(fields)


def any_object(random_: random.Random, kind: pa.StructType, *, is_odd: bool) -> str:
    """Return JSON for a record of ``kind``: plain, or with what may be refused."""

    def space() -> str:
        return random_.choice(_SPACES) if is_odd and random_.random() < 0.1 else ""

    def text(own: pa.DataType) -> str:
        if is_odd and random_.random() < 0.3:
            return random_.choice(_ODD)
        if pa.types.is_struct(own):
            return any_object(random_, own, is_odd=is_odd)
        return plain_text(random_, own)

    names = [(own.name, own.type) for own in kind if random_.random() < 0.9]
    if is_odd and random_.random() < 0.3:
        names += random_.choice((names, [("other", pa.string())], [('f\\"', pa.string())]))
    if random_.random() < 0.3:
        random_.shuffle(names)
    members = (f'{space()}"{name}"{space()}:{space()}{text(own)}{space()}' for name, own in names)
    return f"{{{','.join(members)}}}"


def plain_text(random_: random.Random, kind: pa.DataType) -> str:
    """Return JSON for a value of ``kind``, such as a program writes."""
    if pa.types.is_string(kind):
        text = "".join(random_.choices('ab"\\\n\u00e9\u20ac😀', (9, 9, 1, 1, 1, 1, 1, 1), k=9))
        return json.dumps(text, ensure_ascii=random_.random() < 0.5)
    if pa.types.is_boolean(kind):
        return random_.choice(("true", "false", "null"))
    if pa.types.is_integer(kind):
        return str(random_.getrandbits(kind.bit_width - 1) >> random_.randrange(kind.bit_width))
    if pa.types.is_floating(kind):
        return json.dumps(random_.choice((1, -1)) * random_.random() * 10 ** random_.randint(-9, 9))
    return '"2013-01-02"' if pa.types.is_date(kind) else '"2013-01-02T03:04:05.678+01:00"'


def any_value(random_: random.Random, kind: pa.StructType) -> bytes | None:
    """Return the bytes of a value: of one that fits, of an odd one, or damaged."""
    drawn = random_.random()
    if drawn < 0.02:
        return None
    data = any_object(random_, kind, is_odd=drawn < 0.7).encode()
    if drawn < 0.1:
        place = random_.randrange(len(data))
        data = (
            data[:place]
            + random_.choice((b"", b"\xff", b"\x00", b'"', b"\\", b"}"))
            + data[place + random_.randint(0, 2) :]
        )
    return random_.choice((b"", b" ", b"x", b"{}")) + data if drawn < 0.05 else data


def compare(seed: int, python: Columns | None = None, rows: int = 50) -> tuple[int, int]:
    """Assert that both decode the same; return how many values Python decoded, of how many.

    ``python``: the serde; None: one of any schema.
    """
    random_ = random.Random(seed)  # noqa: S311 - of a test
    python = python or json_columns(any_type(random_))
    values = pa.array([any_value(random_, python.type) for _ in range(rows)], pa.binary())
    return compare_columns(random_, python, values)


def compare_columns(
    random_: random.Random, python: Columns, values: pa.Array, *, has_nan: bool = False
) -> tuple[int, int]:
    """Assert that both decode ``values`` the same, with all fields or some; return as ``compare``.

    ``has_nan``: whether a value may be NaN, which does not equal itself.
    """
    native, kind = natively(python), python.type
    assert native.read is not None
    assert python.layout is not None
    values = values.slice(random_.choice((0, 0, 3)))
    names = [own.name for own in kind]
    only = random_.choice((None, frozenset(random_.sample(names, random_.randint(0, len(names))))))
    found, expected = native.decode(values, only), python.decode(values, only)
    assert found.bad == expected.bad, (kind, values)
    found.column.validate(full=True)
    for place, pair in enumerate(zip(found.column, expected.column, strict=True)):
        assert repr(pair[0]) == repr(pair[1]), (kind, values[place], only)
    assert found.column.type.equals(expected.column.type)
    assert has_nan or found.column.equals(expected.column), (kind, values)
    wanted = kind if only is None else part_type(kind, only)
    left = ColumnReader(kind, wanted, python.layout).read(values)[1]
    return len(left), len(values)


def main() -> None:
    """Compare with the library of the first argument, by as many seeds as the second."""
    library.load = lambda: ctypes.CDLL(sys.argv[1])  # type: ignore[assignment] # its own build
    for seed in range(int(sys.argv[2])):
        compare(seed)


if __name__ == "__main__":
    main()
