"""``homeport state``, ``checkpoint`` and ``clean`` on the state of real containers, real Kafka."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from check_history.judge import main as judge
from operators import Operator
from recorded_jobs import record_job
from stream_containers import COUNTER, make_job

from homeport.cli.formatting import size
from homeport.cli.host import checkpoint_change
from homeport.cli.host.job_on_host import recorded_job
from homeport.config.errors import UnavailableError
from homeport.container.kafka.checkpoints import Checkpoint
from homeport.container.rocksdb.rocksdb_store import RocksDbMemory, RocksDbStore

WORDS = [(i % 2, b"p%d-w%d" % (i % 2, i % 7), b"") for i in range(280)]
"""20 times each of 7 words per partition."""
NO_STATE = """
from homeport.container.api import BatchTask

class Counter(BatchTask):
    def process_batch(self, table, collector):
        for key in table.column("key").to_pylist():
            collector.send("out", b"", key)
"""


def _made(kafka: str, tmp_path: Path, code: str, **more: str) -> Operator:
    job = make_job(kafka, tmp_path, code, {k.replace("_", "."): v for k, v in more.items()})
    with job.coordinator_stream() as stream:
        record_job(stream, job.model)
    return Operator(job, tmp_path / "job.properties")


@pytest.fixture
def operator(kafka: str, tmp_path: Path) -> Iterator[Operator]:
    """A job that counts words; no container of it has run."""
    made = _made(kafka, tmp_path, COUNTER, task_commit_ms="100")
    yield made
    made.job.close()


def _ran(operator: Operator, words: Sequence[tuple[int, bytes, bytes]] = WORDS) -> None:
    container = operator.job.start(1)
    operator.job.produce(words)
    operator.job.until(lambda: operator.job.processed() == len(words), container)
    assert container.stop() == 143


def _files(folder: Path) -> dict[str, tuple[int, int]]:
    """{file: size, time of its last change}, everything below ``folder``."""
    stats = {str(path): path.stat() for path in folder.rglob("*")}
    return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in stats.items()}


def _is_at_head(row: dict[str, Any]) -> bool:
    return row["behind"] is not None and row["behind"] <= 1


def test_a_running_containers_state_is_listed_and_read(operator: Operator) -> None:
    """Its holder, its position, its pairs; the tool changes not a byte of the directory."""
    container = operator.job.start(1)
    operator.job.produce(WORDS)
    operator.job.until(lambda: operator.job.processed() == len(WORDS), container)
    # The commit that follows the last transaction, after which nothing moves.
    operator.job.until(
        lambda: all(_is_at_head(row) for row in operator.objects("state", "ls")), container
    )
    os.killpg(container.process.pid, signal.SIGSTOP)
    before = _files(operator.directory / "counts")
    (operator.stores / "other-1" / "s" / "Partition_0").mkdir(parents=True)
    first, second, other = operator.objects("state", "ls")
    assert (first["store"], first["task"], first["role"]) == ("counts", "Partition 0", "active")
    assert (first["is_valid"], first["holder"]["pid"]) == (True, container.process.pid)
    assert first["offset"] == str(first["position"])
    assert (second["task"], other["kind"]) == ("Partition 1", "other job")
    listed = operator.answer("state", "ls")
    assert "Partition_0: active here" in listed[0]
    assert listed[0].endswith("; valid")
    assert listed[2] == "other-1: another job; 1 directory, 0 bytes"
    assert "elsewhere, active on nm1" in operator.answer("state", "ls", "--host", "nm2")[0]
    pairs = operator.objects("state", "dump", "counts", "Partition 0")
    assert pairs == [{"key": f"p0-w{i}", "value": 20} for i in range(7)]
    one = operator.answer("state", "dump", "counts", "Partition_1", "--key", "p1-w3")
    assert one == ["p1-w3 = 20"]
    assert len(operator.answer("state", "verify")) == 2
    assert _files(operator.directory / "counts") == before
    os.killpg(container.process.pid, signal.SIGCONT)
    assert container.stop() == 143


def _age(directory: Path) -> Path:
    month_ago = time.time() - 30 * 86_400
    for path in (directory, *directory.rglob("*")):
        os.utime(path, (month_ago, month_ago))
    return directory


def test_only_the_directories_that_a_job_left_behind_are_removed(operator: Operator) -> None:
    """R38: what is at home, in use, young, or another job's stays; the dry run changes nothing."""
    _ran(operator)
    own = _age(operator.directory / "counts" / "Partition_0")
    gone = [
        _copied(own, operator.directory / "counts" / "Partition_7"),
        _copied(own, operator.directory / "old" / "Partition_0"),
        _copied(own, operator.directory / "counts" / "Partition_0-1700000000000-123456"),
    ]
    # Samza's checkpoints share their tables with the store: those give no room back.
    table = next(own.glob("*.sst"))
    (gone[2] / table.name).unlink()
    (gone[2] / table.name).hardlink_to(table)
    kept = [
        own,
        _copied(own, operator.stores / "other-1" / "counts" / "Partition_0"),
        operator.directory / "counts" / "Partition_8",
    ]
    kept[2].mkdir()
    before = _files(operator.stores)
    planned = operator.objects("clean")
    assert _files(operator.stores) == before
    outcomes = {row["path"]: row["outcome"] for row in planned}
    assert [outcomes.pop(str(path)) for path in gone] == ["would be removed"] * 3
    assert set(outcomes.values()) == {"kept"}
    sizes = sum(
        s.stat().st_blocks * 512 for d in gone for s in d.rglob("*") if s.name != table.name
    )
    sizes += sum((d / table.name).stat().st_blocks * 512 for d in gone[:2])
    done = operator.call("clean", "--apply")
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1] == f"freed {size(sizes)}"
    assert not any(path.exists() for path in [*gone, operator.directory / "old"])
    assert all(path.is_dir() for path in kept)
    assert operator.answer("state", "verify")
    # The container that comes home has all its state.
    second = operator.job.start(2, [1])
    report = operator.job.report(second, 2)
    assert [r.records for r in report.restored["counts"].values()] == [0, 0]
    # As seen from a host where none of the job is at home, what is in use stays all the same.
    rows = operator.objects("clean", "--apply", "--host", "nm2", "--older-than", "0s")
    assert [r["reason"] for r in rows if r["path"] == str(own)] == ["in use"]
    assert second.stop() == 143


