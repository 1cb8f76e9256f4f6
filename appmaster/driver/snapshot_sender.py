"""Sends snapshots of the job's metrics to Kafka, for readers of Samza's reporter."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from confluent_kafka import KafkaException, Producer
from prometheus_client.registry import Collector

from homeport.appmaster.report.metrics_snapshots import Origin, snapshots
from homeport.config.config import Config
from homeport.config.errors import HomeportError
from homeport.config.settings.reporters_section import SnapshotReporter, snapshot_reporters
from homeport.config.settings.sections import SystemConfig
from homeport.job_coordinator.clocks import wall_ms
from homeport.job_coordinator.kafka.clients import producer
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.status.shape import ShownStatus

log = logging.getLogger("driver")

_FLUSH_S = 5.0
_PROPERTIES = {"linger.ms": 0, "message.timeout.ms": 10_000}


@contextmanager
def sending_snapshots(
    config: Config, origin: Origin, metrics: Collector, status: Callable[[], ShownStatus]
) -> Iterator[None]:
    """Let each snapshot reporter of the configuration send, within the block.

    ``metrics`` and ``status`` are read on the event loop.
    """

    def look() -> list[bytes]:
        return snapshots(origin, metrics.collect(), status().containers, wall_ms())

    tasks = []
    for found in snapshot_reporters(config):
        system = SystemConfig.of(config, found.stream.system)
        sender = SnapshotSender(found, system, look, origin.host)
        tasks.append(asyncio.create_task(sender.run(), name=f"snapshots-{found.name}"))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()


class SnapshotSender:
    """One reporter. A Kafka that is away costs snapshots, and never the job.

    ``look`` makes the snapshots, on the event loop. ``key`` is that of each record: the host, as in
    Samza.
    """

    def __init__(
        self,
        reporter: SnapshotReporter,
        system: SystemConfig,
        look: Callable[[], Sequence[bytes]],
        key: str,
    ) -> None:
        self._reporter = reporter
        self._system = system
        self._look = look
        self._key = key
        self._producer: Producer | None = None
        self._fault = ""

    async def run(self) -> None:
        """Send at each interval until it is cancelled."""
        while True:
            found = self._look()
            fault = await asyncio.to_thread(self._send, found)
            if fault != self._fault:
                self._fault = fault
                stream = self._reporter.stream
                if fault:
                    log.warning("metrics reporter %s to %s: %s", self._reporter.name, stream, fault)
                else:
                    log.info("metrics reporter %s sends to %s again", self._reporter.name, stream)
            await asyncio.sleep(self._reporter.interval_s)  # its interval: nothing is waited for

    def _send(self, found: Sequence[bytes]) -> str:
        """Send all snapshots; return why Kafka lacks some, "" where it has all."""
        faults: list[str] = []
        try:
            if self._producer is None:
                self._producer = producer(self._system, _PROPERTIES)
            for snapshot in found:
                self._producer.produce(
                    self._reporter.stream.stream,
                    snapshot,
                    self._key,
                    on_delivery=lambda error, _: faults.append(str(error)) if error else None,
                )
            left = self._producer.flush(_FLUSH_S)
            if (faults or left) and not self._has_topic():
                return f"Kafka has no topic {self._reporter.stream.stream!r}; create it"
        except (KafkaException, BufferError, HomeportError) as error:
            return str(error)
        # How many are left differs from time to time: one fault is one line.
        return faults[0] if faults else ("Kafka takes none of them" if left else "")

    def _has_topic(self) -> bool:
        """Return whether the topic exists: the client reports only that time is up."""
        topic = self._reporter.stream.stream
        return bool(TopicAdmin(self._system, _FLUSH_S).partition_counts([topic]))
