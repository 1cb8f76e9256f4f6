"""Versions on real RocksDB whose flushes, catalogues and removals go on beside the batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from homeport.config.config import Config
from homeport.config.errors import StoreError
from homeport.config.settings.adjunct_section import VersionMarkers
from homeport.config.settings.stores_section import StorageConfig
from homeport.container.adjunct.steps import SWITCH_STEPS, AdjunctAction
from homeport.container.adjunct.store_plan import plan_stores
from homeport.container.adjunct.versions import Marker, MarkerKind, Run
from homeport.container.host.executors import complete
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.input_position import InputPosition, InputRange
from homeport.container.storage.adjunct.adjunct_storage import AdjunctStorage, StreamsNow, write
from homeport.container.storage.directory_lock import NO_WAIT
from homeport.container.storage.storage_engines import StorageEngines
from homeport.container.storage.task_store import passed
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition, TaskModel
from tests.unit.container.adjunct.adjuncts import adjunct

_TASK = TaskName("Partition 0")
_P0 = SystemStreamPartition("kafka", "planes", 0)
_PLANES = replace(
    adjunct("planes", is_broadcast=False),
    is_bootstrap=True,
    markers=VersionMarkers(header="version"),
)
_CONFIG = Config(
    {
        "stores.planes.factory": "rocksdb",
        "stores.planes.key.serde": "string",
        "stores.planes.msg.serde": "string",
        "stores.planes.adstore.input": "kafka.planes",
    }
)
_FLUSH, _CATALOGUE, _SWITCH, _DROP = SWITCH_STEPS


class _Later:
    """Implements ``Executor``: a call is made when it is waited for, or by ``make``."""

    def __init__(self) -> None:
        self.calls: list[tuple[Future[Any], Callable[[], Any]]] = []
        self.failure: StoreError | None = None

    def submit(self, function: Callable[[], Any]) -> Future[Any]:
        """The call waits."""
        self.calls.append((Future(), self._fail if self.failure else function))
        return self.calls[-1][0]

    def _fail(self) -> None:
        assert self.failure is not None
        raise self.failure

    def wait(self, call: Future[Any], timeout_s: float) -> None:
        """The call, and all before it, are made."""
        assert timeout_s > 0
        while not call.done():
            self.make()

    def make(self) -> None:
        """The oldest call is made."""
        complete(*self.calls.pop(0))

    def close(self) -> None:
        """Every call was waited for."""
        assert self.calls == []

    def is_over(self, limit_s: float) -> bool:
        """No call is left."""
        assert limit_s >= 0
        return self.calls == []


class _Host:
    """One host with one task's store, whose container runs from ``start`` to ``close``."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.folder = root / "planes" / "Partition_0"
        self.start()

    def start(self) -> None:
        """The container has begun."""
        self.beside = _Later()
        plan = plan_stores([_PLANES], [TaskModel(_TASK, (_P0,), 0)], ProcessorId("0"))
        configs, root = StorageConfig.of(_CONFIG).stores, self._root
        now = ClockReading(5_000)
        self.storage = AdjunctStorage(plan, configs, root, root, lambda: now, self.beside)
        self.storage.open(StorageEngines(32 << 20, 1), NO_WAIT, None)
        ranges = {_P0: InputRange(0, 99)}
        streams = StreamsNow(now, {_PLANES.stream: "id"}, ranges)
        self.storage.recover(streams, lambda *_: InputPosition(0))
        self.entries = self.storage.entries("planes", _TASK)

    def version(self, first: int, value: bytes) -> list[AdjunctAction]:
        """Key ``k`` of one version and its end, from offset ``first`` on; the steps that ended."""
        sink = self.storage.of_task(_TASK).adjunct("planes")
        assert sink is not None
        end: dict[int, Marker | None] = {1: Marker(MarkerKind.END)}
        sink.take(Run(_P0, [first, first + 1], [0, 0], end), [b"k", None], [value, None])
        write(self.storage.sealed(), passed, passed)
        return self.settle()

    def settle(self) -> list[AdjunctAction]:
        """The steps that ended, once the store has settled what is ready."""
        ended: list[AdjunctAction] = []
        self.storage.switch_versions(lambda step: ended.append(step.action), passed)
        return ended

    @property
    def seen(self) -> bytes | None:
        """What a task sees of the key."""
        return self.entries.get(b"k")

    @property
    def folders(self) -> list[str]:
        """The versions on the disk."""
        return sorted(path.name for path in self.folder.glob("v*"))


@pytest.fixture
def host(tmp_path: Path) -> Iterator[_Host]:
    """Its container runs; it is closed in the end."""
    found = _Host(tmp_path)
    yield found
    found.storage.close()


def test_a_version_is_shown_once_it_and_the_catalogue_are_on_the_disk(host: _Host) -> None:
    """No call for that is the loop's; the first one is waited for until then."""
    assert host.version(0, b"1") == host.settle() == []
    host.beside.make()
    assert host.settle() == [_FLUSH]
    awaited = "adjunct store planes/Partition_0: version 1 is not on the disk yet"
    assert (host.seen, host.storage.holds_back()) == (None, awaited)
    (_, facts), *_ = host.storage.facts()
    assert (facts.version, facts.records) == (None, 0)
    host.beside.make()
    assert host.settle() == [_CATALOGUE, _SWITCH]
    assert (host.seen, host.storage.holds_back()) == (b"1", None)
    (_, facts), *_ = host.storage.facts()
    assert (facts.version, facts.records) == (1, 1)


def test_the_old_version_goes_beside_the_batches_and_its_scans_end(host: _Host) -> None:
    """What follows meanwhile waits for its turn."""
    host.version(0, b"1")
    for _ in (_FLUSH, _CATALOGUE):
        host.beside.make()
        host.settle()
    scan = host.entries.scan()
    assert next(scan) == (b"k", b"1")
    assert host.version(2, b"2") == host.version(4, b"3") == []
    host.beside.make()
    assert host.settle() == [_FLUSH]
    assert (host.seen, host.folders) == (b"1", ["v1", "v2", "v3"])
    host.beside.make()
    assert host.settle() == [_CATALOGUE, _SWITCH]
    assert (host.seen, list(scan), host.folders) == (b"2", [], ["v1", "v2", "v3"])
    host.beside.make()
    assert host.settle() == [_DROP]
    assert host.folders == ["v2", "v3"]


def test_what_is_waited_for_is_shown(host: _Host) -> None:
    """So is the last of several versions."""
    host.version(0, b"1")
    host.version(2, b"2")
    host.storage.switch_versions(passed, passed, waits=True)
    assert host.seen == b"2"


def test_a_flush_of_the_store_and_its_close_wait_for_what_goes_on_beside(host: _Host) -> None:
    """A start finds all of it."""
    host.version(0, b"1")
    assert host.storage.flush(passed, passed) == 1
    assert host.settle() == [_FLUSH]
    host.version(2, b"2")
    host.storage.close()
    assert (host.folder / "CATALOGUE").exists()
    host.start()
    while host.beside.calls:
        host.beside.make()
        host.settle()
    assert (host.seen, host.folders) == (b"2", ["v2"])


def test_a_flush_beside_the_batches_that_fails_ends_the_container(host: _Host) -> None:
    """With the error of the flush, at the next batch; no task has seen the version."""
    host.beside.failure = StoreError("no room is left")
    host.version(0, b"1")
    host.beside.make()
    with pytest.raises(StoreError, match="no room is left"):
        host.settle()
    assert host.seen is None
