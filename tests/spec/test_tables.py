"""Each scenario of Samza's, and each sentence of the five documents, has its row here.

What these tests prove: the test that a row names exists; that of a scenario has its id in the
docstring, and a test of a document's own module quotes it. A row without a test has a reason, and
each reason of a document's table names a page of this repository, which exists.

Beside the documents they prove as well: each quotation is verbatim, but for white space. Of each
sentence of five words or more at least a part is quoted, or it lies in a passage that demands
nothing, by the table's word. The documents are no part of the repository: without their folder
these tests are left out, and the summary gives the reason.

No test here proves that a test shows what its sentence demands, that a page has the reason in
full, or that such a passage demands nothing: that is the judgement of those that read both.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent

REFERENCE = {"A": 23, "P": 17, "C": 9, "S": 18, "R": 38, "K": 7, "L": 13, "Z": 15}
"""How many scenarios samza-behaviours 14.1 to 14.5 and 14.7 to 14.9 have of each letter."""

SCENARIOS = tomllib.loads((HERE / "scenarios.toml").read_text(encoding="utf-8"))

DOCUMENTS = ("COORD", "HA-YARN", "HA-STANDALONE", "STANDBY", "ADJUNCT")

_BREAK = re.compile(
    r"\n\s*\n"  # between paragraphs
    r"|\n(?=\s*(?:[•*/#+<-]|(?:\d+|[a-z])[.)]\s))"  # before an item of a list, or a line of code
    r'|(?<=[.!?:])\s+(?=[A-Z“"(#])'  # between sentences
)
_FEWEST_WORDS = 5
"""A sentence with fewer is a heading, or a word of a figure."""

_BETWEEN = " ... "
"""In a passage that demands nothing: between its first words and its last."""


def _file_of(document: str) -> str:
    return document.lower().replace("-", "_")


@cache
def _table(document: str) -> dict[str, dict[str, Any]]:
    return tomllib.loads((HERE / f"{_file_of(document)}.toml").read_text(encoding="utf-8"))


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


def _own_tests(document: str) -> dict[str, list[str]]:
    """Return {test of the document's own module: what its docstring quotes}."""
    path = f"tests/spec/test_{_file_of(document)}.py"
    stated = _docstrings(path) if (ROOT / path).is_file() else {}
    return {n: re.findall(r'"([^"]{10,})"', " ".join(text.split())) for n, text in stated.items()}


def _row_fault(row: str | dict[str, str]) -> str | None:
    """Return what is wrong with a row of a document's table; None for a sound one."""
    fields = {"shown_by": row} if isinstance(row, str) else row
    if "shown_by" in fields and _docstring(fields["shown_by"]) is None:
        return "there is no such test"
    if isinstance(row, str):
        return None
    if not fields.get("reason") or fields.keys() - {"shown_by", "reason", "page"}:
        return "it has neither a test alone nor a reason"
    return None if (ROOT / fields.get("page", "-")).is_file() else "there is no such page"


@cache
def _sentences(path: Path) -> tuple[str, ...]:
    text = path.read_text(encoding="utf-8")
    sentences = (" ".join(sentence.split()) for sentence in _BREAK.split(text))
    return tuple(sentence for sentence in sentences if sentence)


def _places(path: Path, passage: str) -> Iterator[tuple[int, int]]:
    """Yield from where to where the passage stands in the document of ``path``."""
    parts = (re.escape(" ".join(part.split())) for part in passage.split(_BETWEEN))
    for found in re.finditer(".*?".join(parts), " ".join(_sentences(path))):
        yield found.span()


def _quotations(document: str) -> Iterator[str]:
    yield from _table(document)["sentences"]
    for quoted in _own_tests(document).values():
        yield from quoted


def _without_demand(document: str) -> Iterator[str]:
    for passages in _table(document)["no_demand"].values():
        yield from passages


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


@pytest.mark.parametrize("document", DOCUMENTS)
def test_each_sentence_names_a_test_or_a_reason_with_its_page(document: str) -> None:
    """A test that exists, or a reason in short and a page that exists; or both."""
    rows = _table(document)["sentences"].items()
    assert [(words, fault) for words, row in rows if (fault := _row_fault(row))] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_each_test_of_a_document_quotes_it(document: str) -> None:
    """The sentence stands between quotation marks in the docstring."""
    assert [name for name, quoted in _own_tests(document).items() if not quoted] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_each_quotation_is_verbatim(documents: Path, document: str) -> None:
    """Those of tables and of docstrings; of a passage its first and last words, found once."""
    assert [words for words in _quotations(document) if _BETWEEN in words] == []
    stated = {
        words: len(list(_places(documents / f"{document}.txt", words)))
        for words in (*_quotations(document), *_without_demand(document))
    }
    assert [words for words, found in stated.items() if not found] == []
    assert [words for words, found in stated.items() if _BETWEEN in words and found > 1] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_each_sentence_is_quoted_or_demands_nothing(documents: Path, document: str) -> None:
    """At least a part of each, wherever the words stand in the document."""
    path = documents / f"{document}.txt"
    stated = (*_quotations(document), *_without_demand(document))
    spans = [span for words in stated for span in _places(path, words)]
    silent, begin = [], 0
    for sentence in _sentences(path):
        end = begin + len(sentence)
        is_stated = any(first < end and last > begin for first, last in spans)
        if not is_stated and len(sentence.split()) >= _FEWEST_WORDS:
            silent.append(sentence)
        begin = end + 1
    assert silent == []


def test_there_is_a_table_for_each_document(documents: Path) -> None:
    """No document is without one."""
    assert sorted(path.stem for path in documents.glob("*.txt")) == sorted(DOCUMENTS)
