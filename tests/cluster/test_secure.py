"""A cluster with locks: Kerberos for YARN and HDFS; TLS, SASL/SCRAM and ACLs for Kafka."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters_in_containers import ContainersUnderTest
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from demo_in_containers import verdicts_of
from docker_cluster import secure_settings
from docker_cluster.cluster import NODES, SERVICES
from docker_cluster.credentials import USERS

BUILD = Path(__file__).resolve().parents[2] / "build"
PRIVATE = {"homeport-coordinator.json", "homeport-token", "job-model-1.json"}
"""What AM and containers are handed, which their owner alone can read."""
HOMEPORT = "homeport.cli.main"
LAUNCHER = "homeport.container.launcher.launcher"
LIST = "java -cp $HADOOP_CONF_DIR:/opt/hadoop/jars/* org.apache.hadoop.fs.FsShell -ls /"
_LIMIT_S = 180.0

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def output(containers: str) -> Iterator[str]:
    """What the demo printed; its cluster and its job are still there."""
    del containers
    yield verdicts_of("--secure", "--keep")[1]
    ContainersUnderTest(BUILD / "docker-demo").down(print)


@pytest.fixture(scope="module")
def secure(output: str) -> ContainersUnderTest:
    """The demo's cluster."""
    del output
    return ContainersUnderTest(BUILD / "docker-demo")


def _secrets(cluster: ContainersUnderTest) -> list[str]:
    found = []
    for path in sorted((cluster.log_dir / "secrets").rglob("*")):
        if path.suffix == ".password":
            found.append(path.read_text())
        elif path.suffix == ".pem" and "PRIVATE KEY" in path.read_text():
            found.append(path.read_text().splitlines()[1])
        elif path.name == "ssl-server.xml":
            found += re.findall(r"password</name>\s*<value>([^<]+)", path.read_text())
    assert len(found) >= len(USERS) + 2
    return found


def _client(cluster: ContainersUnderTest, user: str) -> dict[str, str]:
    secrets = cluster.log_dir / "secrets" / "client"
    lines = (secrets / f"{user}.client.properties").read_text().splitlines()
    given = dict(line.split("=", 1) for line in lines)
    own = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "flights-demo"}
    return given | own | {"ssl.ca.location": str(secrets / "ca.pem")}


def test_the_demo_passes_with_rights_that_allow_nothing_more(
    output: str, secure: ContainersUnderTest
) -> None:
    """The broker has refused nothing to the job, though it refuses all that no rule allows."""
    assert "planes are exactly right (0 differ)" in output
    logged = secure.engine.run("logs", secure.container("kafka"))
    assert "Denied" not in logged


def test_kafka_refuses_what_no_rule_allows(secure: ContainersUnderTest) -> None:
    """Another's topic, a wrong password, and a client without TLS."""
    reader = _client(secure, "reader")
    assert (
        _refusal(reader, "__samza_coordinator_flights_1") == KafkaError.TOPIC_AUTHORIZATION_FAILED
    )
    wrong = reader | {"sasl.password": "wrong"}
    assert _refusal(wrong, "flights") == KafkaError._AUTHENTICATION
    plain = AdminClient({"bootstrap.servers": secure.bootstrap_servers})
    with pytest.raises(KafkaException):
        plain.list_topics(timeout=5)


def _refusal(properties: dict[str, str], topic: str) -> int:
    errors: list[KafkaError] = []
    consumer = Consumer({**properties, "error_cb": errors.append})
    try:
        consumer.subscribe([topic])
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            message = consumer.poll(0.5)
            error = None if message is None else message.error()
            if error is not None:
                return error.code()
            if errors and errors[0].code() == KafkaError._AUTHENTICATION:
                return errors[0].code()
    finally:
        consumer.close()
    raise AssertionError(f"{topic} was not refused")


