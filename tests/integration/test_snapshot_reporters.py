"""A snapshot reporter whose topic is missing, on a real broker: it is shown, or created."""

from __future__ import annotations

import asyncio
import logging
import uuid

import pytest
from job_configs import job_config
from stream_in_memory import InMemoryCoordinatorStream
from topic_records import committed

from homeport.appmaster.driver.snapshot_sender import SnapshotSender
from homeport.cli.yarn import preflight
from homeport.config.config import Config
from homeport.config.settings.reporters_section import snapshot_reporters
from homeport.config.settings.sections import SystemConfig
from homeport.job_coordinator.kafka.output_topics import create_outputs
from homeport.job_coordinator.kafka.topics import TopicAdmin


def reporting(kafka: str, topic: str) -> Config:
    """A job whose snapshots go there each second."""
    own = "metrics.reporter.snapshot"
    return job_config(
        kafka,
        {
            "job.name": "j",
            "metrics.reporters": "snapshot",
            f"{own}.class": "org.apache.samza.metrics.reporter.MetricsSnapshotReporterFactory",
            f"{own}.stream": f"kafka.{topic}",
            f"{own}.interval": "1",
        },
    )


def test_run_job_warns_of_the_missing_topic_or_creates_it(kafka: str) -> None:
    """By the key that creates outputs; it warns in one line that names key, topic and remedy."""
    topic = f"metrics-{uuid.uuid4().hex[:8]}"
    config = reporting(kafka, topic)
    lines: list[str] = []
    preflight.warn_of_reporters(config, lines.append)
    assert "\n".join(lines) == (
        f"warning: metrics.reporter.snapshot.stream = 'kafka.{topic}': topic {topic!r} does not "
        f"exist at {kafka}: no snapshot is sent until it is created"
    )
    assert create_outputs(config, InMemoryCoordinatorStream()) == ()
    creating = config.merged({"task.outputs.create.partitions": "1"})
    preflight.warn_of_reporters(creating, lines.append)
    assert create_outputs(creating, InMemoryCoordinatorStream()) == (f"kafka.{topic}",)
    preflight.warn_of_reporters(config, lines.append)
    assert len(lines) == 1


class Said(logging.Handler):
    """What the driver's log says, line by line. To be made, and logged to, on the event loop."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: asyncio.Queue[str] = asyncio.Queue()

    def emit(self, record: logging.LogRecord) -> None:
        """It is in the queue."""
        self.lines.put_nowait(record.getMessage())


def test_snapshots_come_as_soon_as_the_topic_is_created(
    kafka: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Before that the log has one line, not one for each interval."""
    caplog.set_level(logging.INFO, "driver")
    topic = f"metrics-{uuid.uuid4().hex[:8]}"
    config = reporting(kafka, topic)
    system = SystemConfig.of(config, "kafka")
    (reporter,) = snapshot_reporters(config)
    sender = SnapshotSender(reporter, system, lambda: [b"{}"], "host")

    async def created_in_mid_run() -> list[str]:
        found = Said()
        logging.getLogger("driver").addHandler(found)
        sending = asyncio.create_task(sender.run())
        try:
            first = await found.lines.get()
            await asyncio.to_thread(TopicAdmin(system).create, topic, 1, 1, {})
            return [first, await found.lines.get()]
        finally:
            sending.cancel()
            logging.getLogger("driver").removeHandler(found)

    assert asyncio.run(asyncio.wait_for(created_in_mid_run(), 60)) == [
        f"metrics reporter snapshot to kafka.{topic}: Kafka has no topic {topic!r}; create it",
        f"metrics reporter snapshot sends to kafka.{topic} again",
    ]
    assert committed(kafka, topic, 1)
