"""Runs the main job on a local YARN and Kafka, checks every plane, brings the job home again."""

from __future__ import annotations

import argparse
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType
from typing import Any

from flights_demo import counting, fail_host, moves, standbys
from flights_demo.attached import AttachedCluster
from flights_demo.chaos import KILLS, OVERRIDES, chaos_of
from flights_demo.clusters import DemoCluster, FallibleCluster, bring_up
from flights_demo.common import (
    NEW_AIRLINES_EARLY,
    NEW_AIRLINES_LATE,
    check_result,
    create_topics,
    end_producer,
    judge_history,
    run_producer,
)
from flights_demo.job import EXAMPLE, FIRST_LIMIT_S, DemoJob
from flights_demo.moves import Moves
from flights_demo.options import ALONE, parse_arguments
from flights_demo.rescale import COUNTS, SECONDS, Rescale
from flights_demo.screen import DemoError, Screen
from flights_demo.standalone import StandaloneDemo
from flights_demo.verdict import (
    CHANGELOGS,
    PARTITIONS,
    AtHome,
    Reader,
    am_url,
    next_offsets,
    stores_at_home,
)
from flights_demo.victim import Killed, Victim
from homeport.config.errors import HomeportError
from homeport.local_cluster.cluster import LocalCluster
from homeport.local_cluster.errors import ClusterError
from homeport.testing.fault_schedule import LEAST_FAULTS

sys.path.insert(0, str(EXAMPLE))
from data import FLIGHTS

CONSUME_LIMIT_S = 300.0
RATE_WITH_KILL = 10_000


