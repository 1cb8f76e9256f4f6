"""Stores that stay open between two runs of one process; a log in memory stands for Kafka."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stores_in_memory_log import (
    CONFIG,
    TASK,
    Log,
    S,
    directory_of,
    one_committed,
    opened,
    restored,
    storage_of,
    transaction,
)

from homeport.config.config import Config
from homeport.config.errors import StoreError
from homeport.container.host.run_over import RunOverError
from homeport.container.serde.serdes import serde
from homeport.container.storage.container_storage import ContainerStorage
from homeport.container.storage.directory_lock import DirectoryHeldError, lock_holder
from homeport.container.storage.kept_stores import KeptStores
from homeport.container.storage.storage_engines import StorageEngines
from homeport.container.storage.typed_store import TypedStore
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import TaskModel
from homeport.job_coordinator.model.outcomes import RestoreKind


def _rests(storage: ContainerStorage, *tasks: TaskName) -> None:
    """The run ends, and these tasks stay."""
    storage.stay(tasks)
    storage.flush()
    storage.close()


def _opening(folder: Path) -> int:
    """Names the last time that RocksDB opened the store for writing: it begins a log then."""
    return (directory_of(folder) / "LOG").stat().st_ino


def _next(folder: Path, log: Log, kept: KeptStores, config: Config = CONFIG) -> ContainerStorage:
    """The stores of the next run, open and restored."""
    storage = storage_of(folder, log, config)
    storage.kept = kept
    storage.open()
    assert storage.restore(log, log, log)["s"][TASK].kind is not RestoreKind.FULL
    return storage


def test_the_store_of_a_task_that_stays_is_not_opened_again(tmp_path: Path) -> None:
    """It is taken over with what was not flushed; what others wrote meanwhile is read."""
    log = one_committed(tmp_path)
    first, _ = opened(tmp_path, log)
    transaction(first, log, b"k", b"1")
    opening = _opening(tmp_path)
    for number in range(3):
        transaction(first, log, b"k%d" % number, b"1")
        engine, offset = first._of(S).engine, (directory_of(tmp_path) / "OFFSET").read_bytes()
        _rests(first, TASK)
        assert first.kept.engines() is first._engines
        assert (directory_of(tmp_path) / "OFFSET").read_bytes() == offset
        log.records += [(b"other%d" % number, b"2"), None]
        first = _next(tmp_path, log, first.kept)
        assert first._of(S).engine is engine
        assert first.overlay("s", TASK).get(b"k%d" % number) == b"1"
        assert first.overlay("s", TASK).get(b"other%d" % number) == b"2"
    assert _opening(tmp_path) == opening
    first.close()
    again, result = opened(tmp_path, log)
    assert result.records == 0
    transaction(again, log, b"k", b"2")
    assert _opening(tmp_path) != opening
    again.close()


def test_code_of_an_ended_run_is_refused(tmp_path: Path) -> None:
    """Each call of the store that it has, reads too: they would see another run's transaction."""
    log = one_committed(tmp_path)
    first, _ = opened(tmp_path, log)
    text = serde("string")
    store = TypedStore(first.overlay("s", TASK), text, text)
    pairs = store.all()
    store.put("a", "2")
    _rests(first, TASK)
    second = _next(tmp_path, log, first.kept)
    calls: list[Any] = [
        lambda: store.get("a"),
        lambda: store.get_all(["a"]),
        lambda: store.put("a", "3"),
        lambda: store.put_all({"a": "3"}),
        lambda: store.delete("a"),
        lambda: store.delete_all(["a"]),
        lambda: list(store.all()),
        lambda: list(store.prefix("a")),
    ]
    for call in calls:
        with pytest.raises(RunOverError, match="that run has ended"):
            call()
    assert list(pairs) == []
    assert second.overlay("s", TASK).get(b"a") == b"1"
    assert second.changes() == []
    second.close()


