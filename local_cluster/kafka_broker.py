"""Kafka brokers that are controllers too: their settings, and what they answer."""

import base64
import socket
import struct
from collections.abc import Mapping
from pathlib import Path

from homeport.local_cluster.net.addresses import CONTROLLER_PORT, KAFKA_PORT

_COPIES = 3
#: Kafka's own values, 9 s and 30 s, are for machines that are far apart.
_SESSION_MS, _HEARTBEAT_MS, _LAG_MS = 4000, 500, 4000

_DESCRIBE_QUORUM_KEY = 55
_DESCRIBE_CLUSTER_KEY = 60
_CORRELATION_ID = 1
_PROBE_TIMEOUT_S = 2.0
_LENGTH = struct.Struct(">i")
#: Length, correlation id, no tags.
_TAGGED_HEADER_SIZE = 9


def server_properties(broker: str, brokers: Mapping[str, str], data: Path) -> str:
    """Return the settings of one of ``brokers``, {name: address} in the order of their ids.

    A broker that is alone keeps every topic once. Several keep Kafka's own topics, and topics
    without another setting, on three of them; two must be in sync. A broker that is killed
    or stands still is fenced after ``_SESSION_MS``, and its partitions get other leaders.
    """
    address = brokers[broker]
    ids = {name: number for number, name in enumerate(brokers, 1)}
    values = {
        **shared_properties(len(brokers)),
        "process.roles": "broker,controller",
        "node.id": ids[broker],
        "controller.quorum.voters": ",".join(
            f"{ids[name]}@{voter}:{CONTROLLER_PORT}" for name, voter in brokers.items()
        ),
        "listeners": f"PLAINTEXT://{address}:{KAFKA_PORT},CONTROLLER://{address}:{CONTROLLER_PORT}",
        "advertised.listeners": f"PLAINTEXT://{address}:{KAFKA_PORT}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": data,
    }
    return "".join(f"{key}={value}\n" for key, value in values.items())


def shared_properties(brokers: int) -> dict[str, object]:
    """Return the settings of all mini-clusters with so many brokers, also outside this machine."""
    copies = min(brokers, _COPIES)
    in_sync = max(1, copies - 1)
    values: dict[str, object] = {
        "default.replication.factor": copies,
        "offsets.topic.replication.factor": copies,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": 4,
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": in_sync,
        "share.coordinator.state.topic.num.partitions": 1,
        "group.initial.rebalance.delay.ms": 0,
        # A misspelt topic is an error, not a new topic.
        "auto.create.topics.enable": "false",
        # A transaction whose producer died blocks readers until it is found.
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
        # The default, 128 MB, is a quarter of this broker's heap.
        "log.cleaner.dedupe.buffer.size": 16 * 1024 * 1024,
    }
    if brokers == 1:
        # By default a record twice a second shows other controllers how far the metadata is: a
        # third of an idle broker's work, and here there are no others.
        values["metadata.max.idle.interval.ms"] = 5000
    else:
        values |= {
            "min.insync.replicas": in_sync,
            "broker.session.timeout.ms": _SESSION_MS,
            "broker.heartbeat.interval.ms": _HEARTBEAT_MS,
            "replica.lag.time.max.ms": _LAG_MS,
            # A leader stays where it is, unless its broker goes away.
            "auto.leader.rebalance.enable": "false",
        }
    return values


def kafka_cluster_id(random: bytes) -> str:
    """Return 16 bytes as an id that begins with a letter: the tool takes a hyphen for an option."""
    # The first character stands for the first six bits; the first 32 are letters.
    first = random[0] & 0x7F
    return base64.urlsafe_b64encode(bytes((first, *random[1:]))).decode("ascii").rstrip("=")


def describe_cluster_request() -> bytes:
    """Return DescribeCluster, version 0: brokers that take work. After the header: bool, tags."""
    return _flexible_request(_DESCRIBE_CLUSTER_KEY, b"\0\0")


