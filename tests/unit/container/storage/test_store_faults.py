"""What becomes of a store whose files are not as they were left, on real RocksDB files."""

from __future__ import annotations

import fcntl
import logging
import os
import random
import shutil
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from another_user import give_away, open_folder, unprivileged
from stores_in_memory_log import (
    NOTHING,
    TASK,
    Log,
    directory_of,
    one_committed,
    opened,
    restored,
    running,
    storage_of,
    transaction,
)

from homeport.config.errors import StoreError
from homeport.config.system_stream import SystemStream
from homeport.container.engine.storage_engine import DamagedStoreError
from homeport.container.host.disk_space import DiskForbiddenError
from homeport.container.progress import offset_file, store_meta
from homeport.container.rocksdb.rocksdb_store import RocksDbMemory, RocksDbStore
from homeport.container.storage.container_storage import ContainerStorage
from homeport.container.storage.directory import StoreDirectory
from homeport.job_coordinator.model.outcomes import RestoreKind

CHANGELOG = SystemStream("kafka", "log")
KEYS = [b"k%05d" % i for i in range(2000)]


def _sst(path: Path) -> Path:
    return min(path.glob("*.sst"))


def _truncate(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def _flip_blocks(path: Path) -> None:
    """Many blocks of the first table; neither the position's, the first, nor the index."""
    with _sst(path).open("r+b") as file:
        file.seek(8192)
        file.write(b"\xff" * (_sst(path).stat().st_size // 2 - 8192))


def _spoil_first_block(path: Path) -> None:
    with _sst(path).open("r+b") as file:
        file.write(b"\xff" * 100)


def _like_samzas_without_current(path: Path) -> None:
    (path / "CURRENT").unlink()
    (path / store_meta.META_FILE).unlink()


def _spoil_text(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1] + b"7")


def _offset_above(path: Path) -> None:
    directory = StoreDirectory(path)
    directory.write_offset_v2(CHANGELOG, 0, 50_000)
    directory.release()


def _be_a_directory(file: Path) -> None:
    file.unlink()
    file.mkdir()
    (file / "inside").write_bytes(b"x")


def _of_a_later_format(path: Path) -> None:
    (path / store_meta.META_FILE).write_bytes(offset_file.encode('{"format":99}'))


def _without_offset(path: Path) -> None:
    for name in offset_file.READ_ORDER:
        (path / name).unlink(missing_ok=True)


def _cut(name: str, size: int) -> Callable[[Path], None]:
    return lambda path: os.truncate(next(path.glob(name)), size)


def _of_another_changelog(path: Path) -> None:
    (path / "OFFSET-v2").write_bytes(offset_file.encode('{"kafka.x.0":"1"}'))


_CHECKSUM = "is damaged: its checksum does not match its text"
_NO_CURRENT = "RocksDB's file CURRENT is missing"
FAULTS: dict[str, dict[str, tuple[Callable[[Path], object], str]]] = {
    "missing-offset": {"no OFFSET": (_without_offset, "OFFSET is missing")},
    "damaged-offset": {
        "OFFSET-v2 spoilt": (lambda p: _spoil_text(p / "OFFSET-v2"), f"OFFSET-v2 {_CHECKSUM}"),
        "OFFSET spoilt": (lambda p: _spoil_text(p / "OFFSET"), f"OFFSET {_CHECKSUM}"),
        "OFFSET-v2 cut short": (
            lambda p: _truncate(p / "OFFSET-v2"),
            "OFFSET-v2 is damaged: the file is cut short",
        ),
        "OFFSET-v2 empty": (
            _cut("OFFSET-v2", 0),
            "OFFSET-v2 is damaged: it does not begin as a Java object stream does",
        ),
        "OFFSET-v2 a directory": (
            lambda p: _be_a_directory(p / "OFFSET-v2"),
            "OFFSET-v2 is damaged: it cannot be read: Is a directory",
        ),
    },
    "foreign": {
        "OFFSET-v2": (_of_another_changelog, "OFFSET-v2: it is of kafka.x.0, not of kafka.log.0")
    },
    "damaged-meta": {
        "STORE-META spoilt": (lambda p: _spoil_text(p / "STORE-META"), f"STORE-META {_CHECKSUM}")
    },
    "other-format": {
        "STORE-META": (_of_a_later_format, "STORE-META has format 99, and 2 is what is read here")
    },
    "offset-above-position": {
        "OFFSET": (_offset_above, "OFFSET says 50000 but the store holds only 1999: damaged")
    },
    "damaged-store": {
        "SST cut short": (
            lambda p: _truncate(_sst(p)),
            "RocksDB cannot open it: Corruption: Sst file size mismatch",
        ),
        "no SST": (
            lambda p: _sst(p).unlink(),
            "No such file or directory: While open a file for random read",
        ),
        "SST a directory": (lambda p: _be_a_directory(_sst(p)), "RocksDB cannot open it: "),
        "no MANIFEST": (
            lambda p: next(p.glob("MANIFEST-*")).unlink(),
            "No such file or directory: While opening a file for sequentially reading",
        ),
        "MANIFEST cut short": (_cut("MANIFEST-*", 10), "RocksDB cannot open it: Corruption"),
        "CURRENT pointing nowhere": (
            lambda p: (p / "CURRENT").write_text("MANIFEST-999999\n"),
            "MANIFEST-999999: No such file or directory",
        ),
        "CURRENT empty": (_cut("CURRENT", 0), "CURRENT file does not end with newline"),
        "the block with the position": (
            _spoil_first_block,
            "RocksDB cannot read it: Corruption: block checksum mismatch",
        ),
        "no CURRENT": (lambda p: (p / "CURRENT").unlink(), _NO_CURRENT),
        "no CURRENT in a directory of Samza's": (_like_samzas_without_current, _NO_CURRENT),
    },
}


def _many_committed(folder: Path) -> Log:
    """The log of a store with 2000 records, whose table has many blocks, all flushed."""
    log = Log()
    log.records = [(key, os.urandom(40)) for key in KEYS]
    restored(folder, log)
    return log


def _held(storage: ContainerStorage) -> list[object]:
    return list(storage.overlay("s", TASK).scan())


@pytest.mark.parametrize(
    ("refusal", "name"), [(refusal, name) for refusal, faults in FAULTS.items() for name in faults]
)
def test_each_fault_of_the_files_means_a_rebuild_and_is_reported(
    tmp_path: Path, refusal: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """R2: the store equals its changelog again; kind and story are in one line of the log."""
    damage, story = FAULTS[refusal][name]
    log = _many_committed(tmp_path)
    damage(directory_of(tmp_path))
    with caplog.at_level(logging.WARNING), running(tmp_path, log) as (storage, result):
        assert (result.kind, result.records, result.refusal) == (RestoreKind.FULL, 2000, refusal)
        assert _held(storage) == log.records
    assert story in (result.reason or "")
    assert "\n" not in (result.reason or "")
    assert f"store s/Partition 0 is read in full: {result.reason}" in caplog.messages
    assert restored(tmp_path, log) == NOTHING


@pytest.mark.parametrize("seed", range(12))
def test_changed_bytes_never_change_the_values_read(tmp_path: Path, seed: int) -> None:
    """Some bytes of some file are others: at the opening, or at a read, it is seen or harmless."""
    chance = random.Random(seed)  # noqa: S311 - a test's cases, which are to be the same again
    log = _many_committed(tmp_path)
    files = [f for f in sorted(directory_of(tmp_path).iterdir()) if f.stat().st_size]
    file = chance.choice([f for f in files if f.name not in {"LOG", ".homeport-lock"}])
    data = bytearray(file.read_bytes())
    for _ in range(chance.choice([1, 4, 50])):
        data[chance.randrange(len(data))] = chance.randrange(256)
    file.write_bytes(data)
    storage, _ = opened(tmp_path, log)
    try:
        found = _held(storage)
    except DamagedStoreError:
        # As the process ends, without a commit: the store is not closed in order.
        shutil.copytree(tmp_path / "logged", tmp_path / "again" / "logged")
        with running(tmp_path / "again", log) as (again, result):
            assert result.refusal == "damaged-store"
            found = _held(again)
    else:
        storage.close()
    assert found == log.records


def test_foreign_files_do_no_harm(tmp_path: Path) -> None:
    """R3: a foreign file beside a good store neither spoils it nor is removed."""
    log = _many_committed(tmp_path)
    path = directory_of(tmp_path)
    (path / "notes.txt").write_text("x")
    (path / "folder").mkdir()
    (path / "999999.sst.bak").write_text("junk")
    (path / "rocksdict-config.json").write_text("junk")
    assert restored(tmp_path, log) == NOTHING
    assert (path / "notes.txt").exists()


def test_a_restore_that_was_cut_short_is_done_again(tmp_path: Path) -> None:
    """Without its OFFSET what it had written does not count, and does not stay."""
    log = _many_committed(tmp_path)
    path = directory_of(tmp_path)
    _without_offset(path)
    log.records = [(b"other", b"1"), None]
    with running(tmp_path, log) as (storage, result):
        assert (result.kind, result.refusal) == (RestoreKind.FULL, "missing-offset")
        assert _held(storage) == [(b"other", b"1")]


@pytest.mark.parametrize("read", ["get", "get_all", "scan", "range"])
def test_damage_that_only_a_read_finds_ends_the_transaction_and_is_remembered(
    tmp_path: Path, read: str
) -> None:
    """The read raises, nothing can be sent any more, and the next start rebuilds that store."""
    log = _many_committed(tmp_path)
    _flip_blocks(directory_of(tmp_path))
    storage, result = opened(tmp_path, log)
    assert result == NOTHING
    overlay = storage.overlay("s", TASK)
    reads: dict[str, Callable[[], object]] = {
        "get": lambda: overlay.get(KEYS[500]),
        "get_all": lambda: overlay.get_all(KEYS[:900]),
        "scan": lambda: list(overlay.scan()),
        "range": lambda: list(overlay.scan(KEYS[500], KEYS[509])),
    }
    one_line = "RocksDB cannot read it: Corruption: block checksum mismatch.*the next start"
    with pytest.raises(DamagedStoreError, match=one_line) as raised:
        reads[read]()
    assert "\n" not in str(raised.value)
    # User code may have swallowed it: what it then wrote must not be sent.
    overlay.put(b"new", b"1")
    with pytest.raises(DamagedStoreError, match="block checksum mismatch"):
        storage.changes()
    assert not (directory_of(tmp_path) / "OFFSET-v2").exists()
    # As the process ends, without a commit: the store is not closed in order.
    shutil.copytree(tmp_path / "logged", tmp_path / "again" / "logged")
    with running(tmp_path / "again", log) as (storage, result):
        assert (result.kind, result.refusal) == (RestoreKind.FULL, "damaged-store")
        assert "block checksum mismatch" in (result.reason or "")
        assert len(_held(storage)) == 2000
        assert storage.changes() == []


def test_a_scan_does_not_end_early_at_damage(tmp_path: Path) -> None:
    """The binding's iterator stops there without a word: what follows would seem deleted."""
    log = _many_committed(tmp_path)
    path = directory_of(tmp_path)
    table = _sst(path)
    with table.open("r+b") as file:
        file.seek(table.stat().st_size // 2)
        file.write(b"\xff" * 200)
    stated: list[StoreError] = []
    store = RocksDbStore(path, RocksDbMemory(1 << 24, 1), on_failure=stated.append)
    scan = store.scan()
    found: list[bytes] = []
    with pytest.raises(DamagedStoreError):
        found.extend(key for key, _ in scan)
    assert len(stated) == 1
    # Up to the damage everything is there, and a range before it is no matter of it.
    assert list(store.scan(KEYS[0], KEYS[5])) == log.records[:5]
    store.close()


def test_a_file_in_the_place_of_the_directory_is_left_to_its_owner(tmp_path: Path) -> None:
    """It is no store of ours: one line names it, and nothing is removed."""
    path = directory_of(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text("somebody's")
    with pytest.raises(StoreError, match="Partition_0: it is no folder"):
        storage_of(tmp_path, Log()).open()
    assert path.read_text() == "somebody's"


@pytest.mark.parametrize("target", ["elsewhere", "nowhere"])
def test_a_link_is_not_followed(tmp_path: Path, target: str) -> None:
    """Wherever it leads: a disk for some stores is mounted in their place."""
    log = one_committed(tmp_path)
    path = directory_of(tmp_path)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / target)
    before = sorted((tmp_path / "elsewhere").iterdir())
    with pytest.raises(StoreError, match="Partition_0: it is a link, which is not followed"):
        storage_of(tmp_path, log).open()
    assert sorted((tmp_path / "elsewhere").iterdir()) == before


def test_rocksdb_held_past_our_lock_is_no_damage(tmp_path: Path) -> None:
    """Another program has it open, such as Samza itself: nothing is removed under its feet."""
    one_committed(tmp_path)
    path = directory_of(tmp_path)
    with (
        held_elsewhere(path),
        pytest.raises(DiskForbiddenError, match="another program has the store open"),
    ):
        storage_of(tmp_path, Log()).open()
    assert (path / "OFFSET").exists()


def test_a_store_that_is_read_lets_no_other_program_in(tmp_path: Path) -> None:
    """It takes RocksDB's own lock before any change, too."""
    log = one_committed(tmp_path)
    path = directory_of(tmp_path)
    with running(tmp_path, log), pytest.raises(BlockingIOError), held_elsewhere(path):
        pass


@contextmanager
def held_elsewhere(path: Path) -> Iterator[None]:
    """The lock of RocksDB, as another process has it: by an open file, not by this process."""
    with (path / "LOCK").open("r+b") as file:
        lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, lock)
        yield


def test_a_container_that_goes_on_after_its_clock_was_set_keeps_its_store(tmp_path: Path) -> None:
    """Each transaction stamps the store again, and the machine's other clock cannot be set."""
    log = one_committed(tmp_path)
    for jump_ms in (10_000_000, -30_000_000):
        with running(tmp_path, log) as (storage, result):
            assert result.refusal is None
            log.now_ms += jump_ms
            transaction(storage, log, b"b", b"%d" % jump_ms)
            storage.flush()
        log.records += [(b"c", b"1"), None, (b"d", b"1"), None]
    assert restored(tmp_path, log).kind is RestoreKind.TAIL


def test_a_clock_set_back_while_a_host_was_away_keeps_nothing_silently(tmp_path: Path) -> None:
    """After a start of the machine there is no other clock: the store is rebuilt."""
    log = one_committed(tmp_path)
    log.now_ms -= 2_000
    log.boot_id, log.boot_ms = "boot-2", 10
    log.records += [(b"c", b"1"), None, (b"d", b"1"), None]
    result = restored(tmp_path, log)
    assert (result.kind, result.refusal) == (RestoreKind.FULL, "clock-set-back")
    log.boot_ms += 5_000
    assert restored(tmp_path, log) == NOTHING


def test_a_store_of_samzas_is_read_in_full(tmp_path: Path) -> None:
    """It names no position of ours: it may hold writes that Samza's producer never sent."""
    log = Log()
    log.records = [(b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"c", b"1")]
    path = directory_of(tmp_path)
    path.mkdir(parents=True)
    samzas = RocksDbStore(path, RocksDbMemory(1 << 24, 1))
    samzas.write({b"a": b"1", b"b": b"1", b"unsent": b"1"}, None)
    samzas.flush()
    samzas.close()
    (path / "OFFSET-v2").write_bytes(offset_file.encode('{"kafka.log.0":"1"}'))
    log.now_ms = round((path / "OFFSET-v2").stat().st_mtime * 1000)
    with running(tmp_path, log) as (storage, result):
        assert (result.kind, result.records) == (RestoreKind.FULL, 4)
        assert result.refusal == "missing-position"
        assert _held(storage) == [(b"a", b"2"), (b"b", b"1"), (b"c", b"1")]


def _recursively(path: Path, directories: int, files: int) -> None:
    for entry in (path, *path.rglob("*")):
        entry.chmod(directories if entry.is_dir() else files)


@pytest.mark.parametrize(("directories", "files"), [(0o555, 0o444), (0o000, 0o644), (0o755, 0o000)])
def test_lost_rights_are_reported_and_nothing_is_thrown_away(directories: int, files: int) -> None:
    """Read-only, or not readable: one line, and what is there is used when the rights are back."""
    with open_folder() as folder:
        log = one_committed(folder)
        (folder / "logged" / "s").chmod(0o755)
        (folder / "logged").chmod(0o755)
        path = directory_of(folder)
        _recursively(path, directories, files)
        give_away(folder)
        with (
            unprivileged(),
            pytest.raises(DiskForbiddenError, match=r"Permission denied, for user [0-9]+: .* give"),
        ):
            storage_of(folder, log).open()
        _recursively(path, 0o755, 0o644)
        with unprivileged():
            assert restored(folder, log) == NOTHING


def test_rights_lost_while_running_leave_committed_values(tmp_path: Path) -> None:
    """The commit fails with one line; OFFSET says what it said before."""
    with open_folder() as folder:
        log = one_committed(folder)
        storage, _ = opened(folder, log)
        transaction(storage, log, b"b", b"1")
        path = directory_of(folder)
        path.chmod(0o555)
        with unprivileged(), pytest.raises(DiskForbiddenError, match="Permission denied, for user"):
            storage.flush()
        path.chmod(0o755)
        shutil.copytree(folder / "logged", tmp_path / "logged")
    result = restored(tmp_path, log)
    assert (result.kind, result.records) == (RestoreKind.TAIL, 1)
