"""What scenarios of failover share: a job with standbys, fed all the while, and its good end.

A scenario places the containers, breaks something, and ends with ``ends_well``: calm, an exact
result, a sound history, nothing accepted from a zombie, no process that should not live. In between
it asks what STANDBY's metrics have counted.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from accepted_writes import accepted_trespasses
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from topic_records import committed
from waiting import until
from yarn_jobs import LIMIT_S, PARTITIONS, Job, parent_of, pids_of, wait_for

Containers = dict[str, dict[str, Any]]

LEASE_MS = 3000
_PIECE = 20
_PAUSE_S = 0.1
_POLL_S = 20.0
_PROGRAM = "homeport.container.incarnation.container_runner"

MANAGER = "samza_ContainerProcessManagerMetrics"
_COUNTED: Mapping[str, tuple[str, ...]] = {
    "active failures": (
        'homeport_container_failures_total{charged="false",role="active"}',
        'homeport_container_failures_total{charged="true",role="active"}',
    ),
    "standby failures": (
        'homeport_container_failures_total{charged="false",role="standby"}',
        'homeport_container_failures_total{charged="true",role="standby"}',
    ),
    "charged": (
        'homeport_container_failures_total{charged="true",role="active"}',
        'homeport_container_failures_total{charged="true",role="standby"}',
    ),
    "failed over to a standby": (f"{MANAGER}_failovers_to_standby_total",),
    "choices lost": ("homeport_failed_failovers_total",),
    "could not be failed to a standby": (f"{MANAGER}_failovers_to_any_host_total",),
}
"""STANDBY's additional metrics: {what is counted: the samples whose sum it is}."""


class Feed:
    """Input that comes all the while; when it is stopped, ``produced`` records are in the topic."""

    def __init__(self, job: Job) -> None:
        self.produced = 0
        self._job = job
        self._is_over = threading.Event()
        self._fed: Future[None] | None = None

    def begin(self) -> None:
        """A piece has come, and more of them come from now on."""
        self._job.produce(_PIECE)
        self.produced = _PIECE
        self.go_on()

    def go_on(self) -> None:
        """More of them come from now on, until it is stopped."""
        self._is_over.clear()
        pool = ThreadPoolExecutor(1, "feed")
        self._fed = pool.submit(self._feed)
        pool.shutdown(wait=False)

    def stop(self) -> int:
        """How many records there are, now that no more come; each came once.

        The feed waits for a broker that is away.
        """
        self._is_over.set()
        if self._fed is not None:
            self._fed.result()
        return self.produced

    def _feed(self) -> None:
        # Idempotent: a record that is sent again, as its answer was lost, does not come twice.
        producer = Producer({"bootstrap.servers": self._job.servers, "enable.idempotence": True})
        while not self._is_over.wait(_PAUSE_S):
            for number in range(self.produced, self.produced + _PIECE):
                producer.produce(
                    f"{self._job.name}-in", key=f"key {number % 50}", value=str(number)
                )
            assert producer.flush(_POLL_S * 6) == 0, "the broker does not take the input"
            self.produced += _PIECE


@dataclass(frozen=True)
class Moment:
    """What there was before a fault: the containers, metrics, and the counts of other sources."""

    containers: Containers
    counted: Mapping[str, int]
    stated: Mapping[str, int]


