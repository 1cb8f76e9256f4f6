"""Start daemons and wait until they serve."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Waiter:
    """Waits for daemons, as long as all of them live."""

    layout: Layout
    daemons: dict[str, ProcessId]
    watch: Stopwatch

    def wait(self, steps: Iterator[str]) -> None:
        """Run `steps` to its end; it yields the daemon that it waits for, for the error message.

        ClusterError: a daemon died or the limit passed; with the end of its log.
        """
        for missing in steps:
            self._require_alive()
            if self.watch.seconds > START_LIMIT_S:
                log = self.layout.log(missing)
                raise ClusterError(
                    f"{missing} did not come up in {START_LIMIT_S:.0f} s; "
                    f"log: {log}\n{log_tail(log)}"
                )
            time.sleep(_POLL_S)  # a daemon announces nothing: steps try its port

    def _require_alive(self) -> None:
        for daemon, process in self.daemons.items():
            if not is_alive(process):
                log = self.layout.log(daemon)
                raise ClusterError(f"{daemon} ended while starting; log: {log}\n{log_tail(log)}")


def cluster_steps(record: Record, watch: Stopwatch, scheduler: str) -> Iterator[str]:
    """Yield the awaited daemon, until all answer and the ResourceManager has all nodes.

    With the scheduler ``labels``, all nodes but the last one have their label then.
    """
    addresses = record.addresses
    yield from zookeeper_steps(record, watch)
    brokers = kafka_steps(record, addresses.brokers)
    waited_for: str | None = ""
    waiting = {RESOURCE_MANAGER} if addresses.nodes else set()
    running = 0
    while waiting or waited_for is not None:
        if waited_for is not None:
            waited_for = next(brokers, None)
            if waited_for is None:
                watch.report(f"Kafka answers on {addresses.bootstrap_servers}")
        if RESOURCE_MANAGER in waiting:
            states = node_states(addresses.rm_url) or {}
            count = sum(states.get(node) == "RUNNING" for node in addresses.nodes)
            if count > running:
                running = count
                watch.report(f"{running} of {len(addresses.nodes)} nodes running")
            if running == len(addresses.nodes):
                waiting.discard(RESOURCE_MANAGER)
                if scheduler == LABELS:
                    labelled = labelled_nodes(addresses.nodes)
                    label_nodes(addresses.rm_url, LABEL, labelled)
                    watch.report(f"label {LABEL}: {', '.join(labelled)}")
        if waiting or waited_for is not None:
            yield waited_for or min(waiting)


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
