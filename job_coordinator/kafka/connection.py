"""Detects that a client has lost its broker, and waits for the broker's return.

Measured on a real broker: a transaction that begins while the broker is away cannot be ended after
its return (INVALID_TXN_STATE). An admin client requests offsets under the old leader epoch, and the
broker refuses them, until the client refreshes its metadata after up to five minutes.
"""

import contextlib
import logging
import re
import time
from collections.abc import Callable
from typing import Protocol

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ClusterMetadata

from homeport.job_coordinator.kafka.transient_errors import DISCONNECTED

_LOG = logging.getLogger(__name__)

_PING_S = 2.0
_PAUSE_S = 0.5
_PROGRESS_S = 10.0
_REPEAT_S = 60.0
_LASTS_S = 10.0
_RETRIED = ": retrying"
"""The end of the library's lines about what mostly passes, as at a Kafka that starts."""
_DIGITS = re.compile(r"[0-9]+")


class Client(Protocol):
    """The methods of a producer that this module calls."""

    def poll(self, timeout: float) -> int:
        """Call callbacks; return how many."""

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """Return the cluster's metadata."""


class Connection:
    """Knows whether a client has lost its broker; ``heard`` must be the client's ``error_cb``."""

    def __init__(self) -> None:
        self._lost: KafkaError | None = None

    def heard(self, error: KafkaError) -> None:
        """Note an error that the library reports."""
        if error.code() in DISCONNECTED:
            self._lost = error

    def lost(self, client: Client) -> str | None:
        """Return how the connection was lost since the last answer; None if it was not."""
        with contextlib.suppress(KafkaException):  # a failed producer reports that by itself
            client.poll(0)
        return None if self._lost is None else self._lost.str()

    def wait(self, client: Client, pause: Callable[[float], None]) -> None:
        """Wait without a limit until a broker answers, if the connection was lost.

        ``pause`` waits the seconds given; it raises to give up.
        """
        began = said = time.monotonic()
        while self.lost(client) is not None and not self.answers(client):
            now = time.monotonic()
            if now - said >= _PROGRESS_S:
                said = now
                _LOG.warning(
                    "Kafka is away, waiting for %.0f s: %s", now - began, self.lost(client)
                )
            pause(_PAUSE_S)

    def answers(self, client: Client) -> bool:
        """Return whether a broker answers one request now."""
        try:
            client.list_topics(timeout=_PING_S)
        except KafkaException:
            return False
        self.lost(client)  # serve the callbacks from before the answer, then forget them
        self._lost = None
        return True


class SaidOnce(logging.Filter):
    """Passes one of many lines that differ only in numbers a minute: the library repeats itself.

    A line about what the library tries again has the level DEBUG until that has lasted a while.
    """

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[int, str], float] = {}
        self._retried: dict[str, tuple[float, float]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the line is logged."""
        now = time.monotonic()
        text = record.getMessage()
        kind = _DIGITS.sub("", text)
        if text.endswith(_RETRIED) and not self._lasts(kind, now):
            record.levelno, record.levelname = logging.DEBUG, logging.getLevelName(logging.DEBUG)
            if not logging.getLogger(record.name).isEnabledFor(logging.DEBUG):
                return False
        self._said = {k: at for k, at in self._said.items() if now - at < _REPEAT_S}
        if (record.levelno, kind) in self._said:
            return False
        self._said[record.levelno, kind] = now
        return True

    def _lasts(self, kind: str, now: float) -> bool:
        known = {k: times for k, times in self._retried.items() if now - times[1] < _REPEAT_S}
        began = known.get(kind, (now, now))[0]
        self._retried = {**known, kind: (began, now)}
        return now - began >= _LASTS_S
