"""A job on a real YARN cluster, by the command that users have: what tests of it share."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from check_history.reading import values_in
from clusters_under_test import ClusterUnderTest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from forked_tool import MODULE, RUN_JOB, run_forked
from histories import require_sound
from topic_records import committed, partitions_of

from homeport.appmaster.yarn.resource_manager_rest import Application, ResourceManagerRest
from homeport.config.config import Config
from homeport.config.settings.sections import JobConfig, SystemConfig
from homeport.job_coordinator.client_files import token_path
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.http.pinned_tls import client_context
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.program_names import SPARE_NAME

LIMIT_S = 120.0
PARTITIONS = 6
KEYS = 50
TASK = """
from homeport.container.api import BatchTask

class Count(BatchTask):
    def init(self, context):
        self.store = context.store("counts")

    def process_batch(self, table, collector):
        for key in table.column("key").to_pylist():
            name = key.decode()
            self.store.put(name, (self.store.get(name) or 0) + 1)

class Reports(Count):
    def init(self, context):
        super().init(context)
        self.changed = set()
        self.out = context.config["job.name"] + "-out"

    def process_batch(self, table, collector):
        super().process_batch(table, collector)
        self.changed.update(table.column("key").to_pylist())

    def end_transaction(self, collector):
        for key in sorted(self.changed):
            collector.send(self.out, str(self.store.get(key.decode())).encode(), key)
        self.changed.clear()

class Silent(BatchTask):
    def process_batch(self, table, collector):
        pass

class Failing(BatchTask):
    def process_batch(self, table, collector):
        raise ValueError("a fault of the task")

def with_keys(batch):
    return batch.where("key IS NOT NULL")
