"""``homeport state``, ``checkpoint`` and ``clean`` on the state of real containers, real Kafka."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from recorded_jobs import record_job
from stream_containers import COUNTER, Job, make_job

from homeport.config.sections import JobConfig
from homeport.container.rocksdb.rocksdb_store import RocksDbMemory, RocksDbStore

MODULE = "homeport.job_coordinator.cli.homeport"
WORDS = [(i % 2, b"p%d-w%d" % (i % 2, i % 7), b"") for i in range(280)]
"""20 times each of 7 words per partition."""
NO_STATE = """
from homeport.container.api import BatchTask

class Counter(BatchTask):
    def process_batch(self, table, collector):
        for key in table.column("key").to_pylist():
            collector.send("out", b"", key)
"""


@dataclass
class Operator:
    """The tool, called about a job whose state is on "nm1"."""

    job: Job
    file: Path

    @property
    def stores(self) -> Path:
        """The base of the state directories."""
        return self.job.folder / "stores"

    @property
    def directory(self) -> Path:
        """The job's folder."""
        return self.stores / JobConfig.of(self.job.config).directory_name

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        """The tool's exit code and words."""
        text = "".join(f"{key}={value}\n" for key, value in self.job.config.items())
        self.file.write_text(text, encoding="utf-8")
        environment = {
            "PYTHONPATH": ":".join(p for p in sys.path if p),
            "LOGGED_STORE_BASE_DIR": str(self.stores),
            "NM_HOST": "NM1",
            "PATH": os.environ["PATH"],
        }
        return subprocess.run(
            [sys.executable, "-m", MODULE, *words, f"--config-path={self.file}"],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env=environment,
        )

    def answer(self, *words: str) -> list[str]:
        """What it prints, line by line; it succeeds."""
        done = self.call(*words)
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout.splitlines()

    def objects(self, *words: str) -> list[dict[str, Any]]:
        """What it prints with --json; it succeeds."""
        return [json.loads(line) for line in self.answer(*words, "--json")]

    def refusal(self, *words: str) -> str:
        """Its one line of error."""
        done = self.call(*words)
        assert done.returncode == 1, done.stdout
        error = done.stderr.splitlines()[-1]
        assert error.startswith("error: ")
        return error


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
    """A container has counted the words, and stopped in order."""
    container = operator.job.start(1)
    operator.job.produce(words)
    operator.job.until(lambda: operator.job.processed() == len(words), container)
    assert container.stop() == 143


def _files(folder: Path) -> dict[str, tuple[int, int]]:
    """{file: size, time of its last change}, everything below ``folder``."""
    stats = {str(path): path.stat() for path in folder.rglob("*")}
    return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in stats.items()}


def test_a_running_containers_state_is_read(operator: Operator) -> None:
    """Its pairs, and that they are the changelog's; not a byte of the directory changes by it."""
    container = operator.job.start(1)
    operator.job.produce(WORDS)
    operator.job.until(lambda: operator.job.processed() == len(WORDS), container)
    committed = operator.directory / "counts" / "Partition_0" / "OFFSET"
    operator.job.until(committed.is_file, container)
    os.killpg(container.process.pid, signal.SIGSTOP)
    before = _files(operator.directory / "counts")
    pairs = operator.objects("state", "dump", "counts", "Partition 0")
    assert [pair["key"] for pair in pairs] == [f"p0-w{i}" for i in range(7)]
    one = operator.answer("state", "dump", "counts", "Partition_1", "--key", "p1-w3")
    assert one[0].startswith("p1-w3 = ")
    assert len(operator.answer("state", "verify")) == 2
    assert _files(operator.directory / "counts") == before
    os.killpg(container.process.pid, signal.SIGCONT)
    assert container.stop() == 143


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
    # A restore that was cut short has no OFFSET: it begins anew, and says so.
    for name in ("OFFSET", "OFFSET-v2"):
        (changed / name).unlink()
    again = operator.call("state", "restore", "--to", str(copy), "--task", "Partition_0")
    assert "begins anew: OFFSET is missing" in again.stderr
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
    # It was never told to have stopped: it is fenced, and ends.
    assert operator.answer(*place, "--earliest") == [f"Partition 0  {ssp}: next 0, before next 140"]
    job.produce([(0, b"one more", b"")])
    assert "fenced" in container.last_line()
    assert container.process.returncode == 1
    assert operator.answer(*place, "--offset", "100")
    second = job.start(2, [1])
    job.until(lambda: len(job.read(job.topic("out"))) == 280 + 41, second)
    assert second.stop() == 143
    assert "between" not in operator.refusal(*place, "--offset", "9999")
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
