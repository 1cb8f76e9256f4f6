"""The leaders of partitions, asked over sockets of our own for what no client library asks.

Every call is one request on one connection, and ends in bounded time.
"""

from __future__ import annotations

import socket
import struct
import time

from confluent_kafka import KafkaError, KafkaException

from homeport.config.errors import UnavailableError
from homeport.config.settings.sections import SystemConfig
from homeport.container.progress import marker_requests
from homeport.container.progress.marker_requests import Refused
from homeport.container.progress.transaction_state import Batch, Ended, Place
from homeport.job_coordinator.kafka.clients import admin, error_of, unavailable

_LIMIT_S = 10.0
_LENGTH = struct.Struct(">i")
_MOST_BYTES = 1 << 28
_PLAINTEXT = "plaintext"


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
        """Why no leader can be asked; None where they can be."""
        protocol = self.system.admin.get("security.protocol", _PLAINTEXT)
        if protocol.lower() == _PLAINTEXT:
            return None
        return (
            f"it can be asked and written over a listener with security.protocol=PLAINTEXT only, "
            f"not {protocol}"
        )

    def first_batch(self, place: Place, offset: int) -> Batch | None:
        """The batch at the offset, where a transaction has one there."""
        request = marker_requests.fetch_request(place, offset)
        found = marker_requests.first_batch(place, offset, self._answer(place, request))
        return self._done(place, "reading a batch", found)

    def write_marker(self, place: Place, ended: Ended) -> None:
        """The end of the transaction is in the partition, as its coordinator decided it.

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


def _received(connection: socket.socket, count: int, deadline: float) -> bytes:
    found = bytearray()
    while len(found) < count:
        connection.settimeout(max(deadline - time.monotonic(), 0.001))
        part = connection.recv(count - len(found))
        if not part:
            raise OSError("it closed the connection")
        found += part
    return bytes(found)
