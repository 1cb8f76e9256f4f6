"""All stores of one container, on real RocksDB with changelogs in memory, and their figures."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import cast

import msgspec
import pytest
from stores_in_memory_log import (
    CONFIG,
    NOTHING,
    TASK,
    Log,
    S,
    T,
    directory_of,
    one_committed,
    restored,
    running,
    storage_of,
    transaction,
)

from homeport.config.config import Config
from homeport.config.errors import StoreError
from homeport.config.system_stream import SystemStream
from homeport.container.adjunct.steps import AdjunctStep
from homeport.container.engine.in_memory_store import InMemoryStore
from homeport.container.progress.restore import ChangelogTopic
from homeport.container.progress.transaction_plan import FlushStep, Step
from homeport.container.rocksdb.rocksdb_store import RocksDbMemory, RocksDbStore
from homeport.container.storage.container_storage import store_figures
from homeport.container.storage.directory import StoreDirectory
from homeport.container.storage.task_store import TaskStore
from homeport.job_coordinator.model.outcomes import Restored, RestoreKind
from homeport.job_coordinator.status.figures import FIGURES


def test_a_store_that_comes_home_reads_nothing(tmp_path: Path) -> None:
    """Only a marker lies between its position and the head, so nothing is read."""
    log = Log()
    with running(tmp_path, log) as (storage, result):
        assert result == NOTHING
        transaction(storage, log, b"a", b"1")
        storage.flush()
    with running(tmp_path, log) as (storage, result):
        assert result == NOTHING
        assert storage.overlay("s", TASK).get(b"a") == b"1"


def test_a_store_that_was_flushed_before_reads_the_tail(tmp_path: Path) -> None:
    """What other incarnations wrote since its position, deletions too, and no more."""
    log = Log()
    log.records = [(b"a", b"1"), (b"b", b"1"), (b"c", b"1"), None]
    assert restored(tmp_path, log) == Restored(RestoreKind.FULL, 0, 3, 3)
    log.records += [(b"a", None), (b"d", b"2"), None]
    with running(tmp_path, log) as (storage, result):
        assert result == Restored(RestoreKind.TAIL, 4, 6, 2)
        pairs = [(b"b", b"1"), (b"c", b"1"), (b"d", b"2")]
        assert list(storage.overlay("s", TASK).scan()) == pairs


def test_offset_names_the_position_after_each_commit(tmp_path: Path) -> None:
    """After a restore the head; after a transaction its last record."""
    log = Log()
    with running(tmp_path, log) as (storage, _):
        assert not (directory_of(tmp_path) / "OFFSET").exists()
        transaction(storage, log, b"a", b"1")
        assert storage.flush() == 1
        assert storage.flush() == 0
        transaction(storage, log, b"a", b"2")
        storage.flush()
    assert _offset(tmp_path) == 2


def _offset(folder: Path) -> int | None:
    directory = StoreDirectory(directory_of(folder))
    found, _ = directory.read_offset(SystemStream("kafka", "log"), 0)
    directory.release()
    return found


def test_first_changes_are_flushed_once(tmp_path: Path) -> None:
    """A store that has an OFFSET, or gets one, waits for the next round."""
    log = Log()
    with running(tmp_path, log) as (storage, _):
        assert not list(storage.first_flushes())
        transaction(storage, log, b"a", b"1")
        (first,) = storage.first_flushes()
        transaction(storage, log, b"a", b"2")
        assert not list(storage.first_flushes())
        first.run()
        transaction(storage, log, b"a", b"3")
        assert not list(storage.first_flushes())
        assert first.has_moved
        assert [flush.has_moved for flush in storage.due_flushes()] == [True]


def test_offset_has_the_position_from_before_the_flush(tmp_path: Path) -> None:
    """What was written since its begin is flushed too, and does not count (safety S1)."""
    log = Log()
    with running(tmp_path, log) as (storage, _):
        transaction(storage, log, b"a", b"1")
        (flush,) = storage.due_flushes()
        transaction(storage, log, b"a", b"2")
        flush.run()
        shutil.copytree(tmp_path / "logged", tmp_path / "killed" / "logged")
    assert _offset(tmp_path / "killed") == 0
    assert restored(tmp_path / "killed", log) == NOTHING


def test_a_commit_reports_each_step_when_it_is_done(tmp_path: Path) -> None:
    """A process may be ended between any two: OFFSET is never ahead of what was flushed."""
    log = Log()
    with running(tmp_path, log) as (storage, _):
        transaction(storage, log, b"a", b"1")
        assert storage.ids() == ([S, T], [S])
        stated: list[tuple[str, bool, bool]] = []

        def reached(step: Step | FlushStep | AdjunctStep) -> None:
            folder = directory_of(tmp_path)
            there = [(folder / name).exists() for name in ("OFFSET", "OFFSET-v2")]
            stated.append((str(step), there[0], there[1]))

        assert storage.flush(reached) == 1
        assert stated == [
            ("flush s/Partition 0", False, False),
            ("write-OFFSET s/Partition 0", True, False),
            ("write-OFFSET-v2 s/Partition 0", True, True),
            ("write-STORE-META s/Partition 0", True, True),
        ]
        stated.clear()
        assert storage.flush(reached) == 0
        assert stated == []


def test_a_dropped_transaction_leaves_no_trace(tmp_path: Path) -> None:
    """Neither in reads nor after a restart."""
    log = Log()
    with running(tmp_path, log) as (storage, _):
        storage.overlay("s", TASK).put(b"a", b"1")
        storage.overlay("t", TASK).put(b"a", b"1")
        assert storage.size_bytes == 4
        storage.drop()
        assert storage.changes() == []
        assert storage.size_bytes == 0
    with running(tmp_path, log) as (storage, _):
        assert list(storage.overlay("s", TASK).scan()) == []


def test_a_position_beyond_the_changelogs_end_means_a_rebuild(tmp_path: Path) -> None:
    """It cannot be of this changelog (safety S3)."""
    log = one_committed(tmp_path)
    log.records = []
    with running(tmp_path, log) as (storage, result):
        reason = "position 0 is beyond the changelog's end 0"
        assert result == msgspec.structs.replace(NOTHING, reason=reason, refusal="ahead")
        assert log.plans[-1].reason == reason
        assert list(storage.overlay("s", TASK).scan()) == []


def test_a_recreated_changelog_means_a_rebuild_however_long_it_is(tmp_path: Path) -> None:
    """Its topic id is another one; the store has the new one's records, and knows its id."""
    log = one_committed(tmp_path)
    log.records = [(b"b", b"1"), None, (b"c", b"1"), None]
    log.topic = ChangelogTopic("id-2", 1_000_000)
    with running(tmp_path, log) as (storage, result):
        assert result.kind is RestoreKind.FULL
        assert "topic id is id-2, the store's is id-1" in (result.reason or "")
        assert result.refusal == "recreated"
        assert list(storage.overlay("s", TASK).scan()) == [(b"b", b"1"), (b"c", b"1")]
    assert restored(tmp_path, log) == NOTHING


