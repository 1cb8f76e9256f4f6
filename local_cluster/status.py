"""The status of a cluster, by its record, its processes, its brokers and YARN."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from msgspec import Struct

from homeport.job_coordinator.model.wire_form import about
from homeport.local_cluster import kafka_broker, processes
from homeport.local_cluster.daemons import RESOURCE_MANAGER
from homeport.local_cluster.errors import ClusterError
from homeport.local_cluster.layout import Layout, Record, read_record
from homeport.local_cluster.net.addresses import ZOOKEEPER
from homeport.local_cluster.resource_manager import node_states


class BrokerStatus(Struct, frozen=True):
    """A broker."""

    id: Annotated[int, about("its number")]
    name: Annotated[str, about("kafka, kafka2...")]
    address: Annotated[str, about("where it listens")]
    state: Annotated[str, about("RUNNING, STARTING, PAUSED or DOWN")]
    controller: Annotated[bool, about("whether it is the active controller")]
    pid: Annotated[int | None, about("of its process")]


class NodeStatus(Struct, frozen=True):
    """A node."""

    host: Annotated[str, about("nm1, nm2...")]
    address: Annotated[str, about("where it listens")]
    state: Annotated[str, about("YARN's word, or DOWN, PAUSED")]
    pids: Annotated[Sequence[int], about("of its processes")]


class ClusterStatus(Struct, frozen=True):
    """A cluster, as ``homeport local status --json`` shows it."""

    name: Annotated[str, about("of the cluster")]
    state: Annotated[str, about("up, starting, crashed or down")]
    bootstrap_servers: Annotated[str | None, about("its Kafka")]
    resource_manager: Annotated[str | None, about("base of the ResourceManager's web service")]
    zookeeper: Annotated[str | None, about("its ZooKeeper")]
    brokers: Annotated[Sequence[BrokerStatus], about("each broker")]
    nodes: Annotated[Sequence[NodeStatus], about("each node")]
    conf_dir: Annotated[str | None, about("folder of Hadoop's configuration")]
    log_dir: Annotated[str, about("folder of the logs of daemons")]


def state_of(record: Record) -> str:
    """Return up, starting or crashed.

    A cluster with a killed node, or with a broker that was stopped on purpose, is not crashed.
    """
    if record.phase == "starting":
        return "starting" if processes.is_alive(record.owner) else "crashed"
    needed = [*record.addresses.brokers]
    if record.addresses.has_zookeeper:
        needed.append(ZOOKEEPER)
    if record.addresses.nodes:
        needed.append(RESOURCE_MANAGER)
    kept = [record.daemons[name] for name in needed if name in record.daemons]
    alive = all(processes.is_alive(process) for process in kept)
    return "up" if alive else "crashed"


def status_of(layout: Layout, record: Record | None) -> ClusterStatus:
    """Return name, state, addresses, and each broker and node with its pids."""
    addresses = None if record is None else record.addresses
    has_nodes = addresses is not None and bool(addresses.nodes)
    return ClusterStatus(
        name=layout.name,
        state="down" if record is None else state_of(record),
        bootstrap_servers=None if addresses is None else addresses.bootstrap_servers,
        resource_manager=addresses.rm_url if addresses is not None and has_nodes else None,
        zookeeper=None if addresses is None else addresses.zookeeper_connect,
        brokers=[] if record is None else brokers_of(record),
        nodes=[] if record is None else nodes_of(record),
        conf_dir=str(layout.conf) if has_nodes else None,
        log_dir=str(layout.logs),
    )


def names_up(cache: Path) -> list[str]:
    """Return the names of the clusters in the cache folder that are up, in order.

    A folder whose record cannot be read is none.
    """
    found = []
    for path in sorted((cache / "clusters").glob("*/state.json")):
        with contextlib.suppress(ClusterError, OSError):
            record = read_record(path)
            if record is not None and state_of(record) == "up":
                found.append(path.parent.name)
    return found


def brokers_of(record: Record) -> list[BrokerStatus]:
    """Return each broker's pid and state: RUNNING, DOWN, PAUSED, or STARTING until it takes work.

    ``controller``: whether it is the active controller, by a broker that answers.
    """
    addresses, living = record.addresses.brokers, record.living_brokers
    asked = [addresses[name] for name, p in living.items() if not processes.is_stopped(p)]
    answers = (kafka_broker.working(address) for address in asked)
    working: frozenset[int] = next(filter(None, answers), frozenset())
    controllers = (kafka_broker.active_controller(address) for address in asked)
    controller = next((found for found in controllers if found is not None), None)
    result = []
    for number, (name, address) in enumerate(addresses.items(), 1):
        process = living.get(name)
        if process is None:
            state = "DOWN"
        elif processes.is_stopped(process):
            state = "PAUSED"
        else:
            state = "RUNNING" if number in working else "STARTING"
        pid = None if process is None else process.pid
        result.append(BrokerStatus(number, name, address, state, number == controller, pid))
    return result


def nodes_of(record: Record) -> list[NodeStatus]:
    """Return each node with its pids and its state in YARN.

    The state is DOWN without a NodeManager and PAUSED while that is stopped, whatever YARN's is.
    """
    if not record.addresses.nodes:
        return []
    states = node_states(record.addresses.rm_url) or {}
    living = processes.of_cluster(record.cluster_id)
    result = []
    for node, address in record.addresses.nodes.items():
        state = states.get(node, "UNKNOWN")
        process = record.daemons.get(node)
        if state in ("RUNNING", "UNKNOWN") and (process is None or not processes.is_alive(process)):
            state = "DOWN"
        if process is not None and processes.is_stopped(process):
            state = "PAUSED"
        pids = processes.sorted_pids(p for p, its_node in living.items() if its_node == node)
        result.append(NodeStatus(node, address, state, pids))
    return result
