"""The pages about configuration have every key once."""

from __future__ import annotations

import re
from collections import Counter

from homeport.config.declarations import all_keys
from homeport.config.declarations.key_types import Liveness
from homeport.config.declarations.samza_keys import ALL
from pages_check.configuration_pages import INDEX, SECTIONS, pages
from pages_check.generated import stale


def test_each_key_is_on_one_page() -> None:
    """Of this project's keys: a key of no section would be on none."""
    times = Counter(key.name for section in SECTIONS for key in section.declared())
    assert times == dict.fromkeys((key.name for key in all_keys.ALL), 1)


def test_a_row_has_all_that_is_known_of_a_key() -> None:
    """Type and unit, default, what a change means, meaning and older names."""
    assert (
        "| `cluster-manager.container.memory.mb` | whole number from 1 to 2147483647, MB | 1024 "
        "| next deployment | memory of a container; older name: `yarn.container.memory.mb` |"
    ) in pages()["docs/configuration/cluster.md"].splitlines()


def test_samza_s_keys_have_their_reasons() -> None:
    """And remedies, where they are refused."""
    page = pages()["docs/configuration/samza.md"]
    assert [k.name for k in ALL if f"| `{k.name}` | {k.reason} |" not in page] == []
    assert [k.name for k in ALL if k.remedy not in page] == []


def test_the_index_links_each_page_and_explains_each_change() -> None:
    """With paths relative to docs/."""
    index = pages()[INDEX]
    linked = {f"docs/{target}" for target in re.findall(r"\]\(([^)]+)\)", index)}
    assert {page for page in linked if page.startswith("docs/configuration/")} == (
        pages().keys() - {INDEX}
    )
    assert all(f"| {liveness.value} |" in index for liveness in Liveness)


def test_every_row_of_a_table_has_as_many_cells_as_its_head() -> None:
    """A bar in a cell is escaped."""
    for page in pages().values():
        for table in page.split("\n\n"):
            rows = [line.replace(r"\|", "").count("|") for line in table.splitlines()]
            assert not table.startswith("|") or len(set(rows)) == 1


def test_a_page_that_differs_from_the_generated_one_is_found() -> None:
    """A page that differs, with its line; one that is missing; one that no keys give any more."""
    wanted = {"docs/a.md": "one\ntwo\n", "docs/b.md": "b\n", "docs/c.md": "c\n"}
    there = {"docs/a.md": "one\n2\n", "docs/c.md": "c\n", "docs/configuration/old.md": ""}
    assert [str(finding) for finding in stale(wanted, there)] == [
        "docs/a.md:2: stale: run scripts/pages --write",
        "docs/b.md:1: generated page is missing: run scripts/pages --write",
        "docs/configuration/old.md:1: no longer generated: delete it",
    ]
