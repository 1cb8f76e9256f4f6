"""``homeport local`` on the real parts: a Kafka and a ZooKeeper come up, are used, and go."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator

import pytest
from json_answers import require_promised
from kazoo.client import KazooClient

from homeport.appmaster.yarn.host_affinity import warnings
from homeport.appmaster.yarn.resource_manager_rest import ResourceManagerRest
from homeport.cli.yarn.cluster_check import cluster_facts
from homeport.config.config import Config
from homeport.local_cluster import processes
from homeport.local_cluster.cluster import LocalCluster
from homeport.local_cluster.net.addresses import block_of

_LIMIT_S = 120.0


@pytest.fixture
def name() -> Iterator[str]:
    """A cluster of this test alone, which is gone afterwards."""
    own = f"test-tool-{uuid.uuid4().hex[:6]}"
    yield own
    LocalCluster(own).down(keep_logs=False)


def _run(name: str, *words: str, records: str = "") -> subprocess.CompletedProcess[str]:
    """A command of ``homeport local``, which has ended."""
    command = [sys.executable, "-m", "homeport.cli.main", "local", *words]
    return subprocess.run(
        [*command, "--name", name],
        input=records,
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )


def _local(name: str, *words: str, records: str = "") -> str:
    """What a command of ``homeport local`` prints; it succeeds."""
    done = _run(name, *words, records=records)
    assert done.returncode == 0, done.stderr
    assert "rdkafka" not in done.stderr
    if "--json" in words:
        require_promised(["local", *words], done.stdout)
    return done.stdout


def test_a_cluster_is_used_by_commands_alone(name: str) -> None:
    """Up, records in and out, its ZooKeeper takes a session, up again, down: nothing is left."""
    _local(name, "up", "--nodes", "0", "--zookeeper")
    cluster_id = LocalCluster.attach(name).cluster_id
    variables = json.loads(_local(name, "env", "--json"))
    status = json.loads(_local(name, "status", "--json"))
    assert (status["state"], status["nodes"]) == ("up", [])
    assert variables["HOMEPORT_BOOTSTRAP_SERVERS"] == status["bootstrap_servers"]
    assert variables["HOMEPORT_ZOOKEEPER"] == status["zookeeper"]
    assert variables["HOMEPORT_CLUSTER"] == name

    assert _local(name, "send", "orders", "ann=5", "bob=") == "orders: 2 records sent\n"
    _local(name, "send", "orders", records="ann=7\nno key\n")
    assert _local(name, "read", "orders") == "ann\t5\nbob\t\nann\t7\n\tno key\n"
    assert len(_local(name, "read", "orders", "--json").splitlines()) == 4
    short = _run(name, "read", "orders", "--count", "5", "--timeout", "1")
    assert (short.returncode, len(short.stdout.splitlines())) == (1, 4)
    assert short.stderr.startswith("error: orders: 4 of 5 records, and none further within 1 s ")
    warned = _run(name, "send", "odd", "plain").stderr.splitlines()
    assert [line[:26] for line in warned] == ["warning: 1 of 1 records se"] * 2
    client = KazooClient(variables["HOMEPORT_ZOOKEEPER"])
    client.start(timeout=_LIMIT_S)
    try:
        assert client.exists("/zookeeper") is not None
    finally:
        client.stop()
        client.close()

    assert _local(name, "up").startswith(f"cluster {name} is up already\n")
    assert LocalCluster.attach(name).cluster_id == cluster_id
    assert set(processes.of_cluster(cluster_id).values()) == {"kafka", "zookeeper"}
    _local(name, "down")
    assert processes.of_cluster(cluster_id) == {}
    assert json.loads(_local(name, "status", "--json"))["state"] == "down"


def test_run_job_has_nothing_to_warn_of_on_a_users_cluster(name: str) -> None:
    """By what its daemons show; its address is that of the name, from any cache folder."""
    _local(name, "up", "--nodes", "1")
    variables = {**os.environ, **json.loads(_local(name, "env", "--json"))}
    job = Config({"job.name": "flights", "job.default.system": "kafka"})
    facts = cluster_facts(job, ResourceManagerRest.from_environment(variables), variables)
    assert facts.node_name == "nm1"
    assert [str(warning) for warning in warnings(job, facts)] == []
    assert variables["HOMEPORT_BOOTSTRAP_SERVERS"] == f"{block_of(name)}.2:9092"
