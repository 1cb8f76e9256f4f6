"""The order of keys: the parts of a store, in the order of bytes, that make a range of keys.

PURE. The bytes are Samza's; their order is not that of all numbers.
"""

from collections.abc import Mapping
from typing import Any

from homeport.config.number_text import NUMBER_SERDES, whole_of
from homeport.container.serde.serdes import Serde

_WHOLE = frozenset(name for name, read in NUMBER_SERDES.items() if read is whole_of)
_DOUBLE, _JSON = "double", "json"

Part = tuple[bytes, bytes | None]
"""(first, the end, which is not in it); None: to the end of the store."""


def parts_of_range(serde: Serde, start: Any, end: Any) -> list[Part]:  # noqa: ANN401 - the type is the serde's
    """Return the parts of a store that have the keys from ``start`` on, below ``end``, in order.

    Raises:
        TypeError: the serde cannot carry one of the bounds.
        ValueError: the bytes have another order than the keys, so that the range would be wrong.
    """
    first, behind = serde.to_bytes(start), serde.to_bytes(end)
    if serde.name in _WHOLE:
        if start >= end:
            return []
        # In the order of bytes, negative numbers come after all others.
        if start < 0 < end:
            return [(first, None), (serde.to_bytes(0), behind)]
        return [(first, None if end == 0 else behind)]
    if serde.name == _DOUBLE:
        if not (start >= 0 and end >= 0):
            raise ValueError(
                f"range({start!r}, {end!r}): the bytes of the serde 'double' have the order of "
                "numbers from 0 on alone: begin there, use the serde long, or all()"
            )
        # -0.0 is not below 0, and its bytes are those of a negative number.
        return [(serde.to_bytes(start + 0.0), serde.to_bytes(end + 0.0))]
    if first > behind and _is_less(start, end):
        raise ValueError(
            f"range({start!r}, {end!r}): by the bytes of the serde {serde.name!r} the second comes "
            "before the first, and no key would be found: use keys of the serde long, or of "
            "string with all numbers of one width"
        )
    return [(first, behind)]


def is_by_text(serde: Serde, bound: object) -> bool:
    """Return whether the serde writes a number in ``bound`` as text, where 10 comes before 9."""
    return serde.name == _JSON and _has_number(bound)


def _has_number(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_number, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_has_number, value))
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_less(start: Any, end: Any) -> bool:  # noqa: ANN401 - a user's values
    try:
        return bool(start < end)
    except Exception:  # noqa: BLE001 - keys of any class, which may have no order
        return False
