"""JSON objects of immutable values, written and read by the types of their fields. PURE.

A reader passes over fields that it does not know, and gives missing ones their defaults: two
versions of Homeport understand each other. ``tests/golden`` holds the bodies.
"""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import msgspec

from homeport.config.config import INT_MAX, LONG_MAX
from homeport.config.errors import WireError
from homeport.job_coordinator.model.json_values import compact_json

Int = Annotated[int, msgspec.Meta(ge=0, le=INT_MAX)]
Long = Annotated[int, msgspec.Meta(ge=0, le=LONG_MAX)]
LARGEST = 10**18 - 1
"""Of numbers that count from 0 or 1, or in ms since 1970: none ever gets there."""
Number = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
Text = Annotated[str, msgspec.Meta(min_length=1)]
_T = TypeVar("_T")


def about(meaning: str) -> msgspec.Meta:
    """Return the annotation that gives a field its meaning in the JSON Schema of its type."""
    return msgspec.Meta(description=meaning)


def json_text(value: object) -> str:
    """Return ``value`` as JSON in one line, with the fields that are None."""
    return compact_json(msgspec.to_builtins(value)).decode()


def body_of(value: object, *, flat: str = "") -> dict[str, Any]:
    """Return the JSON object of ``value``, without the fields that are None.

    ``flat``: the field whose own fields stand in the object itself.
    """
    body: dict[str, Any] = msgspec.to_builtins(value)
    inner = body.pop(flat, None) or {}
    return {**inner, **{name: each for name, each in body.items() if each is not None}}


def value_of(kind: type[_T], body: Mapping[str, Any], what: str, *, flat: str = "") -> _T:
    """Return the value of the type ``kind`` that ``body`` has.

    ``flat``: as above; None where that one's fields are missing or null.

    WireError: a field is missing, of the wrong type or out of its range; the line begins with
    ``what`` and has the field's path.
    """
    try:
        return msgspec.convert({**body, flat: body} if flat else body, kind)
    except (msgspec.ValidationError, OverflowError) as error:
        raise _fault(error, what) from None


def decoded(kind: type[_T], data: bytes, what: str) -> _T:
    """Return the value of the type ``kind`` that the JSON ``data`` has, five times as fast.

    WireError: as above, or it is not JSON.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise _fault(error, what) from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise WireError(f"{what} is not JSON: {str(error)[:150]}") from None


def _fault(error: Exception, what: str) -> WireError:
    line = " ".join(str(error).split())
    # it quotes a value of any length, before the path
    return WireError(f"{what}: {line[:150]}{line[150:][-150:]}")
