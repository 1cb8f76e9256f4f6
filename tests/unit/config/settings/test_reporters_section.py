"""Samza's metrics reporters: which are taken, and which are refused."""

from __future__ import annotations

import pytest

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.settings.reporters_section import (
    SNAPSHOTS,
    SnapshotReporter,
    snapshot_reporters,
)
from homeport.config.system_stream import SystemStream

JMX = "org.apache.samza.metrics.reporter.JmxReporterFactory"


def test_snapshot_reporters_are_taken_and_jmx_is_passed_over() -> None:
    """In their order; the interval is a minute by default."""
    config = Config(
        {
            "metrics.reporters": "jmx,a,b",
            "metrics.reporter.jmx.class": JMX,
            "metrics.reporter.a.class": SNAPSHOTS,
            "metrics.reporter.a.stream": "kafka.metrics",
            "metrics.reporter.b.class": SNAPSHOTS,
            "metrics.reporter.b.stream": "other.m",
            "metrics.reporter.b.interval": "5",
        }
    )
    assert snapshot_reporters(config) == (
        SnapshotReporter("a", SystemStream("kafka", "metrics"), 60),
        SnapshotReporter("b", SystemStream("other", "m"), 5),
    )
    assert snapshot_reporters(Config({})) == ()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "metrics.reporter.a.class is missing"),
        ({"class": "com.example.Own"}, "metrics.reporter.a.class = 'com.example.Own'"),
        ({"class": SNAPSHOTS}, "metrics.reporter.a.stream is missing"),
        ({"class": SNAPSHOTS, "stream": "x"}, "it must have the form system.stream"),
        ({"class": SNAPSHOTS, "stream": "kafka.m", "interval": "0"}, "metrics.reporter.a.interval"),
    ],
)
def test_another_reporter_is_refused(values: dict[str, str], said: str) -> None:
    """With the key, and what to write."""
    config = {f"metrics.reporter.a.{key}": value for key, value in values.items()}
    with pytest.raises(ConfigError) as caught:
        snapshot_reporters(Config({"metrics.reporters": "a", **config}))
    assert said in str(caught.value)
