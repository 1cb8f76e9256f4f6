"""What the searches have visited is said at the end of a run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

_TOLD: list[str] = []


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Says something in the summary of the run."""

    def say(what: str) -> None:
        _TOLD.append(f"{request.node.name}: {what}")

    return say


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for each search, and each mutant's way with -v."""
    if _TOLD:
        terminalreporter.section("searched")
        for line in _TOLD:
            terminalreporter.line(line)
