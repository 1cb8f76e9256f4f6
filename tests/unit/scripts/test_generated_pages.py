"""Generated pages: configuration has every key once, metrics every family, phases every move."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml
from docker_cluster import observability

from homeport.appmaster.allocation.job_state.state import ContainerPhase
from homeport.appmaster.allocation.job_state.transitions import TRANSITIONS
from homeport.config.declarations import all_keys
from homeport.config.declarations.key_types import Liveness
from homeport.config.declarations.samza_keys import ALL
from pages_check import allocator_phases, metrics_page
from pages_check.allocator_phases import DIAGRAMS, moves
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
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| `")]
    shown = [(name, *why) for names, *why in rows for name in names.split(", ")]
    expected = [(f"`{k.name}`", k.reason, *([k.remedy] if k.remedy else [])) for k in ALL]
    assert sorted(shown) == sorted(expected)


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


ROWS = {
    line.split("`")[1]: line for line in metrics_page.page().splitlines() if line.startswith("| `")
}


def test_each_family_has_one_row_with_its_type_and_labels() -> None:
    """Counters by the name of their series."""
    families = [f for found in metrics_page.families().values() for f in found]
    assert len(families) == len(ROWS)
    assert "| counter | `processor`, `stage` |" in ROWS["homeport_stage_seconds_total"]
    assert "| histogram | `cause` |" in ROWS["homeport_recovery_seconds"]
    assert all(row.split(" | ")[3].strip() for row in ROWS.values()), "a metric without a meaning"


@pytest.mark.parametrize(
    "rule",
    yaml.safe_load((observability.FOLDER / "alerts.yaml").read_text())["groups"][0]["rules"],
    ids=lambda rule: str(rule["alert"]),
)
def test_each_alert_stands_at_the_metrics_it_reads(rule: dict[str, str]) -> None:
    """Of every series of its expression that is ours."""
    series = set(re.findall(r"\b(?:homeport|samza)_\w+", rule["expr"]))
    for name in series:
        assert f"`{rule['alert']}`" in ROWS[name]


ROOT = Path(__file__).resolve().parents[3]
ALLOCATOR = ROOT / "docs" / "allocator.md"


def test_each_move_is_in_one_diagram() -> None:
    """A new cell of the table needs no new diagram."""
    drawn = [(a, b) for diagram in DIAGRAMS for a, b, _ in moves(diagram)]
    there = {(a, b) for a, row in TRANSITIONS.items() for to in row.values() for b in to if a != b}
    assert {*drawn} == there
    text = allocator_phases.page()
    assert all(event.value in text for row in TRANSITIONS.values() for event in row)


def test_the_allocator_s_page_explains_each_phase() -> None:
    """By its name."""
    text = ALLOCATOR.read_text(encoding="utf-8")
    assert [phase.name for phase in ContainerPhase if f"`{phase.name}`" not in text] == []


def test_the_allocator_s_page_names_what_each_module_decides() -> None:
    """Every module of the allocator is on it, by its name."""
    text = ALLOCATOR.read_text(encoding="utf-8")
    modules = (ROOT / "appmaster" / "allocation").glob("[a-z]*.py")
    assert [m.stem for m in modules if f"`{m.stem}`" not in text] == []
