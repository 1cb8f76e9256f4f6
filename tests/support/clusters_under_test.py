"""Clusters as tests of jobs use them: of plain processes, or in containers.

The processes of both are processes of this machine, which the tests can look at and signal.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import psutil
from small_disk import small_disk

from homeport.local_cluster import processes
from homeport.local_cluster.cluster import LocalCluster
from homeport.local_cluster.layout import read_record

if TYPE_CHECKING:
    from clusters_in_containers import ContainersUnderTest


@dataclass(frozen=True)
class Process:
    """A process of a cluster; ``container``: the id of its YARN container, or ""."""

    pid: int
    node: str
    container: str
    command: str


class LocalUnderTest(LocalCluster):
    """A cluster of plain processes."""

    @property
    def machines(self) -> Sequence[str]:
        """The nodes."""
        return self.nodes

    @property
    def has_network(self) -> bool:
        """As it was started: with namespaces or on loopback."""
        return self._record().network is not None

    def command(self, module: str) -> list[str]:
        """The interpreter of the tests."""
        return [sys.executable, "-m", module]

    def job_values(self) -> Mapping[str, str]:
        """None: all nodes have the interpreter of the tests."""
        return {}

    def pid_here(self, node: str, pid: int) -> int:
        """The same: nodes have no pids of their own."""
        del node
        return pid

    def state_path(self, node: str) -> Path:
        """The same as ``state_dir``: nodes have no files of their own."""
        return self.state_dir(node)

    def broker_data(self) -> Path:
        """The folder of the first broker's logs."""
        return self._layout.broker("kafka") / "data"

    def living(self) -> Iterator[Process]:
        """All that has the cluster's mark."""
        for process, node in processes.of_cluster(self.cluster_id).items():
            found = read_process(process.pid, node)
            if found is not None:
                yield found

    def daemon_pids(self) -> set[int]:
        """Of the daemons that were started last."""
        return {process.pid for process in self._daemons_now().values()}

    def manager_pid(self, node: str) -> int | None:
        """The NodeManager of the node; None where it does not run."""
        process = self._daemons_now()[node]
        return process.pid if processes.is_alive(process) else None

    def is_paused(self, node: str) -> bool:
        """Whether its daemon stands still."""
        return processes.is_stopped(self._daemons_now()[node])

    def is_off(self, node: str) -> bool:
        """Whether its NodeManager does not run."""
        return self.manager_pid(node) is None

    def silent_daemons(self) -> Sequence[str]:
        """None: a daemon that is started is waited for."""
        return ()

    def small_disk(self, node: str) -> AbstractContextManager[None]:
        """Mounted over the node's state."""
        return small_disk(self.state_dir(node))

    def _daemons_now(self) -> Mapping[str, processes.ProcessId]:
        record = read_record(self._layout.state)
        assert record is not None
        return record.daemons


def read_process(pid: int, node: str) -> Process | None:
    """What /proc says of it; None: it has ended."""
    try:
        process = psutil.Process(pid)
        container = process.environ().get("CONTAINER_ID", "")
        return Process(pid, node, container, " ".join(process.cmdline()))
    except (psutil.Error, OSError):
        return None


ClusterUnderTest: TypeAlias = "LocalUnderTest | ContainersUnderTest"
