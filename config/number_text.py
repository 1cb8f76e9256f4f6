"""Numbers of text that comes from outside: in the form that other programs give and take, alone.

Python takes underscores between digits, digits of all scripts, blanks around them, a plus, and
"nan". PURE.
"""

import decimal
import math
import re
from collections.abc import Callable, Mapping

_WHOLE = re.compile(r"-?[0-9]{1,4000}")
_POINTED = re.compile(r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,9})?")


def whole_of(text: str) -> int:
    """Return the whole number that ``text`` is; ValueError where it is none."""
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{text[:80]!r} is no whole number")
    return int(text)


def decimal_of(text: str) -> decimal.Decimal:
    """Return the number that ``text`` is, with all digits; ValueError where it is none."""
    if not _POINTED.fullmatch(text):
        raise ValueError(f"{text[:80]!r} is no number")
    return decimal.Decimal(text)


def float_of(text: str) -> float:
    """Return the finite number that ``text`` is; ValueError where it is none."""
    found = float(decimal_of(text))
    if not math.isfinite(found):
        raise ValueError(f"{text[:80]} is beyond a double")
    return found


NUMBER_SERDES: Mapping[str, Callable[[str], float]] = {
    "integer": whole_of,
    "long": whole_of,
    "double": float_of,
}
"""The built-in serdes whose values are numbers, and what reads such a value from text."""


def counted(number: int, what: str) -> str:
    """Return the number with ``what`` in the singular or the plural, such as ``1 core``."""
    return f"1 {what}" if number == 1 else f"{number} {what}s"
