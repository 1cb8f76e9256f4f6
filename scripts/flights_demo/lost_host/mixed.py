"""A node fails under mixed containers, and its tasks go on in the processes that run.

``scripts/demo --fail-host --mixed``: each task goes where its standby is. The verdicts compare
processes, tasks and what was read of changelogs before and after; they judge no times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from check_history.reading import Event

from flights_demo.lost_host.fail_host import LEASE_MS, MARGIN_MS, FailHost, seconds_of
from flights_demo.lost_host.first_outputs import arriving
from flights_demo.lost_host.timeline import Lost, gained, revoked_ms
from flights_demo.story import Containers, is_tail
from flights_demo.tasks import active_tasks, is_dealt, owners_of, standby_tasks
from flights_demo.verdict import OUTPUT, PARTITIONS
from homeport.job_coordinator.clocks import boot_ms
from homeport.local_cluster.resource_manager import memory_mb

OVERRIDES = ("job.container.mixed-roles=true", "job.standbytasks.replication.factor=2")
_MEMORY = "cluster-manager.container.memory.mb"
_AIM_MS = 600
"""Beyond lease and margin, on a machine with nothing else to do."""
TAKEN_OVER = "tasks-taken-over"


class FailMixedHost(FailHost):
    """One loss of a node under mixed containers, and what came of it."""

    def play(self) -> None:
        """The node has died and is back, and each task has a standby again."""
        servers, file = self.cluster.bootstrap_servers, self.cluster.client_file("reader")
        with arriving(servers, OUTPUT, PARTITIONS, file) as self._arrivals:
            super().play()

    # ------------------------------------------------------------------ before

    def _is_at_work(self) -> bool:
        return super()._is_at_work() and self._follows()

    def _follows(self) -> bool:
        """Whether each task has a standby elsewhere that has found its place in the changelogs."""
        return is_dealt(self.job.get("")) and None not in self.lags().values()

    def _at_work(self) -> Containers:
        since_ms = boot_ms()
        self.wait_for("output of all tasks", lambda: self._arrivals.has_all_since(since_ms))
        model, self._version = self.job.get(""), self._in_force()
        self._was, self._kept = owners_of(active_tasks(model)), owners_of(standby_tasks(model))
        self._compare_memory(model["config"])
        return super()._at_work()

    def _in_force(self) -> int:
        return int(self.job.get("v1/status")["job"]["model_version"])

    def _compare_memory(self, config: Mapping[str, str]) -> None:
        """Print what YARN has granted, and what it would have to with standby containers."""
        of_all = memory_mb(self.cluster.rm_url, self.job.application)
        of_each = int(config[_MEMORY])
        more = of_all + self.job.count * of_each
        self.screen.say(
            f"YARN has granted {of_all:,} MB, the AM's included; with a standby container for each "
            f"of {self.job.count} it would be {more:,} MB: {of_all / more:.0%} of that"
        )

    # ------------------------------------------------------------------ after

    def _recover(self, node: str, before: Containers, here: Containers, killed_ms: int) -> None:
        lost = [Lost(p, c["epoch"], None) for p, c in sorted(here.items())]
        moved = {task for task, processor in self._was.items() if processor in here}
        self.wait_for("their tasks elsewhere", lambda: self._are_taken(here, moved))
        self.wait_for("output of all tasks", lambda: self._have_output(lost, killed_ms))
        self.wait_for("the gainers at work", lambda: self._run(before.keys() - here.keys()))
        self._announce_moved(moved, lost, killed_ms)
        gainers = self._gainers(before, moved)
        self._announce_gainers(gainers, killed_ms)
        self._judge_tasks(here, moved)
        self._judge_tails(moved, gainers)
        self.wait_for("standbys on the hosts that are left", self._follows)
        self._judge_processes(before, here, killed_ms)
        self.wait_for(f"YARN to miss {node}", lambda: self._yarn_says(node) == "LOST")
        self._judge_isolated(lost, killed_ms, gainers)

    def _are_taken(self, here: Containers, moved: set[str]) -> bool:
        owners = self._owners()
        return not any(owners[task] in here for task in moved)

    def _owners(self) -> dict[str, str]:
        return owners_of(active_tasks(self.job.get("")))

    def _have_output(self, lost: Sequence[Lost], killed_ms: int) -> bool:
        """Whether each task has, after the last commit that one of the lost could make."""
        over_ms = revoked_ms(self.events(), lost, killed_ms)
        return over_ms is not None and self._arrivals.has_all_since(over_ms)

    def _run(self, processors: set[str]) -> bool:
        now = self.containers()
        return all(now[p]["phase"] == "running" for p in processors)

    def _announce_moved(self, moved: set[str], lost: Sequence[Lost], killed_ms: int) -> None:
        """Print when each moved task had output again, and when all had."""
        over_ms = revoked_ms(self.events(), lost, killed_ms) or killed_ms
        firsts = self._arrivals.first_since(over_ms)
        now = self._owners()
        rows: list[tuple[str, ...]] = [("task", "was in", "its standby in", "now in", "output")]
        for task in sorted(moved):
            at = seconds_of(firsts[partition_of(task)] - killed_ms)
            rows.append((task, self._was[task], self._kept[task], now[task], at))
        self.screen.table("Tasks of the lost host: first committed output after the kill", rows)
        last_ms = max(firsts[partition_of(task)] for task in moved) - killed_ms
        aim_ms = LEASE_MS + MARGIN_MS + _AIM_MS
        self.screen.say(
            f"{last_ms / 1000:.2f} s from the kill to committed output of all {len(moved)} tasks, "
            f"{(over_ms - killed_ms) / 1000:.2f} s of it until the lease had run out; aimed at, on "
            f"a machine with nothing else to do: {aim_ms / 1000:.1f} s; lease and margin are "
            f"{(LEASE_MS + MARGIN_MS) / 1000:.1f}"
        )

    def _gainers(self, before: Containers, moved: set[str]) -> list[Lost]:
        """Return the containers that have taken the tasks, with their epochs at the kill."""
        owners = self._owners()
        return [Lost(p, before[p]["epoch"], None) for p in sorted({owners[t] for t in moved})]

    def _announce_gainers(self, gainers: Sequence[Lost], killed_ms: int) -> None:
        events = self.events()
        for gainer in gainers:
            rows: list[tuple[str, ...]] = [("after the kill", "moment", "written on")]
            rows += [
                (seconds_of(m.at_ms - killed_ms), m.name, m.host)
                for m in gained(events, gainer, killed_ms)
            ]
            self.screen.table(f"Container {gainer.processor_id}, which takes tasks over", rows)

    def _judge_tasks(self, here: Containers, moved: set[str]) -> None:
        """A version of the JobModel has given the tasks to where their standbys were."""
        meant = {task: (self._kept if task in moved else self._was)[task] for task in self._was}
        taken = [e.fields for e in self.events() if e.name == TAKEN_OVER]
        counted = [(f["processors"], f["lost"], f["unbacked"]) for f in taken]
        is_counted = counted == [(sorted(here), len(moved), 0)]
        version = self._in_force()
        text = (
            f"JobModel {version} after {self._version}: each of {len(moved)} tasks went where its "
            f"standby was, and no other task moved"
        )
        is_meant = self._owners() == meant and version > self._version
        self.judge(text, held=is_meant and is_counted and bool(moved))

    def _judge_tails(self, moved: set[str], gainers: Sequence[Lost]) -> None:
        now = self.containers()
        restored = [
            how
            for gainer in gainers
            for tasks in now[gainer.processor_id]["restored"].values()
            for task, how in tasks.items()
            if task in moved
        ]
        records = sum(how["records"] for how in restored)
        text = f"they read only their changelogs' tails: {records:,} records"
        self.judge(text, held=is_tail(restored))

    def _judge_processes(self, before: Containers, here: Containers, killed_ms: int) -> None:
        """By the status, and by the histories of the hosts that are left."""
        now = self.containers()
        pids = {p: before[p]["pid"] for p in sorted(before.keys() - here.keys())}
        after = [e for e in self.events() if e.at >= killed_ms and e.processor_id in pids]
        is_same = all(now[p]["pid"] == pid for p, pid in pids.items())
        stated = ", ".join(f"{pid} of container {p}" for p, pid in pids.items())
        text = f"no process of a container of the other hosts ended or began: {stated}"
        self.judge(text, held=bool(pids) and is_same and not other_processes(after, pids))

    def _judge_return(self, node: str) -> None:
        self.wait_for(f"{node} as a host", lambda: not self.job.get("v1/status")["excluded_hosts"])
        self.wait_for("all containers, and standbys of all tasks", self._are_all_back)
        now, model = self.containers(), self.job.get("")
        active, standby = active_tasks(model), standby_tasks(model)
        rows: list[tuple[str, ...]] = [("container", "host", "active tasks", "standby tasks")]
        rows += [
            (p, c["host"], _numbers(active[p]), _numbers(standby[p]))
            for p, c in sorted(now.items())
        ]
        self.screen.table(f"With {node} back", rows)
        hosts = {p: c["host"] for p, c in now.items()}
        kept, owners = owners_of(standby), owners_of(active)
        is_apart = all(hosts[kept[task]] != hosts[owners[task]] for task in owners)
        text = f"{node} is back, and each task has a standby on another host again"
        self.judge(text, held=is_apart and kept.keys() == owners.keys())

    def _are_all_back(self) -> bool:
        now = self.containers()
        return len(now) == self.job.count and self._run(set(now)) and self._follows()


def other_processes(events: Sequence[Event], pids: Mapping[str, int]) -> list[Event]:
    """Return the events in which a process of a container ends, or another one begins.

    An incarnation that lets go, and the next one that begins in its process, are none of them.
    """
    ended = [e for e in events if e.name == "child-stopped" and not e.fields.get("rests")]
    begun = [e for e in events if e.name == "child-started"]
    return ended + [e for e in begun if e.fields.get("child_pid") != pids.get(e.processor_id or "")]


def partition_of(task: str) -> int:
    """Return the partition of a task's input, and of its output."""
    return int(task.removeprefix("Partition "))


def _numbers(tasks: set[str]) -> str:
    return " ".join(str(n) for n in sorted(map(partition_of, tasks))) or "-"
