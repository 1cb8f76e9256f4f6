"""Typed view of Samza's metrics reporters."""

from dataclasses import dataclass
from typing import Final

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import stream_named
from homeport.config.errors import ConfigError
from homeport.config.system_stream import SystemStream

SNAPSHOTS: Final = "org.apache.samza.metrics.reporter.MetricsSnapshotReporterFactory"
_JMX: Final = "org.apache.samza.metrics.reporter.JmxReporterFactory"


@dataclass(frozen=True, slots=True)
class SnapshotReporter:
    """One reporter that sends snapshots of all metrics to ``stream``, every ``interval_s``."""

    name: str
    stream: SystemStream
    interval_s: int


def snapshot_reporters(config: Config) -> tuple[SnapshotReporter, ...]:
    """Return the snapshot reporters of ``metrics.reporters``, in their order.

    ConfigError: a reporter has no class, one of another kind, or no stream.
    """
    found = []
    for name in keys.METRICS_REPORTERS.read(config):
        key = keys.METRICS_REPORTER_CLASS.named(name)
        kind = keys.METRICS_REPORTER_CLASS.read(config, name)
        if kind == _JMX:
            continue
        if kind != SNAPSHOTS:
            rule = "Homeport has the snapshot reporter, and Prometheus' metrics of each AM"
            remedy = f"write {SNAPSHOTS}, or take {name} out of {keys.METRICS_REPORTERS.name}"
            raise ConfigError(key, kind, rule, remedy)
        topic = keys.METRICS_REPORTER_STREAM
        stream = stream_named(topic.named(name), topic.read(config, name), "metrics")
        interval_s = keys.METRICS_REPORTER_INTERVAL.read(config, name)
        found.append(SnapshotReporter(name, stream, interval_s))
    return tuple(found)
