"""What is left of a cluster, and its removal."""

from __future__ import annotations

import contextlib
import shutil

from homeport.job_coordinator.client_files import forget_tokens_of_cluster
from homeport.local_cluster import processes
from homeport.local_cluster.layout import Layout, read_record
from homeport.local_cluster.net import network


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
    """Of the cluster's folder only the record is left."""
    for path in layout.root.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path != layout.state:
            path.unlink()
