"""The broker or the ResourceManager of a running cluster goes away for a while and comes back.

Same addresses, same data: to everybody else it is a machine that was restarted. Each function
returns the cluster's record as it is afterwards; a daemon that was stopped on purpose is not in it.
"""

from __future__ import annotations

import signal
import time
from dataclasses import replace

from local_cluster import processes
from local_cluster.daemons import KAFKA, RESOURCE_MANAGER, Daemons
from local_cluster.errors import ClusterError
from local_cluster.layout import Layout, Record
from local_cluster.startup import Stopwatch, Waiter, kafka_steps, resource_manager_steps

#: A broker that stops in order hands over and flushes first.
KAFKA_STOP_LIMIT_S = 20.0
RM_STOP_LIMIT_S = 5.0


def stop_kafka(layout: Layout, record: Record, *, orderly: bool) -> Record:
    """The broker is gone, its data is left: by SIGTERM and in order, or by SIGKILL.

    Raises:
        ClusterError: it is stopped already.
    """
    broker = record.daemons.get(KAFKA)
    if broker is None or not processes.is_alive(broker):
        raise ClusterError(f"the broker of cluster {layout.name} is stopped; start-kafka starts it")
    _stop(broker, KAFKA_STOP_LIMIT_S if orderly else 0.0)
    return replace(record, daemons={n: p for n, p in record.daemons.items() if n != KAFKA})


def start_kafka(layout: Layout, record: Record, daemons: Daemons, watch: Stopwatch) -> Record:
    """The broker answers again, with its data.

    Raises:
        ClusterError: it runs, or does not come up.
    """
    broker = record.daemons.get(KAFKA)
    if broker is not None and processes.is_alive(broker):
        raise ClusterError(f"the broker of cluster {layout.name} is running; stop-kafka ends it")
    process = daemons.start(KAFKA)
    Waiter(layout, {KAFKA: process}, watch).wait(kafka_steps(record))
    watch.report(f"Kafka answers on {record.addresses.bootstrap_servers}")
    return replace(record, daemons={**record.daemons, KAFKA: process})


def restart_resource_manager(
    layout: Layout,
    record: Record,
    daemons: Daemons,
    watch: Stopwatch,
    *,
    orderly: bool,
    away_s: float,
) -> Record:
    """A new ResourceManager has taken over applications and containers; the nodes are back at it.

    There was none for ``away_s``. Nodes that are down or paused are not waited for.

    Raises:
        ClusterError: the cluster has none, or it does not come up.
    """
    if not record.addresses.nodes:
        raise ClusterError(f"cluster {layout.name} has no nodes and so no ResourceManager")
    _stop(record.daemons[RESOURCE_MANAGER], RM_STOP_LIMIT_S if orderly else 0.0)
    time.sleep(away_s)
    process = daemons.start(RESOURCE_MANAGER)
    nodes = {
        node
        for node in record.addresses.nodes
        if processes.is_alive(record.daemons[node])
        and not processes.is_stopped(record.daemons[node])
    }
    steps = resource_manager_steps(record, nodes)
    Waiter(layout, {RESOURCE_MANAGER: process}, watch).wait(steps)
    watch.report(f"the ResourceManager answers again, with {len(nodes)} nodes")
    return replace(record, daemons={**record.daemons, RESOURCE_MANAGER: process})


def _stop(process: processes.ProcessId, patience_s: float) -> None:
    """The process is gone: by SIGTERM within the patience, if any, else by SIGKILL."""
    if patience_s > 0:
        processes.send(process, signal.SIGTERM)
        if not processes.wait_gone({process}, patience_s):
            return
    processes.kill_one(process)