def test_hdfs_refuses_a_program_without_a_ticket(secure: ContainersUnderTest) -> None:
    """ZooKeeper's container has no keytab."""
    done = secure.engine.call("exec", secure.container("zk"), "bash", "-c", LIST, limit_s=60)
    assert done.returncode != 0
    assert "Client cannot authenticate via:[TOKEN, KERBEROS]" in done.stdout + done.stderr


def test_no_secret_is_in_an_image_an_environment_a_command_line_or_a_log(
    secure: ContainersUnderTest,
) -> None:
    """On the nodes they are in the files that their owner alone can read."""
    secrets = _secrets(secure)
    names = [secure.container(s) for s in (*SERVICES, "kdc")]
    shown = secure.engine.run("inspect", *names)
    shown += secure.engine.run("history", "--no-trunc", str(secure.status()["image"]))
    for name in names:
        logged = secure.engine.call("logs", name)
        shown += logged.stdout + logged.stderr
    for process in Path("/proc").glob("[0-9]*"):
        for part in ("cmdline", "environ"):
            shown += _read(process / part)
    assert [n for n, secret in enumerate(secrets) if secret in shown] == []
    for node in NODES:
        found = _holding(secure, node, secrets)
        assert {Path(path).name for path, _ in found} <= PRIVATE
        assert {mode for _, mode in found} <= {"600", "500", "400"}


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:
        return ""  # it has ended


def _holding(cluster: ContainersUnderTest, node: str, secrets: list[str]) -> list[tuple[str, str]]:
    """(path, mode) of each of the node's files with one of the secrets in it.

    The packed environments are left out: they are the client's, which the clone has made.
    """
    folder = cluster.work / "search"
    folder.mkdir(exist_ok=True)
    (folder / "patterns").write_text("\n".join(secrets))
    target = f"{cluster.container(node)}:/run/patterns"
    cluster.engine.run("cp", str(folder / "patterns"), target)
    script = (
        "grep -rlFf /run/patterns --exclude=*.tar.gz --exclude-dir=site-packages /data /state"
        " | xargs -r stat -c '%n %a'; rm /run/patterns"
    )
    text = cluster.engine.run("exec", cluster.container(node), "bash", "-c", script)
    pairs = (line.rpartition(" ") for line in text.splitlines())
    return [(path, mode) for path, _, mode in pairs]


def test_a_container_starts_after_the_tokens_of_the_submission_have_ended(
    secure: ContainersUnderTest,
) -> None:
    """YARN fetches its files with a token that the ResourceManager has got by itself."""
    submitted = time.monotonic()
    before = _container(secure)
    assert before["phase"] == "running"
    # The submission was before ``submitted``, so its token ends before this.
    _until(lambda: time.monotonic() > submitted + secure_settings.LIFETIME_S)
    for process in secure.living():
        if process.node == before["host"] and LAUNCHER in process.command:
            os.kill(process.pid, signal.SIGKILL)

    def is_back() -> bool:
        now = _container(secure)
        return bool(now["phase"] == "running" and now["epoch"] > before["epoch"])

    _until(is_back)
    renewed = "(auth:PROXY) via rm/rm@HOMEPORT.TEST (auth:KERBEROS)"
    logged: Any = secure.engine.call("logs", secure.container("nn"))
    assert renewed in logged.stdout + logged.stderr


def _container(cluster: ContainersUnderTest) -> dict[str, Any]:
    """What the AM says of container 0, over https, to the operator in the client's container."""
    arguments = "explain 0 --json --config-path=$(ls /tmp/homeport-demo-*/flights.properties)"
    kafka = "--config=systems.kafka.consumer.bootstrap.servers=kafka:9092"
    command = f"/opt/homeport/bin/python -m {HOMEPORT} {arguments} {kafka}"
    done = cluster.engine.call(
        "exec", cluster.container("client"), "bash", "-c", command, limit_s=60
    )
    assert done.returncode == 0, done.stderr
    assert " at https://" in done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["container"]
    return found


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.5)  # the status page is polled
