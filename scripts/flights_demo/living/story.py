"""The flights job is changed while it runs, and ends (``scripts/demo --living``).

It gets an adjunct store and an input, another schema, a host and another key, and gives the input
up, each by the command that a user would give, while flights come. In the end it is deleted.
"""

from __future__ import annotations

import itertools
import json
import os
import shlex
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka.admin import AdminClient, NewTopic

from flights_demo.clusters import FallibleCluster
from flights_demo.common import create_topics, judge_history, make_topics, reference, show_faults
from flights_demo.job import EXAMPLE, DemoJob
from flights_demo.living.feed import Feed
from flights_demo.living.packages import FIRST_KEYS, OUTPUT, REKEYED_KEYS, make_package, with_keys
from flights_demo.living.results import (
    by_first_edition,
    counts_differ,
    expected_planes,
    is_further,
    of_the_job,
    without_names,
    zone_faults,
)
from flights_demo.names import judge
from flights_demo.screen import Screen
from flights_demo.story import Containers, Story, is_tail, restores_of
from flights_demo.verdict import INPUT, PARTITIONS, Reader, compare, next_offsets, outputs_of

sys.path.insert(0, str(EXAMPLE))
from data import read_airports, read_flights, records
from producer import new_producer
from reference_streams import Row, write

_FLIGHTS = 120_000
"""So many of the year's; the last ones of each input come at once."""
_RATE, _FURTHER_RATE = 100.0, 30.0
_RECORDS_BEFORE = 1_000
_WATCH_MS = 2_000
_LATECOMERS = 500
FURTHER, ZONES = "flights-more", "zones"
_REFERENCE = "kafka.airports#0, kafka.airlines#0"
_ZONES_STORE = {
    "task.broadcast.inputs": f"{_REFERENCE}, kafka.{ZONES}#0",
    "stores.zones.factory": "rocksdb",
    "stores.zones.key.serde": "string",
    "stores.zones.msg.serde": "string",
    "stores.zones.adstore.input": f"kafka.{ZONES}",
    f"systems.kafka.streams.{ZONES}.samza.bootstrap": "true",
}
_LEFT_ELSEWHERE = 3
"""The exit code of ``homeport delete-job`` where other hosts have directories."""


