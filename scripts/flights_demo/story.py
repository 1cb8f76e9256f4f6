"""A story of the demo: something befalls the job, all waits, and what was promised is judged."""

from __future__ import annotations

import shlex
import urllib.parse
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from check_history.reading import Event, read_jobs

from flights_demo.clusters import DemoCluster
from flights_demo.common import await_that
from flights_demo.job import DemoJob
from flights_demo.names import Verdict
from flights_demo.screen import Screen
from flights_demo.verdict import Reader, next_offsets

Containers = dict[str, dict[str, Any]]
"""{processor: its entry in the status}."""


class Story(ABC):
    """One story on a job that runs; ``play`` it. ``verdicts``: what was promised, if it held."""

    SECONDS = 0
    """For so long, roughly, input should come, on a slow machine too; then the rest comes."""
    CAME = ""
    """The promise that input came so long."""

    def __init__(self, cluster: DemoCluster, job: DemoJob, reader: Reader, screen: Screen) -> None:
        self.cluster = cluster
        self.job = job
        self.reader = reader
        self.screen = screen
        self.verdicts: list[Verdict] = []

    @abstractmethod
    def play(self) -> None:
        """Act, wait and judge; DemoError where the job does not reach the awaited state in time."""

    def judge(self, promise: str, *, held: bool) -> None:
        """Add a verdict."""
        self.verdicts.append((promise, held))

    def wait_for(
        self, what: str, condition: Callable[[], bool], poll_s: float | None = None
    ) -> None:
        """Wait until the condition holds; DemoError where it does not hold in time."""
        await_that(condition, what, self.screen, *(() if poll_s is None else (poll_s,)))

    def homeport(self, *words: str, code: int = 0, of_job: bool = True) -> None:
        """Give the operator's command, about the job if ``of_job``; show it and what it prints.

        DemoError: it ends with another exit code than ``code``.
        """
        self.screen.say(shlex.join(["homeport", *words]))
        for line in self.job.homeport(*words, code=code, of_job=of_job).splitlines():
            self.screen.say(f"  {line}")

    def containers(self) -> Containers:
        """Return the containers of the status, by processor."""
        return {c["processor_id"]: c for c in self.job.containers()}

    def lags(self) -> dict[str, int | None]:
        """Return {standby: records that it is behind}, of containers and of tasks beside others.

        None: the standby has not reported.
        """
        found: dict[str, int | None] = {}
        for processor, container in self.containers().items():
            found |= {standby["name"]: standby["lag"] for standby in container["standbys"]}
            if container["replica_of"] is not None:
                found[processor] = container["lag"]
        return found

    def events(self) -> list[Event]:
        """Return the history of all processes of the job."""
        folders = [self.cluster.state_dir(node) for node in self.cluster.nodes]
        return read_jobs(folders, "boot", 0)[0].events

    def hosts_of_actives(self) -> tuple[str, set[str]]:
        """Return the host of the AM, and the others that have an active container."""
        address = urllib.parse.urlsplit(self.job.url).hostname
        nodes = self.cluster.status()["nodes"]
        am = next(str(node["host"]) for node in nodes if node["address"] == address)
        return am, {c["host"] for c in self.containers().values() if c["role"] == "active"} - {am}

    def is_at_work(self, records: int) -> bool:
        """Return whether all containers run, and so much of the input is consumed."""
        return (
            all(c["phase"] == "running" for c in self.containers().values())
            and sum(next_offsets(self.reader).values()) >= records
        )


def is_tail(restored: list[dict[str, Any]]) -> bool:
    """Return whether no store was read from its changelog's beginning.

    ``restored``: how each was restored, as the status has it.
    """
    return bool(restored) and all(how["kind"] != "full" for how in restored)


def restores_of(container: dict[str, Any]) -> list[dict[str, Any]]:
    """Return how each store of a container was restored."""
    return [how for tasks in container["restored"].values() for how in tasks.values()]
