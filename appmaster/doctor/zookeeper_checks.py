"""Checks that ZooKeeper is fit for a standalone job: servers, rights, sessions, clock. PURE."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from homeport.appmaster.doctor.clock_checks import clock
from homeport.appmaster.doctor.finding import Check, Finding

_SUBJECT = "ZooKeeper"
_VERSION = re.compile(r"(?:^Zookeeper version: )?(\d+)\.(\d+)\.(\d+)")
_MODE = re.compile(r"^Mode: (\S+)", re.MULTILINE)
_LATENCY = re.compile(r"^Latency min/avg/max: [\d.]+/([\d.]+)/([\d.]+)", re.MULTILINE)
_OUTSTANDING = re.compile(r"^Outstanding: (\d+)", re.MULTILINE)
_READ_ONLY = "read-only"
_OLDEST = (3, 5)
"""The first version with container nodes, which end when they are empty, and with TLS."""
_QUORUM = 3
"""The fewest servers of which one may be lost."""
_MOST_OUTSTANDING, _MEAN_LATENCY_MS = 10, 100
"""Above these, ZooKeeper's own alert rules fire (its page on monitoring)."""
_SILENT_PART = 2 / 3
"""A client gives up a server that is silent for this part of the session's time-out."""


@dataclass(frozen=True, slots=True)
class Load:
    """The load of a server. Times in ms, since its start or the last `srst`."""

    outstanding: int
    mean_ms: float
    longest_ms: float


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """One server of the job's list. ``fault``: why it does not serve; empty: it does.

    ``said``: its answer to the four-letter word ``srvr``. ``monitor``: its AdminServer's answer to
    ``monitor``, requested only if ``said`` has no mode. Each is empty where there is no answer.
    """

    server: str
    said: str = ""
    fault: str = ""
    monitor: Mapping[str, object] = field(default_factory=dict)

    @property
    def mode(self) -> str:
        """One of leader, follower, observer, standalone and read-only; empty: not known."""
        found = _MODE.search(self.said)
        return found[1] if found else str(self.monitor.get("server_state", ""))

    @property
    def version(self) -> tuple[int, ...]:
        """The version of its program, as three numbers; empty: not known."""
        found = _VERSION.match(self.said or str(self.monitor.get("version", "")))
        return tuple(map(int, found.groups())) if found else ()

    @property
    def load(self) -> Load | None:
        """The load; None: not known."""
        waiting, times = _OUTSTANDING.search(self.said), _LATENCY.search(self.said)
        if waiting and times:
            return Load(int(waiting[1]), float(times[1]), float(times[2]))
        found = [
            self.monitor.get(f) for f in ("outstanding_requests", "avg_latency", "max_latency")
        ]
        numbers = [float(value) for value in found if isinstance(value, int | float)]
        if len(numbers) != len(found):
            return None
        return Load(int(numbers[0]), numbers[1], numbers[2])


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What a session of the job's own user showed. Times in ms.

    ``asked_ms``, ``granted_ms``: the session's time-out, as requested and as granted. ``place``:
    the node below which the doctor made and removed a node; ``refusal``: why it could not; empty:
    it could. ``ahead_ms``: how far the servers' clock is ahead of ours (negative: behind), or more;
    None: not known.
    """

    asked_ms: int
    granted_ms: int
    place: str
    refusal: str = ""
    ahead_ms: int | None = None


def check_servers(
    servers: Sequence[ServerFacts], session_ms: int, admin_port: int
) -> Iterator[Finding]:
    """Check of each server of the job's list that it serves, and its mode, version and load.

    ``session_ms``: the job's time-out; ``admin_port``: the port of AdminServer.
    """
    for facts in servers:
        subject = f"{_SUBJECT} {facts.server}"
        mode = Check("zookeeper.mode", subject)
        if facts.fault:
            remedy = "start it, or correct job.coordinator.zk.connect"
            yield Check("zookeeper.server", subject).error(facts.fault, remedy)
        elif not facts.mode:
            why = (
                f"AdminServer at port {admin_port} (job.coordinator.zk.admin.port) does not show "
                "its mode and load, and neither does the word srvr, which is sent only without TLS"
            )
            yield mode.unknown(why)
        elif facts.mode == _READ_ONLY:
            remedy = "start its neighbours, or repair the network between them"
            yield mode.error("it is read-only, without a quorum", remedy)
        else:
            yield mode.ok(facts.mode)
        if facts.version:
            yield _version(subject, facts.version)
        if (load := facts.load) is not None:
            yield _load(subject, load, session_ms)
    modes = {facts.mode for facts in servers}
    ensemble = Check("zookeeper.ensemble", _SUBJECT)
    if modes == {"standalone"}:
        found = "it is one server: the job stops with it"
        remedy = f"make an ensemble of {_QUORUM} servers"
        yield ensemble.warning(found, remedy)
    elif "leader" in modes and len(servers) < _QUORUM:
        found = f"job.coordinator.zk.connect names {len(servers)} of an ensemble's servers"
        yield ensemble.warning(found, "name all of them")


def _version(subject: str, version: tuple[int, ...]) -> Finding:
    shown = ".".join(map(str, version))
    if version[: len(_OLDEST)] < _OLDEST:
        wanted = ".".join(map(str, _OLDEST))
        remedy = f"install {wanted} or later"
        return Check("zookeeper.version", subject).error(f"it has version {shown}", remedy)
    return Check("zookeeper.version", subject).ok(shown)


def _load(subject: str, load: Load, session_ms: int) -> Finding:
    check = "zookeeper.load"
    found = (
        f"{load.outstanding} requests wait, mean latency {load.mean_ms:g} ms, longest "
        f"{load.longest_ms:g} ms"
    )
    if load.outstanding > _MOST_OUTSTANDING or load.mean_ms > _MEAN_LATENCY_MS:
        limits = f"up to {_MOST_OUTSTANDING} requests and {_MEAN_LATENCY_MS} ms are normal"
        remedy = "give dataLogDir a disk of its own, and look for long pauses of its JVM"
        return Check(check, subject).warning(f"{found}: {limits}", remedy)
    if load.longest_ms > _SILENT_PART * session_ms:
        limits = f"clients give up a server after two thirds of a session of {session_ms} ms"
        remedy = (
            "look for long pauses of its disk and its JVM, or raise "
            "job.coordinator.zk.session.timeout.ms; the word srst resets these figures"
        )
        return Check(check, subject).warning(f"{found}: {limits}", remedy)
    return Check(check, subject).ok(found)


def check_session(facts: SessionFacts) -> Iterator[Finding]:
    """Check the granted time-out, the right to make nodes, and the clock."""
    found = f"the job asks for sessions of {facts.asked_ms} ms, and gets {facts.granted_ms} ms"
    if facts.granted_ms == facts.asked_ms:
        yield Check("zookeeper.session", _SUBJECT).ok(found)
    else:
        bound = "maxSessionTimeout" if facts.granted_ms < facts.asked_ms else "minSessionTimeout"
        remedy = (
            f"set {bound}={facts.asked_ms} in zoo.cfg, or "
            f"job.coordinator.zk.session.timeout.ms={facts.granted_ms}"
        )
        yield Check("zookeeper.session", _SUBJECT).warning(found, remedy)
    if facts.refusal:
        remedy = (
            f"give this user all rights on {facts.place} (setAcl), or correct what the job shows "
            "ZooKeeper (job.coordinator.zk.auth)"
        )
        yield Check("zookeeper.acl", facts.place).error(facts.refusal, remedy)
    else:
        yield Check("zookeeper.acl", facts.place).ok("this user makes nodes below it")
    if facts.ahead_ms is None:
        yield Check("zookeeper.clock", _SUBJECT).unknown(
            "no node was made, and only a node's time shows it"
        )
    else:
        yield clock("zookeeper.clock", _SUBJECT, facts.ahead_ms / 1000, digits=1)
