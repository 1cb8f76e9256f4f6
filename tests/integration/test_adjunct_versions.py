"""Bounded data sets in a real container process: versions that a real broker brings.

``airlines`` is one partition, and its versions are counted; ``codes`` is two, and its versions have
numbers. Each entry of a version has the version's name as its value.
"""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from check_history.judge import main as judge
from compacted_topics import delete_before
from stopped_container import write_plan
from stream_containers import DEADLINE_S, Job, Make, Running
from suites import long
from topic_records import alter

from homeport.container.adjunct.steps import AdjunctAction
from homeport.container.progress.transaction_plan import RESERVED_PREFIX
from homeport.container.rocksdb.rocksdb_view import RocksDbView

_SIZE = 50
_ALL = range(_SIZE)
_HEADER = "version"
_JOIN = """
import os
from homeport.container.api import BatchTask

class Counter(BatchTask):
    def init(self, context):
        self.airlines, self.codes = context.store("airlines"), context.store("codes")
        self.counts, self.batch = context.store("counts"), 0

    def process_batch(self, table, collector):
        self.batch += 1
        keys = table["key"].cast("string")
        airlines, codes = (s.get_arrow(keys).to_pylist() for s in (self.airlines, self.codes))
        for key, airline, code in zip(keys.to_pylist(), airlines, codes):
            # Once more, at another moment of the same batch.
            assert (self.airlines.get(key), self.codes.get(key)) == (airline, code)
            self.counts.put(key, (self.counts.get(key) or 0) + 1)
            row = f"{os.getpid()} {self.batch} {airline} {code} {self.counts.get(key)}"
            collector.send("out", row.encode(), key.encode())
"""
_PIPED = """
import os
from homeport.container.api import BatchTask

class Counter(BatchTask):
    def init(self, context):
        self.airlines, self.codes = context.store("airlines"), context.store("codes")
        self.counts, self.batch = context.store("counts"), 0

    def process_batch(self, table, collector):
        self.batch += 1
        for row in table.to_pylist():
            key, found = row["key"].decode(), (row["airline"], row["code"])
            # The pipeline has joined with what this task finds now.
            assert found == (self.airlines.get(key), self.codes.get(key)), (row, found)
            self.counts.put(key, (self.counts.get(key) or 0) + 1)
            text = f"{os.getpid()} {self.batch} {found[0]} {found[1]} {self.counts.get(key)}"
            collector.send("out", text.encode(), row["key"])
"""
_SQL = """
SELECT i.key, a.value AS airline, c.value AS code FROM input i
LEFT JOIN airlines a ON CAST(i.key AS STRING) = a.key
JOIN codes c ON CAST(i.key AS STRING) = c.key
"""
_KEYS = {
    "task.broadcast.inputs": "kafka.<job>-airlines#0, kafka.<job>-codes#[0-1]",
    "task.commit.ms": "200",
    "stores.airlines.adstore.version.marker.header": _HEADER,
    "stores.airlines.adstore.version.minimum.share.percent": "60",
    "stores.airlines.adstore.version.late.ms": "10000",  # a first version is awaited so long, too
    "stores.codes.adstore.version.marker.key": "version",
    **{
        f"stores.{store}.{key}": value
        for store in ("airlines", "codes")
        for key, value in {
            "factory": "rocksdb",
            "key.serde": "string",
            "msg.serde": "string",
            "adstore.input": f"kafka.<job>-{store}",
        }.items()
    },
    "systems.kafka.streams.<job>-airlines.samza.bootstrap": "true",
    "systems.kafka.streams.<job>-codes.samza.bootstrap": "true",
}

_Row = tuple[tuple[str, ...], tuple[str, str], str, int]
"""(Process, task and batch), the two versions seen, the airline, and its count of flights."""


JOBS = {"code": _JOIN, "common": _KEYS, "also": {"airlines": 1, "codes": 2}, "policy": "delete"}
"""Of ``make``: two tasks, which share both stores."""


@pytest.fixture
def job(make: Make) -> Job:
    """A job whose tasks join with both stores."""
    return make()


def _start(job: Job, epoch: int) -> Running:
    return job.start(epoch, list(range(1, epoch)), program="stopped_container")


