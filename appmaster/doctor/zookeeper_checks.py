"""Whether ZooKeeper is fit for a standalone job: servers, rights, sessions, clock. PURE."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from homeport.appmaster.doctor.clock_checks import ERROR_S, WARNING_S
from homeport.appmaster.doctor.finding import Finding, error, ok, unknown, warning

_SUBJECT = "ZooKeeper"
_VERSION = re.compile(r"^Zookeeper version: (\d+)\.(\d+)\.(\d+)", re.MULTILINE)
_MODE = re.compile(r"^Mode: (\S+)", re.MULTILINE)
_READ_ONLY = "read-only"
_OLDEST = (3, 5)
"""The first with nodes that are gone when they are empty, and with TLS."""
_QUORUM = 3
"""So many servers survive the loss of one."""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """One server of the list. ``said``: its answer to ``srvr``; ``fault``: why there is none."""

    server: str
    said: str = ""
    fault: str = ""

    @property
    def mode(self) -> str:
        """leader, follower, observer, standalone, read-only; empty: not known."""
        found = _MODE.search(self.said)
        return found[1] if found else ""

    @property
    def version(self) -> tuple[int, ...]:
        """Of its program, as three numbers; empty: not known."""
        found = _VERSION.search(self.said)
        return tuple(map(int, found.groups())) if found else ()


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What a session of the job's own user has found. Times in ms.

    ``asked_ms``, ``granted_ms``: its time-out. ``place``: the node below which one was made and
    removed; ``refusal``: why not, empty where it was. ``ahead_ms``: of the servers' clock, at
    least; None: not known.
    """

    asked_ms: int
    granted_ms: int
    place: str
    refusal: str = ""
    ahead_ms: int | None = None


def check_servers(servers: Sequence[ServerFacts]) -> Iterator[Finding]:
    """Each that the job names: whether it serves, in which mode, in which version."""
    for facts in servers:
        subject = f"{_SUBJECT} {facts.server}"
        if facts.fault:
            remedy = "start it, or correct job.coordinator.zk.connect"
            yield error("zookeeper.server", subject, facts.fault, remedy)
        elif not facts.mode:
            why = "it does not say its mode: the word srvr is read without TLS alone"
            yield unknown("zookeeper.mode", subject, why)
        elif facts.mode == _READ_ONLY:
            remedy = "start its neighbours, or repair the network between them"
            yield error("zookeeper.mode", subject, "it is read-only, without a quorum", remedy)
        else:
            yield ok("zookeeper.mode", subject, facts.mode)
        if facts.version:
            yield _version(subject, facts.version)
    modes = {facts.mode for facts in servers}
    if modes == {"standalone"}:
        found = "it is one server: the job stops with it"
        remedy = f"make an ensemble of {_QUORUM} servers"
        yield warning("zookeeper.ensemble", _SUBJECT, found, remedy)
    elif "leader" in modes and len(servers) < _QUORUM:
        found = f"job.coordinator.zk.connect names {len(servers)} of an ensemble's servers"
        yield warning("zookeeper.ensemble", _SUBJECT, found, "name all of them")


def _version(subject: str, version: tuple[int, ...]) -> Finding:
    shown = ".".join(map(str, version))
    if version[: len(_OLDEST)] < _OLDEST:
        wanted = ".".join(map(str, _OLDEST))
        remedy = f"install {wanted} or later"
        return error("zookeeper.version", subject, f"it has version {shown}", remedy)
    return ok("zookeeper.version", subject, shown)


def check_session(facts: SessionFacts) -> Iterator[Finding]:
    """The time-out that was granted, the right to make nodes, the clock."""
    found = f"the job asks for sessions of {facts.asked_ms} ms, and gets {facts.granted_ms} ms"
    if facts.granted_ms == facts.asked_ms:
        yield ok("zookeeper.session", _SUBJECT, found)
    else:
        bound = "maxSessionTimeout" if facts.granted_ms < facts.asked_ms else "minSessionTimeout"
        remedy = (
            f"set {bound}={facts.asked_ms} in zoo.cfg, or "
            f"job.coordinator.zk.session.timeout.ms={facts.granted_ms}"
        )
        yield warning("zookeeper.session", _SUBJECT, found, remedy)
    if facts.refusal:
        remedy = (
            f"give this user all rights on {facts.place} (setAcl), or correct what the job shows "
            "ZooKeeper (job.coordinator.zk.auth)"
        )
        yield error("zookeeper.acl", facts.place, facts.refusal, remedy)
    else:
        yield ok("zookeeper.acl", facts.place, "this user makes nodes below it")
    yield _clock(facts.ahead_ms)


def _clock(ahead_ms: int | None) -> Finding:
    if ahead_ms is None:
        return unknown("zookeeper.clock", _SUBJECT, "no node was made whose time says it")
    seconds = abs(ahead_ms) / 1000
    side = "ahead of" if ahead_ms > 0 else "behind"
    found = f"{seconds:.1f} s or more {side} this machine's clock"
    remedy = "synchronize both with NTP (chrony or systemd-timesyncd)"
    if seconds >= ERROR_S:
        return error("zookeeper.clock", _SUBJECT, found, remedy)
    if seconds >= WARNING_S:
        return warning("zookeeper.clock", _SUBJECT, found, remedy)
    return ok("zookeeper.clock", _SUBJECT, f"within {WARNING_S:g} s of this machine's clock")
