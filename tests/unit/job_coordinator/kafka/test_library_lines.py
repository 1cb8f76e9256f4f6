"""What of librdkafka's lines is logged, and at which level."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from homeport.job_coordinator.kafka import connection
from homeport.job_coordinator.kafka.connection import SaidOnce

_PID = "GETPID [rdkafka#producer-%d] Failed to acquire idempotence PID: %s: retrying"
_LOADS = "Broker: Coordinator load in progress"


class _Lines:
    """A logger with the filter, at a time that the test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self.log = logging.getLogger(name)
        self.log.filters.clear()
        self.log.addFilter(SaidOnce())
        self._patch = monkeypatch

    def say(self, at_s: float, text: str, *values: object) -> None:
        """Log a warning of the library."""
        self._patch.setattr(connection, "time", SimpleNamespace(monotonic=lambda: at_s))
        self.log.warning(text, *values)


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> _Lines:
    """Of a logger of this test alone."""
    return _Lines(monkeypatch, f"homeport.{request.node.name}")


def _logged(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    found = [(r.levelname, r.getMessage()) for r in caplog.records]
    caplog.clear()
    return found


def test_what_the_library_retries_is_a_warning_once_it_lasts(
    lines: _Lines, caplog: pytest.LogCaptureFixture
) -> None:
    """As at the first start on a new Kafka; after a minute of silence it begins again."""
    caplog.set_level(logging.INFO)
    for at_s in (0, 1, 9.9):
        lines.say(at_s, _PID, 4, _LOADS)
    assert _logged(caplog) == []
    lines.say(10, _PID, 5, _LOADS)
    lines.say(11, _PID, 5, _LOADS)
    assert _logged(caplog) == [("WARNING", _PID % (5, _LOADS))]
    lines.say(12, _PID, 5, "Broker: Not coordinator")  # another condition
    lines.say(80, _PID, 5, _LOADS)
    assert _logged(caplog) == []


def test_whoever_debugs_sees_each_kind_once(
    lines: _Lines, caplog: pytest.LogCaptureFixture
) -> None:
    """At its level; the warning is a line of its own."""
    lines.log.setLevel(logging.DEBUG)
    for at_s in (0, 1, 10):
        lines.say(at_s, _PID, 4, _LOADS)
    line = _PID % (4, _LOADS)
    assert _logged(caplog) == [("DEBUG", line), ("WARNING", line)]


def test_any_other_line_is_said_once_a_minute(
    lines: _Lines, caplog: pytest.LogCaptureFixture
) -> None:
    """Numbers make no other line."""
    for at_s in (0, 1, 59, 60):
        lines.say(at_s, "FAIL: broker %d is down", at_s)
    assert _logged(caplog) == [("WARNING", f"FAIL: broker {n} is down") for n in (0, 60)]
