"""The end of a cluster: its daemons in order, then whatever is left of it."""

from __future__ import annotations

import contextlib
import shutil
import signal
import threading
from collections.abc import Iterator
from functools import partial

from homeport.job_coordinator.client_files import forget_tokens_of_cluster
from homeport.local_cluster import outages, processes
from homeport.local_cluster.daemons import RESOURCE_MANAGER
from homeport.local_cluster.hadoop_conf import SIGKILL_DELAY_MS
from homeport.local_cluster.layout import Layout, Record, read_record
from homeport.local_cluster.net import network
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
        outages.stop({living[daemon]}, outages.RM_STOP_LIMIT_S)
        watch.report(report)


def sweep(layout: Layout, *, keep_logs: bool) -> None:
    """Kill whatever is left of the recorded cluster, then delete its files, the record last.

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
def uninterrupted() -> Iterator[None]:
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