def test_what_is_not_wanted_is_closed_and_flushed(tmp_path: Path) -> None:
    """Before anything is opened: another process may wait for the lock."""
    log = one_committed(tmp_path)
    first, _ = opened(tmp_path, log)
    transaction(first, log, b"b", b"1")
    _rests(first, TASK)
    with pytest.raises(DirectoryHeldError):
        storage_of(tmp_path, log).open()
    other = storage_of(tmp_path, log)
    other.tasks, other.kept = [TaskModel(TaskName("Partition 7"), (), 7)], first.kept
    other.close_others()
    assert lock_holder(directory_of(tmp_path)) is None
    assert (directory_of(tmp_path) / "OFFSET").read_bytes().endswith(b"2")
    assert restored(tmp_path, log).records == 0


def test_a_store_that_is_lost_is_flushed_at_the_change(tmp_path: Path) -> None:
    """Its next owner may find it; a failure of a flush is one of the run."""
    log = one_committed(tmp_path)
    first, _ = opened(tmp_path, log)
    transaction(first, log, b"b", b"1")
    _rests(first, TaskName("another"))
    assert lock_holder(directory_of(tmp_path)) is None
    assert restored(tmp_path, log).records == 0
    second, _ = opened(tmp_path, log)
    transaction(second, log, b"c", b"1")
    second.stay([TaskName("another")])

    def full(_step: object) -> None:
        raise StoreError("no room")

    with pytest.raises(StoreError, match="no room"):
        second.flush(full)
    second.close()


def test_stores_that_begin_empty_never_stay(tmp_path: Path) -> None:
    """Without a changelog, or to be cleaned at a start; nor one that was never flushed."""
    log = one_committed(tmp_path)
    first, _ = opened(tmp_path, log)
    first.overlay("t", TASK).put(b"a", b"1")
    first.changes()
    item = first._of(S)
    assert item.may_stay
    assert not replace(item, config=replace(item.config, clean_on_start=True)).may_stay
    assert not replace(item, config=replace(item.config, changelog=None)).may_stay
    assert not replace(item, flushed_offset=None).may_stay
    assert not replace(item, engine=None).may_stay
    item.overlay = None
    first.close()


def test_a_store_serves_its_own_configuration_and_task_alone(tmp_path: Path) -> None:
    """Its inputs may grow; its place in the changelog stays."""
    log = one_committed(tmp_path)
    first, _ = opened(tmp_path, log)
    item = first._of(S)
    assert item.serves(item.config, TaskModel(TASK, (), 0))
    assert not item.serves(item.config, TaskModel(TASK, (), 1))
    assert not item.serves(item.config, TaskModel(TaskName("x"), (), 0))
    assert not item.serves(replace(item.config, changelog=None), item.task)
    first.close()


@pytest.mark.parametrize(
    ("shares", "serves"),
    [
        ((8, 4, 2), True),
        ((8, 8, 4), True),
        ((8, 2, 1), True),
        ((8, 9, 2), False),
        ((8, 4, 5), False),
        ((8, 1, 1), False),
        ((9, 4, 2), False),
    ],
)
def test_engines_serve_about_as_many_stores_in_the_same_memory(
    shares: tuple[int, int, int], *, serves: bool
) -> None:
    """The parts of many would be too small for few, and those of few too large for many."""
    assert StorageEngines(8, 4, 2).serves(*shares) is serves


def test_stores_of_a_container_of_another_size_are_opened_again(tmp_path: Path) -> None:
    """They share one memory with the others."""
    log = one_committed(tmp_path)
    first, _ = opened(tmp_path, log)
    engine = first._of(S).engine
    _rests(first, TASK)
    second = storage_of(tmp_path, log)
    second.kept, second.memory_bytes = first.kept, first.memory_bytes * 2
    second.open()
    second.restore(log, log, log)
    assert second._of(S).engine is not engine
    second.close()


def test_a_store_that_has_failed_is_closed_without_a_new_offset(tmp_path: Path) -> None:
    """That would hide its damage from the next start."""
    log = one_committed(tmp_path)
    first, _ = opened(tmp_path, log)
    transaction(first, log, b"b", b"1")
    offset = (directory_of(tmp_path) / "OFFSET").read_bytes()
    _rests(first, TASK)
    first._engines._failures[directory_of(tmp_path)] = StoreError("damaged")
    first.kept.close()
    assert lock_holder(directory_of(tmp_path)) is None
    assert (directory_of(tmp_path) / "OFFSET").read_bytes() == offset
