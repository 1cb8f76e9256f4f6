"""Diagrams of the allocator's phases, and the page that shows them."""

from __future__ import annotations

import pytest

from diagrams_main import DIAGRAMS, README, moves, printed, with_diagrams
from homeport.appmaster.allocation.job_state.state import ContainerPhase
from homeport.appmaster.allocation.job_state.transitions import TRANSITIONS


def test_the_page_shows_the_table_that_is() -> None:
    """After a change of the table: ``scripts/diagrams --write``."""
    page = README.read_text(encoding="utf-8")
    assert with_diagrams(page) == page


def test_each_move_is_in_one_diagram() -> None:
    """Whatever is added to the table is drawn without anybody's doing."""
    drawn = [(a, b) for diagram in DIAGRAMS for a, b, _ in moves(diagram)]
    there = {(a, b) for a, row in TRANSITIONS.items() for to in row.values() for b in to if a != b}
    assert {*drawn} == there
    text = printed()
    assert all(happening.value in text for row in TRANSITIONS.values() for happening in row)


def test_the_page_speaks_of_each_phase() -> None:
    """By its name, before the diagrams."""
    page = README.read_text(encoding="utf-8").split("## Diagrams")[0]
    assert [p.name for p in ContainerPhase if f"`{p.name}`" not in page] == []


def test_the_page_says_what_each_module_decides() -> None:
    """Every module of the allocator is on it, by its name."""
    page = README.read_text(encoding="utf-8")
    modules = (README.parent / "allocation").glob("[a-z]*.py")
    known = {"events", "instructions", "settings"}  # what goes in and out: the machine's words
    assert [m.stem for m in modules if m.stem not in known and f"`{m.stem}`" not in page] == []


def test_a_page_without_a_place_for_them_is_refused() -> None:
    """Rather than left without."""
    with pytest.raises(ValueError, match="no part for what scripts/diagrams prints"):
        with_diagrams("# appmaster\n")
