"""The end of a test that hangs: all stacks on standard error, then its process exits with 1.

pytest-timeout has the limits (``timeout`` in setup.cfg, or the marker). Its own timer prints
nothing in a worker of pytest-xdist and needs the GIL, which code that hangs may hold.
"""

from __future__ import annotations

import faulthandler
import os
import time
from typing import Any

import pytest

_STDERR = pytest.StashKey[int]()
_END = pytest.StashKey[float]()
_LEAST_S = 0.01


def begin(config: pytest.Config) -> None:
    """Keep standard error as it is now, which pytest replaces while a test runs."""
    config.stash[_STDERR] = os.dup(2)


def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool:  # noqa: ANN401 - pytest-timeout has no types
    """Limit the test with its fixtures."""
    item.stash[_END] = time.monotonic() + settings.timeout
    _limit(item, settings.timeout)
    return True


@pytest.hookimpl(trylast=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> None:
    """Limit what is left of a test that has failed: its other fixtures may hang.

    Before this, pytest and pytest-timeout have ended the limit for the sake of a debugger.
    """
    end = node.stash.get(_END, None)
    if isinstance(node, pytest.Item) and end is not None and not node.config.getoption("usepdb"):
        _limit(node, max(_LEAST_S, end - time.monotonic()))


def pytest_timeout_cancel_timer() -> bool:
    """The test is over."""
    faulthandler.cancel_dump_traceback_later()
    return True


def _limit(item: pytest.Item, seconds: float) -> None:
    faulthandler.dump_traceback_later(seconds, exit=True, file=item.config.stash[_STDERR])