def test_a_store_without_store_meta_is_judged_by_offsets(tmp_path: Path) -> None:
    """A directory of Samza's has none; from its first start here it does."""
    log = one_committed(tmp_path)
    (directory_of(tmp_path) / "STORE-META").unlink()
    log.records += [(b"b", b"1"), None]
    log.now_ms = round((directory_of(tmp_path) / "OFFSET-v2").stat().st_mtime * 1000) + 999_000
    assert restored(tmp_path, log) == Restored(RestoreKind.TAIL, 1, 3, 1)
    assert (directory_of(tmp_path) / "STORE-META").is_file()


@pytest.mark.parametrize(
    ("away_ms", "kind"), [(999_999, RestoreKind.TAIL), (1_000_000, RestoreKind.FULL)]
)
def test_a_store_that_was_away_for_too_long_is_rebuilt(
    tmp_path: Path, away_ms: int, kind: RestoreKind
) -> None:
    """Deletions that it has not seen may be gone: what it kept would rise from the dead."""
    log = one_committed(tmp_path)
    log.records = [None, None, (b"b", b"1"), None]  # a was deleted, and even that is compacted away
    log.now_ms += away_ms
    assert restored(tmp_path, log).kind is kind


def test_an_idle_store_stays_fresh(tmp_path: Path) -> None:
    """Each transaction, of whatever task, shows that the store still stands at the head."""
    log = one_committed(tmp_path)
    with running(tmp_path, log) as (storage, _):
        assert storage.flush() == 1  # behind the marker, which no restore flushes
        log.now_ms += 900_000
        assert storage.changes() == []
        storage.apply(S, {})
        assert storage.flush() == 0
    log.records += [(b"b", b"1"), None]
    log.now_ms += 900_000
    assert restored(tmp_path, log).kind is RestoreKind.TAIL


