"""The error tree."""

from __future__ import annotations

import pytest

from homeport.config.errors import ConfigError, in_one_line


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
