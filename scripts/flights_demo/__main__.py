"""Runs the main job on a local YARN and Kafka, checks every plane, brings the job home again."""

from __future__ import annotations

import argparse
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from flights_demo import counting, standbys
from flights_demo.attached import AttachedCluster
from flights_demo.chaos import KILLS, OVERRIDES, Killed, Victim, chaos_of
from flights_demo.clusters import DemoCluster, FallibleCluster, bring_up
from flights_demo.common import (
    NEW_AIRLINES_EARLY,
    NEW_AIRLINES_LATE,
    check_result,
    create_topics,
    end_producer,
    judge_history,
    run_producer,
    until_consumed,
)
from flights_demo.job import EXAMPLE, FIRST_LIMIT_S, DemoJob, file_of, package_of
from flights_demo.living.story import Living
from flights_demo.lost_host import fail_host, mixed
from flights_demo.moves import Moves
from flights_demo.options import ALONE, parse_arguments
from flights_demo.rescale import Rescale
from flights_demo.screen import DemoError, Screen
from flights_demo.standalone import StandaloneDemo
from flights_demo.story import Story, restores_of
from flights_demo.tasks import idle_containers
from flights_demo.verdict import CHANGELOGS, AtHome, Reader, am_url, stores_at_home
from homeport.config.errors import HomeportError
from homeport.local_cluster.cluster import LocalCluster
from homeport.local_cluster.errors import ClusterError
from homeport.testing.fault_schedule import LEAST_FAULTS

sys.path.insert(0, str(EXAMPLE))
from data import FLIGHTS

S = TypeVar("S", bound=Story)

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
            overrides += mixed.OVERRIDES if options.mixed else standbys.OVERRIDES
        if options.fail_host:
            overrides += fail_host.OVERRIDES + fail_host.PREWARMED * options.prewarm
        servers, file = cluster.bootstrap_servers, cluster.job_file(EXAMPLE)
        if options.form is not None:
            file = file_of(options.form)
        self._job = DemoJob(EXAMPLE, cluster.env(), servers, overrides, file=file)
        self._job.package = package_of(options.form)
        if options.attached is not None:
            self._job.limit_s = FIRST_LIMIT_S
        self._job.count *= 2 if options.standbys and not options.mixed else 1
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
        for story in self._stories():
            self._play(story)
        if self._options.rescale:
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
        screen = self._screen
        with screen.phase("every plane compared"):
            self.verdicts += check_result(self._reader, screen, self._options.form)
        later: list[tuple[str, Story]] = [
            ("every record counted", self._story(counting.Counting, job)) for job in self._jobs[1:]
        ]
        if self._options.standbys:
            later.append(("standbys compared with their actives", self._story(standbys.Standbys)))
        for phase, story in later:
            with screen.phase(phase):
                story.play()
            self.verdicts += story.verdicts

    def _story(self, kind: type[S], job: DemoJob | None = None) -> S:
        return kind(self._cluster, job or self._job, self._reader, self._screen)

    def _stories(self) -> Iterator[Story]:
        if self._options.fail_host:
            fault = self._story(mixed.FailMixedHost if self._options.mixed else fail_host.FailHost)
            fault.is_prewarmed = self._options.prewarm
            yield fault
        if self._options.moves:
            moves = self._story(Moves)
            if self._options.form != ALONE:
                moves.next_package = Path(self._scratch.name) / "package"
            yield moves
        if self._options.rescale:
            yield self._story(Rescale)

    def _play(self, story: Story) -> None:
        producer = self._pace(story.SECONDS)
        story.play()
        fed = producer.poll() is None
        producer.send_signal(signal.SIGUSR1)  # what is left of the input comes at once
        self.verdicts += [*story.verdicts, (story.CAME, fed)]

    def _pace(self, seconds: float) -> subprocess.Popen[bytes]:
        rate = self._options.rate or round(FLIGHTS / seconds)
        self._screen.say(f"producing {rate:,} records per second")
        self._producer = self._run_producer(rate)
        return self._producer

    @property
    def _local(self) -> LocalCluster:
        """The cluster of this run's own; the options see to it that there is one."""
        assert self._own is not None  # noqa: S101 - for the type checker
        return self._own

    @property
    def _jobs(self) -> list[DemoJob]:
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
        producer = self._pace(chaos.length_s)
        try:
            with screen.phase("chaos, until all containers work again"):
                chaos.run()
            producer.send_signal(signal.SIGUSR1)  # what is left of the input comes at once
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
        assert self._producer is not None  # noqa: S101 - set by run()
        victim = Victim(self._local, self._screen) if self._options.kill_container else None
        produce_s = FLIGHTS / (self._options.rate or RATE_WITH_KILL)

        def look(consumed: int) -> None:
            self._release(consumed)
            if victim is not None:
                victim.look(consumed)

        limit_s = CONSUME_LIMIT_S + produce_s
        found = until_consumed(self._reader, self._screen, self._producer, limit_s, look)
        self.verdicts.append(found)
        if victim is not None:
            self._check_respawn(victim.killed)

    def _check_respawn(self, killed: Killed | None) -> None:
        verdict = "one container was killed after its third transaction, and came back"
        if killed is None:
            self.verdicts.append((f"{verdict}: none had three", False))
            return
        containers = self._job.wait_until_running(
            self._screen.progress, {killed.processor_id: killed.epoch}
        )
        again = next(c for c in containers if c["processor_id"] == killed.processor_id)
        restored = restores_of(again)
        kinds = [r["kind"] for r in restored]
        records = sum(r["records"] for r in restored)
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
        # One whose tasks others have taken over has no home.
        homes = {p: host for p, host in hosts.items() if p not in idle_containers(model)}
        is_back = all(homes.get(c["processor_id"], c["host"]) == c["host"] for c in again)
        self.verdicts.append(("each container with tasks is back on its host", is_back))
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
        rows = [("store", "task", "host", "OFFSET", "records after it", "restored", "how")]
        exact = True
        restored = {
            (store, task): how
            for container in again
            for store, tasks in container["restored"].items()
            for task, how in tasks.items()
        }
        for place, how in sorted(restored.items()):
            home, records = at_home[place], how["records"]
            exact &= how["kind"] != "full" and records == home.newer_records
            counts = str(home.newer_records), str(records)
            rows.append((*place, home.host, home.offset, *counts, how["kind"]))
        self._screen.table("Restored at the second start", rows)
        text = "no store was restored in full; each read only what follows its OFFSET"
        self.verdicts.append((text, exact and restored.keys() == at_home.keys()))

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


AnyDemo = Demo | StandaloneDemo | Living


def _demo_of(
    options: argparse.Namespace, screen: Screen, cluster: FallibleCluster | None
) -> AnyDemo:
    if cluster is None or not (options.standalone or options.living):
        return Demo(options, screen, cluster)
    return Living(cluster, screen) if options.living else StandaloneDemo(options, screen, cluster)


def _interrupted(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> int:
    """Command line; 0 where every verdict held."""
    options = parse_arguments(sys.argv[1:])
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupted)
    screen = Screen()
    cluster: FallibleCluster | None = None
    demo: AnyDemo | None = None
    verdict = "FAILED"
    try:
        if options.attached is None:
            yarn = "" if options.standalone else "YARN with 3 nodes, "
            with screen.phase(f"local cluster: {yarn}Kafka"):
                cluster = bring_up(screen.say, nodes=3 if yarn else 0)
        demo = _demo_of(options, screen, cluster)
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


def _end(screen: Screen, cluster: LocalCluster | None, demo: AnyDemo | None, *, keep: bool) -> None:
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
