"""Waiting for what comes true by itself, with a limit."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(
    condition: Callable[[], bool],
    story: Callable[[], object] = str,
    limit_s: float = 60.0,
    every_s: float = 0.02,
) -> None:
    """Return once the condition holds; fail with the story where it does not within the limit."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, story()
        time.sleep(every_s)  # what it looks at announces no change
