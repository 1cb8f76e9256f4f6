"""The world of one job: its clock, brokers, network and cluster, and the product's code set in it.

``World`` is entered with ``with``: from then on the product's Kafka clients, clocks and thread
pools are the world's. What a schedule does to it is in the methods of ``clock.Process``,
``kafka_clients.Network`` and ``Links``.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent import futures
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import pytest

from homeport.config.config import Config
from homeport.config.settings.sections import JobConfig, SystemConfig
from homeport.job_coordinator import clocks
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.history.writer import HistoryWriter
from homeport.job_coordinator.kafka import clients
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.topics import TopicAdmin, TopicSpec
from homeport.job_coordinator.metadata.configuration import ConfigManager
from tests.unit.world.clock import Clock, Process
from tests.unit.world.kafka import Broker, Writer
from tests.unit.world.kafka_clients import ModelAdmin, ModelConsumer, ModelProducer, Network
from tests.unit.world.stand_ins import Executor, Links, Threads, Time

COORDINATOR = "__samza_coordinator_j_1"
CHECKPOINTS = "__samza_checkpoint_ver_1_for_j_1"
LEASE_MS = 3_000
"""L, as in the demo; M is a fifth of it."""
MARGIN_MS = 600
ISOLATION_MS = 4_000
"""G."""
JOB_NAME = "j"
_ADMIN_S = 10.0


def config_of(containers: int, more: Mapping[str, str]) -> Config:
    """A job that counts the records of ``in``, into a store and to ``out``."""
    return Config(
        {
            "job.name": JOB_NAME,
            "job.default.system": "kafka",
            "job.container.count": str(containers),
            "job.host-affinity.enabled": "true",
            "job.coordinator.system": "kafka",
            "job.coordinator.isolation.max.ms": str(ISOLATION_MS),
            "cluster-manager.container.lease.ms": str(LEASE_MS),
            "task.class": "job:Count",
            "task.inputs": "kafka.in",
            "stores.counts.factory": "rocksdb",
            "stores.counts.changelog": "kafka.counts",
            "stores.counts.key.serde": "bytes",
            "stores.counts.msg.serde": "bytes",
            "systems.kafka.consumer.bootstrap.servers": "b:1",
            "systems.kafka.producer.bootstrap.servers": "b:1",
            "systems.kafka.samza.offset.default": "oldest",
            **more,
        }
    )


class World:
    """One job on one cluster. ``facts``: what its processes have noted, for the judges."""

    def __init__(
        self, containers: int = 1, partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> None:
        self.clock = Clock()
        self.config = config_of(containers, config or {})
        self.broker = Broker(self.clock)
        self.network = Network(self.clock, self.broker)
        self.links = Links(self.clock)
        self.facts: list[Fact] = []
        self.at_end: list[Callable[[], object]] = []
        self.launch: Callable[[Any, Any], Process] = _launches_nothing
        self.partitions = partitions
        self.inputs = ["in"]
        self.patch = pytest.MonkeyPatch()
        self.broker.create(COORDINATOR)
        self.broker.create(CHECKPOINTS)
        for topic in ("in", "out", "counts"):
            self.broker.create(topic, partitions)

    def __enter__(self) -> Self:
        patch, clock, network = self.patch, self.clock, self.network
        patch.setattr(Executor, "clock", clock, raising=False)
        patch.setattr(clients, "Consumer", lambda p, **_: ModelConsumer(network, p))
        patch.setattr(clients, "Producer", lambda p, **_: ModelProducer(network, p))
        patch.setattr(clients, "AdminClient", lambda _, **__: ModelAdmin(network))
        patch.setattr(clients, "_start_destroying", lambda: None)  # of librdkafka's clients alone
        patch.setattr(logging, "basicConfig", lambda **_: None)
        patch.setattr(TopicAdmin, "validate", lambda *_: None)
        patch.setattr(TopicAdmin, "ensure", lambda _, spec: self.ensure(spec))
        patch.setattr(TopicAdmin, "delete", lambda _, name: self.delete(name))
        replaced = {
            id(time): Time(clock),
            id(futures.ThreadPoolExecutor): Executor,
            id(threading): Threads(clock),
            id(HistoryWriter): lambda _folder, role, _host, _mb: History(self, role),
            id(clocks.boot_ms): clock.boot_ms,
            id(clocks.wall_ms): lambda: clock.now_ms,
        }
        self.replace(replaced, "homeport.")
        # The thread that destroys real clients, of tests before, has no turn in any world.
        patch.setattr(clients, "time", time)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.clock.close()
        finally:
            self.patch.undo()
            for action in self.at_end:
                action()

    def task_names(self) -> list[str]:
        """The job's containers, one task each or more: what is started when all are."""
        return [str(n) for n in range(JobConfig.of(self.config).container_count)]

    def add_input(self, topic: str, partitions: int | None = None) -> None:
        """The topic is there, which the job may read too; None: with the partitions of ``in``."""
        self.broker.create(topic, partitions or self.partitions)
        self.inputs.append(topic)

    def produce(self, records: int, key: bytes, partition: int, topic: str = "in") -> None:
        """So many records are in the input; written plainly, at once."""
        for number in range(records):
            self.broker.append((topic, partition), Writer(None), key, str(number).encode(), 0)

    def ensure(self, spec: TopicSpec) -> None:
        """The topic is there, by a request of the running process."""

        def act() -> None:
            if spec.name not in self.broker.topic_ids:
                self.broker.create(spec.name, spec.partitions)

        self.network.request(f"create {spec.name}", _ADMIN_S, act)

    def delete(self, name: str) -> None:
        """The topic is gone, by a request of the running process."""
        self.network.request(f"delete {name}", _ADMIN_S, lambda: self.broker.delete(name))

    def write(self, message: CoordinatorStreamMessage, source: str) -> None:
        """The record is in the coordinator stream; written plainly, at once."""
        now_ms = self.clock.now_ms
        stamped = message.stamped(
            source=source, host="here", username="somebody", timestamp_ms=now_ms
        )
        key, value = wire.encode(stamped)
        self.broker.append((COORDINATOR, 0), Writer(None), key, value, 0)

    def replace(self, replaced: Mapping[int, object], *beginnings: str) -> None:
        """In all modules whose names begin so, what has these ids is something else.

        Shapes: ``replaced`` {id of an object: what stands in its place}.
        """
        modules = [m for n, m in sorted(sys.modules.items()) if n.startswith(beginnings)]
        for module in modules:
            for name, value in list(vars(module).items()):
                if id(value) in replaced:
                    self.patch.setattr(module, name, replaced[id(value)])

    def note(self, what: str, who: object = None, /, **fields: object) -> None:
        """A fact for the judges, also for the story."""
        self.facts.append(Fact(self.clock.now_ms, what, who, fields))
        stated = ", ".join(f"{name}={value}" for name, value in fields.items())
        self.clock.announce(f"* {what} {who or ''} {stated}".rstrip())

    def facts_of(self, what: str) -> list[Fact]:
        """All facts of one kind, in order."""
        return [fact for fact in self.facts if fact.what == what]

    def stream(self, transactional_id: str | None = None) -> CoordinatorStreamStore:
        """The coordinator stream, read to its head: the product's store on the model broker."""
        store = CoordinatorStreamStore(
            SystemConfig.of(self.config, "kafka"),
            COORDINATOR,
            source="homeport",
            transactional_id=transactional_id,
        )
        store.fence()
        store.bootstrap()
        return store

    def deploy(self) -> None:
        """The configuration is in the coordinator stream."""
        with self.stream() as stream:
            ConfigManager(stream).replace(self.config, "homeport")


def _launches_nothing(_attempt: object, _container: object) -> Process:
    raise AssertionError("no launcher in this world")


@dataclass(frozen=True)
class Fact:
    """Something that happened, at ``at_ms``, to ``who``."""

    at_ms: int
    what: str
    who: object
    fields: dict[str, object]


class History:
    """``HistoryWriter`` that writes into the world's facts."""

    def __init__(self, world: World, role: str) -> None:
        self._world = world
        self._role = role

    def event(
        self, name: str, processor_id: str | None = None, epoch: int | None = None, **fields: object
    ) -> None:
        """``name`` happened now."""
        who = None if processor_id is None else f"{processor_id}@{epoch}"
        self._world.note(f"{self._role}:{name}", who, **fields)

    def close(self) -> None:
        """Nothing is open."""
