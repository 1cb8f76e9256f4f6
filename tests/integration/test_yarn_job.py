"""Jobs on a real YARN cluster, by the command that users have."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from homeport.appmaster.yarn.resource_manager_rest import Application, ResourceManagerRest
from local_cluster.cluster import LocalCluster

LIMIT_S = 120.0
PARTITIONS = 6
TASK = """
from homeport.container.api import BatchTask

class Count(BatchTask):
    def init(self, context):
        self.store = context.store("counts")

    def process_batch(self, table, collector):
        for key in table.column("key").to_pylist():
            name = key.decode()
            self.store.put(name, (self.store.get(name) or 0) + 1)

class Broken(BatchTask):
    def init(self, context):
        raise ValueError("a fault of the task")

    def process_batch(self, table, collector):
        pass
"""


class Job:
    """One job of its own name on the cluster, as its user runs it."""

    def __init__(self, cluster: LocalCluster, folder: Path, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.servers = cluster.bootstrap_servers
        self.package = folder / "package"
        self.package.mkdir()
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
            "cluster-manager.container.am-lost.timeout.ms": "4000",
        }
        self.path = folder / "job.properties"
        self.url = ""
        self.application_id = ""
        self.rest = ResourceManagerRest.from_environment(self.environment)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a shell that uses the cluster."""
        return {**os.environ, **self.cluster.env()}

    def produce(self, count: int) -> None:
        """The input topic exists and has so many more records."""
        topic = f"{self.name}-in"
        admin = AdminClient({"bootstrap.servers": self.servers})
        if topic not in admin.list_topics(timeout=10).topics:
            admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
        producer = Producer({"bootstrap.servers": self.servers})
        for number in range(count):
            producer.produce(topic, key=f"key {number % 50}", value=str(number))
        assert producer.flush(30) == 0

    def call(
        self, operation: str, *overrides: str, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """``run-job`` with the job's file."""
        self.path.write_text("".join(f"{k}={v}\n" for k, v in self.values.items()))
        arguments = [f"--config={o}" for o in overrides]
        return subprocess.run(
            [
                sys.executable,
                "-m",
                "homeport.appmaster.cli.run_job",
                f"--config-path={self.path}",
                f"--operation={operation}",
                *arguments,
            ],
            env=self.environment if env is None else env,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def run(self, *overrides: str) -> None:
        """The job's AM answers."""
        done = self.call("run", *overrides)
        assert done.returncode == 0, done.stderr
        words = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
        self.application_id, self.url = words["application"], words["JobModel"]
        assert set(words) == {"application", "JobModel", "status", "YARN"}

    def kill(self) -> str:
        """The job has ended; what the command printed."""
        done = self.call("kill")
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def get(self, path: str) -> Any:  # noqa: ANN401 - JSON
        """The JSON that the AM serves at ``path``."""
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:  # noqa: S310 - ours
            return json.load(answer)

    def containers(self) -> dict[str, dict[str, Any]]:
        """{processor: what the status says of it}."""
        return {c["processor_id"]: c for c in self.get("v1/status")["containers"]}

    def wait_until_running(self) -> dict[str, dict[str, Any]]:
        """All containers run; what the status says of them."""
        wait_for(lambda: self.get("v1/status")["job"]["state"] == "running", self)
        return self.containers()

    def application(self) -> Application:
        """What YARN says of the job's application."""
        found = self.rest.application(self.application_id)
        assert found is not None
        return found


def wait_for(condition: Callable[[], bool], job: Job) -> None:
    """Returns when ``condition`` holds; an AM that is away for a while does no harm."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        try:
            if condition():
                return
        except (OSError, ValueError):
            pass  # between two attempts nobody answers, or YARN's proxy does, in HTML
        if time.monotonic() > deadline:
            pytest.fail(f"{job.name} after {LIMIT_S:.0f} s: {job.application()}")
        time.sleep(0.2)


def alive(pid: int) -> bool:
    """Whether a process of that pid runs."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def pids_of(application_id: str) -> dict[int, str]:
    """{pid: command line} of the application's processes, by the environment YARN gave them."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes()
            if f"SKEIN_APPLICATION_ID={application_id}\0".encode() in environment:
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                found[int(folder.name)] = line
        except OSError:
            continue
    return found


@pytest.fixture
def make_job(cluster: LocalCluster, tmp_path: Path) -> Iterator[Callable[[str], Job]]:
    """Makes jobs; those that still run at the end are killed."""
    made: list[Job] = []

    def make(name: str) -> Job:
        made.append(Job(cluster, tmp_path, name))
        return made[-1]

    yield make
    for job in made:
        job.call("kill")


def test_a_job_runs_stops_and_comes_home(make_job: Callable[[str], Job]) -> None:
    """One host each, JobModel by HTTP, one application at a time, an orderly end, home again."""
    job = make_job("home")
    job.produce(600)
    assert job.call("status").stdout == "New\n"
    job.run()
    first = job.wait_until_running()
    assert {c["host"] for c in first.values()} == {"nm1", "nm2", "nm3"}
    assert all(alive(c["pid"]) for c in first.values())
    model = job.get("")
    assert sorted(model["containers"]) == ["0", "1", "2"]
    assert sum(len(c["tasks"]) for c in model["containers"].values()) == PARTITIONS
    assert job.call("status").stdout == "Running\n"

    again = job.call("run")
    assert again.returncode == 1
    assert again.stderr.count("\n") == 1
    assert again.stderr.startswith("error: job.name = 'home'")
    assert job.application_id in again.stderr

    assert job.kill() == f"stopped {job.application_id} in order"
    ended = job.application()
    assert (ended.state, ended.final_status) == ("FINISHED", "KILLED")
    assert ended.diagnostics == "shut down on request"
    assert job.call("status").stdout == "UnsuccessfulFinish\n"
    assert job.kill() == "home_1 is not running"

    job.run()
    second = job.wait_until_running()
    assert {p: c["host"] for p, c in second.items()} == {p: c["host"] for p, c in first.items()}
    kinds = {r["kind"] for c in second.values() for r in c["restored"]["counts"].values()}
    assert kinds == {"none"}
    assert {c["epoch"] for c in second.values()} == {2}
    job.kill()


def test_a_job_that_cannot_run_fails_with_its_story(make_job: Callable[[str], Job]) -> None:
    """The retry keys fail it; ``wait`` exits with 1 and names processor, cause and last line."""
    job = make_job("broken")
    job.produce(1)
    job.run("task.class=probe_task:Broken", "cluster-manager.container.retry.count=1")
    done = job.call("wait")
    assert done.returncode == 1
    assert "UnsuccessfulFinish (FAILED)" in done.stderr
    assert "failed, exit code 1" in done.stderr
    assert "a fault of the task" in done.stderr
    assert job.application().final_status == "FAILED"


def test_a_fault_that_only_the_am_can_see_is_told_at_once(make_job: Callable[[str], Job]) -> None:
    """The application fails in its first attempt, and ``run-job`` says why in one line."""
    job = make_job("misshapen")
    job.produce(1)
    admin = AdminClient({"bootstrap.servers": job.servers})
    admin.create_topics([NewTopic("misshapen-counts", 1, 1)])["misshapen-counts"].result(30)
    done = job.call("run")
    assert done.returncode == 1
    line = done.stderr.splitlines()[-1]
    assert line.startswith("error: application_")
    assert "topic = 'misshapen-counts': it has 1 partitions and must have 6" in line
    assert "_01_000001" in line  # where the log of the first attempt is


def test_a_container_that_is_killed_comes_back_on_its_host(make_job: Callable[[str], Job]) -> None:
    """SIGKILL of a stream container: the same launcher runs the next incarnation."""
    job = make_job("victim")
    job.produce(60)
    job.run()
    before = job.wait_until_running()["1"]
    os.kill(before["pid"], signal.SIGKILL)
    wait_for(lambda: job.containers()["1"]["epoch"] == 2, job)
    after = job.wait_until_running()["1"]
    assert (after["host"], after["resource"]) == (before["host"], before["resource"])
    (failure,) = job.get("v1/status")["failures"]
    assert (failure["cause"], failure["exit_code"]) == ("killed", -9)
    job.kill()


def test_without_its_am_nothing_of_a_job_lives_on(make_job: Callable[[str], Job]) -> None:
    """SIGKILL of the AM: launchers and containers are gone, and YARN's next attempt goes on."""
    job = make_job("orphan")
    job.produce(60)
    job.run()
    job.wait_until_running()
    processes = pids_of(job.application_id)
    am = [
        p for p, line in processes.items() if "ApplicationMaster" in line or "application_m" in line
    ]
    others = [p for p, line in processes.items() if "launcher" in line or "stream_co" in line]
    assert len(others) == 6
    for pid in am:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not any(alive(p) for p in others), job)
    # The new AM answers elsewhere; YARN's page of the application leads there.
    job.url = f"{job.cluster.rm_url}/proxy/{job.application_id}/pages/homeport/"
    wait_for(lambda: job.get("v1/status")["job"]["attempt"] == 2, job)
    containers = job.wait_until_running()
    assert {c["epoch"] for c in containers.values()} == {2}
    assert job.kill() == f"stopped {job.application_id} in order"


def test_a_dead_host_is_left_and_nothing_else_is_disturbed(make_job: Callable[[str], Job]) -> None:
    """Its processor runs elsewhere once its launcher has been silent; the others go on."""
    job = make_job("moving")
    job.produce(600)
    job.run()
    before = job.wait_until_running()
    am_host = next(n["host"] for n in job.cluster.status()["nodes"] if n["address"] in job.url)
    moved = next(p for p, c in before.items() if c["host"] != am_host)
    lost = before[moved]["host"]
    job.cluster.kill_node(lost)
    try:
        wait_for(lambda: job.containers()[moved]["epoch"] == 2, job)
        after = job.wait_until_running()
        assert after[moved]["host"] not in {lost, None}
        assert all(c["epoch"] == 1 for p, c in after.items() if p != moved)
        assert job.kill() == f"stopped {job.application_id} in order"
    finally:
        job.cluster.start_node(lost)


def test_a_kill_without_a_token_is_yarns(make_job: Callable[[str], Job], tmp_path: Path) -> None:
    """Who has not the job's token cannot stop it in order: YARN kills it, and that is said."""
    job = make_job("tokenless")
    job.produce(1)
    job.run()
    job.wait_until_running()
    stranger = {**job.environment, "HOMEPORT_TOKEN_FILE": str(tmp_path / "none")}
    done = job.call("kill", env=stranger)
    assert done.stdout.strip() == f"killed {job.application_id} by YARN"
    assert "no token" in done.stderr
    assert job.application().state == "KILLED"
