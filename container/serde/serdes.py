"""Serdes: from objects of user code to bytes and back; the bytes are those of Samza's serdes.

PURE. Source: Samza 1.8 ``org.apache.samza.serializers``.
"""

import json
import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from homeport.config.errors import ConfigError, HomeportError, WireError
from homeport.container.serde.columns import Columns, reason_of
from homeport.container.serde.exact_values import double, whole


class SerdeFailedError(HomeportError):
    """The job's own serde raised an error like SystemExit, or a Schema Registry has failed.

    That is no fault of the bytes: no record is dropped for it.
    """


@dataclass(frozen=True, slots=True)
class Serde:
    """``to_bytes`` and ``from_bytes`` are each other's inverse; both refuse what they cannot carry.

    ``from_many``: as ``from_bytes`` of each, at less cost; any error: one may be unreadable.
    ``columns``: returns the ``Columns`` of a serde with a schema, or raises ValueError where the
    schema has none. ``is_own``: the serde is the job's own code, which may take any time.

    Raises:
        TypeError: ``to_bytes`` was given an object of another type.
        WireError: ``from_bytes`` was given bytes that ``to_bytes`` never makes.
    """

    name: str
    to_bytes: Callable[[Any], bytes]
    from_bytes: Callable[[bytes], Any]
    is_own: bool = False
    columns: Callable[[], Columns] | None = None
    from_many: Callable[[list[bytes]], list[Any]] | None = None


def not_installed(key: str, value: str, what: str, extra: str) -> ConfigError:
    """Return the error of a job without the package ``what``, which an extra of homeport has."""
    remedy = f"install homeport[{extra}] for the interpreter of the job's containers"
    return ConfigError(key, value, f"{what} is not installed", remedy)


SerdesOf = Callable[[str, str], tuple[Serde | None, Serde | None]]
"""From (system, stream) to the serdes of its keys and its values; None: they are bytes."""


def serde(name: str) -> Serde:
    """Return the built-in serde ``name``; KeyError, naming the known ones, where there is none."""
    try:
        return _SERDES[name]
    except KeyError:
        raise KeyError(f"unknown serde {name!r}; known: {', '.join(sorted(_SERDES))}") from None


def _bytes_in(value: Any) -> bytes:  # noqa: ANN401 - what user code put
    if type(value) is bytes:
        return value
    if not isinstance(value, bytearray | memoryview):
        raise TypeError(f"the serde 'bytes' carries bytes, not {type(value).__name__}")
    return bytes(value)


def _string_in(value: Any) -> bytes:  # noqa: ANN401 - a user's value
    if not isinstance(value, str):
        raise TypeError(f"the serde 'string' carries str, not {type(value).__name__}")
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise TypeError(f"the serde 'string' cannot carry it: {reason_of(error)}") from None


