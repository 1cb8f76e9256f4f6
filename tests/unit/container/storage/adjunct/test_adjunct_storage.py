"""Adjunct stores on real RocksDB: what a start finds, keeps and fills again, crash by crash."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from homeport.config.errors import StoreError
from homeport.config.settings.adjunct_section import VersionMarkers
from homeport.config.settings.stores_section import StorageConfig
from homeport.container.adjunct.recovery import META_FILE
from homeport.container.adjunct.version_text import PARTS_KEY
from homeport.container.adjunct.versions import Marker, MarkerKind, Run
from homeport.container.api import ReadOnlyStoreError
from homeport.container.engine.in_memory_store import InMemoryStore
from homeport.container.engine.storage_engine import StorageEngine
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.input_position import InputPosition
from homeport.container.progress.offset_file import encode
from homeport.container.storage import directory
from homeport.container.storage.adjunct.adjunct_storage import write
from homeport.container.storage.adjunct.read_only_entries import ReadOnlyEntries
from homeport.container.storage.directory import StoreDirectory
from homeport.container.storage.storage_engines import StorageEngines
from homeport.container.storage.task_store import passed
from tests.unit.container.storage.adjunct.adjunct_hosts import (
    A0,
    CONFIG,
    DIRECTORY,
    NAMES,
    P0,
    PLANES,
    Host,
    fill,
    held,
)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """An empty one."""
    return Host(tmp_path)


def test_a_store_that_is_found_goes_on_where_it_stands(host: Host) -> None:
    """After a flush; the checkpoint counts for the others only."""
    storage = host.start()
    assert host.starts[P0] == InputPosition(7)
    fill(storage, 7, 8)
    storage.flush(passed, passed)
    fill(storage, 9)
    host.crash(storage)
    host.asked.clear()
    storage = host.start()
    assert host.starts[P0] in (InputPosition(9), InputPosition(10))
    assert held(storage)[:2] == [b"k7", b"k8"]
    assert host.asked == []
    storage.close()


def test_what_was_not_flushed_is_read_again(host: Host) -> None:
    """The store and its position agree, wherever it died."""
    storage = host.start()
    fill(storage, 7, 8)
    host.crash(storage)
    storage = host.start()
    assert (host.starts[P0].offset == 7) is (held(storage) == [])
    storage.close()


@pytest.mark.parametrize("left", [None, "META", "RocksDB"])
def test_a_directory_that_never_began_or_was_emptied_in_part_is_filled_again(
    host: Host, left: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Without ADJUNCT-META it never began; without RocksDB's files nothing speaks for them."""
    storage = host.start()
    fill(storage, 7)
    storage.flush(passed, passed)
    storage.close()
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


def _damage_meta(host: Host) -> None:
    (host.directory / META_FILE).write_bytes(b"damaged")


def _other_text(host: Host) -> None:
    (host.directory / META_FILE).write_bytes(encode("{}"))


def _damage_store(host: Host) -> None:
    for path in host.directory.glob("MANIFEST*"):
        path.write_bytes(b"damaged")


def _recreate(host: Host) -> None:
    host.topic_id = "another"


def _truncate(host: Host) -> None:
    host.end = 5


def _compact_past(host: Host) -> None:
    host.oldest = 50


def _other_extractor(host: Host) -> None:
    host.planes = replace(PLANES, extractor="my:Factory")


def _other_serdes(host: Host) -> None:
    host.forms = "string", "long"


def _later(host: Host) -> None:
    host.now_ms += 2 * 86_400_000


def _earlier(host: Host) -> None:
    host.now_ms -= 600_000


def _fewer(host: Host) -> None:
    host.partitions = 1


def _condemn(host: Host) -> None:
    (host.directory / "DAMAGED").write_text("it was found so")


