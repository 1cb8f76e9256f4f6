"""The probe of a Kafka broker, byte for byte, and the settings jobs rely on."""

from __future__ import annotations

from pathlib import Path

from homeport.local_cluster.kafka_broker import (
    brokers_in,
    controller_in,
    describe_cluster_request,
    describe_quorum_request,
    kafka_cluster_id,
    server_properties,
)


def test_broker_is_advertised_by_address_and_creates_no_topics() -> None:
    """Reachable from everywhere on the machine; a misspelt topic is an error."""
    lines = server_properties("kafka", {"kafka": "127.70.3.2"}, Path("/data")).splitlines()
    assert "advertised.listeners=PLAINTEXT://127.70.3.2:9092" in lines
    assert "auto.create.topics.enable=false" in lines


def test_a_broker_alone_keeps_everything_once() -> None:
    """And several keep Kafka's own topics on three of them, whatever their number."""

    def settings(count: int) -> dict[str, str]:
        brokers = {f"kafka{n}": f"127.70.3.{n}" for n in range(1, count + 1)}
        lines = server_properties("kafka1", brokers, Path("/data")).splitlines()
        return dict(line.split("=", 1) for line in lines)

    copies, in_sync = "transaction.state.log.replication.factor", "transaction.state.log.min.isr"
    found = {count: settings(count) for count in (1, 2, 3, 5)}
    assert {count: own[copies] for count, own in found.items()} == {1: "1", 2: "2", 3: "3", 5: "3"}
    assert {count: own[in_sync] for count, own in found.items()} == {1: "1", 2: "1", 3: "2", 5: "2"}
    assert "broker.session.timeout.ms" not in found[1]
    assert found[2]["controller.quorum.voters"] == "1@127.70.3.1:9093,2@127.70.3.2:9093"


def test_the_brokers_that_take_work_come_from_the_cluster() -> None:
    """Key 60, version 0, tagged header; no authorized operations, no tags."""
    header = bytes.fromhex("00000015 003c 0000 00000001 0008") + b"homeport" + b"\0"
    assert describe_cluster_request() == header + b"\0\0"
    broker = bytes.fromhex("00000002 02") + b"h" + bytes.fromhex("00002384 00 00")
    reply = bytes.fromhex("00000000 00000001 00 00000000 0000 00 02") + b"c"
    reply += bytes.fromhex("00000001 02") + broker + b"\0"
    assert brokers_in(reply) == {2}
    assert brokers_in(bytes.fromhex("00000000 00000001 00 00000000 000d 00 00")) == frozenset()


def test_the_leader_comes_from_the_quorum() -> None:
    """Key 55, version 0, tagged header; partition 0 of the metadata. An error names no leader."""
    request = describe_quorum_request()
    assert request[4:8] == bytes.fromhex("0037 0000")
    assert int.from_bytes(request[:4], "big") == len(request) - 4
    name = b"__cluster_metadata"
    assert b"\x02\x13" + name + bytes.fromhex("02 00000000 00 00 00") == request[-28:]
    head, topic = bytes.fromhex("00000000 00000001 00"), b"\x02\x13" + name + b"\x02"
    assert controller_in(head + b"\0\0" + topic + bytes.fromhex("00000000 0000 00000003")) == 3
    assert controller_in(head + b"\0\0" + topic + bytes.fromhex("00000000 0006 ffffffff")) is None
    assert controller_in(head + bytes.fromhex("0029 01 00")) is None


def test_a_cluster_id_never_looks_like_an_option() -> None:
    """One id in 64 would begin with a hyphen, and the storage tool would refuse it."""
    ids = [kafka_cluster_id(bytes((first, *range(15)))) for first in range(256)]
    assert all(text[0].isalpha() and len(text) == 22 for text in ids)