class Demo:
    """One run; ``verdicts`` says of each thing that was promised whether it held."""

    def __init__(
        self, options: argparse.Namespace, screen: Screen, local: FallibleCluster | None
    ) -> None:
        """``local``: the cluster of this run's own; None: the one whose client runs this."""
        self._options = options
        self._screen = screen
        self._own = local
        cluster: DemoCluster = AttachedCluster() if local is None else local
        self._cluster = cluster
        overrides: tuple[str, ...] = () if self._seed is None else OVERRIDES
        if options.attached is not None:
            overrides += (f"yarn.python.archive={options.attached}",)
        if options.standbys:
            overrides += standbys.OVERRIDES
        if options.fail_host:
            overrides += fail_host.OVERRIDES + fail_host.PREWARMED * options.prewarm
        servers, file = cluster.bootstrap_servers, cluster.job_file(EXAMPLE)
        if options.form is not None:
            file = EXAMPLE / f"{options.form}.properties"
        self._job = DemoJob(EXAMPLE, cluster.env(), servers, overrides, file=file)
        if options.attached is not None:
            self._job.limit_s = FIRST_LIMIT_S
        self._job.count *= 2 if options.standbys else 1
        self._counting = DemoJob(counting.EXAMPLE, cluster.env(), servers, overrides)
        reading = cluster.client_file("reader")
        self._reader = Reader(servers, reading)
        self._producer: subprocess.Popen[bytes] | None = None
        self._scratch = tempfile.TemporaryDirectory(prefix="homeport-demo-")
        self._released = self._feeds_later
        self.verdicts: list[tuple[str, bool]] = []

    def close(self) -> None:
        """The producer has ended and nothing of the demo itself is connected, or left."""
        end_producer(self._producer)
        self._reader.close()
        self._scratch.cleanup()

    def run(self) -> None:
        """All phases, in order; ``verdicts`` is filled."""
        screen = self._screen
        first = self._begin()
        if self._options.kill_container:
            # The kill must hit a container at work, so the input comes while it works.
            rate = self._options.rate or RATE_WITH_KILL
            self._producer = self._run_producer(rate)
        if self._seed is not None:
            self._survive(self._seed)
        if self._options.fail_host:
            self._fail_host()
        if self._options.moves:
            self._move()
        if self._options.rescale:
            self._rescale()
            first = self._job.containers()
        with screen.phase("input consumed"):
            self._consume()
        self._compare()
        if self._seed is None:
            self._come_home({c["processor_id"]: c["host"] for c in first})
        elif not self._options.keep:
            with screen.phase("stopped in order"):
                for job in self._jobs:
                    job.kill()
        with screen.phase("history judged"):
            self._judge_history()

    def _begin(self) -> list[dict[str, Any]]:
        """The containers of the flights job, all of which take input."""
        screen = self._screen
        with screen.phase("topics"):
            create_topics(self._cluster.bootstrap_servers, self._producing)
            if self._options.kill_loop is not None:
                counting.create_output(self._cluster.bootstrap_servers)
        if not self._feeds_later:
            self._producer = self._run_producer(self._options.rate)
        for job in self._jobs:
            with screen.phase(f"submit {job.name}: the AM answers"):
                job.submit()
            for line in job.links:
                screen.say(f"  {line}")
        with screen.phase("containers placed, restored, taking input"):
            containers = [job.wait_until_running(screen.progress) for job in self._jobs]
        return containers[0]

    def _compare(self) -> None:
        """What the jobs have made of the input is what it should be."""
        screen = self._screen
        with screen.phase("every plane compared"):
            self.verdicts += check_result(self._reader, screen, self._options.form)
        for job in self._jobs[1:]:
            with screen.phase("every record counted"):
                self.verdicts += counting.Counting(job, self._reader, screen).verdicts()
        if self._options.standbys:
            with screen.phase("standbys compared with their actives"):
                looked = standbys.Standbys(self._job, self._reader, self._cluster.state_dir, screen)
                self.verdicts += looked.verdicts()

    @property
    def _local(self) -> LocalCluster:
        """The cluster of this run's own; the options see to it that there is one."""
        assert self._own is not None  # noqa: S101 - for the type checker
        return self._own

    @property
    def _jobs(self) -> list[DemoJob]:
        """The flights job, and through a loop of kills the counting job beside it."""
        return [self._job] if self._options.kill_loop is None else [self._job, self._counting]

    @property
    def _seed(self) -> int | None:
        """Of the schedule of faults; None: there are none."""
        options = self._options
        seed: int | None = options.chaos if options.kill_loop is None else options.kill_loop
        return seed

    @property
    def _feeds_later(self) -> bool:
        """Whether input comes only once the job works, as something is to befall it meanwhile."""
        options = self._options
        befalls = options.kill_container or options.rescale or options.fail_host or options.moves
        return bool(befalls or self._seed is not None)

    def _rescale(self) -> None:
        """The job has had more containers, and fewer, while input came."""
        screen = self._screen
        rescale = Rescale(self._local, self._job, self._reader, screen)
        rate = self._options.rate or round(FLIGHTS / SECONDS)
        screen.say(f"producing {rate:,} records per second")
        self._producer = self._run_producer(rate)
        for count in COUNTS:
            with screen.phase(f"{self._job.count} -> {count} containers"):
                rescale.to(count)
        fed = self._producer.poll() is None
        self._producer.send_signal(signal.SIGUSR1)  # what is left of the input comes at once
        self.verdicts += rescale.verdicts
        self.verdicts.append(("input came during both changes", fed))

    def _fail_host(self) -> None:
        """A node has died while input came, and is back."""
        screen = self._screen
        fault = fail_host.FailHost(
            self._cluster, self._job, self._reader, screen, is_prewarmed=self._options.prewarm
        )
        rate = self._options.rate or round(FLIGHTS / fail_host.SECONDS)
        screen.say(f"producing {rate:,} records per second")
        self._producer = self._run_producer(rate)
        with screen.phase("a host dies in mid-run, and comes back"):
            fault.run()
        fed = self._producer.poll() is None
        self._producer.send_signal(signal.SIGUSR1)  # what is left of the input comes at once
        self.verdicts += fault.verdicts
        self.verdicts.append(("input came all the while", fed))

    def _move(self) -> None:
        """An operator has moved containers while input came."""
        screen = self._screen
        package = None if self._options.form == ALONE else Path(self._scratch.name) / "package"
        commands = Moves(self._cluster, self._job, self._reader, screen, next_package=package)
        rate = self._options.rate or round(FLIGHTS / moves.SECONDS)
        screen.say(f"producing {rate:,} records per second")
        self._producer = self._run_producer(rate)
        commands.run()
        fed = self._producer.poll() is None
        self._producer.send_signal(signal.SIGUSR1)  # what is left of the input comes at once
        self.verdicts += commands.verdicts
        self.verdicts.append(("input came during each command", fed))

    def _survive(self, seed: int) -> None:
        """The schedule of ``seed`` has come over the job at work, and it is calm again."""
        screen = self._screen
        kills_only = self._options.kill_loop is not None
        chaos = chaos_of(
            seed,
            self._local,
            self._jobs,
            lambda job: am_url(self._reader, job.name),
            screen,
            kills_only=kills_only,
        )
        rate = self._options.rate or round(FLIGHTS / chaos.length_s)
        screen.say(f"producing {rate:,} records per second")
        self._producer = self._run_producer(rate)
        try:
            with screen.phase("chaos, until all containers work again"):
                chaos.run()
            self._producer.send_signal(signal.SIGUSR1)  # what is left of the input comes at once
        finally:
            rows = [(str(d.number), f"{d.at_s:5.1f} s", d.kind, d.what) for d in chaos.done]
            screen.table(f"Faults of seed {seed}", [("fault", "at", "kind", "what"), *rows])
        least = KILLS if kills_only else LEAST_FAULTS
        self.verdicts.append((f"seed {seed}: {len(chaos.done)} faults", len(chaos.done) >= least))

    def _judge_history(self) -> None:
        folders = [self._cluster.state_dir(node) for node in self._cluster.nodes]
        self.verdicts.append(judge_history(folders, "nodes"))

    @property
    def _producing(self) -> Path | None:
        """The properties of the producer's client."""
        return self._cluster.client_file("producer")

    def _run_producer(self, rate: int | None) -> subprocess.Popen[bytes]:
        """Where all input may be there before the job works, it waits for ``_release``."""
        after = NEW_AIRLINES_EARLY if self._feeds_later else NEW_AIRLINES_LATE
        arguments = [f"--new-airlines-after={after}", *["--hold"] * (not self._feeds_later)]
        servers = self._cluster.bootstrap_servers
        return run_producer(servers, self._producing, *arguments, rate=rate)

    def _release(self, consumed: int) -> None:
        """The producer goes on, with new names of airlines, once some outputs have old ones."""
        if consumed and self._producer is not None and not self._released:
            self._released = True
            self._producer.send_signal(signal.SIGUSR2)

    def _consume(self) -> None:
        """Until the checkpoints stand at the end of each input partition."""
        assert self._producer is not None  # noqa: S101 - set by run()
        victim = Victim(self._local, self._screen) if self._options.kill_container else None
        produce_s = FLIGHTS / (self._options.rate or RATE_WITH_KILL)
        deadline = time.monotonic() + CONSUME_LIMIT_S + produce_s
        while True:
            produced = self._producer.poll()
            if produced not in (None, 0):
                raise DemoError(f"the producer ended with exit code {produced}")
            ends = [self._reader.end_offset("flights", p) for p in range(PARTITIONS)]
            done = next_offsets(self._reader)
            self._release(sum(done.values()))
            if victim is not None:
                victim.look(sum(done.values()))
            if produced == 0 and all(done[p] >= ends[p] for p in range(PARTITIONS)):
                break
            self._screen.progress(
                f"{sum(done.values()):,} of {sum(ends):,} records in committed checkpoints"
            )
            if time.monotonic() > deadline:
                raise DemoError(
                    f"not consumed in time: {done} of {ends}; {self._job.get('v1/status')}"
                )
            time.sleep(0.25)  # committed checkpoints are polled
        self._screen.say(
            f"{sum(done.values()):,} of {sum(ends):,} records in committed checkpoints"
        )
        self.verdicts.append(
            (f"all {FLIGHTS:,} flights are consumed", sum(done.values()) == FLIGHTS)
        )
        if victim is not None:
            self._check_respawn(victim.killed)

    def _check_respawn(self, killed: Killed | None) -> None:
        """The killed container runs again under a higher epoch, on the state that it had."""
        verdict = "one container was killed after its third transaction, and came back"
        if killed is None:
            self.verdicts.append((f"{verdict}: none had three", False))
            return
        containers = self._job.wait_until_running(
            self._screen.progress, {killed.processor_id: killed.epoch}
        )
        again = next(c for c in containers if c["processor_id"] == killed.processor_id)
        kinds = [r["kind"] for tasks in again["restored"].values() for r in tasks.values()]
        records = sum(r["records"] for tasks in again["restored"].values() for r in tasks.values())
        self._screen.say(
            f"processor {killed.processor_id}: epoch {killed.epoch} was killed, epoch"
            f" {again['epoch']} runs on {again['host']}; restored: {records} records"
            f" ({', '.join(sorted(set(kinds)))})"
        )
        self.verdicts.append((verdict, True))

    def _come_home(self, before: dict[str, str]) -> None:
        """Stops the job in order, submits it again, and looks where it went and what it read."""
        screen = self._screen
        with screen.phase("stopped in order"):
            model = self._job.get("")
            hosts = {c["processor_id"]: c["host"] for c in self._job.containers()}
            self._job.kill()
        stores = {} if self._options.form == ALONE else CHANGELOGS
        at_home = stores_at_home(self._reader, model, hosts, self._cluster.state_dir, stores)
        with screen.phase("submitted again: the AM answers"):
            self._job.submit()
        with screen.phase("containers back, restored, taking input"):
            again = self._job.wait_until_running(screen.progress)
        self._judge_home_coming(before, hosts, again, at_home)
        if not self._options.keep:
            with screen.phase("stopped in order again"):
                self._job.kill()

    def _judge_home_coming(
        self,
        first: dict[str, str],
        last: dict[str, str],
        again: list[dict[str, Any]],
        at_home: dict[tuple[str, str], AtHome],
    ) -> None:
        rows: list[tuple[str, ...]] = [("processor", "first on", "stopped on", "now on")]
        rows += [
            (c["processor_id"], first[c["processor_id"]], last[c["processor_id"]], c["host"])
            for c in again
        ]
        self._screen.table("Hosts", rows)
        self.verdicts.append(
            (
                "each container is back on its host",
                all(c["host"] == last[c["processor_id"]] for c in again),
            )
        )
        rows = [("store", "task", "host", "OFFSET", "records after it", "restored", "how")]
        exact = True
        seen = set()
        for container in again:
            for store, tasks in container["restored"].items():
                for task, restored in tasks.items():
                    home = at_home[store, task]
                    seen.add((store, task))
                    exact &= (
                        restored["kind"] != "full" and restored["records"] == home.newer_records
                    )
                    rows.append(
                        (
                            store,
                            task,
                            home.host,
                            home.offset,
                            str(home.newer_records),
                            str(restored["records"]),
                            restored["kind"],
                        )
                    )
        self._screen.table("Restored at the second start", [rows[0], *sorted(rows[1:])])
        self.verdicts.append(
            (
                "no store was restored in full; each read only what follows its OFFSET",
                exact and seen == set(at_home),
            )
        )

    def how_to_reach(self) -> None:
        """What ``--keep`` prints."""
        kill = shlex.join(self._job.command("kill"))
        lines: list[tuple[str, ...]] = [
            ("cluster", self._local.name),
            ("shell", f'eval "$(scripts/dev-cluster env --name {self._local.name})"'),
            ("Kafka", self._local.bootstrap_servers),
            ("YARN", self._local.rm_url),
            *self._job.pages(),
            ("logs", f"scripts/dev-cluster logs --name {self._local.name}"),
            ("stop the job", kill),
            ("stop it all", f"scripts/dev-cluster down --name {self._local.name}"),
        ]
        self._screen.table("Kept", lines)


