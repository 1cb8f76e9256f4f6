"""A job with secrets of every kind in its configuration, and all that anybody can see of it.

What may hold a secret: Kafka's topics (the coordinator stream is the job's configuration), and the
files named in PRIVATE, which their owner alone can read.
"""

from __future__ import annotations

import os
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from json_answers import require_promised
from topic_records import committed
from trace_collector import TraceCollector, trace_collector
from yarn_jobs import Job, pids_of, wait_for

from homeport.config.settings.reporters_section import SNAPSHOTS

MARK = f"pLaNtEd{uuid.uuid4().hex[:8]}"
"""In every secret; no escaping changes it."""
HADOOP = "task.spark.conf.spark.hadoop"
KEYS = (
    "sensitive.anything",
    "systems.kafka.consumer.sasl.jaas.config",
    "systems.kafka.consumer.sasl.password",
    "systems.kafka.producer.sasl.password",
    "systems.kafka.consumer.ssl.key.password",
    "systems.kafka.consumer.ssl.keystore.password",
    "systems.kafka.consumer.ssl.truststore.password",
    "systems.kafka.consumer.sasl.oauthbearer.client.secret",
    f"{HADOOP}.fs.azure.account.key.a.blob.core.windows.net",
    f"{HADOOP}.fs.azure.sas.c.a.blob.core.windows.net",
    f"{HADOOP}.fs.s3a.access.key",
    f"{HADOOP}.fs.s3a.secret.key",
    f"{HADOOP}.fs.s3a.session.token",
    f"{HADOOP}.fs.s3a.encryption.key",
    f"{HADOOP}.fs.s3a.server-side-encryption.key",
    f"{HADOOP}.ssl.keystore.pass",
    "task.spark.conf.spark.authenticate.secret",
    "schema.registry.basic.auth.user.info",
    "my.api.key",
    "my.api-key",
    "my.apiKey",
    "my.db.pwd",
    "my.db.password",
    "my.db.passwd",
    "my.credential",
    "my.cloud.credentials",
    "my.private_key",
    "my.aws.accessKeyId",
    "my.ssh.passphrase",
    "my.refresh.token",
    "my.signing-key",
    "my.connection.string",
)
VALUES = {
    "my.registry.url": "https://me:{}@registry.example:8081/v1",
    "my.jdbc.url": "jdbc:postgresql://db.example/x?user=me&password={}",
    "my.options": "-Dnet.example.keyPassword={} -Dother=1",
    "task.spark.conf.spark.driver.extraJavaOptions": "-Dnet.example.trustStorePassword={}",
    f"{HADOOP}.my.proxy": "http://me:{}@proxy.example:3128",
}
"""Keys that name no secret, whose values hold one."""
PLANTED = {key: f"{MARK}{n:02}" for n, key in enumerate(KEYS)} | {
    key: value.format(f"{MARK}{n:02}") for n, (key, value) in enumerate(VALUES.items(), len(KEYS))
}
PRIVATE = {"homeport-coordinator.json", "homeport-token", "job-model-1.json", "job-model-2.json"}
"""What the AM and its containers are handed, and JobModels that the AM keeps: one key changes."""
OF_SPARK = {"java.options", "spark.properties"}
"""What the JVM is handed: the options of its own hold a secret here."""
TASK = """
from probe_task import Count

class Poisoned(Count):
    def process_batch(self, table, collector):
        if b"poison" in table.column("key").to_pylist():
            raise ValueError("a fault of the task")
        super().process_batch(table, collector)

def parse(frame):
    return frame.select("task", "stream", "partition", "offset", "key")
"""
OPERATORS = (
    ("config", "get"),
    ("config", "get", "my.api.key"),
    ("config", "get", "--json"),
    ("config", "diff"),
    ("config", "diff", "--json"),
    ("coordinator-stream", "show"),
    ("coordinator-stream", "show", "--json"),
    ("job-model",),
    ("job-model", "--json"),
    ("locality",),
    ("explain", "0"),
    ("explain", "0", "--json"),
    ("status",),
    ("status", "--json"),
    ("what-if", "--host=nm1"),
    ("what-if", "--host=nm1", "--json"),
    ("audit",),
    ("token", "list"),
)


