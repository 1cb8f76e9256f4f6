"""What one system's Kafka has of transactions: which hang, how they ended, and how one is ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka.log_reader import LogReader
from homeport.container.kafka.partition_leaders import PartitionLeaders
from homeport.container.kafka.transactional_producer import fence
from homeport.container.progress.transaction_state import Place, TransactionEnds
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.model.incarnation import STATE_TOPIC, state_partition

_HOUR_MS = 3_600_000


class TransactionsInKafka(PartitionLeaders):
    """Transactions of one system.

    Args:
        system: whose brokers.
        pause: waits the seconds given, and raises to stop.

    Raises:
        UnavailableError, PartitionError: (from every method) Kafka did not say, or did not do it.
    """

    def __init__(self, system: SystemConfig, pause: Callable[[float], None]) -> None:
        super().__init__(system)
        self._reader = LogReader(system, pause, {"isolation.level": "read_uncommitted"})

    def close(self) -> None:
        """Nothing is read any more."""
        self._reader.close()

    def held(self, places: Iterable[Place]) -> dict[Place, int]:
        """{place: last stable offset} of those that exist and are not stable up to their heads."""
        counts = TopicAdmin(self.system).partition_counts({topic for topic, _ in places})
        there = [place for place in places if place[1] < counts.get(place[0], 0)]
        heads = self._reader.ends(there)
        stable = self._reader.stable_ends(there)
        return {place: at for place, at in stable.items() if at < heads[place].head}

    def written_ms(self, held: Mapping[Place, int]) -> int:
        """An hour before any of the records at these offsets, of which there are some, was written.

        Their time is their writers', that of the coordinators is not. Where a record is gone, from
        the beginning.
        """
        times = [self._time_ms(place, at) for place, at in held.items()]
        return max(0, min(times) - _HOUR_MS)

    def ends(self, since_ms: int, transactional_id: str | None = None) -> TransactionEnds:
        """How transactions ended since then, of all ids, or with those of one."""
        found = TransactionEnds()
        count = TopicAdmin(self.system).partition_counts([STATE_TOPIC]).get(STATE_TOPIC, 0)
        wanted = range(count)
        if transactional_id is not None and count:
            only = state_partition(transactional_id, count)
            wanted = range(only, only + 1)
        places = [(STATE_TOPIC, partition) for partition in wanted]
        for place, known in self._reader.ends(places).items():
            start = self._reader.offset_at(*place, since_ms)
            if start is None:
                continue
            for records in self._reader.read(*place, start, known.head):
                for record in records:
                    found.take(record.key() or b"", record.value(), record.leader_epoch())
        return found

    def fence(self, transactional_id: str) -> None:
        """The id begins no transaction any more, and its last one is over.

        It must have no holder any more: a holder loses it.
        """
        fence(self.system, transactional_id)

    def _time_ms(self, place: Place, at: int) -> int:
        for records in self._reader.read(*place, at, at + 1):
            return records[0].timestamp()[1]
        return 0