def _interrupted(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> int:
    """Command line; 0 where every verdict held."""
    options = parse_arguments(sys.argv[1:])
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupted)
    screen = Screen()
    cluster: FallibleCluster | None = None
    demo: Demo | StandaloneDemo | None = None
    verdict = "FAILED"
    try:
        if options.standalone:
            with screen.phase("local cluster: Kafka"):
                cluster = bring_up(screen.say, nodes=0)
            demo = StandaloneDemo(options, screen, cluster)
        else:
            if options.attached is None:
                with screen.phase("local cluster: YARN with 3 nodes, Kafka"):
                    cluster = bring_up(screen.say)
            demo = Demo(options, screen, cluster)
        demo.run()
        if all(ok for _, ok in demo.verdicts):
            verdict = "PASSED"
    except (DemoError, ClusterError, HomeportError) as error:
        screen.say(f"FAILED: {error}")
        verdict = f"FAILED: {error}"
    except KeyboardInterrupt:
        screen.say("interrupted; cleaning up")
        verdict = "INTERRUPTED: nothing is left running"
    finally:
        # Cleaning up must not be cut short by a second Ctrl-C: it is bounded by itself.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        kept = options.keep and not verdict.startswith("INTERRUPTED")
        _end(screen, cluster, demo, keep=kept)
    screen.phases()
    if demo is not None and demo.verdicts:
        screen.table("Verdict", [("held" if ok else "FAILED", text) for text, ok in demo.verdicts])
    if verdict.startswith("FAILED") and cluster is not None:
        more = "processors" if options.standalone else "../nodes/*/logs"
        print(f"\nLogs\n  {cluster.log_dir}\n  {cluster.log_dir}/{more}")
    print(f"\n{verdict}", flush=True)
    return {"PASSED": 0, "INTERRUPTED": 130}.get(verdict.partition(":")[0], 1)


def _end(
    screen: Screen, cluster: LocalCluster | None, demo: Demo | StandaloneDemo | None, *, keep: bool
) -> None:
    """The demo's own connections are closed; its cluster is kept, or down."""
    if demo is not None:
        demo.close()
    if cluster is None:
        return
    if keep:
        cluster.keep()
        if isinstance(demo, Demo):
            demo.how_to_reach()
    else:
        screen.say("taking the cluster down")
        cluster.down()


if __name__ == "__main__":
    sys.exit(main())
