"""The broker or the ResourceManager of a running cluster goes away for a while and comes back.

Same addresses, same data: to everybody else it is a machine that was restarted. Each function
returns the cluster's record as it is afterwards; a daemon that was stopped on purpose is not in it.
"""

from __future__ import annotations

import signal
import time
from dataclasses import replace

from homeport.local_cluster import processes
from homeport.local_cluster.daemons import RESOURCE_MANAGER, Daemons
from homeport.local_cluster.errors import ClusterError
from homeport.local_cluster.layout import Layout, Record
from homeport.local_cluster.startup import Stopwatch, Waiter, kafka_steps, resource_manager_steps

#: A broker that stops in order hands over and flushes first.
KAFKA_STOP_LIMIT_S = 20.0
RM_STOP_LIMIT_S = 5.0


def stop_kafka(
    layout: Layout, record: Record, broker: int | None = None, *, orderly: bool
) -> Record:
    """End the broker and leave its data: by SIGTERM and in order, or by SIGKILL.

    ``broker``: its id; None: all that run, all at once. ClusterError: it is stopped already, or
    there is none of that id.
    """
    running = _running(layout, record, broker)
    stop(set(running.values()), KAFKA_STOP_LIMIT_S if orderly else 0.0)
    return replace(record, daemons={n: p for n, p in record.daemons.items() if n not in running})


def end_kafka(record: Record) -> bool:
    """End all brokers, whose data is not used any more. Return whether one ran.

    The last of several could not stop in order, as most controllers are gone by then.
    """
    running = set(_living(record).values())
    stop(running, KAFKA_STOP_LIMIT_S if record.addresses.broker_count == 1 else 0.0)
    return bool(running)


def start_kafka(
    layout: Layout, record: Record, daemons: Daemons, watch: Stopwatch, broker: int | None = None
) -> Record:
    """Start the broker again, with its data; return when it answers.

    Where most of the brokers run, all of those that run take work, and each of them knows it.

    ``broker``: its id; None: all that are stopped. ClusterError: it runs, or does not come up, or
    there is none of that id.
    """
    living = _living(record)
    stopped = [name for name in _named(layout, record, broker) if name not in living]
    if not stopped:
        raise ClusterError(f"{_words(layout, record, broker)} is running; stop-kafka ends it")
    started = {name: daemons.start(name) for name in stopped}
    record = replace(record, daemons={**record.daemons, **started})
    if 2 * len(_living(record)) <= record.addresses.broker_count:
        watch.report(f"{', '.join(stopped)}: started; works once most of the brokers run")
        return record
    # Also one that was started before and waited for most of them; each knows of all others then.
    awake = {name: p for name, p in _living(record).items() if not processes.is_stopped(p)}
    Waiter(layout, awake, watch).wait(kafka_steps(record, awake))
    watch.report(f"Kafka answers on {record.addresses.bootstrap_servers}")
    return record


def pause_kafka(layout: Layout, record: Record, broker: int | None = None) -> list[int]:
    """SIGSTOP the broker, as if its machine stood still. Return the pids.

    ``broker``: its id; None: all that run. ClusterError: it is stopped, or there is none of that
    id. TimeoutError: it runs on, held by the kernel.
    """
    running = _running(layout, record, broker)
    processes.pause(running.values())
    return processes.sorted_pids(running.values())


def resume_kafka(layout: Layout, record: Record, broker: int | None = None) -> list[int]:
    """SIGCONT the broker. Return the pids.

    ``broker``: its id; None: all that stand still. ClusterError: it does not stand still, or there
    is none of that id.
    """
    living, named = _living(record), _named(layout, record, broker)
    paused = [p for name in named if (p := living.get(name)) and processes.is_stopped(p)]
    if not paused:
        raise ClusterError(f"{_words(layout, record, broker)} is not paused")
    for process in paused:
        processes.send(process, signal.SIGCONT)
    return processes.sorted_pids(paused)


def _running(layout: Layout, record: Record, broker: int | None) -> dict[str, processes.ProcessId]:
    """Return {name: process} of the broker, or of all that run; ClusterError: it does not."""
    living, named = _living(record), _named(layout, record, broker)
    found = {name: living[name] for name in named if name in living}
    if not found:
        raise ClusterError(f"{_words(layout, record, broker)} is stopped; start-kafka starts it")
    return found


def _living(record: Record) -> dict[str, processes.ProcessId]:
    daemons = {name: record.daemons.get(name) for name in record.addresses.brokers}
    return {name: p for name, p in daemons.items() if p is not None and processes.is_alive(p)}


def _named(layout: Layout, record: Record, broker: int | None) -> list[str]:
    names = list(record.addresses.brokers)
    if broker is None:
        return names
    if not 1 <= broker <= len(names):
        last = f" to {len(names)}" if len(names) > 1 else ""
        raise ClusterError(f"cluster {layout.name} has no broker {broker}; it has 1{last}")
    return [names[broker - 1]]


def _words(layout: Layout, record: Record, broker: int | None) -> str:
    if broker is None and record.addresses.broker_count > 1:
        return f"each broker of cluster {layout.name}"
    return f"{'the broker' if broker is None else f'broker {broker}'} of cluster {layout.name}"


def restart_resource_manager(
    layout: Layout,
    record: Record,
    daemons: Daemons,
    watch: Stopwatch,
    *,
    orderly: bool,
    away_s: float,
) -> Record:
    """Start a ResourceManager that takes over applications and containers; wait for the nodes.

    There was none for ``away_s``. Nodes that are down or paused are not waited for. ClusterError:
    the cluster has none, or it does not come up.
    """
    if not record.addresses.nodes:
        raise ClusterError(f"cluster {layout.name} has no nodes and so no ResourceManager")
    stop({record.daemons[RESOURCE_MANAGER]}, RM_STOP_LIMIT_S if orderly else 0.0)
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


def stop(stopped: set[processes.ProcessId], patience_s: float) -> None:
    """End the processes: by SIGTERM within the patience, if any, else by SIGKILL."""
    left = stopped
    if patience_s > 0:
        for process in stopped:
            processes.send(process, signal.SIGTERM)
            # One that stands still hears it once it goes on.
            processes.send(process, signal.SIGCONT)
        left = processes.wait_gone(stopped, patience_s)
    for process in left:
        processes.send(process, signal.SIGKILL)
    for process in left:
        processes.kill_one(process)
