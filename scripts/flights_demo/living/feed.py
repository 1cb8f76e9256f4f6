"""Flights come into one topic, at a pace, while the job is changed."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError, Message

from flights_demo.job import EXAMPLE
from flights_demo.screen import DemoError

sys.path.insert(0, str(EXAMPLE))
from producer import new_producer

Flight = Mapping[str, Any]
_CHUNK = 10
"""Flights between two looks at the pace."""
_LIMIT_S = 120


class Feed:
    """Writes flights from a thread of its own; ``start`` it, and ``close`` it in any case."""

    def __init__(self, servers: str, topic: str, flights: Sequence[Flight], rate: float) -> None:
        """``rate``: records per second, until ``finish``."""
        self._servers, self._topic = servers, topic
        self._flights, self._rate = flights, rate
        self._hurries, self._is_closed = threading.Event(), False
        self._failures: list[str] = []
        self._delivered = 0
        self._thread = threading.Thread(target=self._write, name=f"feed of {topic}")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Return whether no more flights come."""
        return not self._thread.is_alive()

    def finish(self) -> None:
        """Write what is left at once; return when Kafka has all.

        DemoError: it does not have all.
        """
        self._hurries.set()
        self._thread.join()
        left = len(self._flights) - self._delivered
        if left:
            raise DemoError(
                f"{left} flights of {self._topic} were not written: {self._failures[:1]}"
            )

    def close(self) -> None:
        """End, wherever it is."""
        self._is_closed = True
        self._hurries.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _write(self) -> None:
        producer = new_producer({"bootstrap.servers": self._servers})
        started = time.monotonic()
        for count, flight in enumerate(self._flights, start=1):
            if self._is_closed:
                return
            value = json.dumps(flight, separators=(",", ":"))
            producer.produce(self._topic, value, flight["tailnum"], on_delivery=self._report)
            if count % _CHUNK == 0:
                producer.poll(0)
                due = started + count / self._rate
                self._hurries.wait(max(0.0, due - time.monotonic()))
        producer.flush(_LIMIT_S)

    def _report(self, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self._delivered += 1
        else:
            self._failures.append(str(error))