def _copied(source: Path, target: Path) -> Path:
    shutil.copytree(source, target)
    return _age(target)


def test_a_restored_copy_is_equal_and_a_changed_one_is_not(operator: Operator) -> None:
    """Below a folder of its own, as a container would use it; every key that differs is named."""
    _ran(operator)
    copy = operator.job.folder / "copy"
    done = operator.answer("state", "restore", "--to", str(copy))
    assert [line.split(", ")[:2] for line in done] == [
        ["counts/Partition 0: restored", "read in full"],
        ["counts/Partition 1: restored", "read in full"],
    ]
    assert operator.answer("state", "verify", "--against", str(copy))
    assert "going on" in operator.call("state", "restore", "--to", str(copy)).stderr
    assert "it is not empty" in operator.refusal("state", "restore", "--to", str(operator.stores))
    changed = copy / operator.directory.name / "counts" / "Partition_0"
    store = RocksDbStore(changed, RocksDbMemory(8 << 20, 1))
    store.write({b"p0-w1": None, b"p0-w2": b"x", b"p0-w9": b"y"}, store.position)
    store.flush()
    store.close()
    for words in (["--base", str(copy)], ["--base", str(copy), "--against", str(operator.stores)]):
        found = operator.call("state", "verify", "--task", "Partition 0", *words)
        assert found.returncode == 1
        verdict, *keys = found.stdout.splitlines()
        assert "3 DIFFERENT; 8 keys compared" in verdict
        assert keys == ["  p0-w1: missing here", "  p0-w2: another value", "  p0-w9: only here"]
    # A restore that was cut short has no OFFSET: it begins again, and says so.
    for name in ("OFFSET", "OFFSET-v2"):
        (changed / name).unlink()
    again = operator.call("state", "restore", "--to", str(copy), "--task", "Partition_0")
    assert "begins from the start: OFFSET is missing" in again.stderr
    assert operator.answer("state", "verify", "--against", str(copy))