def _string_out(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise WireError(f"not UTF-8: {data[:80]!r}") from None


_json_text = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
_quick_json = msgspec.json.Encoder().encode
_SCALARS = frozenset({str, int, bool, type(None)})
_LEAST, _MOST = 1e-4, 1e16
"""From the first on, and below the second, Python writes a float without an exponent."""
_strict_json = msgspec.json.Decoder().decode
_NESTED = (dict, list, tuple)
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|[][{}]', re.DOTALL)
_OPENING, _CLOSING = (b"[", b"{"), (b"]", b"}")
_DEEPEST = 500
"""Deeper JSON might be read and then not written: a task's own calls take some of the stack."""
_SHALLOW = 2 * _DEEPEST
"""So many bytes cannot be nested deeper."""


def _json_in(value: Any) -> bytes:  # noqa: ANN401 - a user's value
    # The quick encoder takes a tenth of the time. It also writes what JSON has not, as sets.
    try:
        data = _quick_json(value)
        is_same = _is_same_json(value)
    except (TypeError, ValueError, RecursionError):
        is_same = False
    if not is_same:
        data = _exact_json(value)
    if len(data) <= _SHALLOW:
        return data
    try:
        _require_depth(data)
    except WireError as error:
        raise TypeError(f"the serde 'json' cannot carry it: {error}") from None
    return data


def _exact_json(value: Any) -> bytes:  # noqa: ANN401 - a user's value
    try:
        data = _json_text(value).encode()
    except (ValueError, RecursionError) as error:
        raise TypeError(f"the serde 'json' cannot carry it: {reason_of(error)}") from None
    _require_text_keys(value)
    return data


def _is_same_json(value: Any) -> bool:  # noqa: ANN401 - as above
    """Return whether the quick encoder writes the value, which has no circle, as the other one.

    True only of the usual types, and of floats that neither writes with an exponent.
    """
    pending = [value]
    for part in pending:
        kind = type(part)
        if kind in _SCALARS:
            continue
        if kind is dict:
            for key in part:
                if type(key) is not str:
                    return False
            pending += part.values()
        elif kind is list or kind is tuple:
            pending += part
        elif kind is not float or not (part == 0 or _LEAST <= abs(part) < _MOST):
            return False
    return True


def _require_text_keys(value: Any) -> None:  # noqa: ANN401 - what JSON was made of
    """Require that all keys are text: JSON would make text of others. Not recursive, for depth."""
    pending: list[Any] = [[value]]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            for key in part:
                if not isinstance(key, str):
                    raise TypeError(
                        f"the serde 'json' has keys of text alone, and {key!r} is "
                        f"{type(key).__name__}: give str(key)"
                    )
            part = part.values()
        pending += [inner for inner in part if isinstance(inner, _NESTED)]


def _json_out(data: bytes) -> Any:  # noqa: ANN401 - a user's value
    # The strict parser takes a fifth of the time. The lenient one reads the same, and also takes
    # NaN, UTF-16 and UTF-32.
    if len(data) > _SHALLOW:
        _require_depth(data)
    try:
        return _strict_json(data)
    except (ValueError, RecursionError):
        pass
    try:
        value = json.loads(data, parse_float=_finite)
        _json_text(value).encode()  # it reads half a surrogate pair, which no writer takes
    except (ValueError, RecursionError):
        raise WireError(f"not JSON: {data[:80]!r}") from None
    return value


def _json_many(elements: list[bytes]) -> list[Any]:
    if max(map(len, elements)) > _SHALLOW:
        raise ValueError("one may be nested too deep")
    return list(map(_strict_json, elements))


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is beyond a double")
    return number


def _require_depth(data: bytes) -> None:
    if data.count(b"[") + data.count(b"{") <= _DEEPEST:
        return
    depth = 0
    for opened in _BRACKETS.findall(data):
        depth += (opened in _OPENING) - (opened in _CLOSING)
        if depth > _DEEPEST:
            raise WireError(f"nested deeper than {_DEEPEST}: {data[:80]!r}")


def _packed(name: str, form: str, kind: type, exactly: Callable[[Any], Any]) -> Serde:
    """Return the serde for numbers of ``kind``; ``exactly`` makes one of another kind of number."""
    packer = struct.Struct(form)

    def to_bytes(value: Any) -> bytes:  # noqa: ANN401 - a user's value
        try:
            return packer.pack(value if type(value) is kind else exactly(value))
        except TypeError:
            raise TypeError(
                f"the serde {name!r} carries {kind.__name__}, not {type(value).__name__}"
            ) from None
        except (struct.error, ValueError):
            raise TypeError(f"{value!r} does not fit the serde {name!r}") from None

    def from_bytes(data: bytes) -> Any:  # noqa: ANN401 - a user's value
        try:
            return packer.unpack(data)[0]
        except struct.error:
            raise WireError(f"not of the serde {name!r}: {data[:80]!r}") from None

    return Serde(name, to_bytes, from_bytes)


_SERDES = {
    item.name: item
    for item in (
        Serde("bytes", _bytes_in, bytes),
        Serde("string", _string_in, _string_out),
        Serde("json", _json_in, _json_out, from_many=_json_many),
        _packed("integer", ">i", int, whole),
        _packed("long", ">q", int, whole),
        _packed("double", ">d", float, double),
    )
}
