"""``homeport doctor`` on real parts, each of them in order and with a fault."""

from __future__ import annotations

import datetime as dt
import email.utils
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from json_answers import require_promised

from homeport.appmaster.doctor.clock_facts import clocks_ahead
from homeport.local_cluster.cluster import LocalCluster

INPUT, LOG, OUTPUT = "doctor-in", "doctor-log", "doctor-out"


@pytest.fixture
def job(cluster: LocalCluster) -> dict[str, str]:
    """The properties of a job of which all topics but the input are to be made."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    if INPUT not in admin.list_topics(timeout=10).topics:
        admin.create_topics([NewTopic(INPUT, 2, 1)])[INPUT].result(30)
    return {
        "job.name": "doctor",
        "job.default.system": "kafka",
        "job.host-affinity.enabled": "true",
        "systems.kafka.samza.factory": "org.apache.samza.system.kafka.KafkaSystemFactory",
        "systems.kafka.consumer.bootstrap.servers": cluster.bootstrap_servers,
        "systems.kafka.default.stream.replication.factor": "1",
        "task.class": "any_task:Task",
        "task.inputs": f"kafka.{INPUT}",
        "task.outputs": f"kafka.{OUTPUT}",
        "task.outputs.create.partitions": "1",
        "stores.s.factory": "rocksdb",
        "stores.s.changelog": f"kafka.{LOG}",
        "stores.s.key.serde": "string",
        "stores.s.msg.serde": "string",
        "yarn.package.path": "/any",
        "yarn.python.executable": sys.executable,
    }


def doctor(
    values: dict[str, str] | None, folder: Path, environment: dict[str, str], *options: str
) -> tuple[int, dict[tuple[str, str], str], dict[str, dict[str, Any]]]:
    """Exit code, {(check, subject): level}, and {check: its last finding}."""
    arguments = [*options, "--json"]
    if values is not None:
        path = folder / "job.properties"
        path.write_text("".join(f"{k}={v}\n" for k, v in values.items()))
        arguments.append(f"--config-path={path}")
    done = subprocess.run(
        [sys.executable, "-m", "homeport.cli.main", "doctor", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert done.stdout, done.stderr
    require_promised(["doctor"], done.stdout)
    found = json.loads(done.stdout)
    levels = {(f["check"], f["subject"]): f["level"] for f in found}
    return done.returncode, levels, {f["check"]: f for f in found}


def test_a_job_whose_surroundings_are_in_order(
    job: dict[str, str], cluster: LocalCluster, tmp_path: Path
) -> None:
    """Each node has answered its probe, and the probe is gone."""
    code, levels, found = doctor(job, tmp_path, cluster.env())
    assert code == 0, found
    assert "error" not in levels.values()
    for node in cluster.nodes:
        assert levels["node.state", node] == levels["node.python", node] == "ok"
        assert levels["clocks", node] == "ok"
    assert levels["yarn.reachable", "ResourceManager"] == "ok"
    assert found["kafka.brokers"]["level"] == "warning"  # it has one broker
    assert found["kafka.acl"]["level"] == "ok"


def test_each_fault_of_topics_and_interpreter_is_found(
    job: dict[str, str], cluster: LocalCluster, tmp_path: Path
) -> None:
    """All of them at once, beside what is in order."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic("doctor-kept", 1, 1)])["doctor-kept"].result(30)
    short = {"retention.ms": "60000", "unclean.leader.election.enable": "true"}
    made = admin.create_topics([NewTopic("doctor-short", 1, 1, config=short)])
    made["doctor-short"].result(30)
    bad = job | {
        "task.inputs": "kafka.doctor-short, kafka.doctor-absent",
        "stores.s.changelog": "kafka.doctor-kept",
        "systems.kafka.producer.transaction.timeout.ms": "3600000",
        "yarn.python.executable": "/no/such/python",
    }
    code, levels, found = doctor(bad, tmp_path, cluster.env())
    assert code == 1
    assert found["kafka.cleanup-policy"]["level"] == "error"
    assert "doctor-kept" in found["kafka.cleanup-policy"]["subject"]
    absent = [s for (check, s), level in levels.items() if check == "kafka.topic" != level]
    assert any("doctor-absent" in subject for subject in absent)
    assert found["kafka.retention"]["level"] == "warning"
    assert found["kafka.unclean-election"]["level"] == "warning"
    assert found["kafka.transaction-timeout"]["level"] == "error"
    assert {levels["node.python", node] for node in cluster.nodes} == {"error"}
    assert {levels["node.state", node] for node in cluster.nodes} == {"ok"}


def test_what_does_not_answer_is_one_finding(job: dict[str, str], tmp_path: Path) -> None:
    """Neither Kafka nor YARN is there; the machine is looked at all the same."""
    conf = tmp_path / "conf"
    conf.mkdir()
    name = "yarn.resourcemanager.webapp.address"
    prop = f"<property><name>{name}</name><value>127.0.0.1:1</value></property>"
    (conf / "yarn-site.xml").write_text(f"<configuration>{prop}</configuration>")
    bad = job | {"systems.kafka.consumer.bootstrap.servers": "127.0.0.1:1"}
    environment = {"HADOOP_CONF_DIR": str(conf), "JAVA_HOME": str(tmp_path)}
    code, _, found = doctor(bad, tmp_path, environment)
    assert code == 1
    assert found["kafka.reachable"]["level"] == "error"
    assert found["yarn.reachable"]["level"] == "error"
    assert found["machine.java"]["level"] == "error"
    assert "node.state" not in found


def test_without_a_cluster_the_machine_alone_is_looked_at(tmp_path: Path) -> None:
    """No job and no HADOOP_CONF_DIR: that YARN is not looked at is said, and is no error."""
    code, levels, found = doctor(None, tmp_path, {"HADOOP_CONF_DIR": ""})
    assert code == 0
    assert levels["yarn.reachable", "ResourceManager"] == "unknown"
    assert found["machine.packages"]["level"] == "ok"


@pytest.mark.long
def test_a_node_without_a_place_for_state_and_one_that_is_lost(
    job: dict[str, str], tmp_path: Path
) -> None:
    """On a cluster of its own, as both would disturb others."""
    own = LocalCluster(f"doctor-{os.getpid()}", nodes=3)
    own.up(print)
    try:
        state = own.state_dir("nm2")
        state.rmdir()
        state.touch()
        own.kill_node_manager("nm3")
        values = job | {"systems.kafka.consumer.bootstrap.servers": own.bootstrap_servers}
        options = ("--only=yarn", "--only=nodes", "--probe-limit=20")
        code, levels, _ = doctor(values, tmp_path, own.env(), *options)
        assert code == 1
        assert levels["node.state", "nm1"] == "ok"
        assert levels["node.state", "nm2"] == "error"
        # YARN takes a while to see that it is gone: until then no probe answers there.
        seen = {levels.get(("node.probe", "nm3")), levels.get(("yarn.nodes", "3 hosts"))}
        assert seen & {"unknown", "warning"}
    finally:
        own.down()


class _Late(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        now = dt.datetime.now(dt.UTC) - dt.timedelta(minutes=10)
        self.send_response_only(200)
        self.send_header("Date", email.utils.format_datetime(now, usegmt=True))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


@pytest.fixture
def late_server() -> Iterator[str]:
    """A web service on a machine whose clock is ten minutes late."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Late) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


def test_a_clock_that_is_late(late_server: str) -> None:
    """One that answers, and one that is not there."""
    found = clocks_ahead({"late": late_server, "absent": "http://127.0.0.1:1/"})
    assert found["absent"] is None
    late = found["late"]
    assert late is not None
    assert -602 < late < -597
