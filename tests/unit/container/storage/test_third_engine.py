"""A third engine: its own module and one entry in the table are all that it needs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from storage_engine_conformance import StorageEngineConformance
from stores_in_memory_log import CONFIG, NOTHING, TASK, Log, directory_of, running, transaction
from toy_engine import TOY, TOY_FILE, ToyStore, register

from homeport.cli.host import state_dump, state_verify
from homeport.config.errors import StoreError
from homeport.config.settings.stores_section import StorageConfig
from homeport.container.engine.storage_engine import StorageEngine
from homeport.container.native.record_queue import Pairs
from homeport.container.restore.restore_worker import RestoreWorker, WorkerBrief
from homeport.container.storage.host_survey import state_found
from homeport.container.storage.storage_engines import view_of
from homeport.job_coordinator.model.job_model import TaskModel
from homeport.job_coordinator.model.outcomes import RestoreKind

TOYS = CONFIG.merged({"stores.s.factory": TOY})


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch)


class TestToyStore(StorageEngineConformance):
    """As the engines of the product."""

    @pytest.fixture
    def engine(self, tmp_path: Path) -> StorageEngine:
        """A new store."""
        return ToyStore(tmp_path)


def _flushed(folder: Path) -> Log:
    """The log of a store that a container has left with one record."""
    log = Log()
    with running(folder, log, TOYS) as (storage, _):
        transaction(storage, log, b"a", b"1")
        assert storage.flush() == 1
    return log


def test_a_task_s_store_is_changed_flushed_and_found_again(tmp_path: Path) -> None:
    """The next container reads nothing of the changelog."""
    log = _flushed(tmp_path)
    assert (directory_of(tmp_path) / TOY_FILE).exists()
    with running(tmp_path, log, TOYS) as (storage, restored):
        assert restored == NOTHING
        assert list(storage.overlay("s", TASK).scan()) == [(b"a", b"1")]


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"{")])
def test_damage_is_found_and_the_store_read_in_full(tmp_path: Path, damage: Any) -> None:  # noqa: ANN401 - of a path
    """The file is missing, or the engine cannot open it."""
    log = _flushed(tmp_path)
    damage(directory_of(tmp_path) / TOY_FILE)
    with running(tmp_path, log, TOYS) as (storage, restored):
        assert restored.kind is RestoreKind.FULL
        assert list(storage.overlay("s", TASK).scan()) == [(b"a", b"1")]


def test_the_tools_read_its_files(tmp_path: Path) -> None:
    """Survey, dump, and the comparison of directories, whose engine is known by its files."""
    _flushed(tmp_path)
    path = directory_of(tmp_path)
    store = StorageConfig.of(TOYS).stores["s"]
    found = state_found(path, store, TaskModel(TASK, (), 0))
    assert (found.fault, found.position) == (None, 0)
    with contextlib.closing(view_of(path)) as view:
        serdes = state_dump.serdes_of(store)
        lines = state_dump.lines(view, serdes, state_dump.Query(), None, as_json=False)
        assert list(lines) == ["a = 1"]
    assert state_verify._pair(path, [path]).is_equal


class _Reader:
    """Two records of a changelog."""

    def __init__(self, *, native: bool) -> None:
        self._native = native

    def read_pairs(self, *_place: object, native: bool) -> Iterator[Pairs]:
        assert native is self._native
        yield Pairs([b"k0", b"k1"], [b"v", b"v"], [0, 1])

    def close(self) -> None:
        pass


@pytest.mark.parametrize("native", [True, False])
def test_a_restore_worker_fills_a_store_of_a_third_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, native: bool
) -> None:
    """It stands at the head when the worker ends; the job's key has it read in Python."""
    monkeypatch.setattr(RestoreWorker, "_reader", lambda _: _Reader(native=native))
    keys = dict(TOYS) if native else {**TOYS, "task.input.native": "false"}
    brief = WorkerBrief(keys, "s", "kafka", "log", 0, 0, 3, str(tmp_path), 128, 1, 5.0, 1)
    assert RestoreWorker(brief).run() == 0
    with contextlib.closing(ToyStore(tmp_path)) as store:
        assert store.position == 2
        assert store.get_all([b"k0", b"k1"]) == [b"v", b"v"]


def test_files_of_no_engine_are_the_first_one_s(tmp_path: Path) -> None:
    """The error says what is missing."""
    with pytest.raises(StoreError, match="there is no RocksDB store here: no CURRENT"):
        view_of(tmp_path)
