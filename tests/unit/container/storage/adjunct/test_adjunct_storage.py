"""Adjunct stores on real RocksDB: what a start finds, keeps and fills again, crash by crash."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from homeport.config.errors import StoreError
from homeport.config.settings.adjunct_section import VersionMarkers
from homeport.container.adjunct.recovery import META_FILE
from homeport.container.adjunct.version_text import PARTS_KEY
from homeport.container.adjunct.versions import Run
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.input_position import InputPosition
from homeport.container.progress.offset_file import encode
from homeport.container.storage import directory
from homeport.container.storage.adjunct.adjunct_storage import AdjunctStorage, write
from homeport.container.storage.adjunct.filled_store import StoreFacts
from homeport.container.storage.directory import StoreDirectory
from homeport.container.storage.task_store import passed
from tests.unit.container.storage.adjunct.adjunct_hosts import (
    A0,
    DIRECTORY,
    NAMES,
    P0,
    PLANES,
    Host,
    fill,
    held,
    take,
)

Caplog = pytest.LogCaptureFixture


def test_a_store_that_is_found_goes_on_where_it_stands(host: Host) -> None:
    """After a flush; the checkpoint counts for the others only."""
    storage = host.start()
    assert host.starts[P0] == InputPosition(7)
    fill(storage, 7, 8)
    storage.flush(passed, passed)
    fill(storage, 9)
    host.crash(storage)
    host.asked.clear()
    with host.running() as storage:
        assert host.starts[P0] in (InputPosition(9), InputPosition(10))
        assert held(storage)[:2] == [b"k7", b"k8"]
        assert host.asked == []


def test_what_was_not_flushed_is_read_again(host: Host) -> None:
    """The store and its position agree, wherever it died."""
    storage = host.start()
    fill(storage, 7, 8)
    host.crash(storage)
    with host.running() as storage:
        assert (host.starts[P0].offset == 7) is (held(storage) == [])


@pytest.mark.parametrize("left", [None, "META", "RocksDB"])
def test_a_directory_that_never_began_or_was_emptied_in_part_is_filled_again(
    host: Host, left: str | None, caplog: Caplog
) -> None:
    """Without ADJUNCT-META it never began; without RocksDB's files nothing speaks for them."""
    host.left(7)
    if left == "META":
        for path in host.directory.iterdir():
            if path.name not in (META_FILE, "LOCK"):
                path.unlink()
    elif left == "RocksDB":
        (host.directory / META_FILE).unlink()
    else:
        held = StoreDirectory(host.directory)
        held.empty()
        held.release()
    host.start().close()
    assert host.starts[P0] == InputPosition(7)
    assert ("planes/Partition_0 is filled again" in caplog.text) is (left is not None)


