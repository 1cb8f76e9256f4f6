"""A cluster in containers as tests use it. Its client's programs run in the client's container."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from clusters_under_test import Process, read_process
from container_faults import ContainerFaults
from docker_cluster.cluster import SERVICES, DockerCluster
from docker_cluster.settings import STATE
from small_disk import small_disk
from waiting import until

from homeport.local_cluster import hadoop_conf
from homeport.local_cluster.processes import process_of

_HEALTH_LIMIT_S = 120.0
_MANAGER = "nodemanager.NodeManager"


class ContainersUnderTest(DockerCluster):
    """The same interface as a cluster of plain processes.

    Clients write tokens and caches into the folder ``work``, which is theirs and the tests'.
    """

    @property
    def work(self) -> Path:
        """A folder that has the same path here and in the client's container."""
        return self._folder / "work"

    @property
    def log_dir(self) -> Path:
        """What compose and the engine have written."""
        return self._folder

    @property
    def bootstrap_servers(self) -> str:
        """The same address for this machine and for the containers."""
        return f"{self.addresses['kafka']}:9092"

    @property
    def rm_url(self) -> str:
        """Base of the ResourceManager's web service, on loopback."""
        return f"http://127.0.0.1:{self._up().ports['RM_PORT']}"

    @property
    def faults(self) -> ContainerFaults:
        """What may befall its containers."""
        containers = {service: self.container(service) for service in SERVICES}
        network = f"{self._up().name}_cluster"
        return ContainerFaults(self.engine, containers, network, self.addresses)

    def env(self) -> dict[str, str]:
        """For what the tests themselves ask YARN, and where the client keeps tokens."""
        conf = self.work / "conf"
        conf.mkdir(parents=True, exist_ok=True)
        address = self.rm_url.removeprefix("http://")
        site = hadoop_conf.site_xml({"yarn.resourcemanager.webapp.address": address})
        (conf / "yarn-site.xml").write_text(site, encoding="utf-8")
        return {
            **({"DOCKER_HOST": self.engine.host} if self.engine.host else {}),
            "HADOOP_CONF_DIR": str(conf),
            "HOMEPORT_CACHE_DIR": str(self.work / "cache"),
        }

    def status(self) -> dict[str, Any]:
        """``nodes``: each with its host and its address."""
        nodes = [{"host": n, "address": self.addresses[n]} for n in self.nodes]
        return {**super().status(), "nodes": nodes}

    @property
    def machines(self) -> Sequence[str]:
        """All daemons: each has a container."""
        return [service for service in SERVICES if service != "client"]

    @property
    def has_network(self) -> bool:
        """Each container has."""
        return True

    def state_dir(self, node: str) -> Path:
        """What the node has for its state, as this machine sees it; its volume where it is off."""
        first = self._first(node)
        return Path(f"/proc/{first}/root{STATE}") if first else self._volume(node)

    def state_path(self, node: str) -> Path:
        """The mount point, the same on every node."""
        del node
        return Path(STATE)

    def _volume(self, node: str) -> Path:
        number = self.nodes.index(node) + 1
        volume = f"{self.name}_state{number}"
        text = self.engine.run("volume", "inspect", "-f", "{{.Mountpoint}}", volume)
        return Path(text.strip())

    def command(self, module: str) -> list[str]:
        """In the client's container."""
        cache = f"HOMEPORT_CACHE_DIR={self.work / 'cache'}"
        python = ["/opt/homeport/bin/python", "-m", module]
        return ["docker", "exec", "--env", cache, self.container("client"), *python]

    def job_values(self) -> Mapping[str, str]:
        """The environment travels: nodes have none."""
        return {"yarn.python.archive": f"/homeport/environments/{self.archive.name}"}

    # ------------------------------------------------------------------ processes

    def living(self) -> Iterator[Process]:
        """All that runs in the containers of the nodes."""
        for node in self.nodes:
            for pid in self._pids(node):
                found = read_process(pid, node)
                if found is not None:
                    yield found

    def daemon_pids(self) -> set[int]:
        """The NodeManagers, and the first process of each node's container."""
        found = {pid for node in self.nodes if (pid := self.manager_pid(node)) is not None}
        return found | {self._first(node) for node in self.nodes}

    def manager_pid(self, node: str) -> int | None:
        """The NodeManager of the node; None where it does not run."""
        for pid in self._pids(node):
            found = read_process(pid, node)
            if found is not None and _MANAGER in found.command and process_of(pid) is not None:
                return pid
        return None

    def pid_here(self, node: str, pid: int) -> int:
        """By the numbers that the kernel keeps of a process for each of its namespaces."""
        for here in self._pids(node):
            if _pid_inside(here) == pid:
                return here
        raise AssertionError(f"{node} has no process {pid}")

    def _pids(self, node: str) -> list[int]:
        first = self._first(node)
        if first == 0:
            return []
        namespace = Path(f"/proc/{first}/ns/pid").readlink()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if (folder / "ns" / "pid").readlink() == namespace:
                    found.append(int(folder.name))
            except OSError:
                continue  # it has ended
        return found

    def _first(self, node: str) -> int:
        """0: the container does not run."""
        return int(self._inspect(node)["Pid"])

    def _inspect(self, service: str) -> dict[str, Any]:
        text = self.engine.run("inspect", "-f", "{{json .State}}", self.container(service))
        found: dict[str, Any] = json.loads(text)
        return found

    # ------------------------------------------------------------------ faults of machines

    def kill_node(self, node: str) -> list[int]:
        """The node's machine is off; the pids that died."""
        killed = self._pids(node)
        self.faults.kill(node)
        return killed

    def start_node(self, node: str) -> None:
        """It is on again, with its volume."""
        self.faults.start(node)

    def restart_node(self, node: str) -> None:
        """It was stopped in order, and is on again, with its volume."""
        self.engine.run("restart", self.container(node))

    def pause_node(self, node: str) -> list[int]:
        """All of it stands still; the pids."""
        found = self._pids(node)
        self.faults.pause(node)
        return found

    def resume_node(self, node: str) -> list[int]:
        """It goes on; the pids that woke."""
        if self._inspect(node)["Paused"]:
            self.faults.resume(node)
        manager = self.manager_pid(node)
        if manager is not None:
            os.kill(manager, signal.SIGCONT)
        return self._pids(node)

    def is_off(self, node: str) -> bool:
        """Whether its container does not run."""
        return self._first(node) == 0

    def is_paused(self, node: str) -> bool:
        """Whether its daemon stands still: all of the container, or a NodeManager alone."""
        manager = self.manager_pid(node)
        stands = (
            manager is not None
            and (found := process_of(manager)) is not None
            and found.status() == "stopped"
        )
        return bool(self._inspect(node)["Paused"]) or stands

    def kill_node_manager(self, node: str) -> int:
        """SIGKILL of the NodeManager; the container ends with it. Its pid."""
        pid = self.manager_pid(node)
        assert pid is not None, f"the NodeManager of {node} does not run"
        os.kill(pid, signal.SIGKILL)
        return pid

    def stop_kafka(self, broker: int | None = None, *, orderly: bool = False) -> None:
        """The broker is gone; its data is left."""
        assert broker in {None, 1}
        self.engine.run("stop" if orderly else "kill", self.container("kafka"))

    def start_kafka(self, *, broker: int | None = None) -> None:
        """It answers again, with its data."""
        assert broker in {None, 1}
        self.faults.start("kafka")
        self._await_health("kafka")

    def restart_resource_manager(self, *, orderly: bool = False, away_s: float = 0.0) -> None:
        """A new one has taken over from its records, after a while without any."""
        self.engine.run("stop" if orderly else "kill", self.container("rm"))
        time.sleep(away_s)
        self.faults.start("rm")
        self._await_health("rm")

    def silent_daemons(self) -> Sequence[str]:
        """Those that say of themselves that they do not serve, or do not run."""
        others = [service for service in self.machines if service not in self.nodes]
        return [s for s in others if self.is_off(s) or not self._serves(self._up(), self.engine, s)]

    def small_disk(self, node: str) -> AbstractContextManager[None]:
        """Mounted over the node's volume, in its container."""
        there = ["nsenter", "--target", str(self._first(node)), "--mount", "--pid"]
        return small_disk(Path(STATE), there)

    def _await_health(self, service: str) -> None:
        def serves() -> bool:
            return self._serves(self._up(), self.engine, service)

        until(serves, lambda: f"{service} does not serve", _HEALTH_LIMIT_S, every_s=0.2)

    def broker_data(self) -> Path:
        """The folder of the broker's logs."""
        text = self.engine.run("volume", "inspect", "-f", "{{.Mountpoint}}", f"{self.name}_kafka")
        return Path(text.strip()) / "kafka"


def _pid_inside(here: int) -> int | None:
    try:
        lines = Path(f"/proc/{here}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(x.split()[-1]) for x in lines if x.startswith("NSpid:")), None)
