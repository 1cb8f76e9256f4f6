"""Parses the bytes of a record of the coordinator stream: the parts of its key, its value's map.

PURE. Every surprise is a ``WireError``: any program may write to the topic.
"""

import json
import re
import sys
from typing import Any

from homeport.config.errors import WireError
from homeport.config.settings.input_section import LATEST_MS
from homeport.job_coordinator.model.json_values import require_unicode

VERSION = 1
"""Version of the key, written as a JSON number as Samza does.

Read as a number or, as the document has it, as text.
"""
TEXT_VERSION = "1"

_NUMBER = re.compile(r"\d{1,19}", re.ASCII)

_SPACES = " \t\n\r"
"""What JSON allows around a value."""

_raw_decode = json.JSONDecoder().raw_decode


def decode_key(key: bytes | None) -> tuple[int | str, str, str]:
    """Return (version, type, name) of a record's key.

    WireError: the key is damaged, or of a version that this reader does not know.
    """
    if key is None:
        raise WireError("the record has no key")
    parts = parse_json(key, "key")
    if not isinstance(parts, list) or len(parts) != 3:  # noqa: PLR2004 - version, type, key
        raise WireError(f"the key is not a list of three: {key[:200]!r}")
    version, message_type, name = parts
    # not an isinstance: true is no version
    if not (type(version) is int and version == VERSION) and version != TEXT_VERSION:
        raise WireError(f"the key has the unknown version {version!r}")
    if not isinstance(message_type, str) or not isinstance(name, str):
        raise WireError(f"the key's type or name is not text: {key[:200]!r}")
    return version, message_type, name


def decode_value(value: bytes) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the map of texts in a record's value, and the envelope that it is in.

    WireError: the value is not such an envelope.
    """
    envelope = parse_json(value, "value")
    values = envelope.get("values") if isinstance(envelope, dict) else None
    if not isinstance(values, dict):
        raise WireError(f"the value has no map 'values' in its {len(value)} bytes")
    return _texts(values), envelope


def decode_foreign_value(value: bytes) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the same as ``decode_value``; empty for a value of another form."""
    try:
        return decode_value(value)
    except WireError:
        return {}, {}


def name_of(field: object) -> str:
    """Return the name of a writer, as an envelope has it; empty where it has none."""
    # most records of a stream have the same few writers: they share their names
    return sys.intern(field) if type(field) is str else ""


def time_of(field: object) -> int:
    """Return an envelope's time, in ms since 1970; 0 where it has none up to LATEST_MS."""
    # not an isinstance: true is no time
    return field if type(field) is int and 0 <= field <= LATEST_MS else 0


def whole_number(text: str | None, maximum: int) -> int | None:
    """Return the number from 0 to ``maximum`` that ``text`` is; None where it is none."""
    value = int(text) if text is not None and _NUMBER.fullmatch(text) else -1
    return value if 0 <= value <= maximum else None


def parse_json(data: bytes | str, what: str) -> Any:  # noqa: ANN401 - JSON value
    """Return the value that the JSON ``data`` is.

    WireError: it is not JSON in UTF-8, or holds text that is not Unicode; ``what`` names it in the
    message, which has nothing of ``data``: it may be the value of a secret key.
    """
    try:
        text = (data if isinstance(data, str) else data.decode()).strip(_SPACES)
        value, end = _raw_decode(text)
    except (ValueError, RecursionError):
        raise WireError(f"the {what} is not JSON, in a length of {len(data)}") from None
    if end < len(text):
        raise WireError(f"the {what} is not JSON, in a length of {len(data)}")
    # a key like that could never be deleted, and a value never be written on
    require_unicode(value, text, f"the {what}")
    return value


def _texts(values: dict[str, Any]) -> dict[str, str]:
    """Return the values as text.

    Null counts as missing, as Samza's reader has it; numbers and truth values as their JSON.
    """
    for value in values.values():
        if not isinstance(value, str):
            return _as_texts(values)
    return values


def _as_texts(values: dict[str, Any]) -> dict[str, str]:
    try:
        return {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in values.items()
            if value is not None
        }
    except RecursionError:
        raise WireError("the value's map 'values' is nested too deeply") from None
