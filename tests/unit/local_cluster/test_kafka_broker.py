"""The probe of a Kafka broker, byte for byte, and the settings jobs rely on."""

from __future__ import annotations

from pathlib import Path

from local_cluster.kafka_broker import (
    api_versions_request,
    is_api_versions_reply,
    kafka_cluster_id,
    server_properties,
)


def test_probe_is_api_versions_version_zero() -> None:
    """Length 18, key 18, version 0, correlation id 1, client id of 8 bytes."""
    assert api_versions_request() == bytes.fromhex("00000012 0012 0000 00000001 0008") + b"homeport"


def test_reply_needs_the_correlation_id_and_no_error() -> None:
    """Foreign servers, errors and half replies do not count."""
    assert is_api_versions_reply(bytes.fromhex("00000100 00000001 0000"))
    assert not is_api_versions_reply(bytes.fromhex("00000100 00000001 0023"))
    assert not is_api_versions_reply(b"HTTP/1.1 400")
    assert not is_api_versions_reply(b"\x00\x00")


def test_broker_is_advertised_by_address_and_creates_no_topics() -> None:
    """Reachable from everywhere on the machine; a misspelt topic is an error."""
    lines = server_properties("127.70.3.2", Path("/data")).splitlines()
    assert "advertised.listeners=PLAINTEXT://127.70.3.2:9092" in lines
    assert "auto.create.topics.enable=false" in lines


def test_a_cluster_id_never_looks_like_an_option() -> None:
    """One id in 64 would begin with a hyphen, and the storage tool would refuse it."""
    ids = [kafka_cluster_id(bytes((first, *range(15)))) for first in range(256)]
    assert all(text[0].isalpha() and len(text) == 22 for text in ids)
