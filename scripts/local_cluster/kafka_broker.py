"""One Kafka broker that is its own controller: its settings and whether it answers."""

from __future__ import annotations

import base64
import socket
import struct
import uuid
from pathlib import Path

from local_cluster.addresses import CONTROLLER_PORT, KAFKA_PORT

_API_VERSIONS_KEY = 18
_CORRELATION_ID = 1
_PROBE_TIMEOUT_S = 2.0
_REPLY_HEADER = struct.Struct(">iih")


def server_properties(address: str, data: Path) -> str:
    """Settings of a broker that keeps every topic once."""
    values = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{address}:{CONTROLLER_PORT}",
        "listeners": f"PLAINTEXT://{address}:{KAFKA_PORT},CONTROLLER://{address}:{CONTROLLER_PORT}",
        "advertised.listeners": f"PLAINTEXT://{address}:{KAFKA_PORT}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": data,
        "default.replication.factor": 1,
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 4,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": 1,
        "group.initial.rebalance.delay.ms": 0,
        # A misspelt topic is an error, not a new topic.
        "auto.create.topics.enable": "false",
        # A transaction whose producer died blocks readers until it is found.
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
        # The default, 128 MB, is a quarter of this broker's heap.
        "log.cleaner.dedupe.buffer.size": 16 * 1024 * 1024,
    }
    return "".join(f"{key}={value}\n" for key, value in values.items())


def new_kafka_cluster_id() -> str:
    """An id in the form that Kafka's storage tool accepts."""
    return kafka_cluster_id(uuid.uuid4().bytes)


def kafka_cluster_id(random: bytes) -> str:
    """16 bytes as an id that begins with a letter: the tool takes a hyphen for an option."""
    # The first character stands for the first six bits; the first 32 are letters.
    first = random[0] & 0x7F
    return base64.urlsafe_b64encode(bytes((first, *random[1:]))).decode("ascii").rstrip("=")


def api_versions_request() -> bytes:
    """The smallest request that every broker answers: ApiVersions, version 0.

    Layout, big-endian: int32 length, int16 api key, int16 version, int32 correlation id, int16
    length of the client id, client id.
    """
    client = b"homeport"
    body = struct.pack(">hhih", _API_VERSIONS_KEY, 0, _CORRELATION_ID, len(client)) + client
    return struct.pack(">i", len(body)) + body


def is_api_versions_reply(header: bytes) -> bool:
    """Whether these first 10 bytes are a broker's answer without error.

    Layout, big-endian: int32 length, int32 correlation id, int16 error code.
    """
    if len(header) < _REPLY_HEADER.size:
        return False
    correlation_id: int
    error: int
    _, correlation_id, error = _REPLY_HEADER.unpack(header[: _REPLY_HEADER.size])
    return correlation_id == _CORRELATION_ID and error == 0


def answers(address: str, port: int = KAFKA_PORT) -> bool:
    """Whether a Kafka broker answers there."""
    try:
        with socket.create_connection((address, port), timeout=_PROBE_TIMEOUT_S) as connection:
            connection.sendall(api_versions_request())
            header = b""
            while part := connection.recv(_REPLY_HEADER.size - len(header)):
                header += part
    except OSError:
        return False
    return is_api_versions_reply(header)
