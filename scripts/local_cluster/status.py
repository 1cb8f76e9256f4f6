"""What a cluster's record, its processes and YARN say about it."""

from __future__ import annotations

from typing import Any

from local_cluster import processes
from local_cluster.daemons import KAFKA, RESOURCE_MANAGER
from local_cluster.layout import Record
from local_cluster.resource_manager import node_states


def state_of(record: Record) -> str:
    """up, starting or crashed.

    A killed node does not make a crashed cluster, nor does a broker that was stopped on purpose.
    """
    if record.phase == "starting":
        return "starting" if processes.is_alive(record.owner) else "crashed"
    needed = (RESOURCE_MANAGER, KAFKA) if record.addresses.nodes else (KAFKA,)
    kept = [record.daemons[name] for name in needed if name in record.daemons]
    alive = all(processes.is_alive(process) for process in kept)
    return "up" if alive else "crashed"


def nodes_of(record: Record) -> list[dict[str, Any]]:
    """Each node: YARN's word for its state, and its pids.

    DOWN where its NodeManager is not there, PAUSED where it is stopped, whatever YARN says.
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
        result.append({"host": node, "address": address, "state": state, "pids": pids})
    return result
