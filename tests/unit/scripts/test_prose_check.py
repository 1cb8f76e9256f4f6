"""Banned words are found in prose, and nowhere else."""

from __future__ import annotations

import pytest
from prose_check import findings


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('"""Nobody waits."""\n', 1),
        ('"""First.\n\nIt is told once.\n"""\n', 3),
        ("x = 1\ny = 2  # whoever comes next\n", 2),
        ('raise ValueError(\n    f"{x} begins anew"\n)\n', 2),
    ],
    ids=["docstring", "third line", "comment", "text"],
)
def test_a_banned_word_is_found_with_its_line_and_remedy(text: str, line: int) -> None:
    """In docstrings, comments and texts of a module."""
    (found,) = findings("a.py", text)
    assert (found.file, found.line) == ("a.py", line)
    assert str(found).startswith(f"a.py:{line}: {found.word!r} is not plain: ")


@pytest.mark.parametrize(
    "text",
    [
        '"""STANDBY: "whoever comes first"."""\n',
        '"""The value of ``told``."""\n',
        "told = tell(nobody)\n",
        'event("input-begun-anew")\n',
        'user = "nobody"\n',
        '"""The stores whose changelog is gone."""\n',
    ],
    ids=[
        "quotation",
        "code in a docstring",
        "names",
        "name of an event",
        "value",
        "possessive of a thing",
    ],
)
def test_quotations_code_and_names_are_no_prose(text: str) -> None:
    """Quotations, code and names."""
    assert list(findings("a.py", text)) == []


def test_a_page_is_prose_but_for_its_code_and_quotations() -> None:
    """Each line of it."""
    page = 'HA-YARN says "who is told".\n\n`tell` is code.\nThe driver tells nothing.\n'
    assert [(f.line, f.word) for f in findings("page.md", page)] == [(4, "tells")]
