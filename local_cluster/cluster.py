"""A local cluster as one object: up, down, faults, status, and the environment of its clients."""

import contextlib
import os
import shutil
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Self

from msgspec import to_builtins
from msgspec.structs import replace

from homeport.job_coordinator.client_files import forget_tokens_of_cluster
from homeport.job_coordinator.file_locks import exclusive
from homeport.local_cluster import outages, preflight, processes
from homeport.local_cluster.daemons import RESOURCE_MANAGER, Daemons, hosts_option
from homeport.local_cluster.errors import ClusterError, ClusterRunningError
from homeport.local_cluster.hadoop_conf import (
    SIGKILL_DELAY_MS,
    HadoopSite,
    write_all,
    write_hosts,
    write_node,
)
from homeport.local_cluster.jars import Progress, default_cache, ensure_jars, jars_dir
from homeport.local_cluster.layout import Layout, Record, read_record, write_record
from homeport.local_cluster.net import network
from homeport.local_cluster.net.addresses import (
    MAX_BROKERS,
    MAX_NETWORK_NODES,
    MAX_NODES,
    ZOOKEEPER,
    Addresses,
    node_addresses,
    node_names,
    reserved,
    reserved_network,
)
from homeport.local_cluster.network_faults import NetworkFaults
from homeport.local_cluster.startup import Stopwatch, await_daemons, cluster_steps, node_steps
from homeport.local_cluster.status import names_up, state_of, status_of

NAME_VARIABLE = "HOMEPORT_CLUSTER"
"""Names the cluster of a shell."""
_LOGS_KEPT_S = 24 * 3600.0
_NODE_STOP_LIMIT_S = SIGKILL_DELAY_MS / 1000 + 5.0


def _quiet(_line: str) -> None:
    """Drop the line."""