class Scenario:
    """A job with standbys, whose output shows each transaction; fed while it is in the block.

    Args:
        job: not submitted yet.
        values: keys of the job beyond those that scenarios share.
    """

    def __init__(self, job: Job, **values: str) -> None:
        self.job = job
        self.feed = Feed(job)
        job.values |= {
            "job.container.count": "2",
            "job.hotstandby.enabled": "true",
            "task.class": "probe_task:Reports",
            "task.commit.ms": "500",
            "cluster-manager.container.lease.ms": str(LEASE_MS),
            "cluster-manager.container.retry.count": "100",
            **values,
        }

    def __enter__(self) -> Self:
        """All of both roles run, and input comes."""
        topic = f"{self.job.name}-out"
        admin = AdminClient({"bootstrap.servers": self.job.servers})
        admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
        self.feed.begin()
        try:
            self.job.run()
            self.recovers()
        except BaseException:
            self.feed.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """No more input comes."""
        self.feed.stop()

    # ------------------------------------------------------------------ places of containers

    @property
    def am_host(self) -> str:
        """The node of the AM that answers."""
        url = self.job.get("v1/status")["coordinator_url"]
        host: str = next(
            n["host"]
            for n in self.job.cluster.status()["nodes"]
            if f"//{n['address']}:" in url or f"//{n['host']}:" in url
        )
        return host

    def hosts(self) -> dict[str, str]:
        """{processor: host that it runs on}; all of them run."""
        return {p: c["host"] for p, c in self.recovers().items()}

    def arrange(self, groups: Sequence[Sequence[str]], avoid: str = "") -> list[str]:
        """The processors of each group are on one host, each group on another, none on the AM's.

        Returns the hosts of the groups; containers that are elsewhere are moved as operators do.
        ``avoid``: a host that none is moved to.
        """
        now, am_host = self.hosts(), self.am_host
        hosts = [node for node in self.job.cluster.nodes if node not in {am_host, avoid}]
        assert len(groups) <= len(hosts), f"{len(groups)} groups on {hosts}"

        def moves(hosts: Sequence[str]) -> dict[str, str]:
            placed = zip(groups, hosts, strict=True)
            return {p: host for group, host in placed for p in group if now[p] != host}

        best = min(itertools.permutations(hosts, len(groups)), key=lambda h: len(moves(h)))
        while left := moves(best):
            ready = {p: host for p, host in left.items() if not _has_its_group(p, host, now)}
            # Where two have to change places, one goes out of the way first.
            processor, host = next(iter(ready.items()), (next(iter(left)), am_host))
            done = self.job.operator("move", processor, host)
            assert done.returncode == 0, done.stdout + done.stderr
            now = self.hosts()
        return list(best)

    # ------------------------------------------------------------------ what happens

    def moment(self) -> Moment:
        """What there is now, where all of both roles run."""
        return Moment(self.recovers(), counted(self.job), _told_of(self.job))

    def counted_since(self, before: Moment) -> dict[str, int]:
        """What STANDBY's metrics have counted since, but for what is zero; by one driver."""
        return more_than(before.counted, counted(self.job))

    def told_since(self, before: Moment) -> dict[str, int]:
        """What the metrics must have counted since, from other sources: its course is chance.

        Each permit since then has followed an end. That was a failure, as is each launch that no
        launcher came of; but a standby that ran, and whose place was chosen, stopped as ordered.
        """
        containers = self.recovers()
        stated = Counter(more_than(before.stated, _told_of(self.job)))
        for processor, container in containers.items():
            role = container["role"]
            stated[f"{role} failures"] += container["epoch"] - before.containers[processor]["epoch"]
        stated["standby failures"] -= stated.pop("made way", 0)
        return {name: n for name, n in stated.items() if n}

    def recovers(self) -> Containers:
        """All containers of both roles run, apart, and their launchers have said as what."""

        def is_whole() -> bool:
            status = self.job.get("v1/status")
            containers = status["containers"]
            return (
                status["job"]["state"] == "running"
                and bool(containers)
                and all(c["phase"] == "running" and c["pid"] is not None for c in containers)
                and not status["failovers"]
            )

        wait_for(is_whole, self.job)
        containers = self.job.containers()
        for container in containers.values():
            if container["replica_of"] is not None:
                assert container["host"] != containers[container["replica_of"]]["host"], containers
        return containers

    def succeeds(self, before: Moment, *processors: str) -> None:
        """Each of them has a later epoch than it had, and runs."""
        epochs = {p: before.containers[p]["epoch"] for p in processors}

        def are_new() -> bool:
            containers = self.job.containers()
            return all(containers[p]["epoch"] > epoch for p, epoch in epochs.items())

        wait_for(are_new, self.job)
        self.recovers()

    # ------------------------------------------------------------------ the good end

    def ends_well(self) -> None:
        """After calm the result is exact, and nothing is left or was written that should not be.

        The job is stopped in order.
        """
        self.is_calm()
        job = self.job
        epochs = {p: c["epoch"] for p, c in job.containers().items()}
        assert job.kill() == f"stopped {job.application_id} in order"
        wait_for(lambda: job.application().state in {"FINISHED", "FAILED", "KILLED"}, job)
        wait_for(lambda: not pids_of(job.application_id), job)
        assert accepted_trespasses(job, epochs) == {}
        job.judge_history()

    def is_calm(self) -> None:
        """No more input: all of it is counted and reported once, all run, no standby is behind."""
        produced = self.feed.stop()
        self.recovers()
        self.job.expects(produced)
        wait_for(lambda: all(lag == (0, 0.0) for lag in self._lags().values()), self.job)
        self.recovers()
        told_once(self.job, produced)
        has_no_strays(self.job)

    def _lags(self) -> dict[str, tuple[int, float]]:
        return {
            p: (c["lag"], c["lag_seconds"])
            for p, c in self.job.containers().items()
            if c["role"] == "standby"
        }


def _has_its_group(processor: str, host: str, now: Mapping[str, str]) -> bool:
    group = processor.partition("-")[0]
    return any(
        at == host and other != processor and other.partition("-")[0] == group
        for other, at in now.items()
    )


