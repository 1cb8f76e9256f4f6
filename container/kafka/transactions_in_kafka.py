"""Transactions in one system's Kafka: find those that hang, find how they ended, and end one.

Requests that no client library can send go to partition leaders over sockets of our own: one
request on one connection, in bounded time.
"""

import socket
import struct
import time
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet

from confluent_kafka import KafkaError, KafkaException

from homeport.config.errors import UnavailableError
from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka.log_reader import LogReader
from homeport.container.kafka.transactional_producer import fence
from homeport.container.progress import marker_requests
from homeport.container.progress.marker_requests import Refused
from homeport.container.progress.transaction_state import (
    Batch,
    Ended,
    Place,
    TransactionEnds,
    transactional_id_of,
)
from homeport.job_coordinator.kafka.clients import admin, error_of, unavailable
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.model.incarnation import STATE_TOPIC, state_partition

_LIMIT_S = 10.0
_LENGTH = struct.Struct(">i")
_MOST_BYTES = 1 << 28
_PLAINTEXT = "plaintext"
_HOUR_MS = 3_600_000


class PartitionLeaders:
    """The leaders of one system's partitions. Every method needs a listener without encryption.

    Raises:
        UnavailableError: (from every method but ``refusal``) the leader did not do it.
        WireError: (from these) its answer is of no known form.
    """

    def __init__(self, system: SystemConfig) -> None:
        self.system = system
        self._admin = admin(system)

    def refusal(self) -> str | None:
        """Return why no leader can be asked; None: they can."""
        protocol = self.system.admin.get("security.protocol", _PLAINTEXT)
        if protocol.lower() == _PLAINTEXT:
            return None
        return (
            f"it can be asked and written over a listener with security.protocol=PLAINTEXT only, "
            f"not {protocol}"
        )

    def first_batch(self, place: Place, offset: int) -> Batch | None:
        """Return the batch at the offset, where a transaction has one there."""
        request = marker_requests.fetch_request(place, offset)
        found = marker_requests.first_batch(place, offset, self._answer(place, request))
        return self._done(place, "reading a batch", found)

    def write_marker(self, place: Place, ended: Ended) -> None:
        """Write the end of the transaction to the partition, as its coordinator decided it.

        Kafka refuses one of an older producer epoch than the partition has seen, and of an older
        coordinator epoch; where nothing of the producer is open, it changes nothing.
        """
        request = marker_requests.marker_request(place, ended)
        found = marker_requests.marker_answer(place, ended, self._answer(place, request))
        self._done(place, "writing the end of a transaction", found)

    def _done(self, place: Place, what: str, found: Batch | Refused | None) -> Batch | None:
        if not isinstance(found, Refused):
            return found
        why = KafkaError(found.code).str()
        if found.code == KafkaError.CLUSTER_AUTHORIZATION_FAILED:
            why = f"{why}: the container's principal needs the ACL Alter (or ClusterAction) on it"
        topic, partition = place
        raise UnavailableError(f"{what} in {topic} partition {partition}: {why}")

    def _answer(self, place: Place, request: bytes) -> bytes:
        host, port = self._leader(place)
        deadline = time.monotonic() + _LIMIT_S
        try:
            with socket.create_connection((host, port), _LIMIT_S) as connection:
                connection.sendall(_LENGTH.pack(len(request)) + request)
                (length,) = _LENGTH.unpack(_received(connection, _LENGTH.size, deadline))
                if not 0 <= length <= _MOST_BYTES:
                    raise OSError(f"an answer of {length} bytes")
                return _received(connection, length, deadline)
        except OSError as error:
            what = f"asking {host}:{port}, which leads {place[0]} partition {place[1]}"
            raise unavailable(self.system, what, str(error) or type(error).__name__) from None

    def _leader(self, place: Place) -> tuple[str, int]:
        topic, partition = place
        what = f"asking for the leader of {topic} partition {partition}"
        try:
            known = self._admin.list_topics(topic, _LIMIT_S)
        except KafkaException as error:
            raise unavailable(self.system, what, error_of(error)) from None
        found = known.topics[topic].partitions.get(partition)
        broker = known.brokers.get(found.leader) if found else None
        if broker is None:
            raise unavailable(self.system, what, "it has none now")
        return str(broker.host), broker.port


class TransactionsInKafka(PartitionLeaders):
    """Transactions of one system; ``pause``: waits the seconds given, and raises to stop.

    Raises:
        UnavailableError, PartitionError: (from every method) Kafka did not answer, or refused.
    """

    def __init__(self, system: SystemConfig, pause: Callable[[float], None]) -> None:
        super().__init__(system)
        self._reader = LogReader(system, pause, {"isolation.level": "read_uncommitted"})

    def close(self) -> None:
        """End the reading."""
        self._reader.close()

    def heads(self, places: Collection[Place]) -> dict[Place, int]:
        """Return {existing place: the offset of its next record}."""
        counts = TopicAdmin(self.system).partition_counts({topic for topic, _ in places})
        there = [place for place in places if place[1] < counts.get(place[0], 0)]
        return {place: known.head for place, known in self._reader.ends(there).items()}

    def held(
        self, places: Collection[Place], heads: Mapping[Place, int] | None = None
    ) -> dict[Place, int]:
        """Return {place: last stable offset} of places where that is below the head.

        ``heads``: the heads at an earlier time; None: the present ones.
        """
        known = self.heads(places) if heads is None else heads
        stable = self._reader.stable_ends(sorted(known.keys() & set(places)))
        return {place: at for place, at in stable.items() if at < known[place]}

    def written_ms(self, held: Mapping[Place, int]) -> int:
        """Return the oldest time of the records at these offsets, less an hour, in ms.

        The hour is for clocks: the writers set these times, not the coordinators. 0: a record does
        not exist any more.
        """
        found = (next(self._reader.read(*place, at, at + 1), None) for place, at in held.items())
        times = (records[0].timestamp()[1] if records else 0 for records in found)
        return max(0, min(times) - _HOUR_MS)

    def ends(self, since_ms: int, ids: AbstractSet[str] | None = None) -> TransactionEnds:
        """Return how transactions ended since ``since_ms``: those of ``ids``, or all."""
        found = TransactionEnds()
        count = TopicAdmin(self.system).partition_counts([STATE_TOPIC]).get(STATE_TOPIC, 0)
        wanted: Collection[int] = range(count)
        if ids is not None and count:
            wanted = sorted({state_partition(each, count) for each in ids})
        places = [(STATE_TOPIC, partition) for partition in wanted]
        for place, known in self._reader.ends(places).items():
            start = self._reader.offset_at(*place, since_ms)
            if start is None:
                continue
            for records in self._reader.read(*place, start, known.head):
                for record in records:
                    key = record.key() or b""
                    name = transactional_id_of(key)
                    if ids is None or name is None or name in ids:
                        found.take(key, record.value(), record.leader_epoch())
        return found

    def fence(self, transactional_id: str) -> None:
        """Fence the id, which must have no holder any more: its last transaction is over then."""
        fence(self.system, transactional_id)


def _received(connection: socket.socket, count: int, deadline: float) -> bytes:
    found = bytearray()
    while len(found) < count:
        connection.settimeout(max(deadline - time.monotonic(), 0.001))
        part = connection.recv(count - len(found))
        if not part:
            raise OSError("it closed the connection")
        found += part
    return bytes(found)
