"""What measurements run on: a folder, a broker or a YARN of this run, cores that are watched."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psutil
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from homeport.local_cluster.cluster import LocalCluster, remove_abandoned

_PREFIX = "bench-"
_TOPICS_S = 60.0


@contextmanager
def scratch() -> Iterator[Path]:
    """Make a folder that is removed after the block."""
    with tempfile.TemporaryDirectory(
        prefix=f"homeport-{_PREFIX}", ignore_cleanup_errors=True
    ) as made:
        yield Path(made)


@contextmanager
def cluster(nodes: int = 3) -> Iterator[LocalCluster]:
    """Run a Kafka on loopback and, where there are nodes, a YARN."""
    remove_abandoned(_PREFIX)
    with LocalCluster(f"{_PREFIX}{os.getpid()}", nodes=nodes) as started:
        yield started


def broker() -> AbstractContextManager[LocalCluster]:
    """Run a Kafka on loopback."""
    return cluster(nodes=0)


def make_topics(servers: str, topics: Sequence[str], partitions: int) -> None:
    """Create topics without replicas."""
    admin = AdminClient({"bootstrap.servers": servers})
    for made in admin.create_topics([NewTopic(name, partitions, 1) for name in topics]).values():
        made.result(_TOPICS_S)


def committed_reader(servers: str, topic: str, partitions: int, **more: int) -> Consumer:
    """Return a consumer of the topic's committed records from the first on; it is of no group."""
    reader = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "bench",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            **{name.replace("_", "."): value for name, value in more.items()},
        }
    )
    # A group would want to hear of it again and again.
    reader.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(partitions)])
    return reader


def go_on(_seconds: float) -> None:
    """Do nothing: nothing ends a reader of a benchmark."""


class Busy:
    """How busy the machine's cores are from now on. ``load``: of the minute before."""

    def __init__(self) -> None:
        self.load = os.getloadavg()[0]
        self._began = cores_s()

    def share(self) -> float:
        """Return the busy part of the time of all cores, 0 to 1."""
        busy, total = (now - then for now, then in zip(cores_s(), self._began, strict=True))
        return busy / total if total else 0.0


def cores_s() -> tuple[float, float]:
    """Return the seconds of all cores since the machine's start: (busy, all)."""
    times = psutil.cpu_times()
    total = sum(times[:8])  # the time of guests is part of these
    return total - times.idle - times.iowait, total


@contextmanager
def beside(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run ``work`` in a thread inside the block; it gets the event of the block's end."""
    ended = threading.Event()
    thread = threading.Thread(target=work, args=(ended,))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