def brokers_in(reply: bytes) -> frozenset[int]:
    """Return the ids of the brokers in a reply to ``describe_cluster_request``; of an error: none.

    Layout after the correlation id: tags, int32 throttle time, int16 error, compact strings
    (message, cluster id), int32 controller, compact array of brokers: int32 id, compact string,
    int32 port, compact string, tags.
    """
    fields = _Fields(reply[_TAGGED_HEADER_SIZE:])
    fields.skip(4)
    if fields.number(2) != 0:
        return frozenset()
    fields.text()
    fields.text()
    fields.skip(4)
    found = set()
    for _ in range(fields.varint() - 1):
        found.add(fields.number(4))
        fields.text()
        fields.skip(4)
        fields.text()
        fields.skip(1)
    return frozenset(found)


def describe_quorum_request() -> bytes:
    """Return DescribeQuorum, version 0, of partition 0 of the brokers' metadata.

    After the header: compact array of topics (compact string, compact array of partitions), each
    element with its tags, then tags.
    """
    topic = b"__cluster_metadata"
    partitions = b"\x02" + struct.pack(">i", 0) + b"\0"
    body = b"\x02" + bytes((len(topic) + 1,)) + topic + partitions + b"\0\0"
    return _flexible_request(_DESCRIBE_QUORUM_KEY, body)


def controller_in(reply: bytes) -> int | None:
    """Return the active controller's id in a reply to ``describe_quorum_request``; None: none.

    Layout after the correlation id: tags, int16 error, compact array of topics: compact string,
    compact array of partitions: int32 partition, int16 error, int32 leader, and more.
    """
    fields = _Fields(reply[_TAGGED_HEADER_SIZE:])
    if fields.number(2) != 0 or fields.varint() < 2:  # noqa: PLR2004 - one more than there are
        return None
    fields.text()
    if fields.varint() < 2:  # noqa: PLR2004 - as above
        return None
    fields.skip(4)
    if fields.number(2) != 0:
        return None
    leader = fields.number(4)
    return leader if leader > 0 else None


class _Fields:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def skip(self, count: int) -> bytes:
        taken, self._data = self._data[:count], self._data[count:]
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.skip(size), "big", signed=True)

    def varint(self) -> int:
        value = shift = 0
        while True:
            (byte,) = self.skip(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:  # noqa: PLR2004 - the highest bit says that more follows
                return value

    def text(self) -> None:
        self.skip(max(0, self.varint() - 1))


def working(address: str) -> frozenset[int]:
    """Return the ids of brokers that take work, by the broker there; none where it is silent."""
    reply = _asked(address, describe_cluster_request())
    return frozenset() if reply is None else brokers_in(reply)


def active_controller(address: str) -> int | None:
    """Return the active controller's id, by the broker there; None where it knows none."""
    reply = _asked(address, describe_quorum_request())
    return None if reply is None else controller_in(reply)


def _flexible_request(key: int, body: bytes) -> bytes:
    """Return a request of version 0 with tags after the client id, and a body.

    Layout, big-endian: int32 length, int16 api key, int16 version, int32 correlation id, int16
    length of the client id, client id, tags, body.
    """
    client = b"homeport"
    header = struct.pack(">hhih", key, 0, _CORRELATION_ID, len(client)) + client + b"\0"
    return struct.pack(">i", len(header + body)) + header + body


def _asked(address: str, request: bytes) -> bytes | None:
    """Return the whole reply, its length first; None where there is none."""
    try:
        with socket.create_connection(
            (address, KAFKA_PORT), timeout=_PROBE_TIMEOUT_S
        ) as connection:
            connection.sendall(request)
            return _received(connection)
    except (OSError, struct.error):
        return None


def _received(connection: socket.socket) -> bytes:
    reply = b""
    missing = _LENGTH.size
    while missing > 0 and (part := connection.recv(missing)):
        reply += part
        (length,) = _LENGTH.unpack(reply[: _LENGTH.size]) if len(reply) >= _LENGTH.size else (0,)
        missing = _LENGTH.size + length - len(reply)
    return reply