class LocalCluster:
    """One ResourceManager, NodeManagers nm1 to nmN and one or more Kafka brokers.

    Without nodes there are only the brokers. On request there is a ZooKeeper too.

    All state is in the cluster's record, so several processes may use one cluster. As a context
    manager it is up inside the block and gone after it.
    """

    def __init__(  # noqa: PLR0913 - each says what the cluster is
        self,
        name: str,
        nodes: int = 3,
        cache: Path | None = None,
        *,
        brokers: int = 1,
        namespaces: bool = False,
        scheduler: str = "fair",
        zookeeper: bool = False,
        owner: processes.ProcessId | None = None,
        keeps_containers: bool = False,
    ) -> None:
        """Describe a cluster; nothing is started.

        With ``namespaces`` each daemon has a network of its own, which can be cut and slowed down.
        With ``keeps_containers`` a NodeManager that starts again finds its containers.
        The cluster is abandoned when ``owner`` has ended; None: the process that starts it.
        """
        if not 1 <= brokers <= MAX_BROKERS:
            raise ClusterError(f"a cluster has 1 to {MAX_BROKERS} brokers, not {brokers}")
        self._brokers, self._owner, self._scheduler = brokers, owner, scheduler
        self._keeps_containers = keeps_containers
        most = MAX_NETWORK_NODES if namespaces else MAX_NODES
        if not 0 <= nodes <= most:
            raise ClusterError(f"a cluster has 0 to {most} nodes, not {nodes}")
        self.name = name
        self._zookeeper = zookeeper
        self._namespaces = namespaces
        self._node_names = node_names(nodes)
        self._layout = Layout(cache or default_cache(), name)

    @classmethod
    def attach(cls, name: str) -> Self:
        """Return the cluster that runs under this name; ClusterError where there is none."""
        cluster = cls(name)
        cluster._record()
        return cluster

    # ------------------------------------------------------------------ up and down

    def up(self, progress: Progress = _quiet) -> None:
        """Start the cluster; return when Kafka answers and all nodes take work.

        Remains of a crashed cluster of this name are removed first. After a failure or an
        interrupt, nothing runs and the logs are kept. ClusterRunningError: it is up already.
        ClusterError: something is missing or a daemon failed; the message names it and its log.
        """
        with self._changing(progress):
            self._refuse_if_up()
            preflight.check_system()
            if self._namespaces:
                network.check()
            preflight.check_disk(self._layout.cache)
            roles = ["kafka", *(["hadoop"] if self._node_names else [])]
            roles += ["zookeeper"] if self._zookeeper else []
            wants_jars = not all(jars_dir(self._layout.cache, role).is_dir() for role in roles)
            java_home = preflight.require_tools(maven=wants_jars, skein=bool(self._node_names))
            for role in roles:
                ensure_jars(self._layout.cache, role, progress)
            if self._layout.state.exists():
                progress(f"removing what is left of a crashed cluster {self.name}")
            sweep(self._layout, keep_logs=False)  # old logs too
            try:
                self._start(java_home, Stopwatch(progress))
            except BaseException:
                # An interrupt as well as an error: a half-started cluster is of no use.
                with _uninterrupted():
                    sweep(self._layout, keep_logs=True)
                raise

    def down(self, progress: Progress = _quiet, *, keep_logs: bool = True) -> None:
        """Stop everything and delete the cluster's data; no process of it is left.

        Containers get SIGTERM while Kafka still answers. Logs stay until the next `up` of this
        name, unless `keep_logs` is false. A cluster that does not exist is no error.
        """
        with self._changing(progress):
            record = read_record(self._layout.state)
            try:
                if record is not None:
                    _stop_in_order(record, Stopwatch(progress))
            finally:
                # After an interrupt too: no half cluster is left.
                with _uninterrupted():
                    sweep(self._layout, keep_logs=keep_logs)

    def keep(self) -> None:
        """Keep the cluster when its owner ends: `remove_abandoned` leaves it alone."""
        with self._changing(_quiet):
            self._write(replace(self._record(), kept=True))

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self.down(keep_logs=error is not None)

    def kill_node(self, node: str) -> list[int]:
        """SIGKILL a NodeManager and everything it started, as if the machine lost power.

        Return the killed pids when none of the node's processes lives.
        """
        with self._changing(_quiet):
            return processes.sorted_pids(processes.kill_all(self._all_of(node)))

    def kill_node_manager(self, node: str) -> int:
        """SIGKILL a NodeManager alone: its containers live on, and YARN takes it for lost.

        Return its pid when it is gone. ClusterError: it does not run.
        """
        with self._changing(_quiet):
            manager = self._living_manager(node)
            processes.kill_one(manager)
            return manager.pid

    def pause_node(self, node: str) -> list[int]:
        """SIGSTOP a NodeManager and everything it started, as if the machine stood still.

        Return the stopped pids, with processes that were just starting. ClusterError: the
        NodeManager does not run.
        """
        with self._changing(_quiet):
            self._living_manager(node)
            return processes.sorted_pids(processes.freeze(self._all_of(node)))

    def resume_node(self, node: str) -> list[int]:
        """SIGCONT all processes of a paused node, children before parents. Return the woken pids.

        ClusterError: nothing of the node is paused.
        """
        with self._changing(_quiet):
            woken = processes.thaw(self._all_of(node))
            if not woken:
                raise ClusterError(f"{node} of cluster {self.name} is not paused")
            return processes.sorted_pids(woken)

    def start_node(self, node: str, progress: Progress = _quiet) -> None:
        """Start the NodeManager of a killed node again; return when it takes work."""
        with self._changing(progress):
            record = self._record_with(node)
            if processes.is_stopped(record.daemons[node]):
                raise ClusterError(f"{node} of cluster {self.name} is paused; resume-node wakes it")
            if processes.is_alive(record.daemons[node]):
                raise ClusterError(f"{node} of cluster {self.name} is running; kill-node ends it")
            self._keep_container_logs(node)
            self._start_node(record, node, Stopwatch(progress))

    def add_node(self, progress: Progress = _quiet) -> str:
        """Start one NodeManager more, with a name and an address of its own.

        Return the name when it takes work. ClusterError: there may be no more, or the nodes have
        networks of their own.
        """
        with self._changing(progress):
            record = self._record()
            names = node_names(len(record.addresses.nodes) + 1)
            if record.network is not None or not 1 < len(names) <= MAX_NODES:
                raise ClusterError(
                    f"cluster {self.name} gets no further node: nodes on loopback do, up to "
                    f"{MAX_NODES}, where there is one"
                )
            nodes = node_addresses(record.addresses.block, names)
            record = replace(record, addresses=replace(record.addresses, nodes=nodes))
            write_hosts(self._layout, nodes)
            jars = self._daemons(record).jars("hadoop")
            kind = self._scheduler, record.keeps_containers
            site = HadoopSite(self._layout, record.addresses, record.cluster_id, jars, *kind)
            write_node(site, names[-1])
            self._start_node(record, names[-1], Stopwatch(progress))
            return names[-1]

    def _start_node(self, record: Record, node: str, watch: Stopwatch) -> None:
        log = self._layout.log(node)
        offset = log.stat().st_size if log.exists() else 0
        process = self._daemons(record).start(node)
        record = replace(record, daemons={**record.daemons, node: process})
        self._write(record)
        steps = node_steps(record, node, log, offset)
        await_daemons(self._layout, {node: process}, watch, steps)
        watch.report(f"{node} is running")

    # ------------------------------------------------------------------ outages

    def stop_kafka(self, broker: int | None = None, *, orderly: bool = False) -> None:
        """End the broker and leave its data: by SIGKILL, or by SIGTERM and in order.

        ``broker``: None, here and below: all brokers at once.
        """
        with self._changing(_quiet):
            self._write(self._outages().stop_kafka(broker, orderly=orderly))

    def start_kafka(self, progress: Progress = _quiet, *, broker: int | None = None) -> None:
        """Start the broker again, on its port, with its data; return when it answers."""
        with self._changing(progress):
            of, watch = self._outages(), Stopwatch(progress)
            self._write(of.start_kafka(self._daemons(of.record), watch, broker))

    def pause_kafka(self, broker: int | None = None) -> list[int]:
        """SIGSTOP a broker, as if its machine stood still. Return the pids."""
        with self._changing(_quiet):
            return self._outages().pause_kafka(broker)

    def resume_kafka(self, broker: int | None = None) -> list[int]:
        """SIGCONT a paused broker. Return the pids."""
        with self._changing(_quiet):
            return self._outages().resume_kafka(broker)

    def restart_resource_manager(
        self, progress: Progress = _quiet, *, orderly: bool = False, away_s: float = 0.0
    ) -> None:
        """End the ResourceManager, and start one with its records on the same ports.

        Applications and their containers go on, for ``away_s`` without a ResourceManager.
        """
        with self._changing(progress):
            of, watch = self._outages(), Stopwatch(progress)
            daemons = self._daemons(of.record)
            self._write(of.restart_resource_manager(daemons, watch, orderly=orderly, away_s=away_s))

    # ------------------------------------------------------------------ what is

    def status(self) -> dict[str, Any]:
        """Return name, state (up, starting, crashed, down), addresses, brokers, nodes and pids."""
        found: dict[str, Any] = to_builtins(
            status_of(self._layout, read_record(self._layout.state))
        )
        return found

    def env(self) -> dict[str, str]:
        """Return the variables that clients of the cluster need beside their environment."""
        record = self._record()
        variables = {
            processes.CLUSTER_VARIABLE: record.cluster_id,
            NAME_VARIABLE: self.name,
            "HOMEPORT_BOOTSTRAP_SERVERS": record.addresses.bootstrap_servers,
        }
        if record.addresses.zookeeper_connect is not None:
            variables["HOMEPORT_ZOOKEEPER"] = record.addresses.zookeeper_connect
        if not record.addresses.nodes:
            return variables
        layout = self._layout
        before = [part for part in os.environ.get("PATH", "").split(":") if part != str(layout.bin)]
        return {
            **variables,
            "HADOOP_CONF_DIR": str(layout.conf),
            "JAVA_HOME": record.java_home,
            "PATH": ":".join([str(layout.bin), *before]),
            "SKEIN_CONFIG": str(layout.skein),
            "SKEIN_DRIVER_JAVA_OPTIONS": (
                f"-Djava.net.preferIPv4Stack=true {hosts_option(layout)}"
            ),
            "HOMEPORT_HOSTS_FILE": str(layout.hosts),
        }

    def none_is_up(self) -> str:
        """Return a line for a cluster that is not up, with the names of those that are."""
        others = ", ".join(names_up(self._layout.cache))
        line = f"no cluster {self.name} is up"
        return f"{line}, but by --name: {others}" if others else line

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return nm1 to nmN, with those that have joined since it is up."""
        record = read_record(self._layout.state)
        return self._node_names if record is None else tuple(record.addresses.nodes)

    @property
    def cluster_id(self) -> str:
        """Return the id of this `up`, which is in the environment of each of its processes."""
        return self._record().cluster_id

    @property
    def bootstrap_servers(self) -> str:
        """Return address and port of each broker."""
        return self._record().addresses.bootstrap_servers

    @property
    def rm_url(self) -> str:
        """Return the base of the ResourceManager's web service."""
        addresses = self._record().addresses
        if not addresses.nodes:
            raise ClusterError(f"cluster {self.name} has no nodes and so no ResourceManager")
        return addresses.rm_url

    @property
    def log_dir(self) -> Path:
        """Return the folder of the logs, one per daemon."""
        return self._layout.logs

    def log_files(self, node: str | None = None) -> list[Path]:
        """Return the logs of daemons and containers, of the whole cluster or of one node."""
        daemon_logs = sorted(self.log_dir.glob("*.log" if node is None else f"{node}.log"))
        folders = self._layout.root.glob(f"nodes/{node or '*'}/logs*")
        container_logs = (path for folder in folders for path in folder.rglob("*"))
        return daemon_logs + sorted(path for path in container_logs if path.is_file())

    @property
    def faults(self) -> NetworkFaults:
        """Return the faults of the cluster's own network; ClusterError where it has none."""
        record = self._record()
        if record.network is None:
            raise ClusterError(
                f"the nodes of cluster {self.name} are on loopback, which cannot be cut; "
                "homeport local up --namespaces gives each node a network of its own"
            )
        own = network.Network(record.network, record.addresses)
        return NetworkFaults(self._layout, record, own)

    def state_dir(self, node: str) -> Path:
        """Return the LOGGED_STORE_BASE_DIR of the node's containers."""
        self._record_with(node)
        return self._layout.node_state(node)

    # ------------------------------------------------------------------ inside

    def _start(self, java_home: Path, watch: Stopwatch) -> None:
        cluster_id = uuid.uuid4().hex
        with self._reserved() as addresses:
            record = Record(
                cluster_id=cluster_id,
                phase="starting",
                addresses=addresses,
                java_home=str(java_home),
                owner=self._owner or processes.own(),
                daemons={},
                network=f"hp{cluster_id[:8]}" if self._namespaces else None,
                keeps_containers=self._keeps_containers,
            )
            self._layout.root.mkdir(mode=0o700, parents=True)
            # Before the first process and namespace: whatever happens next, it finds all of them.
            self._write(record)
            own = None if record.network is None else network.Network(record.network, addresses)
            if own is not None:
                own.make()
            write_hosts(self._layout, addresses.nodes if own is None else own.machines)
            daemons = self._daemons(record)
            names = (*addresses.brokers, *([ZOOKEEPER] if self._zookeeper else []))
            if self._node_names:
                jars = daemons.jars("hadoop")
                kind = self._scheduler, self._keeps_containers
                write_all(HadoopSite(self._layout, addresses, cluster_id, jars, *kind))
                names = (RESOURCE_MANAGER, *names, *self._node_names)
            watch.report(f"starting {', '.join(names)} on {addresses.block}.0/24")
            record = replace(record, daemons={name: daemons.start(name) for name in names})
            self._write(record)
            steps = cluster_steps(record, watch, self._scheduler)
            await_daemons(self._layout, record.daemons, watch, steps)
        self._write(replace(record, phase="up"))

    def _reserved(self) -> contextlib.AbstractContextManager[Addresses]:
        if self._namespaces:
            routes, zookeeper = network.routes(), self._zookeeper
            return reserved_network(self._node_names, routes, self._brokers, zookeeper=zookeeper)
        owner = self.name  # a job's file may have its addresses: the same from each cache folder
        return reserved(self._node_names, self._brokers, zookeeper=self._zookeeper, owner=owner)

    def _refuse_if_up(self) -> None:
        record = read_record(self._layout.state)
        if record is not None and state_of(record) == "up":
            raise ClusterRunningError(
                f"cluster {self.name} is up already; take it down by homeport local down "
                f"--name {self.name}, or use another name"
            )

    def _keep_container_logs(self, node: str) -> None:
        """Move the logs of the node's last life away: a starting NodeManager deletes them."""
        logs = self._layout.node_logs(node)
        lives = len(list(logs.parent.glob(f"{logs.name}*")))
        logs.rename(logs.with_name(f"{logs.name}-{lives}"))
        logs.mkdir()

    def _daemons(self, record: Record) -> Daemons:
        cache = self._layout.cache
        return Daemons(
            layout=self._layout, record=record, jars=lambda role: ensure_jars(cache, role, _quiet)
        )

    def _outages(self) -> outages.Outages:
        return outages.Outages(self._layout, self._record())

    def _write(self, record: Record) -> None:
        write_record(self._layout.state, record)

    def _record(self) -> Record:
        record = read_record(self._layout.state)
        if record is None:
            raise ClusterError(
                f"{self.none_is_up()}; start it: homeport local up --name {self.name}"
            )
        return record

    def _record_with(self, node: str) -> Record:
        record = self._record()
        if node not in record.addresses.nodes:
            raise ClusterError(
                f"cluster {self.name} has no node {node!r}; "
                f"it has {', '.join(record.addresses.nodes) or 'none'}"
            )
        return record

    def _all_of(self, node: str) -> Callable[[], dict[processes.ProcessId, str]]:
        """Return what finds all processes of the node that are there now."""
        return partial(processes.of_cluster, self._record_with(node).cluster_id, node)

    def _living_manager(self, node: str) -> processes.ProcessId:
        manager = self._record_with(node).daemons[node]
        if not processes.is_alive(manager):
            raise ClusterError(f"{node} of cluster {self.name} is down; start-node starts it")
        return manager

    @contextlib.contextmanager
    def _changing(self, progress: Progress) -> Iterator[None]:
        """Be the only command that changes this cluster inside the block."""
        wait_line = f"waiting for another command on cluster {self.name}"
        with exclusive(self._layout.lock, lambda: progress(wait_line)):
            try:
                yield
            finally:
                if not self._layout.state.exists():
                    self._layout.lock.unlink(missing_ok=True)


