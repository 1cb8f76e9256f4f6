"""Reading JSON that others wrote: every surprise becomes a ``WireError`` that names the field.

PURE. Whoever reads fields through here never sees KeyError, TypeError or AttributeError from a
strange body.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from homeport.config.errors import WireError

T = TypeVar("T")

_SHOWN_CHARACTERS = 80


def shown(value: object) -> str:
    """``value`` in a form short enough for a message of one line."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def compact_json(value: object) -> bytes:
    """``value`` as JSON without spaces, keys in the order given, non-ASCII as UTF-8.

    Half a surrogate pair, which UTF-8 has no bytes for, becomes a question mark.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def parse_object(data: bytes, what: str) -> dict[str, Any]:
    """The JSON object that ``data`` holds.

    Raises:
        WireError: it is not UTF-8, not JSON, or JSON of another kind; ``what`` names it in the
        message.
    """
    try:
        value = json.loads(data.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise WireError(f"{what} is not JSON: {error}") from None
    return as_object(value, what)


def as_object(value: object, what: str) -> dict[str, Any]:
    """``value`` itself when it is a JSON object, else WireError."""
    if not isinstance(value, dict):
        raise WireError(f"{what} is not a JSON object: {shown(value)}")
    return value


def required_field(body: Mapping[str, Any], name: str, kind: type[T]) -> T:
    """The field ``name`` of ``body``; WireError where it is missing or not a ``kind``.

    true and false are not numbers.
    """
    value = body.get(name)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise WireError(f"field {name!r} is missing or of the wrong type: {shown(value)}")
    return value


def optional_field(body: Mapping[str, Any], name: str, kind: type[T]) -> T | None:
    """As ``required_field``, but None where it is missing or null."""
    return None if body.get(name) is None else required_field(body, name, kind)
