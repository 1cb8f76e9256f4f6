"""KeptClients: clients of Kafka that a process keeps connected from one incarnation to the next.

They only read, or write the coordinator stream plainly (safety K2): no transaction, and so no
epoch, is theirs. Each incarnation has a transactional producer of its own (safety C4).

A start on new clients waits for connections, and reads the coordinator stream from its begin. One
on kept clients reads the stream on from where the start before stood, to the same head (safety K1).
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient

from homeport.config.config import Config
from homeport.config.settings.sections import JobConfig, SystemConfig
from homeport.container.kafka.log_reader import LogReader
from homeport.job_coordinator.kafka import clients
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.topics import TopicAdmin

_LOG = logging.getLogger(__name__)

MOST_RECORDS = 20_000
"""A stream with more is not kept: its state would take tens of MB of each container."""

_Place = tuple[object, ...]


def _place_of(system: SystemConfig) -> _Place:
    """Return what makes two systems one for their clients: addresses and properties."""
    properties = (system.consumer, system.producer, system.admin)
    return (system.name, *(tuple(sorted(each.items())) for each in properties))


class KeptClients:
    """Belongs to the process, for its main thread."""

    def __init__(self) -> None:
        self._admins: dict[_Place, AdminClient] = {}
        self._readers: dict[_Place, LogReader] = {}
        self._stream: tuple[_Place, CoordinatorStreamStore] | None = None
        self._inputs: dict[_Place, Consumer] = {}
        self._lent: list[tuple[_Place, Consumer]] = []
        self.written: frozenset[str] = frozenset()
        """The topics that the producer of the last incarnation has written to."""

    def input_client(self, system: SystemConfig, properties: Mapping[str, Any]) -> Consumer:
        """Return a consumer with these properties, which is assigned nothing."""
        place = (*_place_of(system), *sorted(properties.items()))
        client = self._inputs.pop(place, None) or clients.consumer(system, properties)
        self._lent.append((place, client))
        return client

    def give_back(self, client: Consumer) -> None:
        """Take back a consumer of ``input_client``, which nothing reads from any more."""
        for place in [place for place, lent in self._lent if lent is client]:
            self._lent.remove((place, client))
            try:
                client.unassign()
            except KafkaException:  # such as one that has failed for good
                client.close()
            else:
                self._inputs[place] = client

    def topics(self, system: SystemConfig, timeout_s: float) -> TopicAdmin:
        """Return what asks the system about topics; an answer may take so many seconds."""
        return TopicAdmin(system, timeout_s, client=self._admin(system))

    def _admin(self, system: SystemConfig) -> AdminClient:
        place = _place_of(system)
        if place not in self._admins:
            self._admins[place] = clients.admin(system)
        return self._admins[place]

    @contextlib.contextmanager
    def readers(
        self, systems: Mapping[str, SystemConfig], may_go_on: Callable[[float], None]
    ) -> Iterator[dict[str, LogReader]]:
        """Yield {system: its reader} for a block; ``may_go_on`` as of ``LogReader``.

        They are kept after it, and closed where it raises; readers of other systems are closed.
        """
        places = {_place_of(system): name for name, system in systems.items()}
        before, self._readers = self._readers, {}
        with contextlib.ExitStack() as opened:
            for place in before.keys() - places.keys():
                before.pop(place).close()
            taken: dict[_Place, LogReader] = {}
            for place, name in places.items():
                system = systems[name]
                reader = before.pop(place, None) or LogReader(
                    system, may_go_on, client=self._admin(system)
                )
                opened.callback(reader.close)
                reader.serve(may_go_on)
                taken[place] = reader
            yield {name: taken[place] for place, name in places.items()}
            opened.pop_all()
            self._readers = taken

    @contextlib.contextmanager
    def stream(
        self, config: Config, new: Callable[[], CoordinatorStreamStore]
    ) -> Iterator[CoordinatorStreamStore]:
        """Yield the coordinator stream of the job in ``config`` for a block, which bootstraps it.

        It is kept after it, unless it is large, and closed where the block raises. ``new``: returns
        one that is connected.
        """
        job = JobConfig.of(config)
        place = (*_place_of(SystemConfig.of(config, job.coordinator_system)), job.coordinator_topic)
        kept, self._stream = self._stream, None
        if kept is not None and kept[0] != place:
            kept[1].close()
            kept = None
        stream = new() if kept is None else kept[1]
        if kept is not None:
            _LOG.info("the coordinator stream is read on, by the clients of the last start")
        with contextlib.ExitStack() as opened:
            opened.callback(stream.close)
            yield stream
            if stream.record_count <= MOST_RECORDS:
                stream.rest()
                opened.pop_all()
                self._stream = place, stream

    def close(self) -> None:
        """Close all that is not lent."""
        for client in self._inputs.values():
            client.close()
        self._inputs.clear()
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()
        self._admins.clear()
        if self._stream is not None:
            self._stream[1].close()
        self._stream = None