def _stop_in_order(record: Record, watch: Stopwatch) -> None:
    """Stop all daemons: nodes first, since a NodeManager without its ResourceManager hangs."""
    for node in record.addresses.nodes:
        if node in record.daemons and processes.is_stopped(record.daemons[node]):
            # It takes no SIGTERM, and a SIGCONT would let it do harm: switch the machine off.
            processes.kill_all(partial(processes.of_cluster, record.cluster_id, node))
    living = {name: p for name, p in record.daemons.items() if processes.is_alive(p)}
    node_managers = {living[node] for node in record.addresses.nodes if node in living}
    for process in node_managers:
        processes.send(process, signal.SIGTERM)
    processes.wait_gone(node_managers, _NODE_STOP_LIMIT_S)
    # A NodeManager may end before containers that are slow to obey the SIGTERM it sent them.
    containers = {
        process
        for process, node in processes.of_cluster(record.cluster_id).items()
        if node in record.addresses.nodes
    }
    if record.keeps_containers:
        processes.end_groups(containers)
    processes.wait_gone(containers, SIGKILL_DELAY_MS / 1000)
    if record.addresses.nodes:
        watch.report("nodes stopped")
    _stop(living, RESOURCE_MANAGER, watch, f"{RESOURCE_MANAGER} stopped")
    if outages.end_kafka(record):
        watch.report("Kafka stopped")
    _stop(living, ZOOKEEPER, watch, "ZooKeeper stopped")