def _mark(job: Job, text: str) -> None:
    job.produce([(0, b"", b"")], "airlines", [(_HEADER, text.encode())])


def _name(job: Job, name: str, keys: Sequence[int] = _ALL) -> None:
    job.produce([(0, b"%d" % n, name.encode()) for n in keys], "airlines")


def _version(job: Job, name: str, keys: Sequence[int] = _ALL) -> None:
    _mark(job, "begin")
    _name(job, name, keys)
    _mark(job, "end")


def _code(job: Job, partition: int, number: int) -> None:
    half = [(partition, b"%d" % n, b"%d" % number) for n in range(partition, _SIZE, 2)]
    marks = [(partition, b"version", b"%s %d" % (word, number)) for word in (b"begin", b"end")]
    job.produce([marks[0], *half, marks[1]], "codes")


def _codes(job: Job, number: int) -> None:
    _code(job, 0, number)
    _code(job, 1, number)


def _fly(job: Job, times: int = 1) -> None:
    job.produce([(n % 2, b"%d" % n, b"") for _ in range(times) for n in _ALL])


def _rows(job: Job) -> list[_Row]:
    found: list[_Row] = []
    for message in job.messages(job.topic("out")):
        process, batch, airline, code, count = (message.value() or b"").decode().split(" ")
        key = (message.key() or b"").decode()
        task = str(int(key) % 2)
        found.append(((process, task, batch), (airline, code), key, int(count)))
    return found


def _newest(job: Job, container: Running) -> set[tuple[str, str]]:
    """What one more flight of each airline finds, once all have been seen."""
    before = len(_rows(job))
    _fly(job)
    job.until(lambda: len(_rows(job)) >= before + _SIZE, container)
    counted: dict[str, tuple[int, tuple[str, str]]] = {}
    for _, versions, key, count in _rows(job):
        counted[key] = max(counted.get(key, (0, versions)), (count, versions))
    return {versions for _, versions in counted.values()}


def _until_seen(job: Job, container: Running, airline: str, code: str) -> None:
    job.until(lambda: _newest(job, container) == {(airline, code)}, container)


def _is_exact(job: Job) -> None:
    """No batch has seen two versions, no task an older one after a newer; flights count once.

    The judge says the same of the history.
    """
    assert judge(["--allow-gaps", str(job.folder / "stores")]) == 0
    rows = _rows(job)
    seen: dict[tuple[str, ...], set[tuple[str, str]]] = defaultdict(set)
    counts: dict[str, list[int]] = defaultdict(list)
    for batch, versions, key, count in rows:
        seen[batch].add(versions)
        counts[key].append(count)
    mixed = {batch: sorted(found) for batch, found in seen.items() if len(found) > 1}
    assert not mixed, mixed
    for key, numbers in counts.items():
        assert sorted(numbers) == list(range(1, len(numbers) + 1)), key
    by_key: dict[str, list[tuple[int, tuple[str, str]]]] = defaultdict(list)
    for _, versions, key, count in rows:
        by_key[key].append((count, versions))
    for key, found in by_key.items():
        for place in (0, 1):
            inorder = [int(versions[place]) for _, versions in sorted(found)]
            assert inorder == sorted(inorder), key


def _log(container: Running) -> str:
    return container.log.read_text(encoding="utf-8")


def _says_once(container: Running, line: str) -> bool:
    return _log(container).count(line) == 1


def _folders(job: Job, store: str) -> dict[str, dict[str, str]]:
    """{version: its entries} on the disk; nothing has them open."""
    found = {}
    for path in sorted(_store(job, store).glob("v*")):
        view = RocksDbView(path)
        pairs = [(k, v) for k, v in view.scan() if not k.startswith(RESERVED_PREFIX)]
        found[path.name] = {k.decode(): v.decode() for k, v in pairs}
        view.close()
    return found


def _whole(name: str) -> dict[str, str]:
    return {str(n): name for n in _ALL}


