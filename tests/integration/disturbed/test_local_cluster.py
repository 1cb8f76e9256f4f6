"""The local cluster with real daemons: nodes die and return, clusters coexist, nothing is left."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from broker_faults import topics_of
from confluent_kafka.admin import AdminClient, NewTopic
from topic_records import partitions_of

from homeport.local_cluster import processes
from homeport.local_cluster.cluster import LocalCluster, remove_abandoned
from homeport.local_cluster.errors import ClusterError, ClusterRunningError
from homeport.local_cluster.kafka_broker import working
from homeport.local_cluster.resource_manager import node_states

HOMEPORT_LOCAL = [sys.executable, "-m", "homeport.cli.main", "local"]
WAIT_S = 20.0
NUMBERS = itertools.count(1)


@pytest.fixture
def name() -> Iterator[str]:
    """A cluster name of one test alone; whatever runs under it is gone afterwards."""
    own = f"test-{os.getpid()}-{next(NUMBERS)}"
    yield own
    LocalCluster(own).down(keep_logs=False)


def homeport_local(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``homeport local`` to its end."""
    return subprocess.run(
        [*HOMEPORT_LOCAL, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def start_and_wait_for_daemons(name: str) -> tuple[subprocess.Popen[bytes], str]:
    """Begin an `up` and return it while its daemons start, with the cluster's id."""
    starter = subprocess.Popen(
        [*HOMEPORT_LOCAL, "up", "--name", name, "--nodes", "0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    limit = time.monotonic() + WAIT_S
    while time.monotonic() < limit:
        if LocalCluster(name).status()["state"] == "starting":
            cluster_id = LocalCluster.attach(name).cluster_id
            if processes.of_cluster(cluster_id):
                return starter, cluster_id
        time.sleep(0.02)
    starter.kill()
    starter.wait()
    pytest.fail("no daemon was started")


def node_of(cluster: LocalCluster, host: str) -> dict[str, Any]:
    """One node of the status."""
    return next(node for node in cluster.status()["nodes"] if node["host"] == host)


def test_running_cluster_shows_how_to_use_it(cluster: LocalCluster) -> None:
    """All nodes are RUNNING on own addresses, and the environment names what clients need."""
    status = cluster.status()
    assert status["state"] == "up"
    assert [node["state"] for node in status["nodes"]] == ["RUNNING"] * 3
    assert len({node["address"] for node in status["nodes"]}) == 3
    environment = cluster.env()
    assert Path(environment["HADOOP_CONF_DIR"], "yarn-site.xml").is_file()
    yarn = subprocess.run(
        ["/bin/sh", "-c", "yarn classpath --glob"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert yarn.stdout.startswith(environment["HADOOP_CONF_DIR"] + ":")
    with pytest.raises(ClusterRunningError, match="is up already"):
        LocalCluster(cluster.name).up()


def _marked(cluster: LocalCluster) -> dict[str, str]:
    """The environment of what nm3 has started."""
    return {
        processes.CLUSTER_VARIABLE: cluster.cluster_id,
        processes.NODE_VARIABLE: "nm3",
        "PATH": os.environ["PATH"],
    }


def test_killed_node_takes_its_processes_along_and_returns(cluster: LocalCluster) -> None:
    """kill_node ends what the node started, children without its variables too, nothing else."""
    # The inner shell has a clean environment, as a program that starts others may give them.
    script = "trap '' TERM; env -i /bin/sh -c 'sleep 300; true' & wait"
    container = subprocess.Popen(
        ["/bin/sh", "-c", script], env=_marked(cluster), start_new_session=True
    )
    user = subprocess.Popen(["/bin/sleep", "300"], env={**os.environ, **cluster.env()})
    try:
        limit = time.monotonic() + WAIT_S
        own = processes.identity(psutil.Process(container.pid))
        while len(processes.with_descendants([own])) < 3 and time.monotonic() < limit:
            time.sleep(0.02)
        family = processes.with_descendants([own])
        assert len(family) == 3

        killed = cluster.kill_node("nm3")

        assert {process.pid for process in family} <= set(killed)
        assert not any(processes.is_alive(process) for process in family)
        assert node_of(cluster, "nm3")["state"] == "DOWN"
        assert node_of(cluster, "nm3")["pids"] == []
        assert user.poll() is None, "a client of the cluster is not part of it"
        assert node_of(cluster, "nm2")["state"] == "RUNNING"
    finally:
        for started in (container, user):
            started.kill()
            started.wait()
        cluster.start_node("nm3")
    assert node_of(cluster, "nm3")["state"] == "RUNNING"
    assert cluster.state_dir("nm3").is_dir()
    with pytest.raises(ClusterError, match=r"nm3 of cluster .* is running"):
        cluster.start_node("nm3")


def test_node_manager_dies_alone(cluster: LocalCluster) -> None:
    """What a NodeManager started outlives it, and start-node brings the node back."""
    container = subprocess.Popen(
        ["/bin/sleep", "300"], env=_marked(cluster), start_new_session=True
    )
    try:
        done = homeport_local("kill-node-manager", "nm3", "--name", cluster.name)
        assert done.returncode == 0, done.stderr
        assert node_of(cluster, "nm3")["state"] == "DOWN"
        assert node_of(cluster, "nm3")["pids"] == [container.pid]
        with pytest.raises(ClusterError, match=r"nm3 of cluster .* is down; start-node"):
            cluster.kill_node_manager("nm3")
    finally:
        cluster.start_node("nm3")
        assert container.poll() is None
        container.kill()
        container.wait()
    assert node_of(cluster, "nm3")["state"] == "RUNNING"


def test_paused_node_stands_still_and_wakes(cluster: LocalCluster) -> None:
    """All that the node started is stopped, and runs again afterwards; others never notice."""
    # It starts programs all the time, so that some appear while the node is being stopped.
    script = "while :; do env -i /bin/sleep 0.01; done"
    container = subprocess.Popen(
        ["/bin/sh", "-c", script], env=_marked(cluster), start_new_session=True
    )
    try:
        paused = cluster.pause_node("nm3")
        assert container.pid in paused
        assert node_of(cluster, "nm3")["state"] == "PAUSED"
        assert node_of(cluster, "nm2")["state"] == "RUNNING"
        own = processes.of_cluster(cluster.cluster_id, "nm3")
        found = [processes.process_of(p.pid) for p in processes.with_descendants(own)]
        # D: a shell that waits in the kernel for its stopped child to start its program.
        assert {p.status() for p in found if p is not None} <= {"stopped", "disk-sleep"}
        with pytest.raises(ClusterError, match=r"nm3 of cluster .* is paused; resume-node"):
            cluster.start_node("nm3")

        done = homeport_local("resume-node", "nm3", "--name", cluster.name)

        assert done.returncode == 0, done.stderr
        assert node_of(cluster, "nm3")["state"] == "RUNNING"
        again = processes.of_cluster(cluster.cluster_id, "nm3")
        assert not any(processes.is_stopped(process) for process in again)
        with pytest.raises(ClusterError, match=r"nm3 of cluster .* is not paused"):
            cluster.resume_node("nm3")
    finally:
        container.kill()
        container.wait()


@pytest.mark.long
def test_paused_node_can_be_killed(cluster: LocalCluster) -> None:
    """kill_node ends a paused node; one that is down cannot be paused."""
    cluster.pause_node("nm3")
    try:
        assert cluster.kill_node("nm3")
        assert node_of(cluster, "nm3")["state"] == "DOWN"
        with pytest.raises(ClusterError, match=r"nm3 of cluster .* is down; start-node"):
            cluster.pause_node("nm3")
    finally:
        cluster.start_node("nm3")


@pytest.mark.long
def test_cluster_with_a_paused_node_goes_down(name: str) -> None:
    """`down` leaves no process of a paused node."""
    paused = LocalCluster(name, nodes=1)
    paused.up()
    cluster_id = paused.cluster_id
    assert homeport_local("pause-node", "nm1", "--name", name).returncode == 0
    paused.down(keep_logs=False)
    assert processes.of_cluster(cluster_id) == {}


@pytest.mark.parametrize(
    "orderly", [False, pytest.param(True, marks=pytest.mark.long)], ids=["SIGKILL", "SIGTERM"]
)
def test_broker_returns_with_its_data(cluster: LocalCluster, *, orderly: bool) -> None:
    """Stopped either way it is back on its address with its topics, and the cluster was up."""
    topic = f"kept-{orderly}"
    servers = cluster.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(30)
    host = servers.split(":")[0]
    options = ("--orderly",) if orderly else ()
    stopped = homeport_local("stop-kafka", *options, "--name", cluster.name)
    try:
        assert stopped.returncode == 0, stopped.stderr
        assert not working(host)
        assert cluster.status()["state"] == "up"
        with pytest.raises(ClusterError, match=r"the broker of cluster .* is stopped; start-kafka"):
            cluster.stop_kafka()
    finally:
        started = homeport_local("start-kafka", "--name", cluster.name)
    assert started.returncode == 0, started.stderr
    assert working(host)
    assert cluster.bootstrap_servers == servers
    assert partitions_of(servers, topic) == [0, 1]
    with pytest.raises(ClusterError, match=r"the broker of cluster .* is running; stop-kafka"):
        cluster.start_kafka()


@pytest.mark.long
def test_three_brokers_are_stopped_paused_and_started_one_by_one(brokers: LocalCluster) -> None:
    """Each by its number; clients know all three; what one leads is led by another without it."""
    name = ("--name", brokers.name)
    servers = brokers.env()["HOMEPORT_BOOTSTRAP_SERVERS"]
    assert len(servers.split(",")) == 3
    admin = AdminClient({"bootstrap.servers": servers, "reconnect.backoff.max.ms": 1000})
    admin.create_topics([NewTopic("kept", 1)])["kept"].result(30)
    partition = admin.list_topics("kept", 30).topics["kept"].partitions[0]
    assert sorted(partition.replicas) == [1, 2, 3]
    victim = partition.leader
    controllers = [broker["id"] for broker in brokers.status()["brokers"] if broker["controller"]]
    assert len(controllers) == 1

    def states() -> list[str]:
        return [broker["state"] for broker in brokers.status()["brokers"]]

    assert homeport_local("stop-kafka", "--broker", str(victim), *name).returncode == 0
    assert (states().count("DOWN"), states()[victim - 1]) == (1, "DOWN")
    assert brokers.status()["state"] == "up"
    limit = time.monotonic() + WAIT_S
    while topics_of(admin)["kept"].partitions[0].leader in {-1, victim}:
        assert time.monotonic() < limit
        time.sleep(0.1)
    again = homeport_local("start-kafka", "--broker", str(victim), *name)
    assert again.returncode == 0, again.stderr
    assert states() == ["RUNNING"] * 3
    with pytest.raises(ClusterError, match=r"broker 2 of cluster .* is running; stop-kafka"):
        brokers.start_kafka(broker=2)
    with pytest.raises(ClusterError, match=r"has no broker 4; it has 1 to 3"):
        brokers.stop_kafka(4)
    assert homeport_local("pause-kafka", "--broker", "2", *name).returncode == 0
    assert states()[1] == "PAUSED"
    assert homeport_local("resume-kafka", "--broker", "2", *name).returncode == 0
    with pytest.raises(ClusterError, match=r"broker 2 of cluster .* is not paused"):
        brokers.resume_kafka(2)
    listed = homeport_local("logs", *name).stdout.split()
    assert {Path(path).name for path in listed} == {"kafka.log", "kafka2.log", "kafka3.log"}


@pytest.mark.long
def test_three_brokers_that_die_at_once_return_with_their_data(brokers: LocalCluster) -> None:
    """One alone waits for a second; ``down`` ends a cluster whose brokers are stopped or paused."""
    admin = AdminClient({"bootstrap.servers": brokers.bootstrap_servers})
    admin.create_topics([NewTopic("survives", 1)])["survives"].result(30)
    brokers.stop_kafka()
    assert [broker["state"] for broker in brokers.status()["brokers"]] == ["DOWN"] * 3
    brokers.start_kafka(broker=3)
    assert brokers.status()["brokers"][2]["state"] == "STARTING"
    brokers.start_kafka()
    assert [broker["state"] for broker in brokers.status()["brokers"]] == ["RUNNING"] * 3
    admin = AdminClient({"bootstrap.servers": brokers.bootstrap_servers})
    assert "survives" in admin.list_topics(timeout=30).topics


@pytest.mark.long
def test_resource_manager_is_restarted_with_a_node_down(cluster: LocalCluster) -> None:
    """The new one answers on the same address and knows the nodes that are there."""
    url = cluster.rm_url
    cluster.kill_node("nm3")
    try:
        done = homeport_local("restart-rm", "--name", cluster.name)
        assert done.returncode == 0, done.stderr
        assert cluster.rm_url == url
        states = node_states(url) or {}
        assert {node for node, state in states.items() if state == "RUNNING"} == {"nm1", "nm2"}
    finally:
        cluster.start_node("nm3")
    assert cluster.status()["state"] == "up"
    assert [node["state"] for node in cluster.status()["nodes"]] == ["RUNNING"] * 3


@pytest.mark.long
def test_two_clusters_at_once(cluster: LocalCluster, name: str) -> None:
    """A second cluster has its own addresses; its end leaves none of its processes, all others."""
    with LocalCluster(name, nodes=1) as second:
        cluster_id = second.cluster_id
        assert second.rm_url != cluster.rm_url
        assert second.bootstrap_servers != cluster.bootstrap_servers
        assert set(node_states(second.rm_url) or {}) == {"nm1"}
        assert set(node_states(cluster.rm_url) or {}) == {"nm1", "nm2", "nm3"}
        # A daemon may have a child for a moment.
        assert set(processes.of_cluster(cluster_id).values()) == {"rm", "kafka", "nm1"}
    assert processes.of_cluster(cluster_id) == {}
    assert second.status()["state"] == "down"
    assert not second.log_dir.exists()
    assert cluster.status()["state"] == "up"


@pytest.mark.long
def test_crashed_cluster_is_cleaned_by_the_next_up(name: str) -> None:
    """What a SIGKILLed `up` left is removed by the next, which then outlives its command."""
    starter, old_id = start_and_wait_for_daemons(name)
    starter.kill()
    starter.wait()
    assert LocalCluster(name).status()["state"] == "crashed"
    assert processes.of_cluster(old_id) != {}

    result = homeport_local("up", "--name", name, "--nodes", "0")

    assert result.returncode == 0, result.stderr
    assert processes.of_cluster(old_id) == {}
    attached = LocalCluster.attach(name)
    attached.keep()
    remove_abandoned(name)
    assert working(attached.bootstrap_servers.split(":")[0])
    attached.down()
    assert attached.status()["state"] == "down"


def test_cluster_of_a_dead_owner_is_removed_unless_kept(name: str) -> None:
    """What a SIGKILLed run left up is found by its owner's death."""
    assert homeport_local("up", "--name", name, "--nodes", "0").returncode == 0
    remove_abandoned(name)
    assert LocalCluster(name).status()["state"] == "down"


def test_interrupted_up_leaves_nothing(name: str) -> None:
    """Ctrl-C while daemons start: they are gone when the command ends, their logs are kept."""
    starter, cluster_id = start_and_wait_for_daemons(name)
    starter.send_signal(signal.SIGINT)
    assert starter.wait(timeout=WAIT_S) == 130
    assert processes.of_cluster(cluster_id) == {}
    status = LocalCluster(name).status()
    assert status["state"] == "down"
    assert Path(status["log_dir"], "kafka.log").is_file()


def test_a_bad_java_home_gives_one_line(name: str) -> None:
    """A JAVA_HOME without Java is refused with the remedy, before anything starts."""
    result = homeport_local("up", "--name", name, JAVA_HOME="/nonexistent")
    assert result.returncode == 1
    assert result.stderr == (
        "error: JAVA_HOME=/nonexistent has no bin/java; set it to a JDK 17 or newer, "
        "or unset it to use the java on PATH\n"
    )


def test_dying_daemon_is_shown_with_its_log(name: str, tmp_path: Path) -> None:
    """The error names the daemon and its log and shows the end of it; nothing is left."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(
        '#!/bin/sh\n[ "$1" = -version ] && { echo \'version "17.0.1"\' >&2; exit 0; }\n'
        "echo the heap is on fire >&2\nexit 3\n",
        encoding="utf-8",
    )
    java.chmod(0o755)
    result = homeport_local("up", "--name", name, "--nodes", "0", JAVA_HOME=str(tmp_path))
    log = LocalCluster(name).log_dir / "kafka.log"
    assert result.returncode == 1
    assert result.stderr.splitlines() == [
        f"error: kafka ended while starting; log: {log}",
        "  the heap is on fire",
    ]
    assert LocalCluster(name).status()["state"] == "down"