def test_a_checkpoint_is_shown_and_set_where_there_is_no_state(kafka: str, tmp_path: Path) -> None:
    """The next incarnation reads from there, and a container that lived on could not write."""
    operator = _made(kafka, tmp_path, NO_STATE, stores_counts_changelog="")
    job = operator.job
    container = job.start(1)
    job.produce(WORDS)
    job.until(lambda: job.processed() == len(WORDS), container)
    shown = operator.objects("checkpoint", "show", "--task", "Partition 0")
    ssp = f"kafka.{job.topic('in')}.0"
    assert shown == [
        {"task": "Partition 0", "ssp": ssp, "offset": 139, "oldest": 0, "head": 140, "lag": 0}
    ]
    place = ("checkpoint", "set", "--task", "Partition 0", "--ssp", ssp)
    # No report said that it has stopped: it is fenced, and ends.
    assert operator.answer(*place, "--earliest") == [f"Partition 0  {ssp}: next 0, before next 140"]
    job.produce([(0, b"one more", b"")])
    assert "fenced" in container.last_line()
    assert container.process.returncode == 1
    in_2000 = operator.answer(*place, "--timestamp", "2000-01-01T00:00:00+00:00")
    assert in_2000 == [f"Partition 0  {ssp}: next 0, before next 0"]
    assert operator.answer(*place, "--offset", "100")
    second = job.start(2, [1])
    job.until(lambda: len(job.read(job.topic("out"))) == 280 + 41, second)
    assert second.stop() == 143
    # Its history says so, and the judge knows why input was read again.
    (noted,) = job.history("checkpoint-set")
    found = {name: noted[name] for name in ("task", "input", "first", "next", "epoch")}
    assert found == {"task": "Partition 0", "input": ssp, "first": 140, "next": 100, "epoch": 2}
    assert judge([str(operator.stores)]) == 0
    for path in operator.stores.rglob("*.jsonl"):
        path.write_bytes(path.read_bytes().replace(b"checkpoint-set", b"checkpoint-new"))
    assert judge([str(operator.stores)]) == 1
    assert "the partition has offsets 0 to 141" in operator.refusal(*place, "--offset", "9999")
    assert "exactly one" in operator.refusal(*place)
    assert "the task reads" in operator.refusal(*place[:-1], "kafka.other.0", "--latest")
    job.close()


def test_a_checkpoint_of_a_task_with_state_stays(operator: Operator) -> None:
    """It is refused: the state could not be taken back with it."""
    _ran(operator)
    ssp = f"kafka.{operator.job.topic('in')}.0"
    error = operator.refusal("checkpoint", "set", "--task", "Partition 0", "--ssp", ssp, "--latest")
    assert "has state" in error
    assert "--reset-state" in error
    assert operator.objects("checkpoint", "show")[0]["offset"] == 139


def test_a_start_while_a_checkpoint_is_set_is_reported(operator: Operator) -> None:
    """A container permitted since the tool looked may have read the old checkpoint."""
    with recorded_job(operator.job.config) as seen:
        operator.job.permit(1)
        task = seen.active_tasks[0]
        offsets = dict.fromkeys(task.system_stream_partitions, 7)
        with pytest.raises(UnavailableError, match="the job was started while its checkpoint"):
            checkpoint_change.write(seen, task, Checkpoint(offsets))


def test_a_job_that_never_ran_has_no_state(operator: Operator) -> None:
    """One line says which stream is missing, and where."""
    error = operator.refusal("state", "ls", "--config=job.name=nobody")
    assert "the job has no coordinator stream ('__samza_coordinator_nobody_1'" in error
    operator.stores.mkdir()
    assert "changelog are: counts;" in operator.refusal("state", "verify", "--store", "nope")
    assert "'Partition 0', 'Partition 1'" in operator.refusal("state", "verify", "--task", "x")


_REFERENCE = """
from homeport.container.api import BatchTask, KeyValueExtractor, KeyValueExtractorFactory

class Counter(BatchTask):
    def process_batch(self, table, collector):
        pass

class Shouted(KeyValueExtractorFactory):
    def get_key_value_extractor(self, config):
        return Shout()

class Shout(KeyValueExtractor):
    def get_key(self, message):
        return None if message.value == b"no plane" else message.key.decode().upper()

    def get_value(self, message):
        return None if message.value == b"gone" else message.value.decode()
"""


@pytest.fixture
def adjuncts(kafka: str, tmp_path: Path) -> Iterator[Operator]:
    """A job with a store of its tasks, which has an extractor, and one of the container."""
    keys = {
        "task.inputs": "kafka.<job>-in, kafka.<job>-planes",
        "task.broadcast.inputs": "kafka.<job>-airlines#0",
        "task.commit.ms": "100",
        "stores.planes.adstore.key.value.extractor.factory": "user_job:Shouted",
    }
    for store in ("planes", "airlines"):
        keys |= {
            f"systems.kafka.streams.<job>-{store}.samza.bootstrap": "true",
            f"stores.{store}.factory": "rocksdb",
            f"stores.{store}.key.serde": "string",
            f"stores.{store}.msg.serde": "string",
            f"stores.{store}.adstore.input": f"kafka.<job>-{store}",
        }
    job = make_job(kafka, tmp_path, _REFERENCE, keys, {"planes": 2, "airlines": 1})
    with job.coordinator_stream() as stream:
        record_job(stream, job.model)
    made = Operator(job, tmp_path / "job.properties")
    yield made
    made.job.close()


