"""Configuration keys of Samza's metrics reporters; ``keys`` offers them with all others."""

from __future__ import annotations

from homeport.config.declarations.key_types import IntKey, ListKey, TextKey

METRICS_REPORTERS = ListKey(
    "metrics.reporters", "names of reporters, each with its keys below metrics.reporter.<reporter>"
)
METRICS_REPORTER_CLASS = TextKey(
    "metrics.reporter.<reporter>.class",
    "org.apache.samza.metrics.reporter.MetricsSnapshotReporterFactory; a JmxReporterFactory is "
    "taken and does nothing",
)
METRICS_REPORTER_STREAM = TextKey(
    "metrics.reporter.<reporter>.stream",
    "where a snapshot reporter sends its snapshots, as system.stream",
)
METRICS_REPORTER_INTERVAL = IntKey(
    "metrics.reporter.<reporter>.interval",
    "how often a snapshot reporter sends",
    default=60,
    minimum=1,
    maximum=86_400,
    own_unit="s",
)