def _stop(
    living: dict[str, processes.ProcessId], daemon: str, watch: Stopwatch, report: str
) -> None:
    if daemon in living:
        outages.stop({living[daemon]}, outages.RM_STOP_LIMIT_S)
        watch.report(report)


def sweep(layout: Layout, *, keep_logs: bool) -> None:
    """Kill all that is left of the recorded cluster, then delete its files, the record last.

    The caller holds the cluster's lock.
    """
    record = read_record(layout.state)
    if record is not None:
        processes.kill_all(lambda: processes.of_cluster(record.cluster_id))
        if record.network is not None:
            network.remove(record.network)
    if keep_logs:
        for folder in (layout.fs, layout.temporary, layout.brokers, layout.skein, layout.bin):
            shutil.rmtree(folder, ignore_errors=True)
        for node in record.addresses.nodes if record is not None else ():
            shutil.rmtree(layout.node_local(node), ignore_errors=True)
            shutil.rmtree(layout.node_state(node), ignore_errors=True)
    elif layout.root.exists():
        _empty(layout)
    forget_tokens_of_cluster(layout.cache, layout.conf)
    layout.state.unlink(missing_ok=True)
    if not keep_logs:
        with contextlib.suppress(FileNotFoundError):
            layout.root.rmdir()


def _empty(layout: Layout) -> None:
    for path in layout.root.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path != layout.state:
            path.unlink()


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ignore SIGINT and SIGTERM inside the block: a second Ctrl-C must not stop the clean-up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def remove_abandoned(prefix: str, cache: Path | None = None, progress: Progress = _quiet) -> None:
    """Remove abandoned clusters whose names have the prefix, and logs older than a day.

    A cluster is abandoned when its owner has ended without `keep`, for example by SIGKILL.
    """
    folder = (cache or default_cache()) / "clusters"
    for root in folder.glob(f"{prefix}*"):
        if not (root / "state.json").exists() and time.time() - root.stat().st_mtime > _LOGS_KEPT_S:
            shutil.rmtree(root, ignore_errors=True)
    for state in folder.glob(f"{prefix}*/state.json"):
        record = read_record(state)
        if record is not None and not record.kept and not processes.is_alive(record.owner):
            name = state.parent.name
            progress(f"removing abandoned cluster {name}")
            LocalCluster(name, cache=cache).down(progress, keep_logs=False)
