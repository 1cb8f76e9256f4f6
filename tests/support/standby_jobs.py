"""A job with hot standbys on a real YARN cluster: what tests of it share."""

from __future__ import annotations

import contextlib
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from failover_scenarios import counted
from store_copies import entries, offset
from topic_records import last_offsets
from yarn_jobs import PARTITIONS, Job, wait_for

Containers = dict[str, dict[str, Any]]


def standby_job(
    make_job: Callable[[str], Job], name: str, *, containers: int = 2, replicas: int = 1
) -> Job:
    """A job of so many active containers with so many standbys each; it is not run yet."""
    job = make_job(name)
    job.values |= {"job.container.count": str(containers), "task.commit.ms": "500"}
    job.values |= hot_standby(replicas)
    return job


def hot_standby(replicas: int = 1) -> dict[str, str]:
    """What switches it on."""
    return {"job.hotstandby.enabled": "true", "job.hotstandby.replicationcount": str(replicas)}


def hosts_of(containers: Containers) -> dict[str, str]:
    """{processor: its host}."""
    return {processor: container["host"] for processor, container in containers.items()}


def are_apart(containers: Containers) -> None:
    """Invariant-1: no two replicas of one active container, itself included, are on one host."""
    taken = Counter((c["replica_of"] or p, c["host"]) for p, c in containers.items())
    assert set(taken.values()) == {1}, hosts_of(containers)


def kinds(container: dict[str, Any]) -> set[str]:
    """How its stores were restored at its last start."""
    return {how["kind"] for tasks in container["restored"].values() for how in tasks.values()}


def records_read(container: dict[str, Any]) -> int:
    """How many changelog records its last start has read."""
    stores = container["restored"].values()
    return sum(how["records"] for tasks in stores for how in tasks.values())


def becomes_calm(job: Job, scratch: Path) -> None:
    """All is counted, no standby is behind, and each standby holds what its active does."""
    job.counts_all()
    heads = last_offsets(job.servers, f"{job.name}-counts", PARTITIONS)
    replicas = _replicas(job)
    wait_for(
        lambda: all(
            offset(directory) >= heads[partition]
            for partition, *places in replicas
            for directory in places
        ),
        job,
    )
    wait_for(lambda: set(_lags(job)) == {(0, 0.0)}, job)
    found: set[bytes] = set()

    def are_equal() -> bool:
        for _, active, standby in replicas:
            held = entries(active, scratch)
            assert entries(standby, scratch) == held
            found.update(held)
        return True

    wait_for(are_equal, job)
    assert len(found) == len(job.produced)


def _lags(job: Job) -> list[tuple[int, float]]:
    """Records and seconds that each standby is behind, by the status."""
    containers = job.containers().values()
    return [(c["lag"], c["lag_seconds"]) for c in containers if c["role"] == "standby"]


def _replicas(job: Job) -> list[tuple[int, Path, Path]]:
    """(changelog partition, directory of the active, of a standby) of each task and standby."""
    containers = job.containers()
    model = job.get("")["containers"]
    found = []
    for processor, container in containers.items():
        if container["replica_of"] is None:
            continue
        active = containers[container["replica_of"]]
        for task, stated in model[container["replica_of"]]["tasks"].items():
            places = (directory_of(job, active, task), directory_of(job, container, task))
            found.append((stated["changelog-partition"], *places))
        assert len(model[processor]["tasks"]) == len(model[container["replica_of"]]["tasks"])
    assert len(found) % PARTITIONS == 0
    return found


def directory_of(job: Job, container: dict[str, Any], task: str) -> Path:
    """Where a container has the store of an active task, or would have it."""
    folder = job.cluster.state_dir(container["host"]) / f"{job.name}-1" / "counts"
    return folder / task.replace(" ", "_")


@contextlib.contextmanager
def standing_still(pid: int) -> Iterator[None]:
    """The process does nothing inside the block, not even end."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def published(job: Job) -> Counter[str]:
    """What STANDBY wants published, by the names of ``counted``, from one driver's beginning."""
    found = Counter(counted(job))
    del found["charged"]
    return +found


def chosen(job: Job, active: str = "0") -> list[str | None]:
    """The standby of each choice for the active, by the history; None: a choice of no standby."""
    return [e["standby"] for e in job.history("failover-decided") if e["active"] == active]


def pauses(job: Job, processor: str) -> list[float]:
    """Seconds from the last transaction of each incarnation to the first one of the next."""
    committed_ = [e for e in job.history("transaction-committed") if e["processor_id"] == processor]
    spans: dict[int, list[int]] = {}
    for event in committed_:
        spans.setdefault(event["epoch"], []).append(int(event["boot_ms"]))
    epochs = sorted(spans)
    return [(min(spans[after]) - max(spans[before])) / 1000 for before, after in pairwise(epochs)]
