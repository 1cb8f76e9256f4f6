"""Windows: no test leaves arguments to the next one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.container.windows.window_jobs import KEPT


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """The next test makes windows of its own."""
    KEPT.clear()
    yield
    KEPT.clear()
