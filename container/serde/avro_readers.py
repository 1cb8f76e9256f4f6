"""How the library reads Avro's logical types where its own readers take too much, or round.

They round a decimal to the precision of the schema, make a time of numbers beyond a day, and a UUID
of any text that Python takes for one. PURE.
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

DAY_US = 86_400_000_000
EXACT = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
"""By which no decimal is rounded."""
_CARRIED = ("time-millis", "time-micros", "uuid")
"""Logical types whose numbers or texts a column has, in the place of the values."""
_EXACTLY, _AS_CARRIED = "homeport-", "homeport-carried-"
_MIDNIGHT = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_UUID = re.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def reader_name(logical: str, *, is_column: bool) -> str:
    """Return the name by which the library finds the reader of a logical type.

    ``is_column``: what carries a value is read where no column has it.
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
    """Return ``text``; ValueError where it is none of RFC 4122, as Python takes more."""
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
