"""Config, text in and typed values out; and errors, each in one line."""

from __future__ import annotations

import pytest

from homeport.config.config import Config
from homeport.config.declarations.key_types import BoolKey, IntKey, Liveness
from homeport.config.errors import ConfigError, in_one_line


def test_equal_content_is_equal_and_hashes_alike() -> None:
    """Whatever the order; nothing else equals it, and its values are not shown."""
    one, other = Config({"a": "1", "b": "2"}), Config({"b": "2", "a": "1"})
    assert one == other
    assert {one, other} == {one}
    assert hash(one) == hash(other) == hash(one)
    assert one != {"a": "1", "b": "2"}
    assert repr(one) == "Config(2 keys)"


def test_a_number_that_is_missing_or_blank_is_the_default() -> None:
    """Anything else is a number, or an error."""
    config = Config({"n": "7", "blank": " ", "text": "x"})
    assert config.get_int("n", 3, minimum=7) == 7
    assert (config.get_int("m", 3), config.get_int("blank", 3)) == (3, 3)
    with pytest.raises(ConfigError, match="it must be a whole number"):
        config.get_int("text", 3)


def test_a_number_without_a_default_is_required() -> None:
    """Where it may be missing, ``find`` says so."""
    key = IntKey(name="my.port", meaning="m", source="s", liveness=Liveness.LIVE)
    assert key.find(Config()) is None
    with pytest.raises(ConfigError, match=r"my\.port is missing: it is required"):
        key.read(Config())


def test_a_value_of_another_type_stays_unchanged() -> None:
    """Values that mean the same become the same text; what means nothing is only trimmed."""
    number = IntKey(name="n", meaning="m", source="s", liveness=Liveness.LIVE)
    truth = BoolKey(name="b", meaning="m", source="s", liveness=Liveness.LIVE, default=True)
    assert (number.plain(" 07 "), number.plain(" seven ")) == ("7", "seven")
    assert (truth.plain("YES"), truth.plain(" maybe ")) == ("true", "maybe")


def test_a_name_with_a_line_break_leaves_one_line() -> None:
    """Part of a key, as the name of a system, is what the user wrote."""
    error = ConfigError("systems.a\nb.x", None, "the system 'a' needs\x00 it", "set systems.a\nb.x")
    assert str(error) == (
        r"systems.a\nb.x is missing: the system 'a' needs\u0000 it; set systems.a\nb.x"
    )


class Speechless(Exception):  # noqa: N818 - a user's
    """Has no text."""

    def __str__(self) -> str:
        """Raises."""
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("a\n b"), "ValueError: a b"),
        (ValueError(), "ValueError"),
        (ValueError("cut \ud83d off"), "ValueError: cut \\ud83d off"),
        (Speechless(), "Speechless: its text cannot be had (RuntimeError)"),
    ],
)
def test_whatever_was_raised_is_one_line_that_can_be_written(
    error: BaseException, line: str
) -> None:
    """Half a surrogate pair would end the process that writes it, without the line."""
    assert in_one_line(error) == line
    line.encode()
