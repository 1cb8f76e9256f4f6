"""Each rule of docs/safety.md is cited, and each citation names a rule of the page."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.unit.world.rules import RULES

ROOT = Path(__file__).resolve().parents[2]
_PAGE = ROOT / "docs" / "safety.md"
_ANCHOR = re.compile(r'<a id="([a-z]\d)"></a>\*\*([A-Z]\d)\*\*')
_CITATION = re.compile(
    r"\bsafety[:,]? ((?:[A-Z]\d(?:,\s+|\s+and\s+|\s+to\s+|(?=\W)))+)", re.IGNORECASE | re.ASCII
)
_RULE = re.compile(r"[A-Z]\d")
_CITING = (".py", ".md", ".toml", ".txt", ".cfg")


def _rules() -> list[str]:
    return [rule for _, rule in _ANCHOR.findall(_PAGE.read_text(encoding="utf-8"))]


def _citations() -> dict[str, set[str]]:
    """{file: the rules it cites}."""
    command = ["git", "ls-files"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found: dict[str, set[str]] = {}
    for name in listed.splitlines():
        file = ROOT / name
        if file.suffix in _CITING and file.is_file():
            text = file.read_text(encoding="utf-8")
            rules = {rule for cited in _CITATION.findall(text) for rule in _RULE.findall(cited)}
            if rules:
                found[name] = rules
    return found


def test_each_rule_has_one_anchor_of_its_name() -> None:
    """In order within its section; the world's rules are those of the page."""
    anchors = _ANCHOR.findall(_PAGE.read_text(encoding="utf-8"))
    assert [anchor.upper() for anchor, _ in anchors] == [rule for _, rule in anchors]
    assert len(set(anchors)) == len(anchors)
    assert set(RULES) == set(_rules())


def test_each_citation_names_a_rule_of_the_page() -> None:
    """In modules, tests and pages."""
    rules = set(_rules())
    unknown = {name: cited - rules for name, cited in _citations().items() if cited - rules}
    assert unknown == {}


def test_each_rule_is_cited_by_the_product() -> None:
    """A rule that no module names could go without a trace."""
    product = ("appmaster/", "container/", "job_coordinator/", "config/")
    cited = [rules for name, rules in _citations().items() if name.startswith(product)]
    assert sorted(set(_rules()) - set[str]().union(*cited)) == []
