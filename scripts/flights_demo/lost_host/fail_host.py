"""A node fails in mid-run, and its containers go on elsewhere (``scripts/demo --fail-host``).

On the local cluster everything on it gets SIGKILL, as if the machine lost power; in containers its
network is cut (``docker/demo``). It hosts an active container, and not the AM. The history of all
processes and the status show what happened. The verdicts judge no times, as times depend on the
machine.
"""

from __future__ import annotations

from collections.abc import Sequence

from flights_demo.lost_host.timeline import PHASES, Lost, first_output_ms, moments, own_end
from flights_demo.screen import DemoError
from flights_demo.story import Containers, Story, is_tail, restores_of
from flights_demo.verdict import CHANGELOGS
from homeport.job_coordinator.clocks import boot_ms
from homeport.local_cluster.resource_manager import node_states

LEASE_LOST = "lease-lost"
LEASE_MS = 3_000
MARGIN_MS = LEASE_MS // 5
OVERRIDES = (f"cluster-manager.container.lease.ms={LEASE_MS}",)
PREWARMED = ("job.hotstandby.prewarm=true",)

_RECORDS_BEFORE = 40_000
_AIM_S = {False: 5, True: 3}
"""Beyond lease and margin, by whether the standbys are warmed up."""


class FailHost(Story):
    """One loss of a node, and what came of it.

    ``is_prewarmed``: whether the standbys are; it sets the time that is aimed at.
    """

    SECONDS = 600
    CAME = "input came all the while"
    is_prewarmed = False

    def play(self) -> None:
        """The node has died and is back, all containers work, and how that went is printed."""
        with self.screen.phase("a host dies in mid-run, and comes back"):
            self.wait_for("work, and standbys that follow", self._is_at_work)
            before = self._at_work()
            node = self._victim()
            here = {p: c for p, c in before.items() if c["host"] == node}
            killed_ms = boot_ms()
            done = self.cluster.fail_node(node)
            stated = ", ".join(f"{c['role']} {p}" for p, c in sorted(here.items()))
            self.screen.say(f"{done}; on it {stated}")
            try:
                self._recover(node, before, here, killed_ms)
            finally:
                self.cluster.start_node(node)
            self._judge_return(node)

    def _recover(self, node: str, before: Containers, here: Containers, killed_ms: int) -> None:
        lost = _lost(before, here)
        self.wait_for("all of them elsewhere", lambda: self._are_back(here))
        self.wait_for("first commits", lambda: self._have_committed(lost, killed_ms))
        self.wait_for("the end of each recovery", lambda: self._are_over(here))
        self._announce(lost, killed_ms)
        self._tell_phases(here)
        self._judge_restores(before, lost)
        self.wait_for(f"YARN to miss {node}", lambda: self._yarn_says(node) == "LOST")
        self._judge_isolated(lost, killed_ms, lost)

    # ------------------------------------------------------------------ before

    def _is_at_work(self) -> bool:
        return self.is_at_work(_RECORDS_BEFORE) and None not in self.lags().values()

    def _at_work(self) -> Containers:
        """Return the containers, all of which work; what else is compared later is kept here."""
        return self.containers()

    def _victim(self) -> str:
        am, hosts = self.hosts_of_actives()
        if not hosts:
            raise DemoError(f"all active containers are on the host of the AM, {am}")
        self.screen.say(f"the AM is on {am}; {min(hosts)} is to die")
        return min(hosts)

    # ------------------------------------------------------------------ after

    def _are_back(self, here: Containers) -> bool:
        now = self.containers()
        return len(now) == self.job.count and all(
            c["phase"] == "running" and (p not in here or c["epoch"] > here[p]["epoch"])
            for p, c in now.items()
        )

    def _have_committed(self, lost: list[Lost], killed_ms: int) -> bool:
        events = self.events()
        return all(first_output_ms(moments(events, who, killed_ms)) for who in lost)

    def _are_over(self, here: Containers) -> bool:
        """The driver reports the recoveries it knows; a new driver knows none."""
        now = self.containers()
        stated = [now[p].get("recovery") for p in here if now[p]["role"] == "active"]
        return all(recovery is None or recovery["is_over"] for recovery in stated)

    def _announce(self, lost: list[Lost], killed_ms: int) -> None:
        events = self.events()
        aim_ms = LEASE_MS + MARGIN_MS + 1000 * _AIM_S[self.is_prewarmed]
        for who in lost:
            found = moments(events, who, killed_ms)
            rows: list[tuple[str, ...]] = [("after the kill", "moment", "written on")]
            rows.append((seconds_of(0), "SIGKILL", ""))
            rows += [(seconds_of(m.at_ms - killed_ms), m.name, m.host) for m in found]
            self.screen.table(f"Processor {who.processor_id}, whose host died", rows)
            taken_ms = (first_output_ms(found) or killed_ms) - killed_ms
            self.screen.say(
                f"processor {who.processor_id}: {taken_ms / 1000:.2f} s from the kill to its "
                f"successor's first committed output; aimed at, on a machine with nothing else to "
                f"do: {aim_ms / 1000:.1f} s, of which lease {LEASE_MS / 1000:.1f} and margin "
                f"{MARGIN_MS / 1000:.1f}"
            )

    def _tell_phases(self, here: Containers) -> None:
        rows: list[tuple[str, ...]] = [("processor", "kind", "from", "to", *PHASES, "sum")]
        now = self.containers()
        for processor in sorted(here):
            recovery = now[processor].get("recovery")
            if recovery is None:
                continue
            took = recovery["phases_ms"]
            cells = [seconds_of(took[phase]) if phase in took else "-" for phase in PHASES]
            places = (recovery["kind"] or "-", recovery["from"] or "-", recovery["to"] or "-")
            rows.append((processor, *places, *cells, seconds_of(sum(took.values()))))
        self.screen.table("Phases of the recoveries, by the status", rows)

    def _judge_restores(self, before: Containers, lost: list[Lost]) -> None:
        """The successors are where their standbys were, and read only what these lacked."""
        model = self.job.get("")["containers"]
        now = self.containers()
        for who in lost:
            processor = who.processor_id
            partitions = [t["changelog-partition"] for t in model[processor]["tasks"].values()]
            held = sum(
                self.reader.end_offset(changelog, partition)
                for changelog in CHANGELOGS.values()
                for partition in partitions
            )
            restored = restores_of(now[processor])
            records = sum(r["records"] for r in restored)
            text = (
                f"processor {processor} took its standby's place and read only the changelog's "
                f"tail: {records:,} of {held:,} records"
            )
            refuge = before[who.standby]["host"] if who.standby is not None else None
            self.judge(text, held=is_tail(restored) and now[processor]["host"] == refuge)

    def _judge_isolated(
        self, lost: Sequence[Lost], killed_ms: int, successors: Sequence[Lost]
    ) -> None:
        events = self.events()
        for who in lost:
            end = own_end(events, who, killed_ms, successors)
            if end is None:
                continue
            text = (
                f"processor {who.processor_id}, cut off, ended by its lease after "
                f"{(end.ended_ms - killed_ms) / 1000:.2f} s; it committed nothing after "
                f"{max(end.committed_ms - killed_ms, 0) / 1000:.2f} s, and its successor fenced it "
                f"after {(end.fenced_ms - killed_ms) / 1000:.2f} s"
            )
            is_sound = end.cause == LEASE_LOST and end.committed_ms < end.fenced_ms
            self.judge(text, held=is_sound)

    def _judge_return(self, node: str) -> None:
        self.wait_for(f"{node} as a host", lambda: not self.job.get("v1/status")["excluded_hosts"])
        self.wait_for("all containers at work", lambda: self._are_back({}))
        now = self.containers()
        rows: list[tuple[str, ...]] = [("processor", "role", "host")]
        rows += [(p, c["role"], c["host"]) for p, c in sorted(now.items())]
        self.screen.table(f"With {node} back", rows)
        replicas = [c for c in now.values() if c["replica_of"] is not None]
        is_placed = all(c["host"] != now[c["replica_of"]]["host"] for c in replicas)
        text = f"{node} is back, and each active has a standby on another host again"
        self.judge(text, held=is_placed and 2 * len(replicas) == self.job.count)

    def _yarn_says(self, node: str) -> str | None:
        return (node_states(self.cluster.rm_url) or {}).get(node)


def _lost(before: Containers, here: Containers) -> list[Lost]:
    standbys = {c["replica_of"]: p for p, c in before.items() if c["replica_of"] is not None}
    return [
        Lost(p, c["epoch"], standbys.get(p))
        for p, c in sorted(here.items())
        if c["role"] == "active"
    ]


def seconds_of(ms: float) -> str:
    """Return a time in a table's cell."""
    return f"{ms / 1000:6.2f} s"
