"""The orderly end of a cluster's daemons."""

from __future__ import annotations

import signal
from functools import partial

from homeport.local_cluster import outages, processes
from homeport.local_cluster.daemons import RESOURCE_MANAGER
from homeport.local_cluster.hadoop_conf import SIGKILL_DELAY_MS
from homeport.local_cluster.layout import Record
from homeport.local_cluster.net.addresses import ZOOKEEPER
from homeport.local_cluster.startup import Stopwatch

_NODE_STOP_LIMIT_S = SIGKILL_DELAY_MS / 1000 + 5.0


def stop_in_order(record: Record, watch: Stopwatch) -> None:
    """Ask daemons to stop: nodes first, as a NodeManager without its ResourceManager hangs."""
    for node in record.addresses.nodes:
        if node in record.daemons and processes.is_stopped(record.daemons[node]):
            # It hears nothing, and woken it would do harm: a machine that is switched off.
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
        processes.send(living[daemon], signal.SIGTERM)
        processes.wait_gone({living[daemon]}, outages.RM_STOP_LIMIT_S)
        watch.report(report)