def test_a_removal_that_is_cut_short_leaves_nothing_that_speaks_for_the_store(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ADJUNCT-META goes before the first file of the engine."""
    host.start().close()
    removed: list[str] = []
    monkeypatch.setattr(directory, "_remove", lambda path: removed.append(path.name))
    held = StoreDirectory(host.directory)
    held.empty()
    held.release()
    assert removed.index(META_FILE) < removed.index("CURRENT")


def _damage_manifest(host: Host) -> None:
    for path in host.directory.glob("MANIFEST*"):
        path.write_bytes(b"damaged")


def _set(**fields: object) -> Callable[[Host], None]:
    return lambda host: host.__dict__.update(fields)


def _write(name: str, data: bytes) -> Callable[[Host], object]:
    return lambda host: (host.directory / name).write_bytes(data)


_SPOILT: tuple[tuple[Callable[[Host], object], int, str], ...] = (
    (_write(META_FILE, b"damaged"), 7, "ADJUNCT-META is damaged: it does not begin"),
    (_write(META_FILE, encode("{}")), 7, "ADJUNCT-META is damaged: it holds '{}'"),
    (_damage_manifest, 7, "RocksDB cannot open it"),
    (_set(topic_id="another"), 0, "kafka.planes was recreated"),
    (_set(end=5), 0, "stands at offset 9 of kafka.planes partition 0, which ends at 5"),
    (_set(oldest=50), 50, "whose oldest is 50"),
    (_set(planes=replace(PLANES, extractor="my:Factory")), 7, "and my:Factory is configured"),
    (_set(forms=("string", "long")), 0, "its string and string are read as string and long now"),
    (_set(now_ms=1_000_000 + 2 * 86_400_000), 7, "its newest file was written 172800 s ago"),
    (_set(now_ms=400_000), 7, "the clock was set back"),
    (_write("DAMAGED", b"it was found so"), 7, "it was found so"),
)


@pytest.mark.parametrize(("spoil", "start", "reason"), _SPOILT, ids=[s for *_, s in _SPOILT])
def test_a_store_that_is_not_valid_is_filled_again(
    host: Host, spoil: Callable[[Host], None], start: int, reason: str, caplog: Caplog
) -> None:
    """Nothing that it held is left, and the reason is in the log."""
    host.left(7, 8)
    spoil(host)
    with host.running() as storage:
        assert host.starts[P0] == InputPosition(start)
        assert held(storage) == []
        assert reason in caplog.text
        assert P0 in storage.of_task(NAMES[0]).reset_partitions()
    caplog.clear()
    host.start().close()
    assert "filled again" not in caplog.text


def test_a_store_without_its_position_is_filled_again(host: Host, caplog: Caplog) -> None:
    """Its entries may be of any time."""
    with host.running() as storage:
        fill(storage, 7)
        engine = storage.entries("planes", NAMES[0]).engine
        engine.write({PARTS_KEY: None}, None)
        storage.flush(passed, passed)
    with host.running() as storage:
        assert "it does not say where it is" in caplog.text
        assert held(storage) == []
        engine = storage.entries("planes", NAMES[0]).engine
        engine.write({PARTS_KEY: b"\xff"}, None)
    host.start().close()
    assert "which is not the text of parts" in caplog.text


def test_a_task_with_a_new_partition_keeps_what_it_has(host: Host) -> None:
    """The new one begins as if there were no store; one that is lost takes the store with it."""
    host.left(7)
    host.partitions = 4
    host.asked.clear()
    with host.running() as storage:
        assert host.asked == [2, 3]
        assert held(storage) == [b"k7"]
    host.partitions = 2
    with host.running() as storage:
        assert held(storage) == []


def test_versions_that_were_counted_do_not_go_on_with_numbers(host: Host, caplog: Caplog) -> None:
    """A data set that gets a second partition begins again; one with the same ones does not."""
    host.planes = replace(PLANES, markers=VersionMarkers(header="version"))
    host.start().close()
    host.start().close()
    assert "filled again" not in caplog.text
    host.partitions = 4
    host.start().close()
    assert caplog.text.count("is filled again: it was of one partition") == 2


def test_a_store_that_is_cleaned_on_start_is_never_found(host: Host) -> None:
    """It lives where stores live no longer than their container."""
    host.planes = replace(PLANES, is_kept=False, is_bootstrap=True)
    with host.running() as storage:
        assert not host.directory.exists()
        fill(storage, 0, 1)
        storage.flush(passed, passed)
    with host.running() as storage:
        assert host.starts[P0] == InputPosition(0)
        assert held(storage) == []


def test_each_flush_says_that_the_store_is_alive(host: Host) -> None:
    """An idle stream makes no store old, as long as its container runs."""
    storage = host.start()
    host.now_ms += 80_000_000
    storage.flush(passed, passed)
    host.now_ms += 80_000_000
    host.crash(storage)
    host.asked.clear()
    with host.running() as storage:
        assert host.asked == []


def test_a_start_that_changes_nothing_writes_nothing(host: Host) -> None:
    """Only the time of what is found is a later one, at the next flush."""
    with host.running() as storage:
        fill(storage, 7)
        assert storage.flush(passed, passed) == 1
    with host.running() as storage:
        assert storage.flush(passed, passed) == 0


def test_a_store_of_an_earlier_release_says_its_serdes_from_the_first_flush_on(
    host: Host, caplog: Caplog
) -> None:
    """It goes on as it is; from then on other serdes do not read it."""
    host.forms = None
    host.left(7)
    host.forms = "string", "string"
    with host.running() as storage:
        assert held(storage) == [b"k7"]
        storage.flush(passed, passed)
    assert "filled again" not in caplog.text
    host.forms = "string", "long"
    with host.running() as storage:
        assert held(storage) == []
        assert "its string and string are read as string and long now" in caplog.text


def test_tasks_share_what_is_the_containers(host: Host) -> None:
    """One directory, one writer, all readers; a name that no store has is refused."""
    with host.running() as storage:
        assert (host.root / "logged" / "airlines" / "container-0").is_dir()
        sink = storage.of_container().adjunct("airlines")
        assert sink is not None
        sink.take(Run(A0, [0], [0]), [b"UA"], [b"United"])
        assert all(storage.entries("airlines", name).get(b"UA") is None for name in NAMES)
        sink.take(Run(A0, [9], [0]), [b"UA"], [b"United"])
        write(storage.sealed(), passed, passed)
        assert all(storage.entries("airlines", name).get(b"UA") == b"United" for name in NAMES)
        with pytest.raises(StoreError, match="no adjunct store trains of task Partition 0"):
            storage.entries("trains", NAMES[0])


def test_each_task_sees_its_own_part(host: Host) -> None:
    """And writes to it; the stores of the container are no task's."""
    with host.running() as storage:
        fill(storage, 7)
        other = storage.of_task(NAMES[1]).adjunct("planes")
        assert other is not None
        assert list(storage.entries("planes", NAMES[1]).scan()) == []
        assert held(storage) == [b"k7"]
        assert [storage.of_task(name).adjunct("airlines") for name in NAMES] == [None, None]
        assert storage.of_container().adjunct("planes") is None
        names = [item.name for item in storage.of_name("planes")]
        assert names == ["planes/Partition_0", "planes/Partition_1"]
        assert storage.bounded() == []


def test_a_store_that_a_start_finds_at_the_end_of_its_stream_is_at_its_head(host: Host) -> None:
    """The start's own request shows it; one with more to read was there before."""
    host.left(host.end - 1)
    began, host.now_ms = host.now_ms, host.now_ms + 5_000
    with host.running() as storage:
        assert storage.followed[P0].at_head == ClockReading(host.now_ms)
    host.end += 1
    with host.running() as storage:
        assert storage.followed[P0].at_head.wall_ms in (began, host.now_ms - 5_000)


def _facts(storage: AdjunctStorage, of: str = str(DIRECTORY)) -> StoreFacts:
    return next(found for planned, found in storage.facts() if str(planned.directory) == of)


def test_what_is_told_of_a_store(host: Host) -> None:
    """Records and positions outlive the container; the time of the newest record does not."""
    host.planes = replace(PLANES, is_bootstrap=True)
    with host.running() as storage:
        fill(storage, 3, 4)
        take(storage, 7, b"1", at_ms=5_000)
        storage.flush(passed, passed)
        found = _facts(storage)
        assert (found.records, found.positions, found.version) == (3, {P0: 8}, None)
        assert found.size_bytes
        assert (found.age_s(7_500), found.age_s(4_000)) == (2.5, 0)
        empty = _facts(storage, "airlines/container-0")
        assert (empty.records, empty.age_s(7_500)) == (0, None)
    with host.running() as storage:
        found = _facts(storage)
        assert (found.records, found.positions, found.age_s(0)) == (3, {P0: 8}, None)


def test_what_is_told_of_a_store_is_of_the_version_that_tasks_see(host: Host) -> None:
    """Nothing before there is one; its age is that of its first record."""
    host.planes = replace(PLANES, is_bootstrap=True, markers=VersionMarkers(header="version"))
    with host.running() as storage:
        take(storage, 0, b"1", at_ms=2_000)
        take(storage, 1, b"1", at_ms=3_000)
        before = _facts(storage)
        assert (before.records, before.version, before.age_s(4_000)) == (0, None, None)
        assert before.positions[P0] == 2
        take(storage, 2, b"end", at_ms=4_000)
        storage.switch_versions(passed, passed)
        served = _facts(storage)
        assert (served.records, served.version, served.age_s(4_500)) == (2, 1, 2.5)
        assert served.positions == {P0: 3}
