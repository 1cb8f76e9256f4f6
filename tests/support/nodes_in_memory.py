"""The nodes of a standalone job in ZooKeeper, in memory, as a migration reads and writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from homeport.job_coordinator.model.ids import Host, TaskName
from homeport.job_coordinator.standalone.plan import Plan
from homeport.job_coordinator.zookeeper.handover_nodes import Kept


class NodesInMemory:
    """``kept``: what they hold."""

    def __init__(self) -> None:
        self.kept = Kept(0, -1, None, {}, {}, ())

    def read(self) -> Kept:
        """As they are."""
        return self.kept

    def publish(self, kept: Kept, plan: Plan) -> bool:
        """Where no other version was published meanwhile."""
        if kept.written != self.kept.written:
            return False
        written = kept.written + 1
        self.kept = replace(self.kept, version=plan.version, written=written, plan=plan)
        return True

    def write_hosts(self, hosts: Mapping[TaskName, Host]) -> None:
        """Beside those that are there."""
        self.kept = replace(self.kept, hosts={**self.kept.hosts, **hosts})
