"""What no crash or stop leaves of an adjunct store: half of a write, a missed deletion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from homeport.config.errors import StoreError
from homeport.config.settings.adjunct_section import VersionMarkers
from homeport.container.adjunct.recovery import META_FILE
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.follow import HeadPoll
from homeport.container.progress.input_position import InputPosition
from homeport.container.rocksdb.rocksdb_store import RocksDbStore
from homeport.container.storage.adjunct.adjunct_storage import AdjunctStorage
from homeport.container.storage.adjunct.store_look import look
from homeport.container.storage.task_store import passed
from tests.unit.container.storage.adjunct.adjunct_hosts import (
    DIRECTORY,
    NAMES,
    P0,
    PLANES,
    Host,
    fill,
    held,
    take,
)

_VERSIONS = replace(PLANES, markers=VersionMarkers(header="version"), is_bootstrap=True)


class _DeathError(Exception):
    """The process is gone."""


def _die(_store: RocksDbStore) -> None:
    raise _DeathError


def test_a_death_in_the_middle_of_a_write_leaves_position_and_entries_together(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever of it has reached the disk: there is one write of both."""
    storage = host.start()
    fill(storage, 7)
    engine = storage.entries("planes", NAMES[0]).engine
    at_once = engine.write

    def die_behind(entries: Mapping[bytes, bytes | None], position: int | None) -> None:
        at_once(entries, position)
        engine.flush()
        raise _DeathError

    monkeypatch.setattr(engine, "write", die_behind)
    with pytest.raises(_DeathError):
        fill(storage, 8, 9)
    host.crash(storage)
    with host.running() as storage:
        assert (host.starts[P0], held(storage)) == (InputPosition(10), [b"k7", b"k8", b"k9"])