@pytest.mark.parametrize(
    ("spoil", "start", "reason"),
    [
        (_damage_meta, 7, "ADJUNCT-META is damaged: it does not begin"),
        (_other_text, 7, "ADJUNCT-META is damaged: it holds '{}'"),
        (_damage_store, 7, "RocksDB cannot open it"),
        (_recreate, 0, "kafka.planes was recreated"),
        (_truncate, 0, "stands at offset 9 of kafka.planes partition 0, which ends at 5"),
        (_compact_past, 50, "whose oldest is 50"),
        (_other_extractor, 7, "filled by the default extractor, and my:Factory is configured"),
        (_other_serdes, 0, "its string and string are read as string and long now"),
        (_later, 7, "its newest file was written 172800 s ago"),
        (_earlier, 7, "the clock was set back"),
        (_condemn, 7, "it was found so"),
    ],
)
def test_a_store_that_is_not_valid_is_filled_again(
    host: Host,
    spoil: Callable[[Host], None],
    start: int,
    reason: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nothing that it held is left, and the reason is in the log."""
    storage = host.start()
    fill(storage, 7, 8)
    storage.flush(passed, passed)
    storage.close()
    spoil(host)
    storage = host.start()
    assert host.starts[P0] == InputPosition(start)
    assert held(storage) == []
    assert reason in caplog.text
    assert P0 in storage.of_task(NAMES[0]).reset_partitions()
    storage.close()
    caplog.clear()
    host.start().close()
    assert "filled again" not in caplog.text


def test_a_store_without_its_position_is_filled_again(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    """Its entries may be of any time."""
    storage = host.start()
    fill(storage, 7)
    engine = storage.entries("planes", NAMES[0]).engine
    engine.write({PARTS_KEY: None}, None)
    storage.flush(passed, passed)
    storage.close()
    storage = host.start()
    assert "it does not say where it is" in caplog.text
    assert held(storage) == []
    engine = storage.entries("planes", NAMES[0]).engine
    engine.write({PARTS_KEY: b"\xff"}, None)
    storage.close()
    host.start().close()
    assert "which is not the text of parts" in caplog.text


def test_a_task_with_a_new_partition_keeps_what_it_has(host: Host) -> None:
    """The new one begins as if there were no store; one that is lost takes the store with it."""
    storage = host.start()
    fill(storage, 7)
    storage.flush(passed, passed)
    storage.close()
    host.partitions = 4
    host.asked.clear()
    storage = host.start()
    assert host.asked == [2, 3]
    assert held(storage) == [b"k7"]
    storage.close()
    host.partitions = 2
    storage = host.start()
    assert held(storage) == []
    storage.close()


def test_versions_that_were_counted_do_not_go_on_with_numbers(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
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
    storage = host.start()
    assert not host.directory.exists()
    fill(storage, 0, 1)
    storage.flush(passed, passed)
    storage.close()
    storage = host.start()
    assert host.starts[P0] == InputPosition(0)
    assert held(storage) == []
    storage.close()


def test_each_flush_says_that_the_store_is_alive(host: Host) -> None:
    """An idle stream makes no store old, as long as its container runs."""
    storage = host.start()
    host.now_ms += 80_000_000
    storage.flush(passed, passed)
    host.now_ms += 80_000_000
    host.crash(storage)
    host.asked.clear()
    storage = host.start()
    assert host.asked == []
    storage.close()


def test_a_start_that_changes_nothing_writes_nothing(host: Host) -> None:
    """Only the time of what is found is a later one, at the next flush."""
    storage = host.start()
    fill(storage, 7)
    assert storage.flush(passed, passed) == 1
    storage.close()
    storage = host.start()
    assert storage.flush(passed, passed) == 0
    storage.close()


def test_a_store_of_an_earlier_release_says_its_serdes_from_the_first_flush_on(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    """It goes on as it is; from then on other serdes do not read it."""
    host.forms = None
    storage = host.start()
    fill(storage, 7)
    storage.flush(passed, passed)
    storage.close()
    host.forms = "string", "string"
    storage = host.start()
    assert held(storage) == [b"k7"]
    storage.flush(passed, passed)
    storage.close()
    assert "filled again" not in caplog.text
    host.forms = "string", "long"
    storage = host.start()
    assert held(storage) == []
    assert "its string and string are read as string and long now" in caplog.text
    storage.close()


def test_tasks_share_what_is_the_containers(host: Host) -> None:
    """One directory, one writer, all readers; a name that no store has is refused."""
    storage = host.start()
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
    storage.close()


def test_each_task_sees_its_own_part(host: Host) -> None:
    """And writes to it; the stores of the container are no task's."""
    storage = host.start()
    fill(storage, 7)
    other = storage.of_task(NAMES[1]).adjunct("planes")
    assert other is not None
    assert list(storage.entries("planes", NAMES[1]).scan()) == []
    assert held(storage) == [b"k7"]
    assert [storage.of_task(name).adjunct("airlines") for name in NAMES] == [None, None]
    assert storage.of_container().adjunct("planes") is None
    assert [item.name for item in storage.of_name("planes")] == [
        "planes/Partition_0",
        "planes/Partition_1",
    ]
    assert storage.bounded() == []
    storage.close()


def test_a_store_that_a_start_finds_at_the_end_of_its_stream_is_at_its_head(host: Host) -> None:
    """The start's own request shows it; one with more to read was there before."""
    storage = host.start()
    fill(storage, host.end - 1)
    storage.flush(passed, passed)
    storage.close()
    began, host.now_ms = host.now_ms, host.now_ms + 5_000
    storage = host.start()
    assert storage.followed[P0].at_head == ClockReading(host.now_ms)
    storage.close()
    host.end += 1
    storage = host.start()
    assert storage.followed[P0].at_head in (ClockReading(began), ClockReading(host.now_ms - 5_000))
    storage.close()


def test_what_is_told_of_a_store(host: Host) -> None:
    """Records and positions outlive the container; the time of the newest record does not."""
    host.planes = replace(PLANES, is_bootstrap=True)
    storage = host.start()
    fill(storage, 3, 4)
    sink = storage.of_task(NAMES[0]).adjunct("planes")
    assert sink is not None
    sink.take(Run(P0, [7], [5_000]), [b"k7"], [b"1"])
    write(storage.sealed(), passed, passed)
    storage.flush(passed, passed)
    facts = {str(planned.directory): found for planned, found in storage.facts()}
    found = facts["planes/Partition_0"]
    assert (found.records, found.positions, found.version) == (3, {P0: 8}, None)
    assert found.size_bytes
    assert (found.age_s(7_500), found.age_s(4_000)) == (2.5, 0)
    empty = facts["airlines/container-0"]
    assert (empty.records, empty.age_s(7_500)) == (0, None)
    storage.close()
    storage = host.start()
    found = {str(planned.directory): found for planned, found in storage.facts()}[str(DIRECTORY)]
    assert (found.records, found.positions, found.age_s(0)) == (3, {P0: 8}, None)
    storage.close()


def test_what_is_told_of_a_store_is_of_the_version_that_tasks_see(host: Host) -> None:
    """Nothing before there is one; its age is that of its first record."""
    host.planes = replace(PLANES, is_bootstrap=True, markers=VersionMarkers(header="version"))
    storage = host.start()
    sink = storage.of_task(NAMES[0]).adjunct("planes")
    assert sink is not None
    keys, values = [b"a", b"b", b""], [b"1", b"1", b""]
    sink.take(Run(P0, [0, 1], [2_000, 3_000]), keys, values)
    write(storage.sealed(), passed, passed)
    (_, before), _ = ((p, f) for p, f in storage.facts() if p.store.name == "planes")
    assert (before.records, before.version, before.age_s(4_000)) == (0, None, None)
    assert before.positions[P0] == 2
    sink.take(Run(P0, [2], [4_000], {0: Marker(MarkerKind.END)}), [None], [None])
    write(storage.sealed(), passed, passed)
    storage.switch_versions(passed, passed)
    (_, served), _ = ((p, f) for p, f in storage.facts() if p.store.name == "planes")
    assert (served.records, served.version, served.age_s(4_500)) == (2, 1, 2.5)
    assert served.positions == {P0: 3}
    storage.close()


def _rocksdb(path: Path) -> StorageEngine:
    engines = StorageEngines(32 << 20, 1)
    return engines.open(StorageConfig.of(CONFIG).stores["planes"], path)


@pytest.mark.parametrize("make", [lambda _path: InMemoryStore(), _rocksdb])
def test_reserved_keys_are_hidden_and_nothing_is_written(
    make: Callable[[Path], StorageEngine], tmp_path: Path
) -> None:
    """Whatever the bounds of a scan."""
    engine = make(tmp_path)
    engine.write({b"\x00a": b"1", PARTS_KEY: b"2", b"b": b"3", b"c": b"4"}, None)
    entries = ReadOnlyEntries(engine, "planes", "kafka.planes")
    assert entries.get(PARTS_KEY) is None
    assert entries.get(b"b") == b"3"
    assert entries.get_all([b"b", PARTS_KEY, b"x"]) == [b"3", None, None]
    assert entries.get_all([b"b", b"x"]) == [b"3", None]
    for start, end, found in (
        (None, None, b"abc"),
        (b"\x00", b"b", b"a"),
        (PARTS_KEY, None, b"bc"),
        (None, PARTS_KEY, b"a"),
        (b"c", None, b"c"),
        (PARTS_KEY, PARTS_KEY + b"\x00", b""),
    ):
        assert b"".join(key[-1:] for key, _ in entries.scan(start, end)) == found, (start, end)
    with pytest.raises(ReadOnlyStoreError, match=r"planes is filled by kafka\.planes alone"):
        entries.put(b"b", b"")
    with pytest.raises(ReadOnlyStoreError, match="write to another store"):
        entries.put_all({b"b": None})
    entries.scan().close()
    engine.close()
