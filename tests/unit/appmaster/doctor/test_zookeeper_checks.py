"""What is said of ZooKeeper's servers and of a session, from good to broken."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.appmaster.doctor.zookeeper_checks import (
    ServerFacts,
    SessionFacts,
    check_servers,
    check_session,
)

SAID = (
    "Zookeeper version: {}-abc, built on 2024\nLatency min/avg/max: 0/0.5/12\n"
    "Outstanding: 0\nMode: {}\nNode count: 5\n"
)
ASKED = (10_000, 8080)
"""The session that the job asks for, in ms, and AdminServer's port."""
SESSION = SessionFacts(10_000, 10_000, "/homeport", ahead_ms=0)


def server(number: int, mode: str, version: str = "3.9.2") -> ServerFacts:
    """A server in that mode."""
    return ServerFacts(f"zk{number}:2181", SAID.format(version, mode))


def loaded(load: str) -> ServerFacts:
    """A server of which AdminServer alone says requests that wait / mean / longest latency."""
    waiting, mean, longest = load.split("/")
    return ServerFacts("zk1", monitor=monitor(int(waiting), float(mean), int(longest)))


def monitor(waiting: int, mean: float, longest: int) -> dict[str, object]:
    """What AdminServer says, as ZooKeeper 3.9 does."""
    return {
        "version": "3.9.4-abc, built on 2025-08-19",
        "server_state": "follower",
        "outstanding_requests": waiting,
        "avg_latency": mean,
        "max_latency": longest,
        "command": "monitor",
        "error": None,
    }


def test_an_ensemble_is_in_order() -> None:
    """Three servers, of which one leads."""
    found = list(
        check_servers([server(1, "leader"), server(2, "follower"), server(3, "follower")], *ASKED)
    )
    assert {finding.level.value for finding in found} == {"ok"}
    assert [f.found for f in found if f.check == "zookeeper.version"] == ["3.9.2"] * 3


@pytest.mark.parametrize(
    ("servers", "check", "level", "text"),
    [
        ([server(1, "standalone")], "zookeeper.ensemble", "warning", ""),
        ([server(1, "leader"), server(2, "follower")], "zookeeper.ensemble", "warning", ""),
        ([server(1, "read-only")], "zookeeper.mode", "error", ""),
        ([ServerFacts("zk1")], "zookeeper.mode", "unknown", "8080 (job.coordinator.zk.admin.port)"),
        ([loaded("11/1/1")], "zookeeper.load", "warning", ""),
        ([loaded("50/1/9000")], "zookeeper.load", "warning", "dataLogDir"),
        ([loaded("0/100.5/200")], "zookeeper.load", "warning", ""),
        ([loaded("0/1/6700")], "zookeeper.load", "warning", "zk.session.timeout.ms"),
        ([loaded("10/100/6600")], "zookeeper.load", "ok", ""),
        ([ServerFacts("zk1", fault="refused")], "zookeeper.server", "error", ""),
        ([server(1, "standalone", "3.4.14")], "zookeeper.version", "error", ""),
    ],
)
def test_each_fault_of_servers_has_its_finding(
    servers: list[ServerFacts], check: str, level: str, text: str
) -> None:
    """With a remedy, where there is one: the key or the disk."""
    findings = list(check_servers(servers, *ASKED))
    found = {finding.check: finding for finding in findings}
    assert found[check].level.value == level
    assert text in found[check].found + found[check].remedy
    assert all(f.remedy for f in findings if f.level.value in {"error", "warning"})


@pytest.mark.parametrize(
    ("facts", "check", "level", "text"),
    [
        (SESSION, "zookeeper.session", "ok", "gets 10000 ms"),
        (
            replace(SESSION, granted_ms=4_000),
            "zookeeper.session",
            "warning",
            "maxSessionTimeout=10000",
        ),
        (
            replace(SESSION, granted_ms=20_000),
            "zookeeper.session",
            "warning",
            "minSessionTimeout=10000",
        ),
        (SESSION, "zookeeper.acl", "ok", "makes nodes"),
        (replace(SESSION, refusal="no right"), "zookeeper.acl", "error", "setAcl"),
        (SESSION, "zookeeper.clock", "ok", "within 2 s"),
        (replace(SESSION, ahead_ms=2_000), "zookeeper.clock", "warning", "ahead of"),
        (replace(SESSION, ahead_ms=-400_000), "zookeeper.clock", "error", "behind"),
        (replace(SESSION, ahead_ms=None), "zookeeper.clock", "unknown", "no node was made"),
    ],
)
def test_what_a_session_has_found(facts: SessionFacts, check: str, level: str, text: str) -> None:
    """Time-out, rights, clock: each with the value to set."""
    found = {finding.check: finding for finding in check_session(facts)}
    assert found[check].level.value == level
    assert text in found[check].found + found[check].remedy


def test_what_admin_server_says_stands_where_the_word_does_not() -> None:
    """Mode, version and load; the word goes before."""
    closed = ServerFacts("zk1", monitor=monitor(3, 0.25, 8))
    assert (closed.mode, closed.version) == ("follower", (3, 9, 4))
    found = {finding.check: finding.found for finding in check_servers([closed], *ASKED)}
    assert found["zookeeper.load"] == "3 requests wait, mean latency 0.25 ms, longest 8 ms"
    assert replace(closed, said=server(1, "leader").said).mode == "leader"


def test_a_server_that_says_no_load_has_no_finding_of_it() -> None:
    """Neither an old one's word, nor a page of something else at the port."""
    for facts in (
        ServerFacts("zk1", "Zookeeper version: 3.4.14\nMode: follower\n"),
        ServerFacts("zk1", monitor={**monitor(0, 0, 0), "avg_latency": "none"}),
    ):
        assert "zookeeper.load" not in {f.check for f in check_servers([facts], *ASKED)}
