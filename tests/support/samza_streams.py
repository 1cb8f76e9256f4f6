"""A job's coordinator stream as our classes see it, and as Samza's do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from samza_peer import SamzaPeer

from homeport.config.config import Config
from homeport.config.settings.sections import JobConfig, SystemConfig
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore

READ_COMMITTED = {"systems.kafka.consumer.isolation.level": "read_committed"}
"""What Samza needs to know of its consumer, so that aborted transactions are none (README)."""


@dataclass
class Stream:
    """A job's coordinator stream, seen by our classes and by Samza's."""

    config: Config
    samza: SamzaPeer

    @property
    def topic(self) -> str:
        """Name of its topic."""
        return JobConfig.of(self.config).coordinator_topic

    @property
    def servers(self) -> str:
        """Addresses of its brokers."""
        return SystemConfig.of(self.config, "kafka").bootstrap_servers

    def store(self, *, transactional_id: str | None = None) -> CoordinatorStreamStore:
        """A store of ours; the caller closes it."""
        return CoordinatorStreamStore(
            SystemConfig.of(self.config, "kafka"),
            self.topic,
            source="homeport",
            transactional_id=transactional_id,
            timeout_s=20,
        )

    def write(self, messages: Iterable[CoordinatorStreamMessage], *, driver: bool = False) -> None:
        """Written by us: plainly, or in one transaction as the driver does."""
        with self.store(transactional_id=f"homeport.{self.topic}" if driver else None) as store:
            store.bootstrap()
            store.fence()
            store.write(messages)

    def ours(self, message_type: str) -> dict[str, CoordinatorStreamMessage]:
        """What our reader makes of the stream, from its beginning."""
        with self.store() as store:
            store.bootstrap()
            assert store.damaged_count == 0
            return store.latest(message_type)

    def theirs(self, *, more: Mapping[str, str] = READ_COMMITTED) -> dict[str, dict[str, Any]]:
        """{type: {key: values}} as Samza's store reads the stream from its beginning."""
        self.open(more=more)
        return values(self.samza.ask("all"))

    def managers(self) -> dict[str, Any]:
        """What Samza's managers make of the stream, from its beginning."""
        self.open()
        found: dict[str, Any] = self.samza.ask("managers")
        return found

    def open(self, *, more: Mapping[str, str] = READ_COMMITTED) -> None:
        """Samza reads the stream from the start.

        It fetches the end once, and sees a commit a little after the committer: our reader waits
        for that (safety K1).
        """
        with self.store() as store:
            store.bootstrap()
        self.samza.open({**self.config, **more})


def values(found: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, Any]]:
    """{type: {key: values}} of what Samza's store holds: {type: {key: value as JSON}}."""
    return {
        type_: {key: json.loads(value).get("values") for key, value in of.items()}
        for type_, of in found.items()
    }
