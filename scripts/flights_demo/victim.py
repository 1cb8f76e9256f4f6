"""One stream container that is killed while it works (``scripts/demo --kill-container``)."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from check_history.reading import values_in

from flights_demo.screen import Screen
from homeport.local_cluster.cluster import LocalCluster

TRANSACTIONS_BEFORE_KILL = 3


@dataclass(frozen=True)
class Killed:
    """The killed container: processor, epoch and pid, as its own history says."""

    processor_id: str
    epoch: int
    pid: int


class Victim:
    """Kills the first container whose history shows its third committed transaction."""

    def __init__(self, cluster: LocalCluster, screen: Screen) -> None:
        self._folders = [
            cluster.state_dir(node["host"]) / "flights-1" / ".history"
            for node in cluster.status()["nodes"]
        ]
        self._screen = screen
        self.killed: Killed | None = None

    def look(self, consumed: int) -> None:
        """Kills, once, when the time has come; ``consumed`` input records are committed so far."""
        if self.killed is not None:
            return
        for folder in self._folders:
            for file in sorted(folder.glob("*.jsonl")):
                last = _third_transaction(file)
                if last is not None:
                    self.killed = Killed(last["processor_id"], last["epoch"], last["pid"])
                    os.kill(self.killed.pid, signal.SIGKILL)
                    self._screen.say(
                        f"{consumed:,} records consumed: SIGKILL of processor"
                        f" {last['processor_id']}, epoch {last['epoch']}, pid {last['pid']}"
                    )
                    return


def _third_transaction(file: Path) -> dict[str, Any] | None:
    """The container's last committed transaction, None before its third."""
    committed = [line for line in values_in(file) if line["event"] == "transaction-committed"]
    return committed[-1] if len(committed) >= TRANSACTIONS_BEFORE_KILL else None
