"""Clusters that all workers of a test run share.

The first test that needs one starts it; the process that began the run stops all of them. The run
has a folder, named by ``VARIABLE``: ``owner`` is the process that began it, and each other file is
a role, with the name of its cluster.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from local_cluster import processes
from local_cluster.cluster import LocalCluster, remove_abandoned

PREFIX = "test-"
VARIABLE = "HOMEPORT_TEST_RUN"
_OWNER = "owner"
KEPT_LOGS = pytest.StashKey[list[str]]()
"""Folders with the logs of clusters of a failed run."""


def begin() -> None:
    """This process owns the run, and all that it starts."""
    folder = Path(tempfile.mkdtemp(prefix="homeport-test-run-"))
    own = processes.own()
    (folder / _OWNER).write_text(json.dumps([own.pid, own.start_time]), encoding="utf-8")
    os.environ[VARIABLE] = str(folder)


def shared(role: str, nodes: int, *, namespaces: bool = False) -> LocalCluster:
    """The run's cluster of this role, up; no test stops it."""
    folder = Path(os.environ[VARIABLE])
    owner = processes.ProcessId(*json.loads((folder / _OWNER).read_text(encoding="utf-8")))
    name = f"{PREFIX}{owner.pid}-{role}"
    with (folder / f"{role}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / role).exists():
            remove_abandoned(PREFIX, progress=print)
            cluster = LocalCluster(name, nodes=nodes, namespaces=namespaces, owner=owner)
            cluster.up(print)
            (folder / role).write_text(name, encoding="utf-8")
    return LocalCluster.attach(name)


def end(*, keep_logs: bool) -> list[str]:
    """Nothing of the run's clusters is left but their logs, in the folders returned."""
    folder = Path(os.environ.pop(VARIABLE))
    kept = []
    for file in sorted(folder.iterdir()):
        if file.name != _OWNER and file.suffix != ".lock":
            cluster = LocalCluster.attach(file.read_text(encoding="utf-8"))
            cluster.down(keep_logs=keep_logs)
            kept.append(str(cluster.log_dir))
    shutil.rmtree(folder)
    return kept if keep_logs else []
