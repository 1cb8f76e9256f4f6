"""What is said of ZooKeeper's servers and of a session, from good to broken."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from homeport.appmaster.doctor.finding import Finding
from homeport.appmaster.doctor.zookeeper_checks import (
    ServerFacts,
    SessionFacts,
    check_servers,
    check_session,
)

SAID = "Zookeeper version: {}-abc, built on 2024\nLatency: 0\nMode: {}\nNode count: 5\n"
SESSION = SessionFacts(10_000, 10_000, "/homeport", ahead_ms=0)


def server(number: int, mode: str, version: str = "3.9.2") -> ServerFacts:
    """A server in that mode."""
    return ServerFacts(f"zk{number}:2181", SAID.format(version, mode))


def levels(found: Iterable[Finding]) -> dict[str, str]:
    """{check: level}; of several the last."""
    return {finding.check: finding.level.value for finding in found}


def test_an_ensemble_is_in_order() -> None:
    """Three servers, of which one leads."""
    found = list(check_servers([server(1, "leader"), server(2, "follower"), server(3, "follower")]))
    assert {finding.level.value for finding in found} == {"ok"}
    assert [f.found for f in found if f.check == "zookeeper.version"] == ["3.9.2"] * 3


@pytest.mark.parametrize(
    ("servers", "check", "level"),
    [
        ([server(1, "standalone")], "zookeeper.ensemble", "warning"),
        ([server(1, "leader"), server(2, "follower")], "zookeeper.ensemble", "warning"),
        ([server(1, "read-only")], "zookeeper.mode", "error"),
        ([ServerFacts("zk1")], "zookeeper.mode", "unknown"),
        ([ServerFacts("zk1", fault="refused")], "zookeeper.server", "error"),
        ([server(1, "standalone", "3.4.14")], "zookeeper.version", "error"),
    ],
)
def test_each_fault_of_servers_has_its_finding(
    servers: list[ServerFacts], check: str, level: str
) -> None:
    """With a remedy, where there is one."""
    found = list(check_servers(servers))
    assert levels(found)[check] == level
    assert all(f.remedy for f in found if f.level.value in {"error", "warning"})


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
