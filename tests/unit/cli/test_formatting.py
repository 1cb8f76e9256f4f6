"""How sizes, ages and counts are said."""

from __future__ import annotations

import pytest

from homeport.cli.formatting import age, number, size, some, table


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KB"), (5 * 1024**3, "5.0 GB")],
)
def test_a_size_is_in_the_largest_unit_that_it_fills(count: int, said: str) -> None:
    """Bytes are whole; of the others one decimal is enough."""
    assert size(count) == said
    assert size(1024**6) == f"{1024**2}.0 TB"


@pytest.mark.parametrize(
    ("milliseconds", "said"),
    [(-5, "0 s"), (999, "0 s"), (59_999, "59 s"), (3_600_000, "1 h"), (90 * 86_400_000, "90 d")],
)
def test_an_age_is_in_the_largest_unit_that_it_fills(milliseconds: int, said: str) -> None:
    """What lies in the future has no age."""
    assert age(milliseconds) == said


def test_one_item_has_the_singular() -> None:
    """And some plurals are their own."""
    assert number(1, "file") == "1 file"
    assert number(2, "file") == "2 files"
    assert number(0, "directory", "directories") == "0 directories"


def test_a_table_has_columns_as_wide_as_what_is_in_them() -> None:
    """Numbers stand to the right; no line ends in blanks."""
    rows = [("NAME", "LAG", "HOST"), ("long name", "7", "a"), ("b", "12345", "")]
    assert list(table(rows, {1})) == [
        "NAME         LAG  HOST",
        "long name      7  a",
        "b          12345",
    ]


def test_of_many_names_some_are_shown() -> None:
    """And how many more there are."""
    assert some(["a", "b"], 2) == "a, b"
    assert some(["a", "b", "c"], 2) == "a, b and 1 more"
    assert some([]) == ""