def test_versions_are_built_beside_and_swapped_between_batches(job: Job) -> None:
    """Each is served as a whole, under load; a version of two partitions when both have ended it.

    The first is waited for, as both streams are marked for bootstrap; of the old ones nothing is
    left.
    """
    _fly(job)
    _mark(job, "begin")
    _name(job, "1")
    _codes(job, 17)
    container = _start(job, 1)
    job.until(lambda: "other inputs wait for the first version" in _log(container), container)
    assert _rows(job) == []
    _mark(job, "end")
    job.until(lambda: len(_rows(job)) == _SIZE, container)
    assert {versions for _, versions, *_ in _rows(job)} == {("1", "17")}

    _mark(job, "begin")
    _name(job, "2", range(40))
    _code(job, 0, 18)
    assert _newest(job, container) == {("1", "17")}
    _name(job, "2", range(40, _SIZE))
    _mark(job, "end")
    _until_seen(job, container, "2", "17")
    _code(job, 1, 18)
    _until_seen(job, container, "2", "18")

    flights = len(_rows(job))
    for number in range(3, 5):
        _mark(job, "begin")
        _name(job, str(number), range(25))
        _fly(job, 3)
        _name(job, str(number), range(25, _SIZE))
        _mark(job, "end")
        _codes(job, number + 16)
        _fly(job, 3)
    job.until(lambda: len(_rows(job)) == flights + 2 * 6 * _SIZE, container)
    _until_seen(job, container, "4", "20")
    _is_exact(job)
    read = [e["version"] for e in job.history("version-read") if "airlines" in e["store"]]
    assert read == sorted(set(read))
    assert {1, 2, 4} <= set(read)
    assert container.stop() == 143
    assert _folders(job, "airlines") == {"v4": _whole("4")}
    assert _folders(job, "codes") == {"v20": _whole("20")}


@pytest.mark.parametrize(
    "after",
    [
        long(AdjunctAction.WRITE),
        long(AdjunctAction.FLUSH_VERSION),
        AdjunctAction.WRITE_CATALOGUE,
        long(AdjunctAction.SWITCH_VERSION),
        long(AdjunctAction.DROP_VERSION),
    ],
)
def test_a_container_that_dies_in_a_switch_goes_on(job: Job, after: AdjunctAction) -> None:
    """Once while the version is built, and once after the step; then nothing is read again."""
    _version(job, "1")
    _codes(job, 17)
    first = _start(job, 1)
    _until_seen(job, first, "1", "17")
    _mark(job, "begin")
    _name(job, "2", range(40))
    assert _newest(job, first) == {("1", "17")}
    first.stop(signal.SIGKILL)
    assert "is compacted" not in _log(first)
    alter(job.servers, job.topic("airlines"), {"cleanup.policy": "compact"})

    second = _start(job, 2)
    assert _newest(job, second) == {("1", "17")}
    plan = job.folder / "plan"
    write_plan(plan, f"{after} airlines/container-0", "kill")
    _name(job, "2", range(40, _SIZE))
    _mark(job, "end")
    _fly(job, 5)
    assert second.process.wait(DEADLINE_S) == -signal.SIGKILL
    plan.unlink()

    third = _start(job, 3)
    _until_seen(job, third, "2", "17")
    assert third.stop() == 143
    assert _log(second).count("adjunct store airlines: its stream") == 1
    for container in (second, third):
        assert _log(container).count("is kept: its stream") == 2
        assert "is filled again" not in _log(container)
    _is_exact(job)
    assert _folders(job, "airlines") == {"v2": _whole("2")}
    assert _folders(job, "codes") == {"v17": _whole("17")}


def _store(job: Job, store: str) -> Path:
    return job.folder / "stores" / f"{job.config['job.name']}-1" / store / "container-0"


