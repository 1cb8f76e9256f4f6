"""Directories of adjunct stores as they are seen beside their owner."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from homeport.config.config import Config
from homeport.config.errors import StoreError
from homeport.config.settings.adjunct_section import VersionMarkers
from homeport.config.settings.stores_section import StorageConfig
from homeport.container.adjunct.recovery import META_FILE, NO_STORE, expected_meta
from homeport.container.adjunct.store_plan import PlannedStore, StorePlan, plan_stores
from homeport.container.adjunct.version_text import CATALOGUE_FILE
from homeport.container.adjunct.versions import Marker, MarkerKind, Run
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.input_position import InputPosition, InputRange
from homeport.container.progress.refusal import RefusalReason
from homeport.container.storage.adjunct.adjunct_storage import AdjunctStorage, StreamsNow, write
from homeport.container.storage.adjunct.store_look import VisibleView, is_adjunct, look
from homeport.container.storage.directory_lock import NO_WAIT
from homeport.container.storage.storage_engines import StorageEngines
from homeport.container.storage.task_store import passed
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition, TaskModel
from tests.unit.container.adjunct.adjuncts import PLANES

_TASK = TaskName("Partition 0")
_P0 = SystemStreamPartition("kafka", "planes", 0)
_CONFIG = Config(
    {
        "stores.planes.factory": "rocksdb",
        "stores.planes.key.serde": "string",
        "stores.planes.msg.serde": "string",
        "stores.planes.adstore.input": "kafka.planes",
    }
)


class _Case:
    """One store of one task, whose container runs."""

    def __init__(self, root: Path, *, is_bounded: bool) -> None:
        markers = VersionMarkers(header="version") if is_bounded else None
        store = replace(PLANES, is_bootstrap=True, markers=markers)
        plan: StorePlan = plan_stores([store], [TaskModel(_TASK, (_P0,), 0)], ProcessorId("0"))
        self.planned: PlannedStore = plan.stores[0]
        self.path = root / self.planned.directory
        self.storage = AdjunctStorage(
            plan, StorageConfig.of(_CONFIG).stores, root, root, lambda: ClockReading(5_000)
        )
        self.storage.open(StorageEngines(32 << 20, 1), NO_WAIT, None)
        ids, ranges = {store.stream: "id"}, {_P0: InputRange(0, 9)}
        streams = StreamsNow(ClockReading(5_000), ids, ranges)
        self.storage.recover(streams, lambda *_: InputPosition(0))

    def take(self, *values: bytes, first: int = 0, ends: bool = False) -> None:
        """Keys k<offset>; ``ends``: the last one is the marker of an end. All is flushed."""
        sink = self.storage.of_task(_TASK).adjunct("planes")
        assert sink is not None
        offsets = list(range(first, first + len(values)))
        markers = {len(values) - 1: Marker(MarkerKind.END)} if ends else {}
        keys = [b"k%d" % offset for offset in offsets]
        sink.take(Run(_P0, offsets, [1_000] * len(offsets), markers), keys, list(values))
        write(self.storage.sealed(), passed, passed)
        self.storage.switch_versions(passed, passed)
        self.storage.flush(passed, passed)

    def seen(self) -> dict[bytes, bytes]:
        """What tasks see, read beside the container."""
        view = VisibleView(self.path, "rocksdb")
        try:
            assert view.position is None
            found = dict(view.scan())
            assert all(view.get(key) == value for key, value in found.items())
            return found
        finally:
            view.close()


def test_a_store_is_seen_as_it_was_flushed(tmp_path: Path) -> None:
    """Without reserved entries; its position is that of each partition."""
    case = _Case(tmp_path, is_bounded=False)
    case.take(b"737", b"A320")
    assert is_adjunct(case.path)
    assert case.seen() == {b"k0": b"737", b"k1": b"A320"}
    found = look(case.path, case.planned, "rocksdb")
    assert found.facts is not None
    assert (found.facts.records, found.facts.positions, found.found.fault) == (2, {_P0: 2}, None)
    assert (found.found.meta, found.found.newest_ms) == (
        replace(expected_meta(case.planned.store, "id"), at_head=ClockReading(5_000)),
        5_000,
    )
    case.storage.close()


def test_the_version_that_tasks_see_is_read(tmp_path: Path) -> None:
    """Before there is one, nothing; what is built beside it moves the position alone."""
    case = _Case(tmp_path, is_bounded=True)
    case.take(b"737")
    with pytest.raises(StoreError, match="the store has no whole version yet"):
        case.seen()
    case.take(b"A320", b"", first=1, ends=True)
    case.take(b"new", first=3)
    assert case.seen() == {b"k0": b"737", b"k1": b"A320"}
    found = look(case.path, case.planned, "rocksdb").facts
    assert found is not None
    assert (found.records, found.version, found.positions) == (2, 1, {_P0: 4})
    assert found.age_s(3_000) == 2.0
    case.storage.close()
    (case.path / CATALOGUE_FILE).unlink()
    fault = look(case.path, case.planned, "rocksdb").found.fault
    assert fault is not None
    assert "CATALOGUE is missing" in fault.story


def test_what_is_no_store_has_its_reason(tmp_path: Path) -> None:
    """Nothing there, a damaged file, and a folder that no container made."""
    case = _Case(tmp_path, is_bounded=False)
    case.storage.close()
    (case.path / META_FILE).write_bytes(b"damage")
    found = look(case.path, case.planned, "rocksdb").found
    assert found.fault is not None
    assert found.fault.reason is RefusalReason.DAMAGED_META
    (tmp_path / "empty").mkdir()
    assert look(tmp_path / "empty", case.planned, "rocksdb").found == NO_STORE
    assert not is_adjunct(tmp_path / "empty")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "CURRENT").write_bytes(b"nothing\n")
    found = look(tmp_path / "foreign", case.planned, "rocksdb").found
    assert found.fault is not None
    assert found.fault.reason is RefusalReason.DAMAGED_STORE
