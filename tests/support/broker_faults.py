"""A job on three brokers that fail, and its container, started again whenever it ends."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, PartitionMetadata, TopicMetadata
from counted_words import counts, is_exact, local_state, words
from stream_containers import P0, Job, Running
from topic_records import alter

from homeport.config.errors import UnavailableError
from homeport.config.settings.sections import JobConfig
from homeport.container.host.exit_codes import EXIT_UNAVAILABLE
from homeport.job_coordinator.model.incarnation import (
    STATE_TOPIC,
    Incarnation,
    state_partition,
    transactional_id,
)
from homeport.local_cluster.cluster import LocalCluster

LIMIT_S = 90.0
_POLL_S = 0.1
_ASKED_S = 5.0


def topics_of(admin: AdminClient) -> dict[str, TopicMetadata]:
    """{topic: its metadata}, as a broker that answers knows it.

    The client leaves a request with the broker that it has chosen, even where that one dies
    meanwhile: the request is made again, to another.
    """
    deadline = time.monotonic() + LIMIT_S
    while True:
        try:
            return admin.list_topics(timeout=_ASKED_S).topics
        except KafkaException:
            assert time.monotonic() < deadline


class Watched:
    """A job that counts words; ``ends`` has the last line of each container that has ended.

    Each end must be uncharged: the brokers were away, and nothing was wrong with the container.
    """

    def __init__(self, job: Job, brokers: LocalCluster) -> None:
        self.job = job
        self.brokers = brokers
        self.ends: list[str] = []
        self.total = 0
        self._epoch = 0
        self._running: Running | None = None
        # As homeport's own clients: a broker that is back is found soon.
        self._admin = AdminClient(
            {"bootstrap.servers": job.servers, "reconnect.backoff.max.ms": 1000}
        )

    def produce(self, count: int) -> None:
        """So many words more."""
        self.job.produce(words(count, self.total))
        self.total += count

    def until(self, holds: Callable[[], bool], *, tends: bool = True) -> None:
        """Returns when it holds; the container runs, or is started again where ``tends``."""
        deadline = time.monotonic() + LIMIT_S
        while not holds():
            if tends:
                self.tend()
            assert time.monotonic() < deadline, self.log()
            time.sleep(_POLL_S)

    def holds_out(self, seconds: float) -> None:
        """The time passes; the container runs, or is started again."""
        ends = time.monotonic() + seconds
        self.until(lambda: time.monotonic() > ends)

    def tend(self) -> None:
        """The container runs, as far as Kafka lets a permit be written."""
        running = self._running
        if running is not None:
            code = running.process.poll()
            if code is None:
                return
            assert code == EXIT_UNAVAILABLE, self.log()
            self.ends.append(running.last_line())
            self._running = None
        with contextlib.suppress(UnavailableError):
            before = list(range(1, self._epoch + 1))
            self._running = self.job.start(self._epoch + 1, fence=before)
            self._epoch += 1

    def counts_all(self) -> None:
        """All words that were produced are counted."""
        self.until(lambda: self.job.processed() == self.total)

    def forget_state(self) -> None:
        """The next container finds no state on its host."""
        shutil.rmtree(self.job.folder / "stores")

    def stop(self) -> None:
        """It has stopped in order, and changelog, checkpoints, outputs and state are exact."""
        self.until(lambda: self._running is not None)
        assert self._running is not None
        assert self._running.stop() == 143, self.log()
        is_exact(self.job, self.total)
        assert local_state(self.job) == counts(self.total)
        self._running = None

    def log(self) -> str:
        """What its container has said last, and how those before it have ended."""
        text = "" if self._running is None else self._running.log.read_text(encoding="utf-8")
        return "\n".join([*self.ends, text])

    def partition(self, topic: str) -> PartitionMetadata:
        """Partition 0 of a topic, as a broker that answers knows it."""
        return topics_of(self._admin)[topic].partitions[0]

    def leader(self, topic: str) -> int:
        """The broker that leads partition 0."""
        return int(self.partition(topic).leader)

    def coordinator(self) -> int:
        """The broker that decides the transactions of its container."""
        job = JobConfig.of(self.job.config)
        writer = transactional_id(job.name, job.id, Incarnation(P0, self._epoch))
        partitions = topics_of(self._admin)[STATE_TOPIC].partitions
        return int(partitions[state_partition(writer, len(partitions))].leader)

    def requires(self, topic: str, in_sync: int) -> None:
        """So many replicas of the topic must be in sync."""
        alter(self.job.servers, topic, {"min.insync.replicas": str(in_sync)})

    def replica_sizes(self, topic: str) -> dict[int, int]:
        """{broker: bytes that its replica of partition 0 holds}, by its files."""
        names = [broker["name"] for broker in self.brokers.status()["brokers"]]
        data = self.brokers.log_dir.parent / "brokers"
        return {
            number: sum(p.stat().st_size for p in data.glob(f"{name}/data/{topic}-0/*.log"))
            for number, name in enumerate(names, 1)
        }

    def controller(self) -> int:
        """The active controller."""
        found: list[int] = []

        def is_known() -> bool:
            status = self.brokers.status()["brokers"]
            found[:] = [broker["id"] for broker in status if broker["controller"]]
            return bool(found)

        self.until(is_known)
        return found[0]
