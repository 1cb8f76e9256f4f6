"""``homeport doctor`` before a real ZooKeeper: in order, and each check with its fault."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.security import make_digest_acl
from zookeeper_ensemble import zookeeper_ensemble
from zookeeper_process import free_port
from zookeeper_security import secured_zookeeper, user
from zookeeper_server import ZooKeeperServer, zookeeper_server

from homeport.appmaster.doctor.finding import Finding, Level
from homeport.appmaster.doctor.zookeeper_checks import check_servers
from homeport.appmaster.doctor.zookeeper_facts import server_facts
from homeport.cli.yarn.doctor_areas import Area, NodeQuestion, findings
from homeport.config.config import Config
from homeport.config.settings.standalone_section import StandaloneConfig
from homeport.local_cluster.jars import default_cache, ensure_jars


def doctor(connect: str, **more: str) -> dict[str, Finding]:
    """{check: its last finding} of a standalone job."""
    named = {f"job.coordinator.zk.{key.replace('__', '.')}": value for key, value in more.items()}
    values = {
        "job.name": "doctored",
        "job.default.system": "kafka",
        "job.coordinator.factory": "zookeeper",
        "job.coordinator.zk.connect": connect,
    }
    question = NodeQuestion(1, 1.0)
    areas = [Area.ZOOKEEPER]
    found = findings(areas, Config({**values, **named}), question, lambda _: None)
    return {finding.check: finding for finding in found}


def served(server: ZooKeeperServer) -> ZooKeeperServer:
    """The server, which takes sessions by now."""
    client = KazooClient(server.connect)
    client.start(60)
    client.stop()
    client.close()
    return server


def levels(found: dict[str, Finding]) -> dict[str, str]:
    """{last word of the check: level}."""
    return {check.partition(".")[2]: finding.level.value for check, finding in found.items()}


def test_one_server_is_in_order_but_alone(tmp_path: Path) -> None:
    """Nothing stays behind: the node of the probe is gone.

    How long the first session waits for a JVM that has just started is no load.
    """
    with zookeeper_server(tmp_path, more=("4lw.commands.whitelist=srvr,srst",)) as server:
        client = KazooClient(served(server).connect)
        client.start(60)
        assert client.command(b"srst") == "Server stats reset.\n"
        found = levels(doctor(server.connect))
        assert found.pop("ensemble") == "warning"
        assert found == dict.fromkeys(
            ("mode", "version", "load", "reachable", "session", "acl", "clock"), "ok"
        )
        assert client.get_children("/") == ["zookeeper"]
        client.stop()
        client.close()


def test_servers_that_take_long_are_found(tmp_path: Path) -> None:
    """Requests wait at a leader without its followers, and have then waited for long."""
    with zookeeper_ensemble(tmp_path) as ensemble:
        leader = ensemble.leader
        followers = [server for server in ensemble.servers if server is not leader]
        client = KazooClient(leader.connect, timeout=60)
        client.start(60)
        for follower in followers:
            follower.signal(signal.SIGSTOP)
        try:
            made = [client.create_async(f"/node-{number}") for number in range(12)]
            found = until_warned(leader, session_ms=30_000)
            assert "dataLogDir" in found.remedy
            with pytest.raises(KazooTimeoutError):
                made[0].get(timeout=0.3)
        finally:
            for follower in followers:
                follower.signal(signal.SIGCONT)
        for each in made:
            each.get(timeout=60)
        for _ in range(2_000):  # those that waited are few among all, and the longest stays
            client.get("/")
        client.stop()
        client.close()
        found = until_warned(leader, session_ms=100)
        assert "job.coordinator.zk.session.timeout.ms" in found.remedy


def until_warned(server: ZooKeeperServer, session_ms: int) -> Finding:
    """What is said of the server's load as soon as it is not in order."""
    deadline = time.monotonic() + 30
    while True:
        values = {"job.coordinator.zk.connect": server.connect}
        facts = server_facts(StandaloneConfig.of(Config(values)))
        (found,) = [f for f in check_servers(facts, session_ms, 1) if f.check == "zookeeper.load"]
        if found.level is Level.WARNING:
            return found
        assert time.monotonic() < deadline, found.found


