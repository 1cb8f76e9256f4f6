"""Clusters as tests of jobs use them: of plain processes, or in containers.

The processes of both are processes of this machine, which the tests can look at and signal.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import psutil
from small_disk import small_disk

from homeport.local_cluster import processes
from homeport.local_cluster.cluster import LocalCluster
from homeport.local_cluster.layout import read_record


@dataclass(frozen=True)
class Process:
    """A process of a cluster; ``container``: the id of its YARN container, or ""."""

    pid: int
    node: str
    container: str
    command: str


class NetworkUnderTest(Protocol):
    """Cuts between places; see ``tests.faults``."""

    def cut(self, *places: str) -> None:
        """Each of the places is cut from all others."""

    def cut_pair(self, a: str, b: str) -> None:
        """The two are cut from each other."""

    def cut_one_way(self, sender: str, receiver: str) -> None:
        """What the sender sends is lost."""

    def disconnect(self, *places: str) -> None:
        """Each of the places has no network."""

    def slow(self, place: str, delay_ms: int) -> None:
        """Each packet of the place is late."""

    def is_cut(self, a: str, b: str) -> bool:
        """Whether what ``a`` sends to ``b`` is lost."""

    def heal(self, *places: str) -> None:
        """Cuts of the places, or all, are gone."""


class ClusterUnderTest(Protocol):
    """What tests of jobs need of a cluster that is up."""

    name: str

    @property
    def nodes(self) -> Sequence[str]:
        """Their names."""

    @property
    def machines(self) -> Sequence[str]:
        """What ``kill_node`` and the like work on: the nodes; in containers all daemons."""

    @property
    def has_network(self) -> bool:
        """Whether its daemons have networks of their own, which can be cut."""

    @property
    def rm_url(self) -> str:
        """Base of the ResourceManager's web service."""

    @property
    def bootstrap_servers(self) -> str:
        """Of Kafka, for jobs and tests."""

    @property
    def log_dir(self) -> Path:
        """Where daemons log."""

    @property
    def faults(self) -> NetworkUnderTest:
        """Of its network."""

    def env(self) -> dict[str, str]:
        """The environment of its clients."""

    def status(self) -> dict[str, Any]:
        """``nodes``: each with host and address."""

    def state_dir(self, node: str) -> Path:
        """LOGGED_STORE_BASE_DIR of the node, as this machine has it."""

    def state_path(self, node: str) -> Path:
        """The same, as the node's own processes have it."""

    def kill_node(self, node: str) -> list[int]:
        """The node is off; the pids that died."""

    def start_node(self, node: str) -> None:
        """It is on again."""

    def pause_node(self, node: str) -> list[int]:
        """All of it stands still; the pids."""

    def resume_node(self, node: str) -> list[int]:
        """It goes on; the pids that woke."""

    def kill_node_manager(self, node: str) -> int:
        """SIGKILL of the NodeManager alone; its pid."""

    def stop_kafka(self, broker: int | None = None, *, orderly: bool = False) -> None:
        """The broker, or all, is gone; its data is left."""

    def start_kafka(self, *, broker: int | None = None) -> None:
        """It answers again, with its data."""

    def restart_resource_manager(self, *, orderly: bool = False, away_s: float = 0.0) -> None:
        """A new one has taken over from its records, after a while without any."""

    def command(self, module: str) -> list[str]:
        """What runs a module of homeport as a client of the cluster."""

    def job_values(self) -> Mapping[str, str]:
        """Configuration that a job needs on it."""

    def pid_here(self, node: str, pid: int) -> int:
        """The pid on this machine of the process that has ``pid`` on the node."""

    def broker_data(self) -> Path:
        """The folder of the first broker's logs."""

    def living(self) -> Iterator[Process]:
        """All that runs on its nodes, daemons too."""

    def daemon_pids(self) -> set[int]:
        """Of the daemons that were started last."""

    def manager_pid(self, node: str) -> int | None:
        """The NodeManager of the node; None where it does not run."""

    def is_paused(self, node: str) -> bool:
        """Whether its daemon stands still."""

    def is_off(self, node: str) -> bool:
        """Whether its daemon does not run."""

    def silent_daemons(self) -> Sequence[str]:
        """The daemons, but for the NodeManagers, that should serve and do not."""

    def small_disk(self, node: str) -> AbstractContextManager[None]:
        """In the block the node's state is on a small disk of its own, empty at first."""


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
