"""The end of a test that hangs: all stacks on standard error, then its process exits with 1.

pytest-timeout has the limits (``timeout`` in setup.cfg, or the marker). Its own timer prints
nothing in a worker of pytest-xdist and needs the GIL, which code that hangs may hold.
"""

from __future__ import annotations

import faulthandler
import os
from typing import Any

import pytest

_STDERR = pytest.StashKey[int]()


def begin(config: pytest.Config) -> None:
    """Keep standard error as it is now, which pytest replaces while a test runs."""
    config.stash[_STDERR] = os.dup(2)


def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool:  # noqa: ANN401 - pytest-timeout has no types
    """Limit the test with its fixtures."""
    file = item.config.stash[_STDERR]
    faulthandler.dump_traceback_later(settings.timeout, exit=True, file=file)
    return True


def pytest_timeout_cancel_timer() -> bool:
    """The test is over."""
    faulthandler.cancel_dump_traceback_later()
    return True
