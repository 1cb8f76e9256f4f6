"""Packages in the coordinator stream: whole, or not there."""

from __future__ import annotations

import hashlib
import logging
import random

import pytest
from own_records import put
from stream_in_memory import InMemoryCoordinatorStream

from homeport.config.errors import WireError
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata import job_packages
from homeport.job_coordinator.metadata.job_packages import JobPackageManager
from homeport.job_coordinator.model.job_package import MAX_BYTES

DATA = random.Random(1).randbytes(250_000)  # noqa: S311 - equal in each run
NAME = hashlib.sha256(DATA).hexdigest()
OTHER = b"another"
OTHER_NAME = hashlib.sha256(OTHER).hexdigest()
KEY = MessageType.SET_PACKAGE


@pytest.fixture
def packages(stream: InMemoryCoordinatorStream) -> JobPackageManager:
    """DATA is in the stream."""
    manager = JobPackageManager(stream)
    assert manager.write(DATA) == NAME
    assert manager.read(NAME) is None, "it is there as of the next catch-up"
    stream.catch_up()
    return manager


def record(stream: InMemoryCoordinatorStream, key: str, **values: str) -> None:
    """A record is in the stream, and read."""
    put(stream, CoordinatorStreamMessage(KEY, key, values))


def test_a_package_is_read_as_it_was_written(
    stream: InMemoryCoordinatorStream, packages: JobPackageManager
) -> None:
    """In pieces far smaller than what a topic takes, the record that counts them last."""
    assert packages.read(NAME) == DATA
    assert packages.names() == (NAME,)
    assert [wire.decode(*record).key for record in stream.log] == [
        *(f"{NAME}/{index}" for index in range(3)),
        NAME,
    ]
    assert max(len(value or b"") for _, value in stream.log) < 150_000
    assert packages.read(OTHER_NAME) is None
    assert packages.read(f"{NAME}/0") is None


def test_one_that_is_there_is_not_written_again(
    stream: InMemoryCoordinatorStream, packages: JobPackageManager
) -> None:
    """Another one lies beside it."""
    written = len(stream.log)
    assert packages.write(DATA) == NAME
    assert len(stream.log) == written
    assert packages.write(OTHER) == OTHER_NAME
    stream.catch_up()
    assert packages.names() == tuple(sorted([NAME, OTHER_NAME]))
    assert (packages.read(NAME), packages.read(OTHER_NAME)) == (DATA, OTHER)


def test_an_empty_package_is_one(stream: InMemoryCoordinatorStream) -> None:
    """No piece, and the record that says so."""
    manager = JobPackageManager(stream)
    name = manager.write(b"")
    stream.catch_up()
    assert manager.read(name) == b""
    assert len(stream.log) == 1


def test_without_its_last_record_it_is_not_there(stream: InMemoryCoordinatorStream) -> None:
    """A tool that died while it wrote has done nothing; it may write again."""
    manager = JobPackageManager(stream)
    put(stream, *manager.messages(DATA)[:-1])
    assert (manager.read(NAME), manager.names()) == (None, ())
    manager.write(DATA)
    stream.catch_up()
    assert manager.read(NAME) == DATA


@pytest.mark.parametrize(
    ("key", "values", "why"),
    [
        (f"{NAME}/1", {"data": "no base64!"}, "the piece is no base64"),
        (f"{NAME}/1", {"data": "ä"}, "the piece is no base64"),
        (f"{NAME}/1", {"other": "x"}, "piece 1 of 3 is not there"),
        (f"{NAME}/2", {"data": "UEs="}, "the pieces are not those of the package"),
        (NAME, {"pieces": "4", "bytes": "250000"}, "piece 3 of 4 is not there"),
        (NAME, {"pieces": "2", "bytes": "250000"}, "the pieces are not those of the package"),
        (NAME, {"pieces": "3", "bytes": "249999"}, "the pieces are not those of the package"),
        (NAME, {"pieces": "3", "bytes": str(10**12)}, "'bytes' is not a number from 0 to"),
        (NAME, {"pieces": "many", "bytes": "250000"}, "'pieces' is not a number"),
        (NAME, {}, "'pieces' is not a number"),
    ],
)
def test_a_damaged_package_is_not_there(
    stream: InMemoryCoordinatorStream,
    packages: JobPackageManager,
    caplog: pytest.LogCaptureFixture,
    key: str,
    values: dict[str, str],
    why: str,
) -> None:
    """One line in the log says why; writing it again mends it."""
    record(stream, key, **values)
    with caplog.at_level(logging.WARNING):
        assert packages.read(NAME) is None
    assert why in caplog.text
    assert len(caplog.messages[0]) < 500
    packages.write(DATA)
    stream.catch_up()
    assert packages.read(NAME) == DATA


def test_bytes_of_another_package_are_not_given(
    stream: InMemoryCoordinatorStream, packages: JobPackageManager
) -> None:
    """Equal in number, but not in sha256."""
    changed = DATA[:-1] + bytes([DATA[-1] ^ 1])
    pieces = JobPackageManager.messages(changed)[:-1]
    put(stream, *[p._replace(key=f"{NAME}/{i}") for i, p in enumerate(pieces)])
    assert packages.read(NAME) is None


def test_packages_are_forgotten_but_those_to_be_kept(
    stream: InMemoryCoordinatorStream, packages: JobPackageManager
) -> None:
    """Pieces of one that was never whole too; the record by which it is there goes first."""
    packages.write(OTHER)
    record(stream, "ab" * 32 + "/7", data="UEs=")
    record(stream, "odd", data="UEs=")
    begun = len(stream.log)
    packages.forget(keep=[OTHER_NAME])
    stream.catch_up()
    assert (packages.names(), packages.read(OTHER_NAME)) == ((OTHER_NAME,), OTHER)
    gone = [wire.decode(*record) for record in stream.log[begun:]]
    assert all(message.is_tombstone for message in gone)
    assert [m.key for m in gone if NAME in m.key] == [NAME, *(f"{NAME}/{i}" for i in range(3))]
    packages.forget()
    stream.catch_up()
    assert stream.latest(KEY) == {}
    assert packages.messages_to_forget() == []


def test_a_key_that_names_no_package_is_none(stream: InMemoryCoordinatorStream) -> None:
    """No tool of ours writes it."""
    record(stream, "odd", pieces="0", bytes="0")
    assert JobPackageManager(stream).names() == ()
    assert JobPackageManager(stream).read("odd") is None


def test_pieces_fit_into_the_records_of_the_topic() -> None:
    """Of a topic that takes little, in more pieces; what takes next to nothing is refused."""
    for limit in (2048, 5_000, 100_000, 1_000_000):
        messages = JobPackageManager.messages(DATA, limit)
        stamped = [
            m.stamped(source="homeport", host="h" * 60, username="u" * 60, timestamp_ms=10**13)
            for m in messages
        ]
        assert all(sum(map(len, filter(None, wire.encode(m)))) < limit for m in stamped)
        log = InMemoryCoordinatorStream()
        put(log, *messages)
        assert JobPackageManager(log).read(NAME) == DATA
    with pytest.raises(WireError, match="records of 2047 bytes are too small for a package"):
        JobPackageManager.messages(DATA, 2047)


def test_a_package_that_is_too_large_is_refused(
    stream: InMemoryCoordinatorStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is written."""
    assert MAX_BYTES == 8 * 1024 * 1024
    monkeypatch.setattr(job_packages, "MAX_BYTES", len(DATA) - 1)
    with pytest.raises(WireError, match="a package of 250000 bytes is larger than 249999"):
        JobPackageManager(stream).write(DATA)
    assert stream.log == []