class Living(Story):
    """One life of the job, from its submission to its deletion."""

    def __init__(self, cluster: FallibleCluster, screen: Screen) -> None:
        """``cluster``: of this run's own."""
        self._local = cluster
        self._scratch = tempfile.TemporaryDirectory(prefix="homeport-demo-")
        self._folder = Path(self._scratch.name)
        self._file = self._folder / "flights.properties"
        self._given = with_keys((EXAMPLE / self._file.name).read_text("utf-8"), FIRST_KEYS)
        self._file.write_text(self._given, "utf-8")
        servers = cluster.bootstrap_servers
        job = DemoJob(EXAMPLE, cluster.env(), servers, file=self._file)
        job.package = make_package(self._folder / "first", 1)
        super().__init__(cluster, job, Reader(servers), screen)
        flights = list(itertools.islice(records(read_flights()), _FLIGHTS))
        self._further = [flight for flight in flights if is_further(flight)]
        self._first = [flight for flight in flights if not is_further(flight)]
        self._feed = Feed(servers, INPUT, self._first, _RATE)
        self._further_feed = Feed(servers, FURTHER, self._further, _FURTHER_RATE)
        self._rekeyed_from: dict[str, dict[int, int]] = {}

    def close(self) -> None:
        """No feed writes, and nothing of the demo itself is connected, or left."""
        self._feed.close()
        self._further_feed.close()
        self.reader.close()
        self._scratch.cleanup()

    def run(self) -> None:
        """Play it, as any demo."""
        self.play()

    def play(self) -> None:
        """Each change has been made, the result is judged, and the job is deleted."""
        with self.screen.phase("topics"):
            before = self._make_topics()
        self.screen.say(f"each command below has --config-path={self._file}")
        with self.screen.phase("submit: the AM answers"):
            self._run_job()
        self._feed.start()
        with self.screen.phase("containers placed, restored, taking input"):
            self.job.wait_until_running(self.screen.progress)
            self.wait_for("work", lambda: self.is_at_work(_RECORDS_BEFORE))
        self._further_feed.start()
        for name, change in (
            ("an input and an adjunct store come", self._give_inputs),
            ("the schema of the summaries gets a field", self._upgrade),
            ("a host joins, and is a home", self._join),
            ("flights are counted per airport too", self._rekey),
            ("the further input goes", self._drop_input),
        ):
            with self.screen.phase(name):
                change()
            self.judge(f"{name}: flights came all the while", held=not self._feed.is_over)
        self._end_of_input()
        with self.screen.phase("all results compared"):
            self._compare_planes()
            self._compare_airports()
        with self.screen.phase("history judged"):
            folders = [self.cluster.state_dir(node) for node in self.cluster.nodes]
            self.verdicts.append(judge_history(folders, "nodes"))
        with self.screen.phase("the job is deleted"):
            self._delete(before)

    # ------------------------------------------------------------------ the changes

    def _give_inputs(self) -> None:
        """Both come to the running job, by one command; each task has its state as before."""
        also = [f"--also={key}={value}" for key, value in _ZONES_STORE.items()]
        inputs = f"kafka.{INPUT}, kafka.planes, kafka.{FURTHER}"
        before = self.containers()
        self.homeport("config", "set", "task.inputs", inputs, *also)
        self._restarted_at_home(before, f"{FURTHER} and {ZONES} came to the running job")
        self.wait_for(f"records of {FURTHER}", lambda: any(self._consumed(FURTHER).values()))

    def _upgrade(self) -> None:
        """The second edition runs everywhere; values of the first are read by it."""
        package = make_package(self._folder / "second", 2)
        before = self.containers()
        self.homeport("upgrade", f"--package={package}", f"--watch-ms={_WATCH_MS}")
        self.job.package = package
        self._restarted_at_home(before, "an upgrade gave the summaries the field 'late'")

    def _join(self) -> None:
        """A container goes to a host that joined, and comes home there when all of it dies."""
        hosts = self._hosts()
        self.homeport("local", "add-node", f"--name={self._local.name}", of_job=False)
        self.wait_for("the host that joins", lambda: self._hosts() > hosts)
        (joined,) = self._hosts() - hosts
        processor = min(self.containers())
        self.homeport("move", processor, joined)
        self.job.wait_until_running(self.screen.progress)
        moved = self.containers()[processor]
        launcher = psutil.Process(moved["pid"]).ppid()
        self.screen.say(f"SIGKILL of the launcher of processor {processor}, pid {launcher}")
        os.kill(launcher, signal.SIGKILL)
        epochs = {processor: int(moved["epoch"])}
        self.job.wait_until_running(self.screen.progress, epochs)
        again = self.containers()[processor]
        text = (
            f"processor {processor} was moved to {joined}, which joined later; after SIGKILL of"
            f" its launcher it came home to {again['host']} and read {_read(again):,} records of"
            " changelogs"
        )
        is_home = moved["host"] == again["host"] == joined
        self.judge(text, held=is_home and is_tail(restores_of(again)))

    def _rekey(self) -> None:
        """The third edition sends each flight on by its airport; all stores go on."""
        before = self.containers()
        self._stop()
        self._rekeyed_from = {topic: self._consumed(topic) for topic in (INPUT, FURTHER)}
        self._file.write_text(with_keys(self._given, REKEYED_KEYS), "utf-8")
        for key, value in REKEYED_KEYS.items():
            self.screen.say(f"  {self._file.name}: {key}={value}")
        self.job.package = make_package(self._folder / "third", 3)
        self._run_job("--other-package")  # than that of the upgrade
        self._restarted_at_home(before, "the job was submitted with a repartition", by_epoch=False)
        self.wait_for("counts of airports", lambda: any(self._airports().values()))

    def _drop_input(self) -> None:
        """All of it is counted, and what comes to its topic later is not."""
        self._further_feed.finish()
        self.wait_for(f"the end of {FURTHER}", lambda: self._is_consumed(FURTHER))
        before = self.containers()
        self.homeport("config", "set", "task.inputs", "--delete")
        self._restarted_at_home(before, f"{FURTHER} went from the running job")
        latecomers = Feed(
            self._local.bootstrap_servers, FURTHER, self._further[:_LATECOMERS], _LATECOMERS
        )
        latecomers.start()
        latecomers.finish()

    def _restarted_at_home(self, before: Containers, what: str, *, by_epoch: bool = True) -> None:
        """Judge that all have started again where they were, and read what followed their stores.

        ``by_epoch``: whether they are of the same submission as ``before``.
        """
        epochs = {p: int(c["epoch"]) for p, c in before.items()} if by_epoch else {}
        self.job.wait_until_running(self.screen.progress, epochs)
        now = self.containers()
        is_home = {p: c["host"] for p, c in now.items()} == {
            p: c["host"] for p, c in before.items()
        }
        has_state = all(is_tail(restores_of(container)) for container in now.values())
        records = sum(map(_read, now.values()))
        text = f"{what}; each container is at home and read a tail of its changelogs"
        self.judge(f"{text}, {records:,} records in all", held=is_home and has_state)

    # ------------------------------------------------------------------ the end

    def _end_of_input(self) -> None:
        """All has come, is consumed and counted; the job has stopped in order."""
        with self.screen.phase("input consumed"):
            self._feed.finish()
            self.wait_for(f"the end of {INPUT}", lambda: self._is_consumed(INPUT))
            right = sum(self._expected_airports().values())
            self.wait_for(
                f"{right:,} counts of airports", lambda: sum(self._airports().values()) >= right
            )
        with self.screen.phase("stopped in order"):
            self._stop()

    def _compare_planes(self) -> None:
        outputs = list(outputs_of(self.reader))
        by_first, faults = by_first_edition(outputs)
        expected = expected_planes([*self._first, *self._further], by_first)
        judged = judge(outputs, reference())
        found = {tail: without_names(value) for tail, value in judged.summaries.items()}
        faults += compare(found, expected)
        show_faults(self.screen, faults)
        late = sum(summary.get("late", 0) for summary in expected.values())
        text = (
            f"all {len(expected):,} planes of both inputs are exactly right, with {late:,} late"
            f" flights since the upgrade ({len(faults)} differ)"
        )
        self.judge(text, held=not faults and late > 0)
        faults = [*judged.wrong, *zone_faults(outputs, _zones())]
        show_faults(self.screen, faults)
        with_zone = sum("zone" in value for _, value in outputs)
        text = (
            f"{with_zone:,} of {len(outputs):,} outputs have a time zone, all since {ZONES} came;"
            f" each name and zone is right ({len(faults)} wrong)"
        )
        self.judge(text, held=not faults and 0 < with_zone < len(outputs))

    def _compare_airports(self) -> None:
        expected = self._expected_airports()
        faults = counts_differ(self._airports(), expected)
        show_faults(self.screen, faults)
        text = (
            f"{sum(expected.values()):,} flights of both inputs were counted per airport since it"
            f" was re-keyed, in {len(expected)} airports ({len(faults)} differ)"
        )
        self.judge(text, held=not faults and bool(expected))

    def _delete(self, before: list[str]) -> None:
        """Nothing of the job is left: by its own word, in Kafka, and on each node."""
        self.homeport("delete-job")
        self.homeport("delete-job", "--apply", code=_LEFT_ELSEWHERE)
        for node in self.cluster.nodes:
            base = self.cluster.state_dir(node)
            self.homeport("clean", "--apply", f"--host={node}", f"--base={base}")
        self.homeport("delete-job", "--apply")
        topics = of_the_job(before, self._topics())
        self.judge(f"no topic of the job is left {topics or ''}".rstrip(), held=not topics)
        folders = [self.cluster.state_dir(node) for node in self.cluster.nodes]
        left = [str(path) for folder in folders for path in folder.iterdir()]
        text = f"no directory of the job is left on {len(folders)} nodes {left or ''}"
        self.judge(text.rstrip(), held=not left)
        staged = [*self._local.log_dir.parent.glob("fs/user/*/.skein/*")]
        self.judge("no file of its applications is left in YARN's file system", held=not staged)

    # ------------------------------------------------------------------ Kafka, YARN and commands

    def _make_topics(self) -> list[str]:
        """Make and fill them; return all that Kafka has before the job."""
        create_topics(self._local.bootstrap_servers, None)
        further = NewTopic(FURTHER, PARTITIONS, 1)
        zones = NewTopic(ZONES, 1, 1, config={"cleanup.policy": "compact"})
        make_topics(self._local.bootstrap_servers, further, zones)
        rows = [Row(ZONES, airport, zone) for airport, zone in _zones().items()]
        write(new_producer({"bootstrap.servers": self._local.bootstrap_servers}), rows)
        return self._topics()

    def _topics(self) -> list[str]:
        admin = AdminClient({"bootstrap.servers": self._local.bootstrap_servers})
        return list(admin.list_topics(timeout=30).topics)

    def _run_job(self, *options: str) -> None:
        words = "run-job", f"--config=yarn.package.path={self.job.package}", *options
        self.screen.say(shlex.join(words))
        self.job.submit(*options)

    def _stop(self) -> None:
        self.screen.say("run-job --operation=kill")
        self.job.kill()

    def _hosts(self) -> set[str]:
        return {*self.job.get("v1/status")["hosts"]}

    def _consumed(self, topic: str) -> dict[int, int]:
        return next_offsets(self.reader, topic=topic)

    def _is_consumed(self, topic: str) -> bool:
        done = self._consumed(topic)
        return all(self.reader.end_offset(topic, p) <= done[p] for p in range(PARTITIONS))

    def _airports(self) -> dict[str, int]:
        """Return the newest count of each airport."""
        return {
            (key or b"").decode(): int(value or b"0")
            for partition in range(PARTITIONS)
            for key, value in self.reader.records(OUTPUT, partition)
        }

    def _expected_airports(self) -> Counter[str]:
        """Count the flights per airport that were not consumed when the job was re-keyed."""
        counts = Counter[str]()
        for topic, begin in self._rekeyed_from.items():
            ends = self._consumed(topic)
            for partition, start in begin.items():
                values = (v for _, v in self.reader.records(topic, partition, start))
                for value in itertools.islice(values, ends[partition] - start):
                    counts[json.loads(value or b"")["dest"]] += 1
        return counts


def _read(container: dict[str, Any]) -> int:
    """Return how many records of changelogs a container read at its start."""
    return sum(int(how["records"]) for how in restores_of(container))


def _zones() -> dict[str, str | None]:
    """Return the time zone of each airport; three have none."""
    return {airport["faa"]: airport["tzone"] for airport in read_airports()}