def test_adjunct_stores_are_listed_read_and_compared_with_their_streams(adjuncts: Operator) -> None:
    """By the job's own extractor: values that are none, keys that are not stored, null values."""
    job = adjuncts.job
    planes = [(n % 2, b"n%d" % n, b"737 of %d" % n) for n in range(10)]
    planes += [(0, b"n0", b"A320"), (0, b"n2", b"gone"), (1, b"x", b"no plane")]
    job.produce(planes, "planes")
    job.produce([(0, b"UA", b"United"), (0, b"AA", b"American"), (0, b"ZZ", b"")], "airlines")
    job.produce([(0, b"ZZ", None)], "airlines")
    container = job.start(1)
    job.report(container, 1)

    def is_there() -> bool:
        rows = adjuncts.objects("state", "ls")
        of_adjuncts = [row for row in rows if "input" in row]
        return len(of_adjuncts) == 3 and not any(row["behind"] for row in of_adjuncts)

    job.until(is_there, container)
    rows = {row["path"].rpartition("-1/")[2]: row for row in adjuncts.objects("state", "ls")}
    airlines, plane = rows["airlines/container-0"], rows["planes/Partition_0"]
    assert (airlines["input"], airlines["kind"]) == (f"kafka.{job.topic('airlines')}", "broadcast")
    assert (airlines["records"], airlines["positions"], airlines["behind"]) == (4, {"0": 4}, 0)
    assert (plane["kind"], plane["positions"], plane["is_valid"]) == ("partitioned", {"0": 7}, True)
    assert plane["holder"]["pid"] == container.process.pid
    (line,) = [row for row in adjuncts.answer("state", "ls") if row.startswith("airlines/")]
    assert f"from kafka.{job.topic('airlines')} up to 0: 4, 0 behind, 4 records" in line
    assert line.endswith("; valid")

    assert adjuncts.answer("state", "dump", "planes", "Partition 0") == [
        "N0 = A320",
        "N4 = 737 of 4",
        "N6 = 737 of 6",
        "N8 = 737 of 8",
    ]
    dumped = adjuncts.answer("state", "dump", "airlines", "container-0")
    assert dumped == ["AA = American", "UA = United"]
    package = str(job.folder / "package")
    sys.path.append(package)
    try:
        _are_compared(adjuncts)
        assert container.stop() == 143
        _break(adjuncts.directory / "planes" / "Partition_0")
        _differ(adjuncts)
    finally:
        sys.path.remove(package)


def _are_compared(adjuncts: Operator) -> None:
    verified = [
        row
        for store in ("airlines", "planes")
        for row in adjuncts.objects("state", "verify", "--store", store)
    ]
    found = {row["path"].rpartition("-1/")[2]: row for row in verified}
    assert {name: (row["is_equal"], row["compared"]) for name, row in found.items()} == {
        "airlines/container-0": (True, 2),
        "planes/Partition_0": (True, 4),
        "planes/Partition_1": (True, 5),
    }
    assert found["planes/Partition_0"]["positions"] == {"0": 7}


def _differ(adjuncts: Operator) -> None:
    """What was changed by hand is found; a task may be chosen."""
    done = adjuncts.call("state", "verify", "--store", "planes")
    assert done.returncode == 1
    assert "Partition_0, positions 0: 7: 3 DIFFERENT; 5 keys compared with" in done.stdout
    assert "  N0: another value" in done.stdout
    assert "  N2: only here" in done.stdout
    assert "  N4: missing here" in done.stdout
    (only,) = adjuncts.objects("state", "verify", "--store", "planes", "--task", "Partition 1")
    assert only["task"] == "Partition 1"


def _break(path: Path) -> None:
    store = RocksDbStore(path, RocksDbMemory(8 << 20, 1))
    store.write({b"N0": b"737 of 0", b"N2": b"737 of 2", b"N4": None}, None)
    store.flush()
    store.close()