"""


class Job:
    """One job of its own name on the cluster, as its user runs it."""

    def __init__(self, cluster: ClusterUnderTest, folder: Path, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.servers = cluster.bootstrap_servers
        self.package = folder / "package"
        self.package.mkdir(exist_ok=True)
        (self.package / "probe_task.py").write_text(TASK)
        self.values = {
            "job.name": name,
            "job.default.system": "kafka",
            "job.container.count": "3",
            "job.host-affinity.enabled": "true",
            "job.coordinator.system": "kafka",
            "systems.kafka.samza.factory": "org.apache.samza.system.kafka.KafkaSystemFactory",
            "systems.kafka.consumer.bootstrap.servers": self.servers,
            "systems.kafka.default.stream.replication.factor": "1",
            "systems.kafka.samza.offset.default": "oldest",
            "task.class": "probe_task:Count",
            "task.inputs": f"kafka.{name}-in",
            "stores.counts.factory": "rocksdb",
            "stores.counts.changelog": f"kafka.{name}-counts",
            "stores.counts.key.serde": "string",
            "stores.counts.msg.serde": "json",
            "yarn.package.path": str(self.package),
            "yarn.am.container.memory.mb": "512",
            "cluster-manager.container.memory.mb": "512",
            "cluster-manager.container.lease.ms": "6000",
            "cluster-manager.rolling-restart.watch.ms": "1000",
            "job.coordinator.isolation.max.ms": "6000",
            **cluster.job_values(),
        }
        self.produced = Counter[str]()
        self.path = folder / f"{name}.properties"
        self.text = ""
        self.url = ""
        self.application_id = ""
        self.rest = ResourceManagerRest.from_environment(self.environment)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a shell that uses the cluster."""
        return {**os.environ, **self.cluster.env()}

    def produce(self, count: int, first: int = 0, keys: int = KEYS) -> None:
        """The input topic exists and has so many more records, numbered from ``first``.

        Their ``keys`` take turns.
        """
        topic = f"{self.name}-in"
        admin = AdminClient({"bootstrap.servers": self.servers})
        if topic not in admin.list_topics(timeout=10).topics:
            made = admin.create_topics([NewTopic(topic, PARTITIONS)])[topic].exception(30)
            # A broker may answer before it knows a topic that was made a moment ago.
            if made is not None and made.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise made
        room = {"queue.buffering.max.messages": max(count, 1)}
        producer = Producer({"bootstrap.servers": self.servers, **room})
        for number in range(first, first + count):
            key = f"key {number % keys}"
            producer.produce(topic, key=key, value=str(number))
            self.produced[key] += 1
        assert producer.flush(30) == 0

    def call(
        self,
        operation: str,
        *overrides: str,
        env: dict[str, str] | None = None,
        reset_state: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """``run-job`` with the job's file."""
        self._write_file()
        arguments = [f"--config-path={self.path}", f"--operation={operation}"]
        arguments += [*["--reset-state"] * reset_state, *(f"--config={o}" for o in overrides)]
        return self._ended(RUN_JOB, arguments, self.environment if env is None else env, 300)

    def _write_file(self) -> None:
        """``text``, where a test has set it, else the properties of ``values``."""
        text = self.text or "".join(f"{k}={v}\n" for k, v in self.values.items())
        self.path.write_text(text)

    def _ended(
        self, module: str, words: Sequence[str], environment: Mapping[str, str], limit_s: float
    ) -> subprocess.CompletedProcess[str]:
        command = self.cluster.command(module)
        if command == [sys.executable, "-m", module]:
            return run_forked(words, environment, limit_s=limit_s, module=module)
        return subprocess.run(
            [*command, *words],
            env=environment,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )

    def _token_file(self, token: str) -> dict[str, str]:
        if not token:
            return {}
        path = self.path.with_suffix(".token")
        path.write_text(token, encoding="utf-8")
        return {"HOMEPORT_TOKEN_FILE": str(path)}

    def operator(
        self, *arguments: str, limit_s: float = 60, token: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """``homeport`` with the job's file, and with that token."""
        environment = {**self.environment, **self._token_file(token)}
        words = [*arguments, f"--config-path={self.path}"]
        return self._ended(MODULE, words, environment, limit_s)

    @contextlib.contextmanager
    def operating(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """The same, while it runs; ended afterwards."""
        tool = subprocess.Popen(
            [*self.cluster.command(MODULE), *arguments, f"--config-path={self.path}"],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield tool
        finally:
            tool.kill()
            tool.wait()

    def submitting(self) -> subprocess.Popen[str]:
        """``run-job`` as it begins to submit the job."""
        self._write_file()
        return subprocess.Popen(
            [*self.cluster.command(RUN_JOB), f"--config-path={self.path}"],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def begin(self, count: int, *overrides: str) -> dict[str, int]:
        """The job runs, with so many records in its input: {processor: pid}."""
        self.produce(count)
        self.run(*overrides)
        return self.settled()

    def end(self) -> None:
        """It stops in order, and its history is sound."""
        assert self.kill() == f"stopped {self.application_id} in order"
        self.judge_history()

    def kill_driver(self) -> int:
        """SIGKILL of the driver, which the supervisor starts again; the pid that it had."""
        driver = self.program("application_master")
        assert driver is not None
        os.kill(driver, signal.SIGKILL)
        return driver

    def run(self, *overrides: str) -> None:
        """The job's AM answers."""
        done = self.call("run", *overrides)
        assert done.returncode == 0, done.stderr
        self.learn(done.stdout)

    def learn(self, printed: str) -> None:
        """What ``run-job`` printed of the job is known."""
        words = dict(line.split(maxsplit=1) for line in printed.splitlines())
        self.application_id, self.url = words["application"], words["JobModel"]
        assert set(words) == {"application", "JobModel", "status", "dashboard", "YARN"}

    @property
    def attempt(self) -> int:
        """The AM attempt that answers now.

        The first one to answer need not be attempt 1: where the FairScheduler schedules
        continuously, the ResourceManager can lose the first grant of an AM's container; it ends
        that attempt, which nothing ran in, when the grant expires.
        """
        return int(self.get("v1/status")["job"]["attempt"])

    def kill(self) -> str:
        """The job has ended; what the command printed."""
        done = self.call("kill")
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def get(self, path: str) -> Any:  # noqa: ANN401 - JSON
        """The JSON that the AM serves at ``path``."""
        return json.loads(self.get_text(path))

    def get_text(self, path: str, token: str | None = None) -> str:
        """The text that the AM serves at ``path`` to a client with this token, or without one."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        asked = urllib.request.Request(self.url + path, headers=headers)  # noqa: S310 - ours
        certificate = self.written("yarn.am.certificate") if asked.type == "https" else None
        tls = None if certificate is None else client_context(certificate)
        with urllib.request.urlopen(asked, timeout=10, context=tls) as answer:  # noqa: S310 - ours
            text: str = answer.read().decode()
            return text

    @property
    def token(self) -> str:
        """The job's token, as ``run-job`` keeps it."""
        return token_path(self.environment, self.application_id).read_text(encoding="utf-8")

    def failures(self) -> list[dict[str, Any]]:
        """The failures in the status that the job's owner reads, with the last lines of logs."""
        stated: list[dict[str, Any]] = json.loads(self.get_text("v1/status", self.token))[
            "failures"
        ]
        return stated

    def containers(self) -> dict[str, dict[str, Any]]:
        """{processor: what the status says of it}."""
        return {c["processor_id"]: c for c in self.get("v1/status")["containers"]}

    def pids(self) -> dict[str, int]:
        """{processor: pid of its stream container}; empty while not all of them run."""
        return self._pids_in(list(self.containers().values()))

    def _pids_in(self, containers: list[dict[str, Any]]) -> dict[str, int]:
        if any(c["phase"] != "running" or c["pid"] is None for c in containers):
            return {}
        here = self.cluster.pid_here
        return {c["processor_id"]: here(c["host"], c["pid"]) for c in containers}

    def program(self, name: str) -> int | None:
        """The pid of the AM's program of that name; None while there is none."""
        found = [pid for pid, line in pids_of(self.application_id).items() if f".{name}" in line]
        return next((pid for pid in found if alive(pid)), None)

    def settled(self) -> dict[str, int]:
        """All containers run, with the tasks that they have by the JobModel: {processor: pid}."""
        found: dict[str, int] = {}

        def are_settled() -> bool:
            # One that a JobModel has overtaken works on for a while. Callers with a token get the
            # present status; others share one for a second.
            status = json.loads(self.get_text("v1/status", self.token))
            found.clear()
            found.update(self._pids_in(status["containers"]))
            return bool(found) and status["change"] is None

        wait_for(are_settled, self)
        return found

    def wait_until_running(self) -> dict[str, dict[str, Any]]:
        """All containers run; what the status says of them."""
        wait_for(lambda: self.get("v1/status")["job"]["state"] == "running", self)
        return self.containers()

    def written_ms(self, key: str) -> int:
        """When the coordinator stream's record of the key was written, in ms since 1970."""
        return self._record(key).timestamp_ms

    def written(self, key: str) -> str | None:
        """The value of the coordinator stream's last record of the key."""
        return self._record(key).value("value")

    def _record(self, key: str) -> CoordinatorStreamMessage:
        config = Config(self.values)
        system = SystemConfig.of(config, "kafka")
        topic = JobConfig.of(config).coordinator_topic
        with CoordinatorStreamStore(system, topic, source="test") as store:
            store.bootstrap()
            return store.latest(MessageType.SET_CONFIG)[key]

    def counts(self) -> dict[str, int]:
        """{key: how often it was counted} as committed to the changelog; read to its end."""
        topic = f"{self.name}-counts"
        records = committed(self.servers, topic, len(partitions_of(self.servers, topic)))
        values = (((record.key() or b"").decode(), record.value()) for record in records)
        return {key: int(value) for key, value in values if value is not None}

    def expects(self, count: int) -> None:
        """Once all is counted, each of the 50 keys has its share, and none has more."""
        wait_for(lambda: sum(self.counts().values()) >= count, self)
        right = {f"key {k}": len(range(k, count, KEYS)) for k in range(KEYS)}
        assert self.counts() == {k: n for k, n in right.items() if n}

    def counts_all(self) -> None:
        """Once all that was produced is counted, each key has its share, and none has more."""
        try:
            wait_for(lambda: sum(self.counts().values()) >= self.produced.total(), self)
        finally:
            counts = self.counts()
            wrong = {k: (n, counts.get(k)) for k, n in self.produced.items() if n != counts.get(k)}
            assert not wrong, f"{len(wrong)} of {len(self.produced)} keys (right, found): {wrong}"
        assert counts.keys() == self.produced.keys()

    def histories(self) -> list[Path]:
        """The job's folder of each node."""
        return [self.cluster.state_dir(n) / f"{self.name}-1" for n in self.cluster.nodes]

    def judge_history(self) -> None:
        """What the job's processes wrote down on all nodes is sound."""
        require_sound(self.histories())

    def decisions(self, event: str) -> list[list[str]]:
        """The instructions that followed from each event of that name, by the driver's history."""
        stated = self.driver_events("decision")
        return [x["instructions"] for x in stated if x["cause"].startswith(event)]

    def driver_events(self, name: str) -> list[dict[str, Any]]:
        """The events of that name in the history of the job's drivers, in their order."""
        return [event for event in self.history(name) if event["role"] == "driver"]

    def history(self, *names: str) -> list[dict[str, Any]]:
        """What the job's processes wrote down under those names, on all nodes, in its order."""
        found: list[dict[str, Any]] = []
        for node in self.cluster.nodes:
            folder = self.cluster.state_dir(node) / f"{self.name}-1" / ".history"
            for path in folder.glob("*.jsonl"):
                found += [line for line in values_in(path) if line["event"] in names]
        return sorted(found, key=lambda line: int(line["boot_ms"]))

    def am_host(self) -> str:
        """The node whose loss would be the AM's."""
        nodes = self.cluster.status()["nodes"]
        return next(str(n["host"]) for n in nodes if n["address"] in self.url)

    def application(self) -> Application:
        """What YARN says of the job's application."""
        found = self.rest.application(self.application_id)
        assert found is not None
        return found


def wait_for(condition: Callable[[], bool], job: Job, every_s: float = 0.2) -> None:
    """Returns when ``condition`` holds; an AM that is away for a while does no harm."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        try:
            if condition():
                return
        except (OSError, ValueError):
            pass  # between two attempts there is no answer, or YARN's proxy answers in HTML
        if time.monotonic() > deadline:
            pytest.fail(f"{job.name} after {LIMIT_S:.0f} s: {job.application()}")
        time.sleep(every_s)  # what it looks at announces no change


def alive(pid: int) -> bool:
    """Whether a process of that pid runs."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def parent_of(pid: int) -> int:
    """The pid of its parent."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def has_spare(pid: int) -> bool:
    """Whether a process that it has started waits for its turn."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return any(Path(f"/proc/{one}/comm").read_text().strip() == SPARE_NAME for one in children)


def pids_of(application_id: str) -> dict[int, str]:
    """{pid: command line} of the application's processes, by the environment YARN gave them.

    Without spares, which wait for their turn.
    """
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes()
            is_ours = f"SKEIN_APPLICATION_ID={application_id}\0".encode() in environment
            if is_ours and (folder / "comm").read_text().strip() != SPARE_NAME:
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                found[int(folder.name)] = line
        except OSError:
            continue
    return found
