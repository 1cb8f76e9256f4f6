"""Text made harmless: for a terminal, and as the name of a folder."""

from __future__ import annotations

import json

import pytest

from homeport.config.errors import StoreError
from homeport.config.path_names import job_folder, path_part
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


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("plane summary", "plane summary"),
        ("a/b", "a%2Fb"),
        ("50%", "50%25"),
        ("a\nb", "a%0Ab"),
        ("", "%00"),
        (".", "%2E"),
        ("..", "%2E%2E"),
        ("...", "..."),
    ],
)
def test_any_text_becomes_one_path_part(text: str, part: str) -> None:
    """Harmless names stay; what leads elsewhere, or is no name, is escaped."""
    assert path_part(text) == part


def test_a_name_that_no_file_system_takes_is_refused() -> None:
    """Before anything is made, with the name in the message."""
    with pytest.raises(StoreError, match="longer than the 200 bytes of a path part"):
        path_part("x" * 201)


def test_two_jobs_never_share_a_folder() -> None:
    """A hyphen of the id is escaped (safety K3)."""
    assert job_folder("a", "1-0") == "a-1%2D0"
    assert job_folder("a-1", "0") == "a-1-0"