def test_a_version_that_a_partition_has_left_survives_a_death_before_the_flush(make: Make) -> None:
    """It is whole in the stream; what the partition had of it was in memory alone."""
    job = make(task_commit_ms="600000")  # the disk has what a version begins with
    _version(job, "1")
    half = [(p, b"%d" % n, b"17") for p in (1, 0) for n in range(p, _SIZE, 2)]
    job.produce([(1, b"version", b"begin 17"), *half[: _SIZE // 2]], "codes")
    first = _start(job, 1)
    folder = _store(job, "codes")
    job.until(lambda: any(folder.glob("v17/*.sst")), first)
    begins, ends = (0, b"version", b"begin 17"), (0, b"version", b"end 17")
    job.produce([begins, *half[_SIZE // 2 :], ends, (0, b"version", b"begin 18")], "codes")
    job.until(lambda: any(folder.glob("v18/*.sst")), first)
    first.stop(signal.SIGKILL)

    second = _start(job, 2)
    job.produce([(1, b"version", b"end 17")], "codes")
    _fly(job)
    _until_seen(job, second, "1", "17")
    assert second.stop() == 143
    assert "is filled again" not in _log(second)
    assert _folders(job, "codes")["v17"] == _whole("17")


def test_a_version_with_a_hole_is_not_served(job: Job) -> None:
    """Deleted while the container stands still, or was away; what was served stays."""
    _version(job, "1")
    _codes(job, 17)
    container = _start(job, 1)
    _until_seen(job, container, "1", "17")
    os.kill(container.process.pid, signal.SIGSTOP)
    _version(job, "2")
    # Behind the first version are a marker, and half of the second one.
    end = _SIZE + 2
    delete_before(job, "airlines", end + 1 + _SIZE // 2)
    os.kill(container.process.pid, signal.SIGCONT)
    expected = "adjunct store airlines/container-0: version 2 of 25 records is not served: "
    job.until(lambda: expected in _log(container), container)
    assert _newest(job, container) == {("1", "17")}
    assert container.stop() == 143

    _version(job, "3")
    delete_before(job, "airlines", 2 * end + 1 + _SIZE // 2)
    _version(job, "4")
    container = _start(job, 2)
    _until_seen(job, container, "4", "17")
    text = _log(container)
    assert "version 3 of 25 records is not served" in text
    assert "is filled again" not in text
    assert container.stop() == 143
    _is_exact(job)


def test_a_version_that_is_wrong_is_reported_and_not_served(job: Job) -> None:
    """One line each: it began again in its middle, is too small, or has no end."""
    _version(job, "1")
    _codes(job, 17)
    container = _start(job, 1)
    _until_seen(job, container, "1", "17")
    _mark(job, "begin")
    _name(job, "2", range(30))
    _version(job, "3", range(20))
    for story in (
        "version 2 of 30 records is not served: its producer began again in the middle of it",
        "version 3 of 20 records is not served: it is much smaller than the one before",
    ):
        line = f"adjunct store airlines/container-0: {story}; version 1 is served"
        job.until(partial(_says_once, container, line), container)
    assert _newest(job, container) == {("1", "17")}
    _mark(job, "begin")
    _name(job, "4")
    late = "adjunct store airlines/container-0: version 4 has no end yet"
    job.until(lambda: late in _log(container), container)
    assert _newest(job, container) == {("1", "17")}
    _mark(job, "end")
    _until_seen(job, container, "4", "17")
    assert container.stop() == 143
    assert _log(container).count(late) == 1
    _is_exact(job)
    assert _folders(job, "airlines") == {"v4": _whole("4")}


def test_a_pipeline_joins_with_the_versions_that_its_tasks_see(make: Make) -> None:
    """While it works ahead of them, under load, through swaps and a SIGKILL; never with a mix."""
    size = {"cluster-manager.container.memory.mb": "1536"}
    job = make(_PIPED, task_pipeline_sql=_SQL, **size)
    _fly(job)
    _version(job, "1")
    _codes(job, 17)
    container = _start(job, 1)
    job.until(lambda: len(_rows(job)) == _SIZE, container)
    assert {versions for _, versions, *_ in _rows(job)} == {("1", "17")}
    flights = _SIZE
    for number in range(2, 6):
        _mark(job, "begin")
        _name(job, str(number), range(25))
        _fly(job, 5)
        _name(job, str(number), range(25, _SIZE))
        _mark(job, "end")
        _fly(job, 5)
        _codes(job, number + 16)
        flights += 10 * _SIZE
        if number == 3:
            container.stop(signal.SIGKILL)
            container = _start(job, 2)
    job.until(lambda: len(_rows(job)) == flights, container)
    _until_seen(job, container, "5", "21")
    assert container.stop() == 143
    assert "plans each batch" not in _log(container)
    _is_exact(job)
