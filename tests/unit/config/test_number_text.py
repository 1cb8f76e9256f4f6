"""Numbers of text from outside: what Python alone takes for one is none."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.config.number_text import decimal_of, float_of, whole_of

OF_PYTHON_ALONE = ["1_0", "+1", " 1", "1 ", "\uff11", "\u0661", "", "-", "0x1", "nan", "inf", "1\n"]


@pytest.mark.parametrize("text", OF_PYTHON_ALONE)
@pytest.mark.parametrize("read", [whole_of, decimal_of, float_of])
def test_what_python_alone_takes_is_no_number(read: Callable[[str], object], text: str) -> None:
    """Samza, Kafka and librdkafka refuse most of it, and read none of it otherwise."""
    with pytest.raises(ValueError, match="is no"):
        read(text)


def test_numbers_are_read_as_they_stand() -> None:
    """A decimal with each of its digits."""
    assert (whole_of("-007"), whole_of("9" * 30)) == (-7, int("9" * 30))
    assert decimal_of("-1.50") == Decimal("-1.50")
    assert [str(decimal_of(t)) for t in (".5", "5.", "15e-1", "1E+2")] == [
        "0.5",
        "5",
        "1.5",
        "1E+2",
    ]
    assert float_of("-1.5e3") == -1500.0
    with pytest.raises(ValueError, match="is beyond a double"):
        float_of("1e400")
    for text in ("1" * 5000, "1.5"):
        with pytest.raises(ValueError, match="is no whole number"):
            whole_of(text)


@pytest.mark.parametrize("text", ["1_0", "+10", "\uff11\uff10"])
def test_a_key_takes_no_other_number(text: str) -> None:
    """Blanks around a value are none of it."""
    key = keys.TASK_COMMIT_MS
    with pytest.raises(ConfigError, match="it must be a whole number"):
        key.read(Config({key.name: text}))
    assert key.read(Config({key.name: " 1000 "})) == 1000
    assert key.plain(text) == text
    assert key.plain(" 0010 ") == "10"
