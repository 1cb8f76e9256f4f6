"""The error tree."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from homeport.config.errors import ConfigError, in_one_line

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("appmaster", "config", "container", "homeport", "job_coordinator", "local_cluster")


def _errors() -> Iterator[str]:
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_bytes())):
                if isinstance(node, ast.ClassDef) and node.name.endswith("Error"):
                    yield node.name


def test_no_two_errors_have_the_same_name() -> None:
    """A handler that names an error catches it, whichever package raised it."""
    counts = Counter(_errors())
    assert counts["FencedError"] == 1
    assert [name for name, count in counts.items() if count > 1] == []


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
