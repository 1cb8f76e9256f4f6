"""The processes of a job on a local cluster, found by what their command lines say."""

from __future__ import annotations

from pathlib import Path

from homeport.job_coordinator.program_names import CONTAINER, LAUNCHER, SPARE_NAME
from homeport.local_cluster import processes
from homeport.local_cluster.cluster import LocalCluster


def find_programs(
    cluster: LocalCluster, words: str, node: str | None = None
) -> list[processes.ProcessId]:
    """Processes of the cluster, or of one node, whose command line has these words."""
    found = processes.of_cluster(cluster.cluster_id, node)
    return sorted((p for p in found if _runs(p.pid, words)), key=lambda p: p.pid)


def of_processor(cluster: LocalCluster, processor: str, words: str) -> list[processes.ProcessId]:
    """The processor's stream container, or its launcher: the parent of that."""
    containers = [
        process
        for process in find_programs(cluster, CONTAINER)
        if _log_name(process.pid).startswith(f"container-{processor}-")
    ]
    if words == CONTAINER:
        return containers
    parents = [processes.info(process.pid) for process in containers]
    wanted = {found.parent for found in parents if found is not None}
    return [p for p in find_programs(cluster, LAUNCHER) if p.pid in wanted]


def _runs(pid: int, words: str) -> bool:
    """Whether the process is the program at work; its shell and its spare have the same words."""
    line = _command_line(pid)
    if words not in line or Path(line.split(" ", 1)[0]).name in {"bash", "sh"}:
        return False
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() != SPARE_NAME
    except (FileNotFoundError, ProcessLookupError):
        return False


def _log_name(pid: int) -> str:
    """The name of the file that a process writes to; empty where it is gone."""
    try:
        return Path(f"/proc/{pid}/fd/1").readlink().name
    except OSError:
        return ""


def _command_line(pid: int) -> str:
    """The words of a command line, with spaces between; empty where the process is gone."""
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return raw.replace(b"\0", b" ").decode(errors="replace")
