"""Each rule of docs/safety.md is cited, and each citation names a rule of the page."""

from __future__ import annotations

import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.world.rules import RULES

ROOT = Path(__file__).resolve().parents[2]
_PAGE = ROOT / "docs" / "safety.md"
_ANCHOR = re.compile(r'<a id="([a-z]\d+)"></a>\*\*([A-Z]\d+)\*\*')
_CITATION = re.compile(r"\b[Ss]afety [A-Z]\d+(?:, [A-Z]\d+)*\b(?! (?:to|and) [A-Z]\d+)")
_ATTEMPT = re.compile(r"\b[Ss]afety[\s:,;]+(?:rules? )?[A-Z]?\d[^,.;:)\n]*")
"""What an author may write for a citation, also over the end of a line."""
_RULE = re.compile(r"\b[KALCISP]\d\d?\b")
_CITING = (".py", ".md", ".toml", ".txt", ".cfg", ".sh")
_PRODUCT = (
    "appmaster/",
    "container/",
    "job_coordinator/",
    "config/",
    "local_cluster/",
    "homeport/",
    "scripts/",
)


def _rules() -> list[str]:
    return [rule for _, rule in _ANCHOR.findall(_PAGE.read_text(encoding="utf-8"))]


def _texts() -> Iterator[tuple[str, str]]:
    """(file, text) of all that may cite a rule."""
    command = ["git", "ls-files"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        file = ROOT / name
        if file.suffix in _CITING and file.is_file() and file != Path(__file__):
            yield name, file.read_text(encoding="utf-8")


def _cited(text: str) -> set[str]:
    return {rule for found in _CITATION.findall(text) for rule in _RULE.findall(found)}


def _prose(module: str) -> str:
    tokens = tokenize.generate_tokens(io.StringIO(module).readline)
    return "\n".join(
        token.string
        for token in tokens
        if token.type == tokenize.COMMENT or token.string.startswith('"""')
    )


def _faults(text: str) -> list[str]:
    """What stands for a citation and has not the one form."""
    return [found for found in _ATTEMPT.findall(text) if not _CITATION.match(found)]


def test_each_rule_has_one_anchor_of_its_name() -> None:
    """In order within its section; the world's rules are those of the page."""
    anchors = _ANCHOR.findall(_PAGE.read_text(encoding="utf-8"))
    assert [anchor.upper() for anchor, _ in anchors] == [rule for _, rule in anchors]
    assert len(set(anchors)) == len(anchors)
    assert set(RULES) == set(_rules())


def test_each_rule_says_what_it_stops() -> None:
    """The schedule follows the rule."""
    rules = _PAGE.read_text(encoding="utf-8").split('<a id="')[1:]
    assert [rule[:2] for rule in rules if " ".join(rule.split()).count("*Without it:*") != 1] == []


def test_each_citation_names_a_rule_of_the_page() -> None:
    """In modules, tests, scripts and pages."""
    rules = set(_rules())
    unknown = {name: cited - rules for name, text in _texts() if (cited := _cited(text)) - rules}
    assert unknown == {}


def test_each_citation_has_the_one_form() -> None:
    """``safety K1``, or ``safety K1, K4``, on one line: a search for it finds all."""
    wrong = {name: faults for name, text in _texts() if (faults := _faults(text))}
    assert wrong == {}


def test_no_rule_is_named_without_the_page() -> None:
    """In the product a bare ``K1`` is a citation that no search finds. Tests have other tables."""
    bare = {
        name: rules
        for name, text in _texts()
        if name.startswith(_PRODUCT) and name.endswith(".py") and _RULE.search(text)
        if (rules := _RULE.findall(_CITATION.sub("", _prose(text))))
    }
    assert bare == {}


def test_each_rule_is_cited_by_the_product() -> None:
    """A rule that no module names could go without a trace."""
    cited = [_cited(text) for name, text in _texts() if name.startswith(_PRODUCT)]
    assert sorted(set(_rules()) - set[str]().union(*cited)) == []


@pytest.mark.parametrize(
    ("text", "rules", "faults"),
    [
        ("so it is (safety K1).", {"K1"}, 0),
        ("Safety I1, L3. Only", {"I1", "L3"}, 0),
        ("it ended (safety\n    P1)", set(), 1),
        ("safety I5 to I8", set(), 1),
        ("safety, rule 3", set(), 1),
        ("safety: K1", set(), 1),
        ("safety margin of 3 s", set(), 0),
    ],
)
def test_a_citation_is_known_by_its_form(text: str, rules: set[str], faults: int) -> None:
    """The search of this file, by example."""
    assert _cited(text) == rules
    assert len(_faults(text)) == faults
