"""Section adoption: the driver of a thousand launchers is killed, and the next one adopts them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import cpu_time
from benchmarks.allocator.adoption_launchers import Launchers, Tally
from benchmarks.bed import broker, scratch
from benchmarks.jobs import config_of
from benchmarks.report import BenchmarkError, Row, at_least, at_most, figure
from homeport.appmaster.allocation.job_state.state import ContainerPhase
from homeport.appmaster.yarn.submission_file import (
    SUBMISSION_FILE_NAME,
    SubmissionFile,
    Submitted,
    coordinator_part,
)
from homeport.config.config import Config
from homeport.config.settings.sections import JobConfig, SystemConfig
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.http.messages import TOKEN_FILE_NAME
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.topics import TopicAdmin, TopicSpec, coordinator_topic_spec
from homeport.job_coordinator.metadata.configuration import ConfigManager

LAUNCHERS = 1_000
STEADY_S, AFTER_S = 20.0, 20.0
_TITLE = (
    "SIGKILL of the driver under 1,000 launchers (real supervisor, keeper, driver, Kafka, HTTP;\n"
    "the cluster manager that grants, and the launchers, are simulated)"
)
_START_LIMIT_S, _ADOPTION_LIMIT_S = 240.0, 120.0
_LOOK_S = 0.05
_STOP_S = 10.0
_INPUT = "of-the-benchmark"
_YARN_SITE = """<configuration><property>
<name>yarn.resourcemanager.webapp.address</name><value>127.0.0.1:1</value>
</property></configuration>
"""


def rows() -> Iterator[Row]:
    """How long the adoption takes, what restarts, and what the processes and answers take."""
    with broker() as started, scratch() as folder:
        token = secrets.token_urlsafe(16)
        _prepare(folder, _config(started.bootstrap_servers), token)
        with _supervisor(folder):
            story = _Story(folder, token)
            try:
                asyncio.run(story.announce())
            finally:
                yield from story.rows


class _Story:
    """All start; a steady time; the kill; the adoption; a steady time again."""

    def __init__(self, folder: Path, token: str) -> None:
        self.rows: list[Row] = []
        self._folder, self._token = folder, token
        self._launchers = Launchers(folder, token)

    async def announce(self) -> None:
        """``rows`` has the figures."""
        playing = asyncio.create_task(self._launchers.run())
        stated = asyncio.create_task(self._announce())
        try:
            await asyncio.wait([playing, stated], return_when=asyncio.FIRST_COMPLETED)
            if playing.done():
                playing.result()
            await stated
        finally:
            for task in (playing, stated):
                task.cancel()
            await asyncio.gather(playing, stated, return_exceptions=True)

    async def _announce(self) -> None:
        tally, began = self._launchers.tally, time.monotonic()
        await self._until(lambda: tally.started >= LAUNCHERS, "have started", _START_LIMIT_S)
        self._figure("all asked for, granted, permitted and started", _since(began), "s")
        self._figure("children started more than once until then", _again(tally))
        keeper, driver = self._pid("keeper"), self._pid("driver")
        await self._steady("before", driver, keeper, STEADY_S)

        as_it_was, again = await self._containers(), _again(tally)
        keeper_cpu, killed, killed_ms = cpu_time.cpu_s(keeper), time.monotonic(), _wall_ms()
        os.kill(driver, signal.SIGKILL)
        await self._until(
            lambda: len(self._accounted_for(killed_ms)) >= LAUNCHERS,
            "are adopted",
            _ADOPTION_LIMIT_S,
        )
        successor, over = self._pid("driver"), time.monotonic()
        found = self._accounted_for(killed_ms)
        self._figure("from the kill until the first is adopted", min(found) / 1000, "s")
        self._figure("from the kill until all 1,000 are adopted", max(found) / 1000, "s")
        self._figure("CPU of the new driver until then", cpu_time.cpu_s(successor), "s")
        spent = cpu_time.cpu_s(keeper) - keeper_cpu
        self._figure("CPU of the keeper meanwhile", spent, "s")
        self._figure("check-ins answered then: p99", tally.quantile(0.99, killed, over), "s")
        await self._steady("after", successor, keeper, AFTER_S)
        if self._pid("driver") != successor or self._pid("keeper") != keeper:
            raise BenchmarkError("the driver or the keeper has been started once more")
        same = as_it_was.items() & (await self._containers()).items()
        self.rows.append(
            at_least("running, the same ones as before, by the status", len(same), LAUNCHERS, "")
        )
        self.rows.append(
            at_most("children stopped or started since the kill", _again(tally) - again, 0, "")
        )
        self._figure("check-ins without an answer, all the time", tally.unanswered)

    async def _containers(self) -> dict[str, tuple[int, str]]:
        """{processor: epoch and resource} of those that the driver says run."""
        url = re.findall(r"the job coordinator answers at (\S+)", self._log())[-1]
        client = CoordinatorClient(url, self._token, _STOP_S)
        containers = (await asyncio.to_thread(client.status_body))["containers"]
        running = (c for c in containers if c["phase"] == ContainerPhase.RUNNING.value)
        return {c["processor_id"]: (c["epoch"], c["resource"]) for c in running}

    async def _steady(self, when: str, driver: int, keeper: int, seconds: float) -> None:
        began = time.monotonic()
        before = [cpu_time.cpu_s(pid) for pid in (driver, keeper)]
        await asyncio.sleep(seconds)
        now = time.monotonic()
        spent = [cpu_time.cpu_s(pid) - b for pid, b in zip((driver, keeper), before, strict=True)]
        tally, span = self._launchers.tally, now - began
        self._figure(f"{when}: check-ins answered a second", tally.rate(began, now))
        self._figure(f"{when}: p99 of the answer", tally.quantile(0.99, began, now), "s")
        self._figure(f"{when}: CPU of the driver, of one core", 100 * spent[0] / span, "%")
        self._figure(f"{when}: CPU of the keeper, of one core", 100 * spent[1] / span, "%")

    def _figure(self, what: str, value: float, unit: str = "") -> None:
        self.rows.append(figure(what, value, unit))

    async def _until(self, holds: Callable[[], bool], what: str, limit_s: float) -> None:
        deadline = time.monotonic() + limit_s
        while not holds():
            if time.monotonic() > deadline:
                tail = "\n".join(self._log().splitlines()[-10:])
                raise BenchmarkError(f"not all {what} after {limit_s:.0f} s:\n{tail}")
            await asyncio.sleep(_LOOK_S)

    def _log(self) -> str:
        return (self._folder / "am.log").read_text(encoding="utf-8")

    def _pid(self, name: str) -> int:
        return int(re.findall(rf"the {name} runs as pid (\d+)", self._log())[-1])

    def _accounted_for(self, since_ms: int) -> list[int]:
        """When the new driver knew of each that it runs, in ms after ``since_ms``."""
        found = []
        for path in (self._folder / "state").rglob("driver-*.jsonl"):
            for line in path.read_text(encoding="utf-8").splitlines():
                event = json.loads(line)
                is_found = event["event"] == "accounted-for" and "runs on" in event["what"]
                if is_found and event["ts_ms"] >= since_ms:
                    found.append(event["ts_ms"] - since_ms)
        return found


def _config(brokers: str) -> Config:
    keys = {
        "job.host-affinity.enabled": "true",
        "job.container.count": str(LAUNCHERS),
        "task.class": "of_the_benchmark:Task",
        "task.inputs": f"kafka.{_INPUT}",
    }
    return config_of(brokers, keys, "adoption")


def _prepare(folder: Path, config: Config, token: str) -> None:
    """Kafka has what run-job makes, and an input; the folder what a submission localises."""
    job = JobConfig.of(config)
    system = SystemConfig.of(config, job.coordinator_system)
    admin = TopicAdmin(system)
    admin.ensure(TopicSpec(_INPUT, LAUNCHERS, 1, "of the benchmark"))
    admin.ensure(coordinator_topic_spec(job))
    with CoordinatorStreamStore(system, job.coordinator_topic, source="benchmark") as store:
        store.bootstrap()
        ConfigManager(store).replace(config, "benchmark")
    submitted = Submitted(config, config)
    content = SubmissionFile(coordinator_part(config), 1, submitted)
    (folder / SUBMISSION_FILE_NAME).write_bytes(content.to_bytes())
    (folder / TOKEN_FILE_NAME).write_text(token, encoding="utf-8")
    # The keeper asks its ResourceManager only where Kafka is silent; there is none here.
    (folder / "yarn-site.xml").write_text(_YARN_SITE, encoding="utf-8")


@contextmanager
def _supervisor(folder: Path) -> Iterator[None]:
    """The AM's programs run inside the block, in the folder, as YARN's container would have it."""
    environment = {
        **os.environ,
        "CONTAINER_ID": "container_1700000000000_0001_01_000001",
        "SKEIN_APPLICATION_ID": "application_1700000000000_0001",
        "NM_HOST": "localhost",
        "LOGGED_STORE_BASE_DIR": str(folder / "state"),
        "LOG_DIRS": str(folder),
    }
    with (folder / "am.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.allocator.adoption_am"],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _again(tally: Tally) -> int:
    """How many children have stopped, or have begun beyond the first of each processor."""
    return max(tally.stops, tally.permits - LAUNCHERS)


def _since(began: float) -> float:
    return time.monotonic() - began


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


SECTIONS = {"adoption": (_TITLE, rows)}
