"""Nothing of the documents and of Samza's scenarios is left out: each has its test or a reason."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent

REFERENCE = {"A": 23, "P": 17, "C": 9, "S": 18, "R": 38, "K": 7, "L": 13, "Z": 15}
"""How many scenarios samza-behaviours 14.1 to 14.5 and 14.7 to 14.9 have of each letter."""

SCENARIOS = tomllib.loads((HERE / "scenarios.toml").read_text(encoding="utf-8"))
ELSEWHERE = tomllib.loads((HERE / "elsewhere.toml").read_text(encoding="utf-8"))["sentence"]


@cache
def _docstrings(path: str) -> dict[str, str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = (node for node in tree.body if isinstance(node, kinds))
    return {f.name: ast.get_docstring(f) or "" for f in functions if f.name.startswith("test_")}


def _docstring(test: str) -> str | None:
    """Of ``path::name``; None where there is no such test."""
    path, _, name = test.partition("::")
    return _docstrings(path).get(name) if (ROOT / path).is_file() else None


def test_every_scenario_of_the_reference_is_listed() -> None:
    """A1 to A23, and so on by letter, and no other."""
    listed = {letter: sorted(map(int, rows)) for letter, rows in SCENARIOS.items()}
    assert listed == {letter: list(range(1, n + 1)) for letter, n in REFERENCE.items()}


@pytest.mark.parametrize("letter", REFERENCE)
def test_each_scenario_has_a_test_that_names_it_or_a_reason(letter: str) -> None:
    """The docstring of the test has the id, as in "A4: what is not needed goes"."""
    faults = []
    for number, row in SCENARIOS[letter].items():
        if isinstance(row, str):
            stated = _docstring(row)
            if stated is None or not re.search(rf"\b{letter}{number}\b", stated):
                faults.append(f"{letter}{number}: {row} is no test that names it")
        elif set(row) != {"reason"} or not row["reason"]:
            faults.append(f"{letter}{number}: neither a test nor a reason")
    assert faults == []


def test_each_sentence_that_other_parts_fulfil_names_the_part() -> None:
    """A test that exists, or a word on where it is; no sentence twice."""
    faults = [
        row["words"]
        for row in ELSEWHERE
        if not row.get("other") and _docstring(row.get("shown_by", "")) is None
    ]
    assert faults == []
    words = [row["words"] for row in ELSEWHERE]
    assert len(set(words)) == len(words)
    assert {row["document"] for row in ELSEWHERE} == {
        "HA-YARN",
        "HA-STANDALONE",
        "STANDBY",
        "ADJUNCT",
    }


@pytest.mark.parametrize("document", ["ha_yarn", "ha_standalone", "standby"])
def test_each_test_of_a_document_quotes_it(document: str) -> None:
    """The sentence stands between quotation marks in the docstring."""
    silent = [
        name
        for name, stated in _docstrings(f"tests/spec/test_{document}.py").items()
        if not re.search(r'"[^"]{10,}"', stated.replace("\n", " "))
    ]
    assert silent == []
