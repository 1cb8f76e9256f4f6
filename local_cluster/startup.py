"""Start daemons and wait until they serve."""

import socket
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

from homeport.local_cluster import kafka_broker
from homeport.local_cluster.daemons import RESOURCE_MANAGER, log_tail
from homeport.local_cluster.errors import ClusterError
from homeport.local_cluster.hadoop_conf import LABEL, LABELS, labelled_nodes
from homeport.local_cluster.layout import Layout, Record
from homeport.local_cluster.net.addresses import ZOOKEEPER, ZOOKEEPER_PORT
from homeport.local_cluster.processes import ProcessId, is_alive
from homeport.local_cluster.resource_manager import label_nodes, node_states

START_LIMIT_S = 120.0

_POLL_S = 0.2
_PROBE_TIMEOUT_S = 2.0
#: What a NodeManager writes once the ResourceManager has accepted it. The ResourceManager's own
#: list is no help after a restart: it shows the node as RUNNING until its old life expires.
_REGISTERED = b"Registered with ResourceManager as"


class Stopwatch:
    """Reports lines with the seconds since it was made."""

    def __init__(self, progress: Callable[[str], None]) -> None:
        self._progress = progress
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Return the seconds since it was made."""
        return time.monotonic() - self._began

    def report(self, line: str) -> None:
        """Report one line."""
        self._progress(f"{self.seconds:5.1f} s  {line}")


def await_daemons(
    layout: Layout, daemons: Mapping[str, ProcessId], watch: Stopwatch, steps: Iterator[str]
) -> None:
    """Run `steps` to its end; it yields the daemon that it waits for, for the error message.

    ClusterError: one of ``daemons`` died or the limit passed; with the end of its log.
    """

    def failure(daemon: str, what: str) -> ClusterError:
        log = layout.log(daemon)
        return ClusterError(f"{daemon} {what}; log: {log}\n{log_tail(log)}")

    for missing in steps:
        for daemon, process in daemons.items():
            if not is_alive(process):
                raise failure(daemon, "ended while starting")
        if watch.seconds > START_LIMIT_S:
            raise failure(missing, f"did not come up in {START_LIMIT_S:.0f} s")
        time.sleep(_POLL_S)  # a daemon announces nothing: steps try its port


def cluster_steps(record: Record, watch: Stopwatch, scheduler: str) -> Iterator[str]:
    """Yield the awaited daemon, until all answer and the ResourceManager has all nodes.

    With the scheduler ``labels``, all nodes but the last one have their label then.
    """
    addresses = record.addresses
    yield from zookeeper_steps(record, watch)
    yield from kafka_steps(record, addresses.brokers)
    watch.report(f"Kafka answers on {addresses.bootstrap_servers}")
    if not addresses.nodes:
        return
    running = 0
    while running < len(addresses.nodes):
        states = node_states(addresses.rm_url) or {}
        count = sum(states.get(node) == "RUNNING" for node in addresses.nodes)
        if count > running:
            running = count
            watch.report(f"{running} of {len(addresses.nodes)} nodes running")
        else:
            yield RESOURCE_MANAGER
    if scheduler == LABELS:
        labelled = labelled_nodes(addresses.nodes)
        label_nodes(addresses.rm_url, LABEL, labelled)
        watch.report(f"label {LABEL}: {', '.join(labelled)}")


def zookeeper_steps(record: Record, watch: Stopwatch) -> Iterator[str]:
    """Yield ZooKeeper, if the cluster has one, until it takes connections."""
    address = record.addresses.zookeeper
    if address is None:
        return
    while not _listens(address, ZOOKEEPER_PORT):
        yield ZOOKEEPER
    watch.report(f"ZooKeeper answers on {record.addresses.zookeeper_connect}")


def kafka_steps(record: Record, brokers: Collection[str]) -> Iterator[str]:
    """Yield one of the brokers until all of them answer and take work."""
    names = list(record.addresses.brokers)
    ids = {name: number for number, name in enumerate(names, 1)}
    for broker in brokers:
        address = record.addresses.brokers[broker]
        while not {ids[name] for name in brokers} <= kafka_broker.working(address):
            yield broker


def resource_manager_steps(record: Record, nodes: Collection[str]) -> Iterator[str]:
    """Yield the ResourceManager until it has ``nodes`` as RUNNING."""
    while True:
        states = node_states(record.addresses.rm_url)
        if states is not None and all(states.get(node) == "RUNNING" for node in nodes):
            return
        yield RESOURCE_MANAGER


def node_steps(record: Record, node: str, log: Path, log_offset: int) -> Iterator[str]:
    """Yield the node until its log after `log_offset` has the registration, and it is RUNNING."""
    while not _written_since(log, log_offset, _REGISTERED):
        yield node
    while (node_states(record.addresses.rm_url) or {}).get(node) != "RUNNING":
        yield node


def _listens(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), timeout=_PROBE_TIMEOUT_S):
            return True
    except OSError:
        return False


def _written_since(log: Path, offset: int, text: bytes) -> bool:
    with log.open("rb") as file:
        file.seek(offset)
        return text in file.read()
