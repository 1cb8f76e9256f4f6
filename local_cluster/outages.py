"""Outages of the brokers or the ResourceManager of a running cluster.

A daemon keeps its address and data, so that to the others it looks like a machine that restarts.
Methods that start or stop a daemon return the cluster's new record, which leaves out daemons that
were stopped on purpose.
"""

import signal
import time
from dataclasses import dataclass

from msgspec.structs import replace

from homeport.local_cluster import processes
from homeport.local_cluster.daemons import RESOURCE_MANAGER, Daemons
from homeport.local_cluster.errors import ClusterError
from homeport.local_cluster.layout import Layout, Record
from homeport.local_cluster.startup import (
    Stopwatch,
    await_daemons,
    kafka_steps,
    resource_manager_steps,
)

#: A broker that stops in order hands over and flushes first.
KAFKA_STOP_LIMIT_S = 20.0
RM_STOP_LIMIT_S = 5.0


@dataclass(frozen=True, slots=True)
class Outages:
    """Outages of one cluster; ``record``: its record before the outage."""

    layout: Layout
    record: Record

    def stop_kafka(self, broker: int | None = None, *, orderly: bool) -> Record:
        """End the broker and leave its data: by SIGTERM and in order, or by SIGKILL.

        ``broker``: its id; None: all brokers that run, at once. ClusterError: the broker is stopped
        already, or no broker has that id.
        """
        running = self._running(broker)
        stop(set(running.values()), KAFKA_STOP_LIMIT_S if orderly else 0.0)
        return self._with({n: p for n, p in self.record.daemons.items() if n not in running})

    def start_kafka(self, daemons: Daemons, watch: Stopwatch, broker: int | None = None) -> Record:
        """Start the broker again, with its data; return when it answers.

        If most of the brokers then run, this waits until each of them takes work and knows that the
        others do.

        ``broker``: its id; None: all brokers that are stopped. ClusterError: the broker runs, does
        not come up, or no broker has that id.
        """
        stopped = [name for name in self._named(broker) if name not in self.record.living_brokers]
        if not stopped:
            raise ClusterError(f"{self._words(broker)} is running; stop-kafka ends it")
        started = {name: daemons.start(name) for name in stopped}
        record = self._with({**self.record.daemons, **started})
        living = record.living_brokers
        if 2 * len(living) <= record.addresses.broker_count:
            watch.report(f"{', '.join(stopped)}: started; works once most of the brokers run")
            return record
        # Also one that was started before and waited for most of them.
        awake = {name: p for name, p in living.items() if not processes.is_stopped(p)}
        await_daemons(self.layout, awake, watch, kafka_steps(record, awake))
        watch.report(f"Kafka answers on {record.addresses.bootstrap_servers}")
        return record

    def pause_kafka(self, broker: int | None = None) -> list[int]:
        """SIGSTOP the broker, as if its machine stood still. Return the pids.

        ``broker``: its id; None: all that run. ClusterError: it is stopped, or there is none of
        that id. TimeoutError: it runs on, held by the kernel.
        """
        running = self._running(broker).values()
        processes.pause(running)
        return processes.sorted_pids(running)

    def resume_kafka(self, broker: int | None = None) -> list[int]:
        """SIGCONT the broker. Return the pids.

        ``broker``: its id; None: all that stand still. ClusterError: it does not stand still, or
        there is none of that id.
        """
        living = self.record.living_brokers
        running = [living[name] for name in self._named(broker) if name in living]
        paused = [process for process in running if processes.is_stopped(process)]
        if not paused:
            raise ClusterError(f"{self._words(broker)} is not paused")
        for process in paused:
            processes.send(process, signal.SIGCONT)
        return processes.sorted_pids(paused)

    def restart_resource_manager(
        self, daemons: Daemons, watch: Stopwatch, *, orderly: bool, away_s: float
    ) -> Record:
        """Start a ResourceManager that takes over applications and containers; wait for the nodes.

        There was none for ``away_s``. Nodes that are down or paused are not waited for.
        ClusterError: the cluster has none, or it does not come up.
        """
        record = self.record
        if not record.addresses.nodes:
            raise ClusterError(f"cluster {self.layout.name} has no nodes and so no ResourceManager")
        stop({record.daemons[RESOURCE_MANAGER]}, RM_STOP_LIMIT_S if orderly else 0.0)
        time.sleep(away_s)  # the outage itself
        process = daemons.start(RESOURCE_MANAGER)
        managers = {node: record.daemons[node] for node in record.addresses.nodes}
        living = {node: p for node, p in managers.items() if processes.is_alive(p)}
        nodes = [node for node, p in living.items() if not processes.is_stopped(p)]
        steps = resource_manager_steps(record, nodes)
        await_daemons(self.layout, {RESOURCE_MANAGER: process}, watch, steps)
        watch.report(f"the ResourceManager answers again, with {len(nodes)} nodes")
        return self._with({**record.daemons, RESOURCE_MANAGER: process})

    def _with(self, daemons: dict[str, processes.ProcessId]) -> Record:
        return replace(self.record, daemons=daemons)

    def _running(self, broker: int | None) -> dict[str, processes.ProcessId]:
        living = self.record.living_brokers
        found = {name: living[name] for name in self._named(broker) if name in living}
        if not found:
            raise ClusterError(f"{self._words(broker)} is stopped; start-kafka starts it")
        return found

    def _named(self, broker: int | None) -> list[str]:
        names = list(self.record.addresses.brokers)
        if broker is None:
            return names
        if not 1 <= broker <= len(names):
            last = f" to {len(names)}" if len(names) > 1 else ""
            raise ClusterError(f"cluster {self.layout.name} has no broker {broker}; it has 1{last}")
        return [names[broker - 1]]

    def _words(self, broker: int | None) -> str:
        cluster = f"of cluster {self.layout.name}"
        if broker is not None:
            return f"broker {broker} {cluster}"
        is_alone = self.record.addresses.broker_count == 1
        return f"{'the broker' if is_alone else 'each broker'} {cluster}"


def end_kafka(record: Record) -> bool:
    """End all brokers, whose data is not used any more. Return whether one ran.

    Several are killed: the last ones could not stop in order, without most of the controllers.
    """
    running = set(record.living_brokers.values())
    stop(running, KAFKA_STOP_LIMIT_S if record.addresses.broker_count == 1 else 0.0)
    return bool(running)


def stop(stopped: set[processes.ProcessId], patience_s: float) -> None:
    """End the processes by SIGTERM, and after ``patience_s`` by SIGKILL; 0: by SIGKILL at once."""
    left = stopped
    if patience_s > 0:
        for process in stopped:
            processes.send(process, signal.SIGTERM)
            # A stopped process takes the SIGTERM when it goes on.
            processes.send(process, signal.SIGCONT)
        left = processes.wait_gone(stopped, patience_s)
    for process in left:
        processes.send(process, signal.SIGKILL)
    for process in left:
        processes.kill_one(process)
