"""Text that a terminal only shows."""

from __future__ import annotations

import json

import pytest

from homeport.config.printable import printable, printable_lines


@pytest.mark.parametrize("text", ["", "plain", "é ü 木 😀", '"quoted\\"', " two  spaces "])
def test_what_is_printable_stays(text: str) -> None:
    """Letters of all languages and pictures stay."""
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", "\\u001b[2J"),
        ("\x9b2J", "\\u009b2J"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\x00\x07\x08\x7f", "\\u0000\\u0007\\b\\u007f"),
        ("a\u202eb\u200b\u2028", "a\\u202eb\\u200b\\u2028"),
        ("\ud83d", "\\ud83d"),
        ("\U000e0001", "\\udb40\\udc01"),
    ],
)
def test_what_a_terminal_acts_on_is_escaped(text: str, shown: str) -> None:
    """Escapes, line breaks, bells, other directions, half surrogates; JSON reads them back."""
    assert printable(text) == shown
    assert json.loads(f'"{shown}"') == text
    assert printable(shown) == shown


def test_some_may_be_kept() -> None:
    """Line breaks and tabs stay where a text of several lines is printed."""
    assert printable("a\n\tb\x1b", "\n\t") == "a\n\tb\\u001b"


def test_lines_stay_so_many() -> None:
    """A line break in a value makes no line of its own."""
    assert printable_lines(["a\nowner=mallory", "b"]) == "a\\nowner=mallory\nb"
