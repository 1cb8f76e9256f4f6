"""What readers of an adjunct store will see is known before it is written."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from homeport.config.settings.adjunct_section import VersionMarkers
from homeport.config.settings.stores_section import StorageConfig
from homeport.container.adjunct.frames import EntryColumns, FrameError
from homeport.container.adjunct.store_plan import plan_stores
from homeport.container.adjunct.versions import Marker, MarkerKind, Run
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.input_position import InputPosition
from homeport.container.progress.restore import OffsetRange
from homeport.container.storage.adjunct import adjunct_frames
from homeport.container.storage.adjunct.adjunct_frames import AdjunctFrames
from homeport.container.storage.adjunct.adjunct_storage import AdjunctStorage, StreamsNow, write
from homeport.container.storage.directory_lock import NO_WAIT
from homeport.container.storage.storage_engines import StorageEngines
from homeport.container.storage.task_store import passed
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.job_model import SystemStreamPartition, TaskModel
from tests.unit.container.storage.adjunct.adjunct_hosts import CONFIG, NAMES, PLANES

_SSPS = tuple(SystemStreamPartition("kafka", "planes", n) for n in (0, 1))
_CONFIG = CONFIG.merged({"stores.planes.factory": "in-memory"})


def _storage(folder: Path, *, is_bounded: bool, partitions: int) -> AdjunctStorage:
    store = replace(
        PLANES,
        is_kept=False,
        markers=VersionMarkers("version") if is_bounded else None,
        minimum_share_percent=50,
    )
    task = TaskModel(NAMES[0], _SSPS[:partitions], 0)
    plan = plan_stores([store], [task], ProcessorId("0"))
    configs, now = StorageConfig.of(_CONFIG).stores, ClockReading(0)
    found = AdjunctStorage(plan, configs, folder, folder, lambda: now)
    found.open(StorageEngines(1, 1), NO_WAIT, None)
    ranges = dict.fromkeys(_SSPS[:partitions], OffsetRange(0, 0))
    found.recover(StreamsNow(now, {store.stream: "id"}, ranges), lambda *_: InputPosition(0))
    return found


class _Stream:
    """Records and markers of one partition, as a producer of versions writes them."""

    def __init__(self, ssp: SystemStreamPartition, seed: int, *, has_numbers: bool) -> None:
        self._ssp, self._random, self._has_numbers = ssp, random.Random(seed), has_numbers  # noqa: S311 - a test
        self._offset, self._number, self._is_within = 0, 0, False

    def run(self) -> tuple[Run, list[bytes | None], list[bytes | None]]:
        """What one batch has of it."""
        count = self._random.randint(1, 12)
        keys: list[bytes | None] = []
        values: list[bytes | None] = []
        markers: dict[int, Marker | None] = {}
        for index in range(count):
            is_deletion = self._random.random() < 0.1
            keys.append(b"%d" % self._random.randrange(9))
            values.append(None if is_deletion else b"v%d" % (self._offset + index))
            if self._random.random() < 0.2:
                keys[-1] = values[-1] = None
                markers[index] = self._marker()
        offsets = range(self._offset, self._offset + count)
        self._offset += count
        return Run(self._ssp, offsets, [0] * count, markers), keys, values

    def _marker(self) -> Marker:
        if not self._has_numbers:
            return Marker(self._random.choice([MarkerKind.BEGIN, MarkerKind.END, MarkerKind.END]))
        self._is_within = not self._is_within
        self._number += self._is_within
        return Marker(MarkerKind.BEGIN if self._is_within else MarkerKind.END, self._number)


def _cases() -> Iterator[Any]:
    for is_bounded, partitions in ((True, 1), (True, 2), (False, 1), (False, 2)):
        for seed in range(4):
            yield pytest.param(is_bounded, partitions, seed, id=f"{is_bounded}-{partitions}-{seed}")


_FORM = pa.schema({"key": pa.binary(), "value": pa.binary()})


def _binary(data: Sequence[bytes]) -> pa.Array:
    return pa.array(data, pa.binary())


_COLUMNS = {"planes": EntryColumns("planes", _FORM, _binary, _binary)}


@pytest.mark.parametrize(("is_bounded", "partitions", "seed"), [*_cases()])
def test_frames_have_the_predicted_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_bounded: bool, partitions: int, seed: int
) -> None:
    """Whenever a batch asks for them; they keep their number until something changes."""
    monkeypatch.setattr(adjunct_frames, "_MOST_CHANGES", 3)
    storage = _storage(tmp_path, is_bounded=is_bounded, partitions=partitions)
    (store,) = storage.of_name("planes")
    choose = random.Random(seed)  # noqa: S311 - a test
    streams = [_Stream(p, seed + n, has_numbers=partitions > 1) for n, p in enumerate(_SSPS)]
    frames = AdjunctFrames(storage, _COLUMNS, 100_000)
    waiting: deque[tuple[Any, dict[bytes, bytes]]] = deque()
    last, changes = frames.frames()["planes"], 0
    for _ in range(120):
        if len(waiting) < 3 and choose.random() < 0.6:
            for stream in streams[:partitions]:
                store.take(*stream.run())
            layers = storage.sealed()
            frames.taken(layers)
            found = frames.frames()["planes"]
            rows = dict(zip(*(found.rows[n].to_pylist() for n in _FORM.names), strict=True))
            assert (found.number == last.number) is (found is last)
            changes, last = changes + (found is not last), found
            waiting.append((layers, rows))
        elif waiting:
            layers, expected = waiting.popleft()
            write(layers, passed, passed)
            storage.switch_versions(passed, passed, waits=True)
            frames.written(layers)
            assert dict(store.entries.scan()) == expected
    assert changes > (2 if is_bounded else 20)
    storage.close()


def _framed(folder: Path, limit_bytes: int, counts: Sequence[int], *, asks: bool) -> int:
    """Hand frames as many records at a time. Return the bytes of their rows."""
    storage = _storage(folder, is_bounded=False, partitions=1)
    (store,) = storage.of_name("planes")
    frames, first = AdjunctFrames(storage, _COLUMNS, limit_bytes), 0
    try:
        for count in counts:
            offsets = range(first, first + count)
            keys = [b"%d" % offset for offset in offsets]
            store.take(Run(_SSPS[0], offsets, [0] * count), keys, [b"v"] * count)
            frames.taken(storage.sealed())
            if asks:
                assert frames.frames()["planes"].rows.num_rows == first + count
            first += count
    finally:
        storage.close()
    size: int = frames.frames()["planes"].rows.nbytes
    return size


def test_frames_take_the_whole_limit_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is on its way counts as soon as there is much of it, and not only at the next batch."""
    monkeypatch.setattr(adjunct_frames, "_MOST_CHANGES", 2)
    size = _framed(tmp_path, 10_000, (2, 2), asks=True)
    assert _framed(tmp_path, size, (2, 2), asks=True) == size
    with pytest.raises(FrameError, match="planes takes more"):
        _framed(tmp_path, size - 1, (2, 2), asks=True)
    with pytest.raises(FrameError, match="planes takes more"):
        _framed(tmp_path, 1, (3,), asks=False)
