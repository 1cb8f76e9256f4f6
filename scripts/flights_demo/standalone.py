"""The flights job without YARN, on processors under ZooKeeper (``scripts/demo --standalone``).

Its processors find each other in a ZooKeeper. One is killed, one stands still, one joins, and all
are restarted one after the other, while input comes. With ``--chaos SEED`` faults come by a
schedule instead.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time

from zookeeper_process import ZooKeeperServer

from flights_demo.clusters import FallibleCluster
from flights_demo.common import (
    await_that,
    check_result,
    create_topics,
    end_producer,
    judge_history,
    run_producer,
    until_consumed,
)
from flights_demo.job import EXAMPLE, file_of, package_of
from flights_demo.names import Verdict
from flights_demo.processors import Processors, Settled
from flights_demo.screen import DemoError, Screen
from flights_demo.standalone_chaos import StandaloneChaos, schedule
from flights_demo.verdict import PARTITIONS, Reader, next_offsets
from homeport.job_coordinator.standalone.nodes import root_of
from homeport.local_cluster.processes import NODE_VARIABLE

sys.path.insert(0, str(EXAMPLE))
from data import FLIGHTS

NAMES = ("p1", "p2", "p3")
JOINING = "p4"
SESSION_MS, DEBOUNCE_MS = 3000, 3000
SECONDS = 1200
"""For so long, roughly, input could come; what is left after the last fault comes at once."""
NEW_AIRLINES_AFTER = FLIGHTS // 24
"""At that pace after 50 s, in the midst of what befalls the processors."""
_ROOT = "/homeport"
_CONSUME_LIMIT_S = 300.0


class StandaloneDemo:
    """One run; ``verdicts`` says of each thing that was promised whether it held."""

    def __init__(
        self, options: argparse.Namespace, screen: Screen, cluster: FallibleCluster
    ) -> None:
        """``cluster``: of this run's own, with a broker and no nodes."""
        self._form: str | None = options.form
        self._chaos = None if options.chaos is None else schedule(options.chaos)
        self._screen = screen
        self._servers = cluster.bootstrap_servers
        self._reader = Reader(self._servers)
        self._producer: subprocess.Popen[bytes] | None = None
        self._processors: Processors | None = None
        # What has these in its environment ends with the cluster, whatever becomes of this process.
        self._environment = {**cluster.env(), NODE_VARIABLE: "zookeeper"}
        self._logs = cluster.log_dir
        self._state = cluster.log_dir.parent / "tmp" / "standalone"
        self._zookeeper = ZooKeeperServer(self._logs, self._environment)
        self.verdicts: list[Verdict] = []

    def close(self) -> None:
        """No processor, no ZooKeeper and no producer is left, and nothing is connected."""
        end_producer(self._producer)
        if self._processors is not None:
            self._processors.close()
        self._zookeeper.kill()
        self._reader.close()

    def run(self) -> None:
        """All phases, in order; ``verdicts`` is filled."""
        screen = self._screen
        with screen.phase("ZooKeeper"):
            self._zookeeper.start()
            screen.say(f"  ZooKeeper answers on {self._zookeeper.connect}")
        with screen.phase("topics"):
            create_topics(self._servers, None)
        rate = round(FLIGHTS / SECONDS)
        screen.say(f"producing {rate:,} records per second")
        new = f"--new-airlines-after={NEW_AIRLINES_AFTER}", "--hold"
        self._producer = producer = run_producer(self._servers, None, *new, rate=rate)
        processors = self._processors = self._new_processors()
        with screen.phase(f"{len(NAMES)} processors start and share {PARTITIONS} tasks"):
            for name in NAMES:
                processors.start(name)
            processors.until_settled(NAMES)
            # Some outputs have old names: a first transaction may be of planes and airports alone.
            await_that(
                lambda: any(next_offsets(self._reader).values()),
                "a flight in a committed checkpoint",
                screen,
                limit_s=_CONSUME_LIMIT_S,
            )
        producer.send_signal(signal.SIGUSR2)
        if self._chaos is None:
            self._suffer_in_turn(processors)
        else:
            with screen.phase(f"{len(self._chaos)} faults"):
                for number, fault in enumerate(self._chaos, start=1):
                    screen.say(f"  {number:>2}. {fault}")
                parts = processors, self._zookeeper, screen
                StandaloneChaos(self._chaos, *parts, more=JOINING).run()
        self._end(processors)

    def _suffer_in_turn(self, processors: Processors) -> None:
        screen = self._screen
        with screen.phase("one dies, its tasks process elsewhere"):
            self._kill(processors, NAMES[1])
        with screen.phase("it comes back and gets tasks"):
            self._come(processors, NAMES[1])
        with screen.phase("one stands still beyond its session, and wakes up"):
            self._pause(processors, NAMES[2])
        with screen.phase("a fourth one joins"):
            self._come(processors, JOINING)
        with screen.phase("rolling restart of all"):
            self._restart_all(processors)

    def _new_processors(self) -> Processors:
        file = file_of(self._form or EXAMPLE.name)
        keys = {
            "systems.kafka.consumer.bootstrap.servers": self._servers,
            "yarn.package.path": str(package_of(self._form)),
            "job.coordinator.zk.connect": self._zookeeper.connect,
            "job.coordinator.zk.root": _ROOT,
            "job.coordinator.zk.session.timeout.ms": str(SESSION_MS),
            "job.debounce.time.ms": str(DEBOUNCE_MS),
        }
        name = EXAMPLE.name, "1"
        logs = self._logs / "processors"
        logs.mkdir(parents=True, exist_ok=True)
        return Processors(
            [f"--config-path={file}", *(f"--config={k}={v}" for k, v in keys.items())],
            {**self._environment, NODE_VARIABLE: "processors"},
            self._state,
            logs,
            self._zookeeper.connect,
            root_of(_ROOT, app=name, job=name, stage="1"),
            self._screen,
        )

    def _kill(self, processors: Processors, name: str) -> None:
        """SIGKILL of a processor; the others have its tasks, and a table shows when."""
        before = processors.until_settled(NAMES)
        killed_ms = processors.kill(name)
        self._screen.say(f"SIGKILL of {name}")
        self._show_takeover(processors, before, name, killed_ms)

    def _show_takeover(
        self, processors: Processors, before: Settled, name: str, lost_ms: float
    ) -> None:
        gone_ms = processors.until_gone(name)
        after = processors.until_settled({*NAMES} - {name})
        lost = sorted(task for task, owner in before.owners.items() if owner == name)
        last_ms = max(after.committed_ms[task] for task in lost)
        moments = [
            (f"the session of {name} is over", gone_ms),
            (f"version {after.plan.version} is published", after.published_ms),
            ("all have let go of what moves", after.done_ms),
            ("the first of its tasks has committed", min(after.committed_ms[t] for t in lost)),
            ("the last of its tasks has committed", last_ms),
        ]
        rows: list[tuple[str, ...]] = [
            (text, f"{(at_ms - lost_ms) / 1000:6.2f} s") for text, at_ms in moments
        ]
        self._screen.table(f"{name} is lost: its tasks elsewhere", rows)
        for task in lost:
            self._screen.say(f"  {task}: {name} -> {after.owners[task]}")
        took_s = (last_ms - lost_ms) / 1000
        text = (
            f"all {len(lost)} tasks of {name} process elsewhere, {took_s:.1f} s after it was lost"
        )
        self.verdicts.append((text, bool(lost)))

    def _come(self, processors: Processors, name: str) -> None:
        """A processor more: it has tasks, and shares are as even as can be."""
        names = {*processors.names, name}
        processors.start(name)
        settled = processors.until_settled(names)
        shares = sorted(len(member.tasks) for member in settled.plan.members)
        text = f"{name} joined; the shares of {len(names)} processors: {shares}"
        self.verdicts.append((text, shares[-1] - shares[0] <= 1))

    def _pause(self, processors: Processors, name: str) -> None:
        """SIGSTOP of a processor and its container until others work on its tasks, then SIGCONT."""
        before = processors.until_settled(NAMES)
        paused_ms = processors.pause(name)
        self._screen.say(f"SIGSTOP of {name} and its container")
        try:
            self._show_takeover(processors, before, name, paused_ms)
        finally:
            processors.resume()
        self._screen.say(f"SIGCONT of {name}")
        after = processors.until_settled(NAMES)
        was, now = before.generations[name], after.generations[name]
        text = f"{name} woke up and works as a new generation: {was}, then {now}"
        self.verdicts.append((text, now > was))

    def _restart_all(self, processors: Processors) -> None:
        """SIGTERM and a new start of each, one after the other; no task has moved.

        The others have the tasks of one that is away for longer than the debounce time, as on a
        slow machine: a version without it is published, then one with it.
        """
        names = processors.names
        settled = first = processors.until_settled(names)
        late = 0
        rows: list[tuple[str, ...]] = [("processor", "left in", "back at work after", "restarted")]
        for name in names:
            begun, version = time.monotonic(), settled.plan.version
            processors.leave(name)
            left = time.monotonic()
            processors.start(name)
            settled = processors.until_settled(names)
            late += settled.plan.version > version + 1
            seconds = f"{left - begun:.1f} s", f"{time.monotonic() - begun:.1f} s"
            rows.append((name, *seconds, ", ".join(settled.restarted())))
        self._screen.table("Rolling restart", rows)
        moved = sum(first.owners[task] != owner for task, owner in settled.owners.items())
        text = f"after a rolling restart of {len(names)} processors {moved} tasks have moved"
        if late:
            text += f"; {late} were away for longer than {DEBOUNCE_MS / 1000:g} s"
        share = -(-len(settled.owners) // len(names))
        self.verdicts.append((text, moved <= 2 * share * late))

    def _end(self, processors: Processors) -> None:
        """All input is consumed, all processors have left; the result and the history are right."""
        screen, producer = self._screen, self._producer
        if producer is None:
            raise DemoError("there is no producer")
        self.verdicts.append(("input came all the while", producer.poll() is None))
        producer.send_signal(signal.SIGUSR1)  # what is left of the input comes at once
        with screen.phase("input consumed"):
            found = until_consumed(self._reader, screen, producer, _CONSUME_LIMIT_S)
            self.verdicts.append(found)
        with screen.phase("all leave in order"):
            for name in processors.names:
                processors.leave(name)
        with screen.phase("every plane compared"):
            self.verdicts += check_result(self._reader, screen, self._form)
        with screen.phase("history judged"):
            self.verdicts.append(judge_history(processors.folders, "processors"))