class Seen:
    """What was seen, and which of it holds a secret. ``token``: the job's."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._token = ""  # which the submitter's cache forgets once the job has ended
        self.places: set[str] = set()
        self.secret: set[str] = set()

    def look(self, where: str, what: str | bytes) -> None:
        """``what`` was seen at ``where``."""
        data = what.encode() if isinstance(what, str) else what
        self.places.add(where)
        if self._is_secret(data):
            self.secret.add(where)

    def _is_secret(self, data: bytes) -> bool:
        return MARK.encode() in data or (bool(self._token) and self._token.encode() in data)

    def call(self, operation: str, *overrides: str) -> None:
        """``run-job`` has been called; the job is known if it runs then."""
        done = self._job.call(operation, *overrides)
        if operation == "run" and done.returncode == 0:
            self._job.learn(done.stdout)
            self._token = self._job.token
        self.look(f"run-job --operation={operation} {overrides}", done.stdout + done.stderr)

    def tools(self, *, is_running: bool) -> None:
        """The operator's tools have been called; of a job that does not run some know nothing."""
        for command in OPERATORS:
            token = self._token if command == ("audit",) else ""
            done = self._job.operator(*command, token=token)
            assert done.returncode == 0 or not is_running, done.stderr
            if "--json" in command and done.returncode == 0:
                require_promised(command, done.stdout)
            self.look(f"homeport {command}", done.stdout + done.stderr)

    def pages(self) -> None:
        """Every route of the AM has been asked, without a token."""
        for path in (
            "",
            "?version=1",
            "locality",
            "config",
            "metrics",
            "health",
            "v1/status",
            "v1/events",
            "v1/what-if?host=nm1",
            "v1/processors/0/model?version=1",
            "v1/packages/" + "0" * 64,
            "containerHeartbeat?executionContainerId=container_1_0001_01_000001",
            "ui/",
            "ui/state",
            "ui/plots?processor=0",
            "ui/configuration",
            "ui/actions",
            "nothing",
        ):
            self.look(f"AM /{path}", _page(self._job.url + path))
        self.look("AM /v1/audit", self._job.get_text("v1/audit", self._job.token))
        self.look("AM /ui/stream", _first_event(self._job.url + "ui/stream"))

    def yarn(self) -> None:
        """The pages of the ResourceManager and of Skein's AM have been asked."""
        id_, rm = self._job.application_id, self._job.cluster.rm_url
        attempt = f"{id_.replace('application', 'appattempt')}_000001"
        for path in (
            f"ws/v1/cluster/apps/{id_}",
            f"ws/v1/cluster/apps/{id_}/appattempts",
            f"ws/v1/cluster/apps/{id_}/appattempts/{attempt}/containers",
            "cluster/apps",
            f"cluster/app/{id_}",
            f"cluster/appattempt/{attempt}",
            f"proxy/{id_}/",
            f"proxy/{id_}/services",
            f"proxy/{id_}/kv",
        ):
            self.look(f"RM /{path}", _page(f"{rm}/{path}"))

    def processes(self) -> None:
        """The command line of every process, and the environment of those of the job."""
        for pid, line in _command_lines():
            self.look(f"command line of {pid}", line)
        for pid in pids_of(self._job.application_id):
            self.look(f"environment of {pid}", Path(f"/proc/{pid}/environ").read_bytes())

    def files(self) -> set[str]:
        """Every file of the cluster but Kafka's data; the names of the private ones with secrets.

        A file that its owner alone can read is not seen.
        """
        private = set()
        kept = self._job.cluster.log_dir.parent
        cache = kept.parents[1]
        folders = [f for f in kept.iterdir() if f.name != "brokers"]
        folders += [cache / "logs", cache / "tokens", cache / "skein-config"]
        for path in (p for folder in folders for p in _files(folder)):
            try:
                mode, data = path.stat().st_mode, path.read_bytes()
            except FileNotFoundError:
                continue
            if mode & 0o077:
                self.look(f"{path}, mode {mode & 0o777:o}", data)
            elif self._is_secret(data):
                private.add(path.name)
        return private


