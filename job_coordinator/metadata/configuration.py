"""The job's configuration in the coordinator stream: set-config."""

from __future__ import annotations

from collections.abc import Mapping

from homeport.config.config import Config
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import MessageType
from homeport.job_coordinator.coordinator_stream.reading import read_all

WRITER_SOURCE = "coordinator-stream-writer"
"""Source of the records of the tool of that name, which a deployment leaves alone."""


class ConfigManager:
    """The job's configuration: set-config records.

    Source: COORD, "Job Coordinator"; the order of writing is Samza's.
    """

    def __init__(self, stream: CoordinatorStream) -> None:
        self._stream = stream

    def read(self) -> Config:
        """The configuration as of the last catch-up; a record without a value is left out."""
        texts = read_all(self._stream, MessageType.SET_CONFIG, lambda m: m.value("value"))
        return Config(texts)

    def written(self) -> Config:
        """What the writer tool has set and not taken back: it stands above a deployment's file."""
        messages = self._stream.latest(MessageType.SET_CONFIG).items()
        texts = {name: m.value("value") for name, m in messages if m.source == WRITER_SOURCE}
        return Config({name: text for name, text in texts.items() if text is not None})

    def set(self, key: str, value: str, source: str) -> None:
        """``key`` has ``value`` until a ``replace`` without it."""
        self._stream.write([wire.set_config(key, value)._replace(source=source)])

    def replace(self, config: Mapping[str, str], source: str) -> None:
        """The stream's configuration is ``config`` with ``written()`` laid over it.

        Records of other types are not touched.

        Order: all new keys, flushed; the stream read back to its head; then a tombstone for every
            key that is in neither. A reader that starts in between sees a key too many, never one
            too few.
        """
        kept = self.written()
        self._stream.write(
            wire.set_config(name, value)._replace(source=source)
            for name, value in sorted(config.items())
            if name not in kept
        )
        self._stream.catch_up()
        stored = self._stream.latest(MessageType.SET_CONFIG)
        stale = [name for name in stored if name not in config and name not in kept]
        self._stream.write(wire.tombstone(MessageType.SET_CONFIG, name) for name in sorted(stale))
        self._stream.catch_up()