def test_a_store_without_changelog_lives_as_long_as_its_container(tmp_path: Path) -> None:
    """It works in transactions too, and begins empty."""
    log = Log()
    with running(tmp_path, log) as (storage, _):
        storage.overlay("t", TASK).put(b"a", b"1")
        assert storage.size_bytes == 2
        assert storage.changes() == []
        assert storage.size_bytes == 0  # of what is on its way, nothing
        storage.apply(T, {})
        assert storage.overlay("t", TASK).get(b"a") == b"1"
        storage.flush()
    with running(tmp_path, log) as (storage, _):
        assert storage.overlay("t", TASK).get(b"a") is None


def test_an_in_memory_store_is_read_in_full_at_each_start(tmp_path: Path) -> None:
    """R6: no OFFSET of it is written, and what another kind of store left there is removed."""
    log = one_committed(tmp_path)
    config = Config({**CONFIG, "stores.s.factory": "in-memory"})
    for records in (1, 2):
        with running(tmp_path, log, config) as (storage, result):
            assert result == Restored(RestoreKind.FULL, 0, len(log.records) - 1, records)
            assert {f.name for f in directory_of(tmp_path).iterdir()} == {".homeport-lock"}
            transaction(storage, log, b"b", b"1")
            assert not list(storage.first_flushes())
            assert storage.flush() == 0
    assert {f.name for f in directory_of(tmp_path).iterdir()} == {".homeport-lock"}
    with running(tmp_path, log, config) as (storage, _):
        assert list(storage.overlay("s", TASK).scan()) == [(b"a", b"1"), (b"b", b"1")]


def test_a_store_that_is_cleaned_at_the_start_is_read_in_full(tmp_path: Path) -> None:
    """R5: clean.on.container.start; what the directory held before is gone, OFFSET is new."""
    log = one_committed(tmp_path)
    (directory_of(tmp_path) / "left").write_text("x")
    config = Config({**CONFIG, "stores.s.clean.on.container.start": "true"})
    with running(tmp_path, log, config) as (_, result):
        assert result == Restored(RestoreKind.FULL, 0, 1, 1)
        assert not (directory_of(tmp_path) / "left").exists()
        assert (directory_of(tmp_path) / "OFFSET").exists()


def test_two_containers_cannot_have_one_directory(tmp_path: Path) -> None:
    """The second is refused before it touches anything (safety S5)."""
    log = Log()
    held = pytest.raises(StoreError, match="another process has it open")
    with running(tmp_path, log), held:
        storage_of(tmp_path, log).open()


class _Kept:
    """Stands for a task's store: its name, and its engine."""

    def __init__(self, name: str, engine: object) -> None:
        self.name = name
        self.config = self
        self.engine = engine


def test_figures_are_summed_over_the_tasks_of_a_store(tmp_path: Path) -> None:
    """Entries of both tasks together; the cache, which all share, once."""
    memory = RocksDbMemory(8 << 20, 3)
    stores = [RocksDbStore(tmp_path / name, memory) for name in "abc"]
    for number, store in enumerate(stores):
        store.write({b"%d" % key: b"value" for key in range(10 * (number + 1))}, None)
        store.flush()
    kept = [_Kept("s", stores[0]), _Kept("s", stores[1]), _Kept("t", stores[2])]
    kept += [_Kept("m", InMemoryStore()), _Kept("closed", None)]
    found = {(s.name, *s.labels): s.value for s in store_figures(cast("list[TaskStore]", kept))}
    assert found["store_entries", "s"] == 30
    assert found["store_entries", "t"] == 30
    assert found["store_disk_bytes", "s"] > found["store_disk_bytes", "t"] > 0
    assert found["rocksdb_cache_bytes",] > 0
    assert {labels[0] for _, *labels in found if labels} == {"s", "t"}
    assert {name for name, *_ in found} < set(FIGURES)
    for store in stores:
        store.close()
