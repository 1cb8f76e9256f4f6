"""Reading JSON that others wrote: every surprise becomes a ``WireError`` that names the field.

PURE. A reader of fields through here never sees KeyError, TypeError or AttributeError from a
strange body.
"""

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from homeport.config.config import LONG_MAX
from homeport.config.errors import WireError

T = TypeVar("T")

_SHOWN_CHARACTERS = 80
_to_text = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def shown(value: object) -> str:
    """Return ``value`` in a form short enough for a message of one line."""
    try:
        text = repr(value)
    except RecursionError:
        text = f"a {type(value).__name__} that is nested too deeply"
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def compact_json(value: object) -> bytes:
    """Return ``value`` as JSON without spaces, keys in the order given, non-ASCII as UTF-8.

    Half a surrogate pair, which UTF-8 has no bytes for, becomes a question mark.
    """
    return utf_8(_to_text(value))


def utf_8(text: str) -> bytes:
    """Return the bytes of JSON text, as above."""
    return text.encode("utf-8", "replace")


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def parse_object(data: bytes, what: str) -> dict[str, Any]:
    """Return the JSON object that ``data`` holds.

    WireError: it is not UTF-8, not JSON, JSON of another kind, or holds text that is not Unicode;
    ``what`` names it in the message.
    """
    try:
        text = data.decode("utf-8")
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise WireError(f"{what} is not JSON: {str(error)[:_SHOWN_CHARACTERS]}") from None
    require_unicode(value, text, what)
    return as_object(value, what)


def require_unicode(value: object, text: str, what: str) -> None:
    """Require that every text in ``value``, read from the JSON ``text``, has bytes in UTF-8.

    WireError: one holds half a surrogate pair, which cannot be written in UTF-8.
    """
    if "\\u" not in text:
        return
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        raise WireError(f"{what} holds text that is not Unicode") from None


def as_object(value: object, what: str) -> dict[str, Any]:
    """Return ``value`` itself when it is a JSON object, else WireError."""
    if not isinstance(value, dict):
        raise WireError(f"{what} is not a JSON object: {shown(value)}")
    return value


def required_field(body: Mapping[str, Any], name: str, kind: type[T]) -> T:
    """Return the field ``name`` of ``body``; WireError where it is missing or not a ``kind``.

    true and false are not numbers.
    """
    value = body.get(name)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise WireError(f"field {name!r} is missing or of the wrong type: {shown(value)}")
    return value


def required_number(
    body: Mapping[str, Any], name: str, minimum: int = 0, maximum: int = LONG_MAX
) -> int:
    """Return the whole number ``name`` of ``body``, from ``minimum`` to ``maximum``.

    WireError: it is missing, not a whole number, or out of that range.
    """
    value = required_field(body, name, int)
    if not minimum <= value <= maximum:
        raise WireError(f"field {name!r} is not from {minimum} to {maximum}: {shown(value)}")
    return value


def optional_number(
    body: Mapping[str, Any], name: str, minimum: int = 0, maximum: int = LONG_MAX
) -> int | None:
    """Return the same as ``required_number``; None where it is missing or null."""
    return None if body.get(name) is None else required_number(body, name, minimum, maximum)


def optional_field(body: Mapping[str, Any], name: str, kind: type[T]) -> T | None:
    """Return the same as ``required_field``; None where it is missing or null."""
    return None if body.get(name) is None else required_field(body, name, kind)
