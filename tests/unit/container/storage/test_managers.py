"""All stores of one container, on real RocksDB with changelogs in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from homeport.config.config import Config
from homeport.config.errors import StoreError
from homeport.config.stores_section import StorageConfig
from homeport.config.system_stream import SystemStream
from homeport.container.progress.commit import Step, StoreId
from homeport.container.progress.restore import ChangelogRange, ChangelogTopic, RestorePlan
from homeport.container.storage.changelog_reader import Chunk
from homeport.container.storage.directory import StoreDirectory
from homeport.container.storage.managers import ContainerStorage
from homeport.job_coordinator.http.container_report import RestoreProgress
from homeport.job_coordinator.http.messages import Restored, RestoreKind
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import TaskModel

TASK = TaskName("Partition 0")
S, T = StoreId("s", TASK), StoreId("t", TASK)
NOTHING = Restored(RestoreKind.NONE, None, None, 0)
CONFIG = Config(
    {
        "job.name": "j",
        "job.default.system": "kafka",
        "stores.s.factory": "rocksdb",
        "stores.s.changelog": "kafka.log",
        "stores.s.key.serde": "bytes",
        "stores.s.msg.serde": "bytes",
        "stores.t.factory": "rocksdb",
        "stores.t.key.serde": "bytes",
        "stores.t.msg.serde": "bytes",
    }
)


class Log:
    """A changelog partition: records by offset, a head, and what is read of it."""

    def __init__(self) -> None:
        self.records: list[tuple[bytes, bytes | None] | None] = []
        self.oldest = 0
        self.plans: list[RestorePlan] = []
        self.progress: list[RestoreProgress] = []
        self.topic = ChangelogTopic("id-1", 1_000_000)
        self.now_ms = 5_000

    def topics(self, changelogs: Sequence[SystemStream]) -> dict[SystemStream, ChangelogTopic]:
        """The same for each."""
        return dict.fromkeys(changelogs, self.topic)

    def ranges(self, changelogs: Sequence[tuple[SystemStream, int]]) -> list[ChangelogRange]:
        """The same for each."""
        return [ChangelogRange(self.oldest, len(self.records)) for _ in changelogs]

    def read(self, stream: SystemStream, partition: int, start: int, head: int) -> Iterator[Chunk]:
        """Two records a chunk; None stands for a transaction marker."""
        assert (stream, partition) == (SystemStream("kafka", "log"), 0)
        numbered = [(i, r) for i, r in enumerate(self.records) if r and start <= i < head]
        for i in range(0, len(numbered), 2):
            part = numbered[i : i + 2]
            yield Chunk({r[0]: r[1] for _, r in part}, len(part), part[-1][0])

    def restore_progress(self, progress: RestoreProgress) -> None:
        """Keeps it."""
        self.progress.append(progress)

    def restore_started(self, store: str, task_name: TaskName, plan: RestorePlan) -> None:
        """Keeps the plan."""
        assert (store, task_name) == ("s", TASK)
        self.plans.append(plan)

    def restore_finished(self, store: str, task_name: TaskName, result: Restored) -> None:
        """Nothing to keep."""


def _storage(folder: Path, log: Log, config: Config = CONFIG) -> ContainerStorage:
    stores = list(StorageConfig.of(config).stores.values())
    tasks = [TaskModel(TASK, (), 0)]
    return ContainerStorage(
        folder / "logged", folder / "scratch", stores, tasks, 1 << 24, "G", lambda: log.now_ms
    )


def _opened(folder: Path, log: Log, config: Config = CONFIG) -> tuple[ContainerStorage, Restored]:
    storage = _storage(folder, log, config)
    storage.open()
    return storage, storage.restore(log, log)["s"][TASK]


def _transaction(storage: ContainerStorage, log: Log, key: bytes, value: bytes | None) -> None:
    """What a committed transaction does: a record, its marker, and the store."""
    storage.overlay("s", TASK).put(key, value)
    (changes,) = storage.changes()
    log.records += [*changes.entries.items(), None]
    storage.apply(S, {("log", 0): len(log.records) - 2})


def _directory(folder: Path) -> Path:
    return folder / "logged" / "s" / "Partition_0"


def test_a_store_that_comes_home_reads_nothing(tmp_path: Path) -> None:
    """Only a marker lies between its position and the head, so nothing is read."""
    log = Log()
    storage, result = _opened(tmp_path, log)
    assert result == NOTHING
    _transaction(storage, log, b"a", b"1")
    storage.commit()
    storage.close()
    storage, result = _opened(tmp_path, log)
    assert result == NOTHING
    assert storage.overlay("s", TASK).get(b"a") == b"1"
    storage.close()


def test_a_store_that_was_flushed_before_reads_the_tail(tmp_path: Path) -> None:
    """What other incarnations wrote since its position, deletions too, and no more."""
    log = Log()
    log.records = [(b"a", b"1"), (b"b", b"1"), (b"c", b"1"), None]
    storage, result = _opened(tmp_path, log)
    assert result == Restored(RestoreKind.FULL, 0, 3, 3)
    storage.close()
    log.records += [(b"a", None), (b"d", b"2"), None]
    storage, result = _opened(tmp_path, log)
    assert result == Restored(RestoreKind.TAIL, 4, 6, 2)
    pairs = [(b"b", b"1"), (b"c", b"1"), (b"d", b"2")]
    assert list(storage.overlay("s", TASK).scan()) == pairs
    storage.close()


def test_offset_names_the_position_after_each_commit(tmp_path: Path) -> None:
    """After a restore the head; after a transaction its last record; the first is not put off."""
    log = Log()
    storage, _ = _opened(tmp_path, log)
    assert not (_directory(tmp_path) / "OFFSET").exists()
    assert not storage.has_first_changes()
    _transaction(storage, log, b"a", b"1")
    assert storage.has_first_changes()
    assert storage.commit() == 1
    assert not storage.has_first_changes()
    assert storage.commit() == 0
    _transaction(storage, log, b"a", b"2")
    assert not storage.has_first_changes()
    storage.commit()
    storage.close()
    directory = StoreDirectory(_directory(tmp_path))
    assert directory.read_offset() == 2
    directory.release()


def test_a_commit_tells_each_step_when_it_is_done(tmp_path: Path) -> None:
    """A process may be ended between any two: OFFSET is never ahead of what was flushed."""
    log = Log()
    storage, _ = _opened(tmp_path, log)
    _transaction(storage, log, b"a", b"1")
    assert storage.ids() == ([S, T], [S])
    told: list[tuple[str, bool, bool]] = []

    def reached(step: Step) -> None:
        folder = _directory(tmp_path)
        there = [(folder / name).exists() for name in ("OFFSET", "OFFSET-v2")]
        told.append((str(step), there[0], there[1]))

    assert storage.commit(reached) == 1
    assert told == [
        ("flush s/Partition 0", False, False),
        ("write-OFFSET s/Partition 0", True, False),
        ("write-OFFSET-v2 s/Partition 0", True, True),
        ("write-STORE-META s/Partition 0", True, True),
    ]
    told.clear()
    assert storage.commit(reached) == 0
    assert told == []
    storage.close()


def test_a_dropped_transaction_leaves_no_trace(tmp_path: Path) -> None:
    """Neither in reads nor after a restart."""
    log = Log()
    storage, _ = _opened(tmp_path, log)
    storage.overlay("s", TASK).put(b"a", b"1")
    storage.overlay("t", TASK).put(b"a", b"1")
    assert storage.size_bytes == 4
    storage.drop()
    assert storage.changes() == []
    assert storage.size_bytes == 0
    storage.close()
    storage, _ = _opened(tmp_path, log)
    assert list(storage.overlay("s", TASK).scan()) == []
    storage.close()


@pytest.mark.parametrize("damage", ["missing", "checksum", "ahead", "rocksdb", "meta"])
def test_a_damaged_store_is_rebuilt(tmp_path: Path, damage: str) -> None:
    """Whatever is wrong, the store ends up equal to its changelog, and the reason is told."""
    log = Log()
    storage, _ = _opened(tmp_path, log)
    _transaction(storage, log, b"a", b"1")
    storage.commit()
    storage.close()
    offset = _directory(tmp_path) / "OFFSET"
    if damage == "missing":
        offset.unlink()
    elif damage == "checksum":
        offset.write_bytes(offset.read_bytes()[:-1] + b"7")
    elif damage == "meta":
        meta = offset.with_name("STORE-META")
        meta.write_bytes(meta.read_bytes()[:-1] + b"7")
    elif damage == "ahead":
        directory = StoreDirectory(_directory(tmp_path))
        directory.write_offset(5)
        directory.release()
    else:
        (_directory(tmp_path) / "CURRENT").write_bytes(b"x")
    storage, result = _opened(tmp_path, log)
    assert log.plans[-1].rebuild
    assert log.plans[-1].reason
    assert result == Restored(RestoreKind.FULL, 0, 1, 1, log.plans[-1].reason)
    assert list(storage.overlay("s", TASK).scan()) == [(b"a", b"1")]
    storage.close()


def _one_committed(folder: Path) -> Log:
    """The log of a store that was closed with one record, at the time 5000."""
    log = Log()
    storage, _ = _opened(folder, log)
    _transaction(storage, log, b"a", b"1")
    storage.commit()
    storage.close()
    return log


def test_a_position_beyond_the_changelogs_end_means_a_rebuild(tmp_path: Path) -> None:
    """It cannot be of this changelog (safety S3)."""
    log = _one_committed(tmp_path)
    log.records = []
    storage, result = _opened(tmp_path, log)
    reason = "position 0 is beyond the changelog's end 0"
    assert result == replace(NOTHING, reason=reason)
    assert log.plans[-1].reason == reason
    assert list(storage.overlay("s", TASK).scan()) == []
    storage.close()


def test_a_changelog_made_anew_means_a_rebuild_however_long_it_is(tmp_path: Path) -> None:
    """Its topic id is another one; the store has the new one's records, and knows its id."""
    log = _one_committed(tmp_path)
    log.records = [(b"b", b"1"), None, (b"c", b"1"), None]
    log.topic = ChangelogTopic("id-2", 1_000_000)
    storage, result = _opened(tmp_path, log)
    assert result.kind is RestoreKind.FULL
    assert "topic id is id-2, the store's is id-1" in (result.reason or "")
    assert list(storage.overlay("s", TASK).scan()) == [(b"b", b"1"), (b"c", b"1")]
    storage.close()
    storage, result = _opened(tmp_path, log)
    assert result == NOTHING
    storage.close()


