"""What a job on a real YARN has on its hosts is its user's alone, and ends with it where it may."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from yarn_jobs import Job

from homeport.job_coordinator.client_files import token_path
from homeport.local_cluster.cluster import LocalCluster

LIMIT_S = 120.0
OTHERS = 0o077


def _state(job: Job) -> list[Path]:
    cluster = job.cluster
    assert isinstance(cluster, LocalCluster)
    folders = [cluster.state_dir(node) / f"{job.name}-1" for node in cluster.nodes]
    return [folder for folder in folders if folder.exists()]


def test_a_jobs_files_are_its_users_alone(make_job: Callable[[str], Job]) -> None:
    """Stores, locks, OFFSET and history, also of a folder that an earlier release left open.

    The token is in the cache while the application lives, and its note beside it.
    """
    job = make_job("own-files")
    job.begin(300)
    job.counts_all()
    token = token_path(job.environment, job.application_id)
    assert (token.exists(), token.with_name(f"{token.name}.cluster").exists()) == (True, True)
    job.kill()
    assert [path.name for path in token.parent.glob(f"{job.application_id}*")] == []
    folders = _state(job)
    for folder in folders:
        paths = [folder, *folder.rglob("*")]
        open_to_others = [str(p) for p in paths if p.lstat().st_mode & OTHERS]
        assert open_to_others == []
        assert any(path.name == "OFFSET" for path in paths)
        assert any(path.suffix == ".jsonl" for path in paths)
        assert any(path.suffix == ".sst" for path in paths)
        for path in paths:  # as an earlier release made it
            path.chmod(0o755 if path.is_dir() else 0o644)
    assert folders
    job.produce(300, first=300)
    job.run()
    job.settled()
    job.counts_all()
    restored = [event["kind"] for event in job.history("restore-finished")]
    assert "full" not in restored[len(restored) // 2 :]
    job.kill()
    for folder in _state(job):
        closed = {path for path in (folder, *folder.rglob("*")) if path.is_dir()}
        assert [str(path) for path in closed if path.stat().st_mode & OTHERS] == []


PACK = """
import sys
from pathlib import Path
from homeport.appmaster.environment import class_data
made = Path(sys.argv[1])
command = [sys.executable, "-m", "homeport.container.spark.class_data", str(made)]
class_data._succeeds(command, made / "log")
"""


def _below(pid: int) -> set[int]:
    """All processes that ``pid`` has started, and those that they have."""
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found |= {int(child)} | _below(int(child))
    return found


def _names(pids: set[int]) -> set[str]:
    names = set()
    for pid in pids:
        try:
            names.add(Path(f"/proc/{pid}/comm").read_text().strip())
        except OSError:
            continue
    return names


def test_a_pack_that_is_killed_leaves_no_jvm(tmp_path: Path) -> None:
    """Neither the program that makes Spark's class-data archive, nor the JVM that writes it."""
    pack = subprocess.Popen([sys.executable, "-c", PACK, str(tmp_path)])
    try:
        deadline = time.monotonic() + LIMIT_S
        children: set[int] = set()
        while "java" not in _names(children) or not list(tmp_path.glob(".partial-*/*/gateway")):
            assert time.monotonic() < deadline, (tmp_path / "log").read_text()
            assert pack.poll() is None, (tmp_path / "log").read_text()
            time.sleep(0.1)
            children = _below(pack.pid)
    finally:
        pack.send_signal(signal.SIGKILL)
        pack.wait()
    deadline = time.monotonic() + LIMIT_S
    while _names(children):
        assert time.monotonic() < deadline, f"{_names(children)} live on"
        time.sleep(0.1)
