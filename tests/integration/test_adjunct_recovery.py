"""Each cell of ADJUNCT's two tables of recovery, in a real container before a real broker.

Of ten planes the first run stores all. The second one begins with the store as the cell says, and
an eleventh plane comes. What tasks find of the first ten says where the stream was read from.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
from compacted_topics import delete_before, quick_cleaner, until_compacted
from stream_containers import Job, Make, Running
from suites import long

from homeport.config.config import Config
from homeport.container.adjunct.recovery import META_FILE

_PLANES = 10
_LOOK = """
from homeport.container.api import BatchTask

class Counter(BatchTask):
    def init(self, context):
        self.planes = context.store("planes")

    def process_batch(self, table, collector):
        for tail in table["key"].to_pylist():
            found = self.planes.get(tail.decode()) or "nothing"
            collector.send("out", found.encode(), tail)
"""
_MEMORY = "org.apache.samza.storage.kv.inmemory.InMemoryKeyValueStorageEngineFactory"
_KEYS = {
    "task.inputs": "kafka.<job>-in, kafka.<job>-planes",
    "task.commit.ms": "100",
    "stores.planes.factory": "rocksdb",
    "stores.planes.key.serde": "string",
    "stores.planes.msg.serde": "string",
    "stores.planes.adstore.input": "kafka.<job>-planes",
}
_DAYS_S = 2 * 86_400


JOBS = {"code": _LOOK, "common": _KEYS, "also": {"planes": 2}}
"""Of ``make``: a job that looks its planes up."""
_MARK = "systems.kafka.streams.<job>-planes.samza.bootstrap"


@pytest.fixture
def made(request: pytest.FixtureRequest, make: Make) -> Job:
    """A job whose store is so: whether its stream is marked for bootstrap, and its factory."""
    is_marked, factory = request.param
    return make(**{_MARK: str(is_marked).lower()}, stores_planes_factory=factory)


def _plane(job: Job, number: int) -> None:
    job.produce([(number % 2, b"N%d" % number, b"model %d" % number)], "planes")


def _found(job: Job, container: Running, number: int) -> str:
    before = len(job.read(job.topic("out")))
    job.produce([(number % 2, b"N%d" % number, b"")])
    job.until(lambda: len(job.read(job.topic("out"))) > before, container)
    return [(v or b"").decode() for k, v in job.read(job.topic("out")) if k == b"N%d" % number][-1]


def _until_found(job: Job, container: Running, number: int) -> None:
    job.until(lambda: _found(job, container, number) == f"model {number}", container)


def _root(job: Job) -> Path:
    return job.folder / "stores" / f"{job.config['job.name']}-1" / "planes"


def _grow_old(job: Job) -> None:
    """Its files were last written two days ago; they may be so for one."""
    then = time.time() - _DAYS_S
    changed = [path for path in _root(job).rglob("*") if path.is_file()]
    assert any(path.name == META_FILE for path in changed)
    for path in changed:
        os.utime(path, (then, then))


def _keys_of(job: Job, container: Running) -> list[str]:
    found = {n: _found(job, container, n) for n in range(_PLANES)}
    return [f"N{n}" for n, model in found.items() if model != "nothing"]


def test_a_deletion_that_was_compacted_away_does_not_come_back(kafka: str, make: Make) -> None:
    """The store is a moment old, and its stream keeps deletions for a second (safety S2).

    Nothing in the stream mentions the key any more, and the store has it.
    """
    with quick_cleaner(kafka):
        job = make(**{_MARK: "true"})
        for number in range(_PLANES):
            _plane(job, number)
        first = job.start(1)
        job.until(lambda: len(_keys_of(job, first)) == _PLANES, first)
        assert first.stop() == 143
        job.produce([(0, b"N2", None)], "planes")
        until_compacted(job, {b"N2"}, "planes", b"filler")
        second = job.start(2, fence=[1])
        assert _keys_of(job, second) == [f"N{n}" for n in range(_PLANES) if n != 2]
        text = second.log.read_text(encoding="utf-8")
        assert "adjunct store planes/Partition_0 is filled again: it last stood at" in text
        assert second.stop() == 143


_SHOWN = _LOOK.replace('or "nothing"', "").replace("found.encode()", "repr(found).encode()")


def test_a_store_is_filled_again_for_another_serde(make: Make) -> None:
    """Read as JSON, the text that lies there would be a number."""
    own = {"systems.kafka.streams.<job>-planes.samza.msg.serde": "string"}
    job = make(_SHOWN, **own)
    job.produce([(0, b"N2", b"7")], "planes")
    first = job.start(1)
    job.until(lambda: _found(job, first, 2) == "'7'", first)
    assert first.stop() == 143
    model = job.served.backend.model
    changed = Config({**model.config, "stores.planes.msg.serde": "json"})
    job.served.backend.model = replace(model, config=changed)
    second = job.start(2, fence=[1])
    job.until(lambda: _found(job, second, 2) == "'7'", second)
    text = second.log.read_text(encoding="utf-8")
    assert "filled again: its string and string are read as string and json now" in text
    assert second.stop() == 143


def test_a_gap_in_its_stream_ends_a_container_and_the_next_start_fills_the_store(
    make: Make,
) -> None:
    """The container stood still while retention took what it had not read."""
    job = make(policy="delete", **{_MARK: "true"}, systems_kafka_input_lost="earliest")
    for number in range(4):
        _plane(job, number)
    first = job.start(1)
    _until_found(job, first, 2)
    os.kill(first.process.pid, signal.SIGSTOP)
    # The answer to what it has asked for is on its way: the rest comes after that.
    job.produce([(0, b"N0", b"model 0")], "planes")
    job.produce([(0, b"N%d" % number, b"gone") for number in (2, 4, 6)], "planes")
    job.produce([(0, b"N8", b"model 8")], "planes")
    delete_before(job, "planes", 6)
    os.kill(first.process.pid, signal.SIGCONT)
    expected = r"cannot follow its stream .* partition 0 any more: \d records were deleted before"
    assert re.search(expected, first.last_line())
    second = job.start(2, fence=[1])
    _until_found(job, second, 8)
    assert [_found(job, second, number) for number in (0, 2)] == ["nothing", "nothing"]
    assert "whose oldest is 6" in second.log.read_text(encoding="utf-8")
    assert second.stop() == 143


MARKED, NOT_MARKED = (True, "rocksdb"), (False, "rocksdb")
CELLS = [
    long(MARKED, "absent", "found", "is new: its stream"),
    (MARKED, "not valid", "found", "is filled again: "),
    long(MARKED, "valid", "found", "is kept: its stream"),
    long(NOT_MARKED, "absent", "not found", "is new: its stream"),
    (NOT_MARKED, "not valid", "not found", "is filled again: "),
    long(NOT_MARKED, "valid", "found", "is kept: its stream"),
    long((True, _MEMORY), "absent", "found", "is new: its stream"),
    long((False, _MEMORY), "absent", "not found", "is new: its stream"),
]


@pytest.mark.parametrize(("made", "store", "old", "wording"), CELLS, indirect=["made"])
def test_a_cell_of_the_tables(made: Job, store: str, old: str, wording: str) -> None:
    """Marked: all of the stream, or the rest of it; else from the last offset, or the store's."""
    for number in range(_PLANES):
        _plane(made, number)
    first = made.start(1)
    for number in (_PLANES - 2, _PLANES - 1):
        _until_found(made, first, number)
    assert first.stop() == 143
    if store == "absent":
        shutil.rmtree(_root(made), ignore_errors=True)
    elif store == "not valid":
        _grow_old(made)

    for number in (_PLANES, _PLANES + 1):
        _plane(made, number)
    second = made.start(2, fence=[1])
    for number in (_PLANES, _PLANES + 1):
        _until_found(made, second, number)
    expected = ["model 0", "model 1"] if old == "found" else ["nothing", "nothing"]
    assert [_found(made, second, number) for number in (0, 1)] == expected
    text = second.log.read_text(encoding="utf-8")
    assert text.count(wording) == 2  # one for each task's part
    assert second.stop() == 143