def test_a_store_without_store_meta_is_judged_by_offsets(tmp_path: Path) -> None:
    """A directory of Samza's has none; from its first start here it does."""
    log = _one_committed(tmp_path)
    (_directory(tmp_path) / "STORE-META").unlink()
    log.records += [(b"b", b"1"), None]
    log.now_ms += 2_000_000
    storage, result = _opened(tmp_path, log)
    assert result == Restored(RestoreKind.TAIL, 1, 3, 1)
    storage.close()
    assert (_directory(tmp_path) / "STORE-META").is_file()


@pytest.mark.parametrize(
    ("away_ms", "kind"), [(999_999, RestoreKind.TAIL), (1_000_000, RestoreKind.FULL)]
)
def test_a_store_that_was_away_for_too_long_is_rebuilt(
    tmp_path: Path, away_ms: int, kind: RestoreKind
) -> None:
    """Deletions that it has not seen may be gone: what it kept would rise from the dead."""
    log = _one_committed(tmp_path)
    log.records = [None, None, (b"b", b"1"), None]  # a was deleted, and even that is compacted away
    log.now_ms += away_ms
    storage, result = _opened(tmp_path, log)
    assert result.kind is kind
    storage.close()


def test_an_idle_store_stays_fresh(tmp_path: Path) -> None:
    """Each transaction, of whatever task, shows that the store still stands at the head."""
    log = _one_committed(tmp_path)
    storage, _ = _opened(tmp_path, log)
    log.now_ms += 900_000
    assert storage.changes() == []
    storage.apply(S, {})
    assert storage.commit() == 0
    storage.close()
    log.records += [(b"b", b"1"), None]
    log.now_ms += 900_000
    storage, result = _opened(tmp_path, log)
    assert result.kind is RestoreKind.TAIL
    storage.close()


