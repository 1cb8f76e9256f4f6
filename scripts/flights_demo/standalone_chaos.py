"""Faults on standalone processors, by a schedule that a seed reproduces.

``scripts/demo --standalone --chaos SEED``. What a schedule names is a number; which processor that
is, is looked up when its time has come.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

from zookeeper_process import ZooKeeperServer

from flights_demo.processors import Processors
from flights_demo.screen import Screen

SESSION_S = 3.0
LEAST_FAULTS = 8
_SHORT_S = (0.3, 0.5 * SESSION_S)
_LONG_S = (1.5 * SESSION_S, 2.5 * SESSION_S)
_GAP_S = (0.5, 3.0)

KINDS = {
    "kill": _SHORT_S,
    "leave": _SHORT_S,
    "join": (0.0, 0.0),
    "pause-short": _SHORT_S,
    "pause-long": _LONG_S,
    "zookeeper-short": _SHORT_S,
    "zookeeper-long": _LONG_S,
}
"""{kind: how long it lasts}. A killed one and one that has left are started again after that."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a schedule. Units: seconds.

    ``gap_s``: how long the one before lies back. ``waits``: whether all are at work again before
    it comes, or are perhaps still about what the one before has set off.
    """

    kind: str
    target: int
    gap_s: float
    length_s: float
    waits: bool

    def __str__(self) -> str:
        when = "when all work" if self.waits else "at once"
        length = f" for {self.length_s:.1f} s" if self.length_s else ""
        return f"{self.kind:<16} {self.target}{length}, {self.gap_s:.1f} s later, {when}"


def schedule(seed: int, least: int = LEAST_FAULTS) -> list[Fault]:
    """At least ``least`` faults, each kind once before any comes twice; by the seed alone.

    PURE.
    """
    chance = random.Random(seed)  # noqa: S311 - a schedule is no secret
    order = sorted(KINDS)
    chance.shuffle(order)
    while len(order) < least:
        order.append(chance.choice(sorted(KINDS)))
    return [
        Fault(
            kind,
            chance.randrange(100),
            round(chance.uniform(*_GAP_S), 1),
            round(chance.uniform(*KINDS[kind]), 1),
            chance.random() < 0.7,  # noqa: PLR2004 - most find a working job, some a recovering one
        )
        for kind in order
    ]


class StandaloneChaos:
    """One schedule on the processors of a job. ``more``: the id of one that joins and leaves."""

    def __init__(
        self,
        faults: Sequence[Fault],
        processors: Processors,
        zookeeper: ZooKeeperServer,
        screen: Screen,
        more: str,
    ) -> None:
        self._faults, self._processors = faults, processors
        self._zookeeper, self._screen, self._more = zookeeper, screen, more

    def run(self) -> None:
        """All faults have happened, and all processors are at work again.

        DemoError: they do not come back to work.
        """
        rows: list[tuple[str, ...]] = []
        began = time.monotonic()
        for number, fault in enumerate(self._faults, start=1):
            if fault.waits:
                self._processors.until_settled(self._processors.names)
            time.sleep(fault.gap_s)  # the schedule says so
            at = f"{time.monotonic() - began:5.1f} s"
            what = self._commit(fault)
            self._screen.say(f"fault {number:>2} at {at}: {fault.kind}: {what}")
            rows.append((str(number), at, fault.kind, what))
        self._processors.until_settled(self._processors.names)
        self._screen.table("Faults", rows)

    def _commit(self, fault: Fault) -> str:
        """Do it; what it has hit, in words."""
        processors = self._processors
        length = f"{fault.length_s:.1f} s"
        name = processors.names[fault.target % len(processors.names)]
        if fault.kind.startswith("zookeeper"):
            self._zookeeper.kill()
            try:
                time.sleep(fault.length_s)  # so long the fault lasts
            finally:
                self._zookeeper.start()
            return f"ZooKeeper's server was away for {length}"
        if fault.kind.startswith("pause"):
            processors.pause(name)
            try:
                time.sleep(fault.length_s)  # so long the fault lasts
            finally:
                processors.resume()
            return f"{name} and its container stood still for {length}"
        if fault.kind == "join":
            return self._join_or_leave()
        if fault.kind == "kill":
            processors.kill(name)
        else:
            processors.leave(name)
        time.sleep(fault.length_s)  # so long the fault lasts
        processors.start(name)
        how = "SIGKILL" if fault.kind == "kill" else "SIGTERM"
        return f"{how} of {name}, a new start after {length}"

    def _join_or_leave(self) -> str:
        if self._more in self._processors.names:
            self._processors.leave(self._more)
            return f"{self._more} has left"
        self._processors.start(self._more)
        return f"{self._more} joins"