def _staging(job: Job) -> Path:
    """Where Skein keeps what it hands to the job's containers, its own TLS key among it."""
    (found,) = job.cluster.log_dir.parent.glob(f"fs/user/*/.skein/{job.application_id}")
    return found


def _page(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 - ours
            return bytes(answer.read())
    except urllib.error.HTTPError as error:
        return error.read()


def _first_event(url: str) -> bytes:
    """What the dashboard gets of itself, until the first blank line."""
    with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 - ours
        lines = list(iter(answer.readline, b"\n"))
    assert lines[0] == b"event: state\n"
    return b"".join(lines)


def _command_lines() -> Iterator[tuple[int, bytes]]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            yield int(folder.name), (folder / "cmdline").read_bytes()
        except OSError:
            continue  # it ended meanwhile


def _files(folder: Path) -> Iterator[Path]:
    """The files below ``folder``; a folder that YARN removes meanwhile is left out."""
    for parent, _, names in os.walk(folder):
        paths = (Path(parent, name) for name in names)
        yield from (p for p in paths if p.is_file() and not p.is_symlink())


def test_no_planted_secret_is_seen(make_job: Callable[[str], Job]) -> None:
    """No port, page, file, command line or tool shows one, while the job runs or when it failed.

    The AM gives them all to a client with the token: the search would find them. Nor does a trace
    or a snapshot of metrics.
    """
    with trace_collector() as collector:
        _search(make_job("planted"), collector)


def _search(job: Job, collector: TraceCollector) -> None:
    (job.package / "planted_task.py").write_text(TASK, encoding="utf-8")
    job.values |= PLANTED | {
        "job.container.count": "1",
        "task.class": "planted_task:Poisoned",
        "task.pipeline.class": "planted_task:parse",
        "cluster-manager.container.memory.mb": "1280",
        "cluster-manager.container.retry.count": "0",
        "job.log.format": "json",
        "task.traces.otlp.endpoint": collector.url,
        "metrics.reporters": "snapshot",
        "metrics.reporter.snapshot.class": SNAPSHOTS,
        "metrics.reporter.snapshot.stream": "kafka.planted-metrics",
        "metrics.reporter.snapshot.interval": "1",
    }
    admin = AdminClient({"bootstrap.servers": job.servers})
    admin.create_topics([NewTopic("planted-metrics", 1)])["planted-metrics"].result(30)
    job.produce(60)
    seen = Seen(job)
    seen.call("run")
    job.wait_until_running()
    job.expects(60)
    stated = job.get_text("config", job.token)
    assert [key for key, value in PLANTED.items() if value not in stated] == []
    # A change of a secret while the job runs is in the trail, masked.
    done = job.operator("config", "set", "my.later.password", PLANTED["my.api.key"])
    assert done.returncode == 0
    wait_for(lambda: "my.later.password" in job.get_text("v1/audit", job.token), job)
    job.wait_until_running()
    wait_for(lambda: bool(collector.received), job)
    seen.look("traces", str(collector.received))
    wait_for(lambda: bool(committed(job.servers, "planted-metrics", 1)), job)
    for record in committed(job.servers, "planted-metrics", 1):
        seen.look("snapshots of metrics", record.value() or b"")
    seen.pages()
    seen.yarn()
    seen.processes()
    seen.tools(is_running=True)
    seen.call("run", "job.container.count=https://me:" + PLANTED["my.api.key"] + "@host")
    seen.call("run")
    seen.call("status")
    private = seen.files()
    assert _staging(job).stat().st_mode & 0o077 == 0
    assert len(seen.places) > 100
    assert seen.secret == set()
    assert private == PRIVATE | OF_SPARK | {job.application_id}

    producer = Producer({"bootstrap.servers": job.servers})
    producer.produce("planted-in", key="poison", value="1")
    assert producer.flush(30) == 0
    wait_for(lambda: not job.application().is_active, job)
    seen.call("wait")
    seen.yarn()
    seen.tools(is_running=False)
    seen.files()
    done = job.operator("config", "set", "my.later.token", PLANTED["my.api.key"])
    assert done.returncode == 0
    seen.look("homeport config set", done.stdout + done.stderr)
    assert seen.secret == set()
