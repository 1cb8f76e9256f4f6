"""Clusters that all workers of a test run share.

The first test that needs one starts it; the last worker whose tests need none any more stops all
of them, or the process that began the run. The run has a folder, named by ``VARIABLE``: ``owner``
is the process that began it, and each file without a suffix is a role, with the name of its
cluster.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from clusters_under_test import LocalUnderTest

from homeport.local_cluster import processes
from homeport.local_cluster.cluster import remove_abandoned

PREFIX = "test-"
VARIABLE = "HOMEPORT_TEST_RUN"
_OWNER = "owner"
_LOCK, _WORKER, _DONE, _STOPPED = ".lock", ".worker", ".done", ".stopped"
KEPT_LOGS = pytest.StashKey[list[str]]()
"""Folders with the logs of clusters of a failed run."""


def begin() -> None:
    """This process owns the run, and all that it starts."""
    folder = Path(tempfile.mkdtemp(prefix="homeport-test-run-"))
    own = processes.own()
    (folder / _OWNER).write_text(json.dumps([own.pid, own.start_time]), encoding="utf-8")
    os.environ[VARIABLE] = str(folder)


def join() -> None:
    """This process is a worker of the run."""
    own = processes.own()
    text = json.dumps([own.pid, own.start_time])
    (Path(os.environ[VARIABLE]) / f"{own.pid}{_WORKER}").write_text(text, encoding="utf-8")


def leave() -> None:
    """This worker has stopped all that its tests started."""
    (Path(os.environ[VARIABLE]) / f"{os.getpid()}{_WORKER}").unlink(missing_ok=True)


def workers() -> list[processes.ProcessId]:
    """The workers of the run that have something to stop."""
    found = [_process(file) for file in Path(os.environ[VARIABLE]).glob(f"*{_WORKER}")]
    return [worker for worker in found if processes.is_alive(worker)]


def _process(file: Path) -> processes.ProcessId:
    return processes.ProcessId(*json.loads(file.read_text(encoding="utf-8")))


def shared(role: str, nodes: int) -> LocalUnderTest:
    """The run's cluster of this role, up; no test stops it."""
    folder = Path(os.environ[VARIABLE])
    owner = _process(folder / _OWNER)
    name = f"{PREFIX}{owner.pid}-{role}"
    with (folder / f"{role}{_LOCK}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / role).exists():
            remove_abandoned(PREFIX, progress=print)
            cluster = LocalUnderTest(name, nodes=nodes, owner=owner, keeps_containers=True)
            cluster.up(print)
            (folder / role).write_text(name, encoding="utf-8")
    return LocalUnderTest.attach(name)


def release() -> None:
    """Stop the clusters if this was the last worker whose tests may need them; logs are kept."""
    folder, own = Path(os.environ[VARIABLE]), os.getpid()
    done = folder / f"{own}{_DONE}"
    if done.exists():
        return
    with (folder / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done.touch()
        if all((folder / f"{worker.pid}{_DONE}").exists() for worker in workers()):
            for role in _roles(folder):
                LocalUnderTest.attach(role.read_text(encoding="utf-8")).down(keep_logs=True)
                role.rename(role.with_suffix(_STOPPED))


def _roles(folder: Path) -> list[Path]:
    return [
        file for file in sorted(folder.iterdir()) if file.name != _OWNER and "." not in file.name
    ]


def end(*, keep_logs: bool) -> list[str]:
    """Nothing of the run's clusters is left but their logs, in the folders returned."""
    folder = Path(os.environ.pop(VARIABLE))
    kept = []
    for file in [*_roles(folder), *folder.glob(f"*{_STOPPED}")]:
        # Of one that was stopped only the logs are left.
        cluster = LocalUnderTest(file.read_text(encoding="utf-8"), nodes=0)
        cluster.down(keep_logs=keep_logs)
        kept.append(str(cluster.log_dir))
    shutil.rmtree(folder)
    return kept if keep_logs else []
