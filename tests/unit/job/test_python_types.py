"""serde_of: which serde carries the values of a Python type."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from homeport.config.errors import ConfigError
from homeport.job.python_types import serde_of


class Amount(msgspec.Struct):
    """A value with fields."""

    amount: float


class _Main:
    """A class of the file that Python runs."""


def _within() -> type:
    class Within(msgspec.Struct):
        pass

    return Within


@pytest.mark.parametrize(
    ("of_type", "serde"),
    [
        (str, "string"),
        (int, "long"),
        (float, "double"),
        (bytes, "bytes"),
        (dict[str, int], "json"),
        (list, "json"),
        (object, "json"),
        (Any, "json"),
        (Amount, f"{__name__}:Amount"),
        (msgspec.defstruct("Run", [], module="__main__"), "totals:Run"),
    ],
)
def test_each_type_has_its_serde(of_type: object, serde: str) -> None:
    """A class is named as containers import it, that of the file that Python runs too."""
    assert serde_of("value of x", of_type, "totals") == serde


@pytest.mark.parametrize(
    ("of_type", "is_key", "line"),
    [
        (set, True, "no serde carries it; give str, int, float, bytes, dict or list"),
        (Amount, True, "no serde carries it; give str, int, float, bytes, dict or list"),
        (_Main, False, "no serde carries it; give .* or a dataclass, a msgspec Struct"),
        ([str], False, "no serde carries it; give .* or a dataclass, a msgspec Struct"),
        ("float", False, "it is text, and a type is wanted; write the type without quotes"),
        (_within(), False, "containers import it, and _within.<locals>.Within is within"),
    ],
)
def test_other_types_are_refused(of_type: object, is_key: bool, line: str) -> None:  # noqa: FBT001 - a row
    """The line names the argument, the type, the rule and the remedy."""
    with pytest.raises(ConfigError, match=line):
        serde_of("value of x", of_type, is_key=is_key)