def test_a_store_without_changelog_lives_as_long_as_its_container(tmp_path: Path) -> None:
    """It works in transactions too, and begins empty."""
    log = Log()
    storage, _ = _opened(tmp_path, log)
    storage.overlay("t", TASK).put(b"a", b"1")
    assert storage.changes() == []
    storage.apply(T, {})
    assert storage.overlay("t", TASK).get(b"a") == b"1"
    storage.commit()
    storage.close()
    storage, _ = _opened(tmp_path, log)
    assert storage.overlay("t", TASK).get(b"a") is None
    storage.close()


def test_an_in_memory_store_is_read_in_full_at_each_start(tmp_path: Path) -> None:
    """R6: no OFFSET of it is written, and what another kind of store left there is removed."""
    log = _one_committed(tmp_path)
    config = Config({**CONFIG, "stores.s.factory": "in-memory"})
    for records in (1, 2):
        storage, result = _opened(tmp_path, log, config)
        assert result == Restored(RestoreKind.FULL, 0, len(log.records) - 1, records)
        assert {f.name for f in _directory(tmp_path).iterdir()} == {".homeport-lock"}
        _transaction(storage, log, b"b", b"1")
        assert not storage.has_first_changes()
        assert storage.commit() == 0
        storage.close()
    assert {f.name for f in _directory(tmp_path).iterdir()} == {".homeport-lock"}
    storage, _ = _opened(tmp_path, log, config)
    assert list(storage.overlay("s", TASK).scan()) == [(b"a", b"1"), (b"b", b"1")]
    storage.close()


def test_a_store_that_is_cleaned_at_the_start_is_read_in_full(tmp_path: Path) -> None:
    """R5: clean.on.container.start; what the directory held before is gone, OFFSET is new."""
    log = _one_committed(tmp_path)
    (_directory(tmp_path) / "left").write_text("x")
    config = Config({**CONFIG, "stores.s.clean.on.container.start": "true"})
    storage, result = _opened(tmp_path, log, config)
    assert result == Restored(RestoreKind.FULL, 0, 1, 1)
    assert not (_directory(tmp_path) / "left").exists()
    assert (_directory(tmp_path) / "OFFSET").exists()
    storage.close()


def test_two_containers_cannot_have_one_directory(tmp_path: Path) -> None:
    """The second is refused before it touches anything (safety S5)."""
    log = Log()
    storage, _ = _opened(tmp_path, log)
    with pytest.raises(StoreError, match="another process has it open"):
        _storage(tmp_path, log).open()
    storage.close()
