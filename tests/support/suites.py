"""Which suite a case of a test belongs to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def long(*values: object) -> Any:  # noqa: ANN401 - a parameter set of pytest's
    """The case takes part in "scripts/test all" alone."""
    return pytest.param(*values, marks=pytest.mark.long)


def every_third(values: Iterable[object]) -> list[Any]:
    """Return cases: each suite runs a third of them, and "scripts/test all" runs all."""
    return [long(value) if number % 3 else value for number, value in enumerate(values)]
