"""When a reader of committed outputs had them, partition by partition, by the histories' clock."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import OFFSET_END, TopicPartition

from flights_demo.verdict import consumer_of
from homeport.job_coordinator.clocks import boot_ms

_POLL_S = 0.1


class Arrivals:
    """Holds when outputs came, in ms since the machine's start; one thread adds, another looks."""

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions
        self._at_ms: dict[int, list[int]] = defaultdict(list)

    def add(self, partition: int, at_ms: int) -> None:
        """Note that an output of the partition came."""
        self._at_ms[partition].append(at_ms)

    def first_since(self, at_ms: int) -> dict[int, int]:
        """Return {partition: when its first output came that came then or later}."""
        found = {}
        for partition in range(self._partitions):
            arrived = self._at_ms[partition]
            place = bisect_left(arrived, at_ms)
            if place < len(arrived):
                found[partition] = arrived[place]
        return found

    def has_all_since(self, at_ms: int) -> bool:
        """Return whether each partition has an output that came then or later."""
        return len(self.first_since(at_ms)) == self._partitions


@contextmanager
def arriving(
    servers: str, topic: str, partitions: int, properties: Path | None = None
) -> Iterator[Arrivals]:
    """Inside the block the committed outputs of a topic are noted as they come, from its end on.

    ``properties``: a file of librdkafka's, where Kafka asks for one.
    """
    arrivals, ended = Arrivals(partitions), threading.Event()
    reader = consumer_of(servers, properties)
    reader.assign([TopicPartition(topic, p, OFFSET_END) for p in range(partitions)])

    def read() -> None:
        while not ended.is_set():
            message = reader.poll(_POLL_S)
            if message is not None and message.error() is None:
                arrivals.add(message.partition() or 0, boot_ms())

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield arrivals
    finally:
        ended.set()
        thread.join()
        reader.close()