def samples(job: Job) -> dict[str, float]:
    """``/metrics`` of the driver that answers: {name and labels: value}."""
    lines = (line for line in job.get_text("metrics").splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def counted(job: Job) -> dict[str, int]:
    """What STANDBY's metrics have counted since the driver that answers began."""
    numbers = samples(job)
    return {name: int(sum(numbers[s] for s in its)) for name, its in _COUNTED.items()}


def more_than(before: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
    """By how much more there is now of each, where it is any."""
    return {name: n - before.get(name, 0) for name, n in now.items() if n != before.get(name, 0)}


def _told_of(job: Job) -> dict[str, int]:
    stated = Counter(choices_in(job.history("failover-decided", "failover-ended")))
    status = job.get("v1/status")
    roles = {c["processor_id"]: c["role"] for c in status["containers"]}
    for failure in status["failures"]:
        if failure["cause"].startswith("no launcher checked in"):
            stated[f"{roles[failure['processor_id']]} failures"] += 1
    return dict(stated)


def choices_in(events: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """STANDBY's numbers of failovers; and how many standbys ran that had to stop for them.

    A second decision without a standby is no further occurrence: only its list of tried standbys
    differs.
    """
    now: dict[str, str | None] = {}
    stated = Counter[str]()
    for event in events:
        active = event["active"]
        if event["event"] == "failover-ended":
            now.pop(active, None)
            continue
        standby = event["standby"]
        is_to_any = standby is None and now.get(active, active) is not None
        stated["made way"] += event["step"] == "standby"
        stated["failed over to a standby"] += standby is not None
        stated["could not be failed to a standby"] += is_to_any
        stated["choices lost"] += now.get(active) is not None
        now[active] = standby
    return dict(stated)


def told_once(job: Job, produced: int) -> None:
    """The output has of each key ever higher counts, up to its last: no transaction came twice."""
    faults = told_amiss(_stated(job.servers, f"{job.name}-out"), produced)
    assert not faults, faults


def told_amiss(stated: Iterable[tuple[str, int]], produced: int) -> dict[str, list[int]]:
    """{key: its reported counts}, where they do not grow up to the key's last count."""
    found: dict[str, list[int]] = {}
    for key, count in stated:
        found.setdefault(key, []).append(count)
    right = {f"key {k}": len(range(k, produced, 50)) for k in range(min(50, produced))}
    return {
        key: counts
        for key in sorted(right.keys() | found.keys())
        if (counts := found.get(key, [])) != sorted(set(counts))
        or counts[-1:] != [right.get(key, 0)]
    }


def _stated(servers: str, topic: str) -> Iterator[tuple[str, int]]:
    for record in committed(servers, topic, PARTITIONS):
        yield (record.key() or b"").decode(), int(record.value() or b"")


def has_no_strays(job: Job) -> None:
    """Nothing of the cluster lives that should not, once what is ending has ended."""
    until(lambda: not strays(job), lambda: "\n".join(strays(job)), LIMIT_S, _PAUSE_S)


def strays(job: Job) -> list[str]:
    """The processes that should not be left in the cluster: each with its pid, node, command.

    What may live: daemons, the AM's container, the containers of launchers whose processors the AM
    lists, and the shells above these. A launcher has the child that the AM knows, and one spare.
    """
    status = job.get("v1/status")
    application, attempt = status["job"]["application"], status["job"]["attempt"]
    am = re.compile(rf"container_(e\d+_)?{application.partition('_')[2]}_0*{attempt}_000001")
    children = {
        c["resource"]: job.cluster.pid_here(c["host"], c["pid"])
        for c in status["containers"]
        if c["pid"] is not None
    }
    found = {p.pid: (p.node, p.container, p.command) for p in job.cluster.living()}
    allowed = job.cluster.daemon_pids() | called_for(found, children, am)
    for pid in list(allowed):
        allowed.update(_ancestors(pid))
    return [f"{pid} {node}: {line}" for pid, (node, _, line) in found.items() if pid not in allowed]


def called_for(
    found: Mapping[int, tuple[str, str, str]],
    children: Mapping[str, int | None],
    am: re.Pattern[str],
) -> set[int]:
    """The processes of the AM's container, and those of known launchers' containers.

    Shapes: ``found`` {pid: node, id of its YARN container or "", command line}; ``children`` {id of
    a launcher's container: its child's pid}.
    """
    spares: dict[str, int] = {}
    allowed = set()
    for pid, (_, container, line) in found.items():
        is_other = _PROGRAM in line and pid != children.get(container)
        is_second_spare = is_other and spares.setdefault(container, pid) != pid
        if am.fullmatch(container) or (container in children and not is_second_spare):
            allowed.add(pid)
    return allowed


def _ancestors(pid: int) -> Iterator[int]:
    with contextlib.suppress(OSError):
        while (pid := parent_of(pid)) > 1:
            yield pid
