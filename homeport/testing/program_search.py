"""The processes of a job on a local cluster, found by their command lines."""

from pathlib import Path

import psutil

from homeport.job_coordinator.program_names import CONTAINER, LAUNCHER, SPARE_NAME
from homeport.local_cluster import processes
from homeport.local_cluster.cluster import LocalCluster


def find_programs(
    cluster: LocalCluster, words: str, node: str | None = None
) -> list[processes.ProcessId]:
    """Return the processes of the cluster, or of one node, whose command line has these words."""
    found = processes.of_cluster(cluster.cluster_id, node)
    return sorted((p for p in found if _runs(p.pid, words)), key=lambda p: p.pid)


def of_processor(cluster: LocalCluster, processor: str, words: str) -> list[processes.ProcessId]:
    """Return the processor's stream container, or its launcher: the parent of that."""
    containers = {
        process: parent
        for process in find_programs(cluster, CONTAINER)
        if (parent := _parent_of_writer(process.pid, f"container-{processor}-")) is not None
    }
    if words == CONTAINER:
        return list(containers)
    return [p for p in find_programs(cluster, LAUNCHER) if p.pid in containers.values()]


def _runs(pid: int, words: str) -> bool:
    """Return whether the process is the program at work, not its shell or spare."""
    try:
        process = psutil.Process(pid)
        line = process.cmdline()
        is_program = bool(line) and Path(line[0]).name not in {"bash", "sh"}
        return is_program and words in " ".join(line) and process.name() != SPARE_NAME
    except psutil.NoSuchProcess:
        return False


def _parent_of_writer(pid: int, log: str) -> int | None:
    """Return the parent of a process that writes to ``log``; None: it writes to another file."""
    try:
        process = psutil.Process(pid)
        names = (Path(file.path).name for file in process.open_files() if file.fd == 1)
        return process.ppid() if any(name.startswith(log) for name in names) else None
    except (psutil.NoSuchProcess, psutil.AccessDenied):  # the latter: it is a zombie by now
        return None
