"""Which suite a case of a test belongs to."""

from __future__ import annotations

from typing import Any

import pytest


def long(*values: object) -> Any:  # noqa: ANN401 - a parameter set of pytest's
    """The case takes part in "scripts/test all" alone."""
    return pytest.param(*values, marks=pytest.mark.long)
