"""Processors with standbys, with ZooKeeper and a broker: one is killed, its backups take over."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from standalone_jobs import PARTITIONS, StandaloneJob, standalone_job
from zookeeper_server import ZooKeeperServer

from homeport.job_coordinator.clocks import wall_ms

NAMES = ("one", "two", "three")


@pytest.fixture
def job(kafka: str, tmp_path: Path, zookeeper: ZooKeeperServer) -> Iterator[StandaloneJob]:
    """Each task has one standby; sessions last 3 s."""
    more = {
        "job.coordinator.zk.connect": zookeeper.connect,
        "job.coordinator.zk.session.timeout.ms": "3000",
        "job.debounce.time.ms": "500",
        "job.standbytasks.replication.factor": "2",
        "task.commit.ms": "500",
    }
    with standalone_job(kafka, tmp_path, more) as made:
        yield made


def texts(value: object) -> list[str]:
    """The texts of a list in a line."""
    assert isinstance(value, list)
    return [str(item) for item in value]


def following(job: StandaloneJob, names: Sequence[str], since_ms: int = 0) -> dict[str, list[str]]:
    """{processor: the standbys that it says to follow}, as each of these last said."""
    return {
        str(line["processor_id"]): texts(line["replicas"])
        for line in job.history("standby-following")
        if line["processor_id"] in names and int(str(line["ts_ms"])) > since_ms
    }


def follow_all(job: StandaloneJob, names: Sequence[str], since_ms: int = 0) -> bool:
    """Whether each task has its standby."""
    found = following(job, names, since_ms).values()
    return sorted(name for own in found for name in own) == [
        f"Standby-Partition {number}-0" for number in range(PARTITIONS)
    ]


def last(job: StandaloneJob, event: str, name: str) -> dict[str, object]:
    """The last such line of the processor."""
    return [line for line in job.history(event) if line["processor_id"] == name][-1]


def test_the_tasks_of_a_killed_processor_start_where_their_standbys_are(
    job: StandaloneJob,
) -> None:
    """Of their changelogs only the tail is read, no process of a user's ends, the result is exact.

    Each of the three is a location of its own. What the killed one had kept as standbys has places
    again, while the tasks of the others work on.
    """
    job.produce(30)
    processors = {name: job.processor(name, f"at-{name}") for name in NAMES}
    job.until(lambda: all(map(job.started_by, NAMES)))
    job.until(lambda: follow_all(job, NAMES))
    job.until_counted()
    owned = {name: texts(last(job, "fenced", name)["tasks"]) for name in NAMES}
    kept = following(job, NAMES)
    dead = max(NAMES, key=lambda name: len(owned[name]))
    assert owned[dead]
    alive = [name for name in NAMES if name != dead]
    killed_ms = wall_ms()
    processors[dead].kill()
    processors[dead].wait(60)
    job.produce(10)
    job.until_counted()
    job.until(lambda: follow_all(job, alive, killed_ms))
    _require_promoted(job, owned[dead], kept, killed_ms)
    taken = job.history("tasks-taken-over")
    assert [(line["lost"], line["unbacked"]) for line in taken] == [(len(owned[dead]), 0)]
    assert all(processors[name].poll() is None for name in alive)
    for name in alive:
        processors[name].send_signal(signal.SIGTERM)
    assert [processors[name].wait(60) for name in alive] == [0, 0], job.logs()
    assert job.counted() == job.sent
    _require_sound(job)


def _require_promoted(
    job: StandaloneJob, lost: list[str], kept: dict[str, list[str]], killed_ms: int
) -> None:
    """Each lost task has started where its standby was, and has read nothing older than that."""
    for task in lost:
        restored = [
            line
            for line in job.history("restore-finished")
            if line["task"] == task and int(str(line["ts_ms"])) > killed_ms
        ]
        assert len(restored) == 1, restored
        line = restored[0]
        assert f"Standby-{task}-0" in kept[str(line["processor_id"])]
        assert line["kind"] != "full", line
        assert line["records"] == 0, line


def _require_sound(job: StandaloneJob) -> None:
    folders = [str(path) for path in job.folder.glob("stores-*")]
    root = Path(__file__).resolve().parents[3]
    judged = subprocess.run(
        [str(root / "scripts" / "check-history"), *folders],
        capture_output=True,
        text=True,
        check=False,
    )
    assert judged.returncode == 0, judged.stdout + judged.stderr
