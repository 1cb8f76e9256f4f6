"""The error tree."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from homeport.config.errors import ConfigError

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("appmaster", "config", "container", "job_coordinator", "local_cluster")


def _errors() -> Iterator[str]:
    """The names of all error classes of the product."""
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