@pytest.mark.parametrize("is_there", [True, False])
def test_behind_tls_admin_server_says_mode_and_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_there: bool
) -> None:
    """Where it is closed the doctor says so, and looks on by a session."""
    monkeypatch.setenv("ZK_ALICE", "secret")
    port = free_port()
    options = admin_server(port) if is_there else ()
    with secured_zookeeper(tmp_path, {"alice": "secret"}, options) as secured:
        keys = secured.tls() | user("alice", "ZK_ALICE")
        keys |= {"job.coordinator.zk.admin.port": str(port)}
        names = {
            k.removeprefix("job.coordinator.zk.").replace(".", "__"): v for k, v in keys.items()
        }
        well = ("reachable", "load") if is_there else ("reachable",)
        found = until_in_session(secured.server.connect, names, well)
    if is_there:
        assert (found["zookeeper.mode"].found, levels(found)["load"]) == ("standalone", "ok")
        assert "0 requests wait" in found["zookeeper.load"].found
    else:
        assert found["zookeeper.mode"].level is Level.UNKNOWN
        assert f"port {port} (job.coordinator.zk.admin.port)" in found["zookeeper.mode"].found
        assert "zookeeper.load" not in found


def admin_server(port: int) -> tuple[str, ...]:
    """Options of a server's JVM with AdminServer, whose web server is among Hadoop's jars."""
    jars = [ensure_jars(default_cache(), role) for role in ("zookeeper", "hadoop")]
    return (
        *("-cp", ":".join(f"{folder}/*" for folder in jars)),
        "-Dzookeeper.admin.enableServer=true",
        "-Dzookeeper.admin.serverAddress=127.0.0.1",
        f"-Dzookeeper.admin.serverPort={port}",
    )


def until_in_session(
    connect: str, names: dict[str, str], well: Sequence[str] = ("reachable",)
) -> dict[str, Finding]:
    """Return what the doctor finds as soon as the checks in ``well`` are in order.

    The server has just begun: it takes sessions, and its AdminServer answers, one after the other.
    """
    deadline = time.monotonic() + 60
    while True:
        found = doctor(connect, **names)
        if all(levels(found).get(check) == "ok" for check in well):
            return found
        assert time.monotonic() < deadline, found


def test_a_time_out_above_the_greatest_is_found(zookeeper: ZooKeeperServer) -> None:
    """The server grants 60 s at most."""
    found = doctor(served(zookeeper).connect, session__timeout__ms="100000")["zookeeper.session"]
    assert found.level.value == "warning"
    assert "gets 60000 ms" in found.found
    assert "maxSessionTimeout=100000" in found.remedy


def test_a_time_out_below_the_least_is_found(tmp_path: Path) -> None:
    """Of a server that grants no shorter one."""
    with zookeeper_server(tmp_path, more=("minSessionTimeout=15000",)) as server:
        asked = doctor(served(server).connect, session__timeout__ms="10000")
    assert asked["zookeeper.session"].level.value == "warning"
    assert "minSessionTimeout=10000" in asked["zookeeper.session"].remedy


def test_nodes_of_another_user_are_found(zookeeper: ZooKeeperServer) -> None:
    """Above the job's own."""
    client = KazooClient(zookeeper.connect, auth_data=[("digest", "eve:secret")])
    client.start()
    client.create("/theirs", acl=[make_digest_acl("eve", "secret", all=True)])
    client.stop()
    client.close()
    found = doctor(zookeeper.connect, root="/theirs")["zookeeper.acl"]
    assert (found.level.value, found.subject) == ("error", "/theirs")


def test_a_clock_that_is_behind_is_found(
    zookeeper: ZooKeeperServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of this machine, by ten minutes."""
    real = time.time
    monkeypatch.setattr("homeport.appmaster.doctor.zookeeper_facts.time.time", lambda: real() - 600)
    found = doctor(zookeeper.connect)["zookeeper.clock"]
    assert found.level.value == "error"
    assert "ahead of this machine's clock" in found.found


def test_what_does_not_answer_is_found(zookeeper: ZooKeeperServer) -> None:
    """One of two servers, and all of them."""
    found = levels(doctor(f"127.0.0.1:1,{zookeeper.connect}"))
    assert (found["server"], found["reachable"]) == ("error", "ok")
    found = levels(doctor("127.0.0.1:1"))
    assert found == {"server": "error", "reachable": "error"}


def test_a_server_without_its_quorum_is_found(tmp_path: Path) -> None:
    """It is read-only; the ensemble before that is in order."""
    with zookeeper_ensemble(tmp_path) as ensemble:
        found = levels(doctor(ensemble.connect))
        assert "ensemble" not in found
        assert set(found.values()) == {"ok"}
        lonely, *others = ensemble.servers
        for server in others:
            server.kill()
        ensemble.until("read-only")
        found = levels(doctor(lonely.connect))
        assert (found["mode"], found["reachable"]) == ("error", "error")
