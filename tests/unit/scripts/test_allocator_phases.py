"""The page of the allocator's phases has all that the table has."""

from __future__ import annotations

from pathlib import Path

from homeport.appmaster.allocation.job_state.state import ContainerPhase
from homeport.appmaster.allocation.job_state.transitions import TRANSITIONS
from pages_check.allocator_phases import DIAGRAMS, moves, page

ROOT = Path(__file__).resolve().parents[3]
ALLOCATOR = ROOT / "docs" / "allocator.md"


def test_each_move_is_in_one_diagram() -> None:
    """A new cell of the table needs no new diagram."""
    drawn = [(a, b) for diagram in DIAGRAMS for a, b, _ in moves(diagram)]
    there = {(a, b) for a, row in TRANSITIONS.items() for to in row.values() for b in to if a != b}
    assert {*drawn} == there
    text = page()
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
