"""Rules for an output record, checked where the task sends it, on Kafka and in a test alike.

PURE. The client would find some faults only at the end of the transaction, without the task and the
record. It takes a bool for a number, and a header's name that is not UTF-8 ends the process.
"""

import operator
from collections.abc import Iterable, Mapping
from typing import Any

from homeport.container.api import header_pairs
from homeport.container.progress.topic_rules import (
    CLIENT_OVERHEAD_BYTES,
    Headers,
    record_size,
    wire_size,
)

_LAST_MS = 2**63 - 1
_KEY_CHARACTERS = 40
_PAIR = (list, tuple)
_HEADERS = (dict, list, tuple, Mapping)  # the cheapest to look for first


def named(stream: str, key: bytes | None) -> str:
    """Return the name of a record in an error: its stream, and its key if it has one."""
    if key is None:
        return f"a record for {stream}"
    text = repr(key)
    cut = text if len(text) <= _KEY_CHARACTERS else text[:_KEY_CHARACTERS] + "..."
    return f"a record for {stream} with key {cut}"


def partition_number(given: object) -> int:
    """Return a partition as an int; TypeError where it is no whole number."""
    return _whole("partition", given, "give an int, a function, or None")


def time_ms(given: object) -> int:
    """Return a timestamp as an int.

    Raises:
        TypeError: it is no whole number.
        ValueError: Kafka has no such time.
    """
    found = whole_ms(given)
    if not 1 <= found <= _LAST_MS:
        raise ValueError(f"timestamp {found}: give ms since 1970, from 1 to {_LAST_MS}")
    return found


def whole_ms(given: object) -> int:
    """Return ms since 1970 as an int; TypeError where they are no whole number."""
    remedy = "give ms since 1970 as an int, such as int(time.time() * 1000)"
    return _whole("timestamp", given, remedy)


def checked_headers(given: object) -> list[tuple[str, bytes | None]]:
    """Return headers as the client sends them: names of text, values of bytes or null.

    Raises:
        TypeError: there is another kind of object among them.
        ValueError: a text cannot be encoded.
    """
    if not isinstance(given, _HEADERS):
        raise TypeError(f"its headers are {_kind(given)}: give {{name: bytes or None}}, or pairs")
    if not given:
        return []
    pairs: Iterable[Any] = header_pairs(given)
    if not isinstance(given, dict):
        _require_pairs(pairs)
    return [
        (_name(name), value if type(value) is bytes else _value(name, value))
        for name, value in pairs
    ]


def _require_pairs(given: Iterable[object]) -> None:
    for pair in given:
        if not (isinstance(pair, _PAIR) and len(pair) == 2):  # noqa: PLR2004 - a pair
            raise TypeError(f"one of its headers is {_kind(pair)}: give (name, bytes or None)")


def require_bytes(part: str, given: object) -> None:
    """Raise TypeError if a key or a value is neither bytes nor null."""
    if given is not None and not isinstance(given, bytes):
        raise TypeError(f"its {part} is {_kind(given)}: give bytes or None")


def require_size(key: bytes | None, value: bytes | None, headers: Headers, limit: int) -> None:
    """Raise ValueError if the record exceeds the client's ``limit``, in bytes."""
    size = wire_size(key, value, headers)
    if size + CLIENT_OVERHEAD_BYTES > limit:
        raise ValueError(
            f"it has {record_size(key, value, headers)} bytes, with what the client adds "
            f"{size + CLIENT_OVERHEAD_BYTES}, and at most {limit} are sent; write smaller "
            "values, or raise systems.<system>.producer.max.request.size and the topic's "
            "max.message.bytes"
        )


def _whole(what: str, given: object, remedy: str) -> int:
    if type(given) is int:
        return given
    try:
        if "bool" not in type(given).__name__:  # True is 1, and NumPy's has a name of its own
            return operator.index(given)  # type: ignore[arg-type]  # what has no index raises
    except TypeError:
        pass
    raise TypeError(f"{what} {given!r} is {_kind(given)}: {remedy}")


def _name(name: object) -> str:
    if isinstance(name, str) and name.isascii() and "\0" not in name:
        return name
    if not isinstance(name, str):
        raise TypeError(f"the name {name!r} of a header is {_kind(name)}: give a str")
    _encoded(f"the name {name!r} of a header", name)
    if "\0" in name:  # the client would cut the name there
        raise ValueError(f"the name {name!r} of a header has a null character: give another")
    return name


def _value(name: str, value: object) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return _encoded(f"its header {name!r}", value)
    raise TypeError(f"its header {name!r} is {_kind(value)}: give bytes or None")


def _encoded(what: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{what} is no text of UTF-8 ({text!r}): give another") from None


def _kind(given: object) -> str:
    name = type(given).__name__
    name = "bool" if name == "bool_" else name
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