def test_a_store_is_one_only_once_it_is_on_the_disk(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start that dies before the first flush leaves no ADJUNCT-META, which speaks for it."""
    with monkeypatch.context() as patch:
        patch.setattr(RocksDbStore, "flush", _die)
        with pytest.raises(_DeathError):
            host.start()
    assert list(host.root.rglob("CURRENT"))
    assert not list(host.root.rglob(META_FILE))
    host.start().close()
    assert (host.directory / META_FILE).exists()


def _settle(storage: AdjunctStorage, first: int, *values: bytes) -> None:
    take(storage, first, *values)
    storage.switch_versions(passed, passed, waits=True)


def _seen(storage: AdjunctStorage) -> bytes | None:
    return storage.entries("planes", NAMES[0]).get(b"k")


def test_a_version_that_has_just_begun_outlives_a_crash(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    """Its folder without a position would be damage, and the version that is served would go."""
    host.planes = _VERSIONS
    storage = host.start()
    _settle(storage, 0, b"1", b"end")
    storage.flush(passed, passed)
    _settle(storage, 2, b"2")
    host.crash(storage)
    with host.running() as storage:
        assert "filled again" not in caplog.text
        assert _seen(storage) == b"1"
        _settle(storage, host.starts[P0].offset, *(b"2", b"end")[host.starts[P0].offset - 2 :])
        assert _seen(storage) == b"2"


@pytest.mark.parametrize("is_whole", [True, False], ids=["no position", "no engine"])
def test_a_death_while_a_version_gets_its_folder_costs_no_version(
    host: Host, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, *, is_whole: bool
) -> None:
    """What has no position yet never began; its records are read again."""
    host.planes = _VERSIONS
    storage = host.start()
    _settle(storage, 0, b"1", b"end")
    storage.flush(passed, passed)
    with monkeypatch.context() as patch:
        patch.setattr(RocksDbStore, "flush", _die)
        with pytest.raises(_DeathError):
            _settle(storage, 2, b"2")
    host.crash(storage)
    if not is_whole:
        (host.directory / "v2" / "CURRENT").unlink()
    (planned,) = (p for p in host.plan().stores if p.directory == PurePosixPath(DIRECTORY))
    assert look(host.directory, planned, "rocksdb").found.fault is None
    with host.running() as storage:
        assert "filled again" not in caplog.text
        assert (_seen(storage), host.starts[P0]) == (b"1", InputPosition(2))
        _settle(storage, 2, b"2", b"end")
        assert _seen(storage) == b"2"


def test_what_is_served_stays_where_the_next_version_has_a_hole(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    """Found by a start, or while it is built; the version after it is served."""
    host.planes = _VERSIONS
    with host.running() as storage:
        _settle(storage, 0, b"1", b"end", b"2")
        storage.flush(passed, passed)
    host.oldest = 10
    with host.running() as storage:
        assert host.starts[P0] == InputPosition(10, lost=7)
        assert "7 records of partition 0 were deleted before they were read" in caplog.text
        _settle(storage, 10, b"2", b"end", b"3")
        assert "version 2 of 2 records is not served: records in the middle of it" in caplog.text
        assert _seen(storage) == b"1"
        storage.lost(P0, InputPosition(20, 7))
        _settle(storage, 20, b"3", b"end", b"4", b"end")
        assert (_seen(storage), caplog.text.count("is not served: records in the")) == (b"4", 2)


def test_other_inputs_do_not_wait_without_end_for_a_first_version(host: Host) -> None:
    """The reason names what it lacks; where nothing comes for long, the container ends with it."""
    host.planes, host.partitions = replace(_VERSIONS, late_ms=60_000), 1
    with host.running() as storage:
        name = "adjunct store planes/Partition_0"
        assert storage.awaited() == {NAMES[0]: f"{name}: no version has begun in its stream"}
        host.now_ms += 60_000
        _settle(storage, 0, b"1")
        lacks = "version 1 has no end in partition 0"
        (facts,) = [f for planned, f in storage.facts() if str(planned.directory) in name]
        assert facts.awaits == lacks
        for waited_ms in (0, 60_000):
            host.now_ms += waited_ms
            assert storage.awaited() == {NAMES[0]: f"{name}: {lacks}"}
        host.now_ms += 1
        with pytest.raises(StoreError) as caught:
            storage.awaited()
        assert str(caught.value) == (
            f"{name}: {lacks}; other inputs have waited for it, and nothing came of kafka.planes "
            "for 60 s, stores.planes.adstore.version.late.ms is 60000: write what is missing, or "
            "set systems.kafka.streams.planes.samza.bootstrap=false to begin without it"
        )
        _settle(storage, 1, b"end")
        assert storage.awaited() == {}
        (facts,) = [f for planned, f in storage.facts() if str(planned.directory) in name]
        assert facts.awaits is None


def test_each_task_waits_for_the_first_version_of_its_own_part(host: Host) -> None:
    """The part of the other one may come later."""
    host.planes = _VERSIONS
    with host.running() as storage:
        assert storage.awaited().keys() == set(NAMES)
        _settle(storage, 0, b"1", b"end")
        story = "adjunct store planes/Partition_1: no version has begun in its stream"
        assert storage.awaited() == {NAMES[1]: story}


def _read_up_to(storage: AdjunctStorage, end: int) -> None:
    """All is in the stores, and a request at this moment finds the ends there."""
    following = {p: end for planned in storage.plan.stores for p in planned.partitions}
    storage.read(following)
    for followed in storage.followed.values():
        look = HeadPoll(storage.clocks(), 0, end, followed.topic_id)
        followed.ask()
        assert followed.take_heads(look) is None
    storage.flush(passed, passed)


@pytest.mark.parametrize(("away_ms", "is_kept"), [(59_999, True), (60_000, False)])
def test_a_store_that_missed_deletions_is_filled_again(
    host: Host, away_ms: int, *, is_kept: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """It is younger than a day; deletions that it has not read are gone after a minute."""
    host.kept_ms = 60_000
    with host.running() as storage:
        fill(storage, 7, 8)
        host.now_ms += 50_000
        _read_up_to(storage, 100)
    host.now_ms += away_ms
    host.end = 102
    with host.running() as storage:
        assert (held(storage) == [b"k7", b"k8"]) is is_kept
        assert ("it last stood at the stream's head 60 s ago, and deletions" in caplog.text) is (
            not is_kept
        )


def test_a_store_that_lags_is_no_younger_for_its_flushes(host: Host) -> None:
    """Two stops, none longer than deletions are kept: it never stood at the head in between."""
    host.kept_ms = 60_000
    with host.running() as storage:
        _read_up_to(storage, 100)
    for is_kept in (True, False):
        host.now_ms += 40_000
        host.end += 100
        with host.running() as storage:
            assert storage.of_task(NAMES[0]).reset_partitions() == ([] if is_kept else [P0])
            fill(storage, 101)
            storage.flush(passed, passed)


def test_a_longer_retention_counts_once_the_store_was_at_the_head(host: Host) -> None:
    """What was dropped before does not come back; from then on all is kept for longer."""
    host.kept_ms = 60_000
    with host.running() as storage:
        _read_up_to(storage, 100)
    host.kept_ms = 600_000
    host.end, host.now_ms = 102, host.now_ms + 30_000
    with host.running() as storage:
        assert storage.of_task(NAMES[0]).reset_partitions() == []
        _read_up_to(storage, 102)
    host.end, host.now_ms = 104, host.now_ms + 500_000
    with host.running() as storage:
        assert storage.of_task(NAMES[0]).reset_partitions() == []


def test_the_time_at_the_head_is_that_of_the_partition_that_lags_most(host: Host) -> None:
    """One that another reads ahead of may lack deletions all the same."""
    host.kept_ms, host.partitions = 60_000, 4
    with host.running() as storage:
        _read_up_to(storage, 100)
        host.now_ms += 50_000
        ahead = storage.followed[P0]
        assert ahead.take_heads(HeadPoll(storage.clocks(), 0, 100, "id")) is None
        storage.flush(passed, passed)
    host.end, host.now_ms = 102, host.now_ms + 10_000
    with host.running() as storage:
        assert P0 in storage.of_task(NAMES[0]).reset_partitions()


def test_a_store_that_is_behind_its_last_marker_is_at_the_head(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    """Batches are on their way, and what was written shows no end of a transaction."""
    host.kept_ms = 60_000
    with host.running() as storage:
        fill(storage, 98)
        host.now_ms += 1_000
        storage.read()
        assert storage.followed[P0].at_head == ClockReading(1_000_000)
        host.now_ms += 60_000
        storage.followed[P0].take_heads(HeadPoll(storage.clocks(), 0, 200, "id"))
        fill(storage, 150)
        for _ in range(2):
            storage.read()
        expected = (
            "adjunct store planes/Partition_0 may keep keys that were deleted, until a start fills"
        )
        assert caplog.text.count(expected) == 1
        assert storage.name_of(P0) == "planes"
