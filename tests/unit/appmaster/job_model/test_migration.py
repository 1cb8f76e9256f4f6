"""Which steps a migration has left, and what they leave in stream and nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from homeport.appmaster.job_model.migration import Migration
from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.epochs import EpochManager, ProcessorEpoch
from homeport.job_coordinator.metadata.locality import LocalityManager
from homeport.job_coordinator.metadata.recorded_model import recorded_model
from homeport.job_coordinator.metadata.task_assignment import (
    TaskAssignmentManager,
    TaskPartitionManager,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import ContainerModel, JobModel, TaskModel
from homeport.job_coordinator.standalone.plan import Plan, Registration, next_plan
from homeport.job_coordinator.zookeeper.handover_nodes import Kept

FACTORY = "job.coordinator.factory"
CONFIG = Config({"job.name": "j", "job.default.system": "kafka"})
A, B = TaskName("a"), TaskName("b")
ZERO, ONE, P = ProcessorId("0"), ProcessorId("1"), ProcessorId("p")


class Nodes:
    """ZooKeeper's, in memory."""

    def __init__(self) -> None:
        self.kept = Kept(0, -1, None, None, {}, {}, ())

    def read(self) -> Kept:
        """As they are."""
        return self.kept

    def publish(self, kept: Kept, plan: Plan, model: JobModel) -> bool:
        """Where nothing has changed."""
        if kept != self.kept:
            return False
        written = kept.written + 1
        self.kept = replace(kept, version=plan.version, written=written, plan=plan, model=model)
        return True

    def write_hosts(self, hosts: Mapping[TaskName, Host]) -> None:
        """Beside those that are there."""
        self.kept = replace(self.kept, hosts={**self.kept.hosts, **hosts})


class Job:
    """A job that ran on YARN: two containers, one of which a JobModel has overtaken."""

    def __init__(self) -> None:
        self.stream, self.nodes = InMemoryCoordinatorStream(), Nodes()
        self.fenced: list[Incarnation] = []
        model = JobModel(
            Config({}),
            {
                ZERO: ContainerModel(ZERO, {A: TaskModel(A, (), 0)}),
                ONE: ContainerModel(ONE, {B: TaskModel(B, (), 1)}),
            },
        )
        stream, epochs = self.stream, EpochManager(self.stream)
        stream.write(
            [
                *TaskAssignmentManager(stream).messages({A: ZERO, B: ONE}),
                *TaskPartitionManager(stream).messages(model),
            ]
        )
        LocalityManager(stream).write(ZERO, [A], Host("nm1"), 5)
        epochs.write_processor_epoch(ZERO, ProcessorEpoch(5, 1))
        fence = (Incarnation(ONE, 6),)
        epochs.write_processor_epoch(ONE, ProcessorEpoch(7, 1, fence, permitted=6))
        stream.catch_up()

    def migration(self) -> Migration:
        """One that begins now."""

        def fence(found: Iterable[Incarnation]) -> None:
            self.fenced += found

        nodes: Any = self.nodes
        return Migration(CONFIG, self.stream, nodes, fence)

    def migrate(self, to: str) -> list[str]:
        """All that is left is done; in words."""
        left = self.migration().steps(to)
        for step in left:
            step.do()
        return [step.text for step in left]

    @property
    def factory(self) -> str | None:
        """What the stream says."""
        return ConfigManager(self.stream).read().get(FACTORY)

    def epochs(self) -> dict[ProcessorId, int]:
        """{processor: its epoch}."""
        records = EpochManager(self.stream).read_processor_epochs()
        return {p: record.epoch for p, record in records.items()}

    def runs_standalone(self) -> Plan:
        """A processor has taken all tasks, and left again."""
        kept = self.nodes.kept
        plan = next_plan(kept.plan, [Registration(3, P, Host("nm1"))], {P: (A, B)}, kept.fenced)
        self.nodes.kept = replace(kept, version=plan.version, plan=plan)
        return plan


def test_to_zookeeper_raises_fences_and_publishes_above_every_epoch() -> None:
    """The locations go along; a second migration has nothing to do."""
    job = Job()
    assert len(job.migrate("zookeeper")) == 6
    assert job.factory == "zookeeper"
    assert set(job.fenced) == {Incarnation(ZERO, 5), Incarnation(ONE, 6)}
    assert job.epochs() == {ZERO: 6, ONE: 8}
    assert job.nodes.kept.version == 8
    assert job.nodes.kept.hosts == {A: "nm1"}
    assert recorded_model(job.stream, Config({})).containers == job.nodes.kept.model.containers  # type: ignore[union-attr]  # it was published
    assert job.migrate("zookeeper") == []


@pytest.mark.parametrize("to", ["zookeeper", "yarn"])
def test_a_migration_that_ends_after_any_step_is_only_run_again(to: str) -> None:
    """The same comes of it, and the mark stands until the end."""
    expected, job = Job(), Job()
    for one in (expected, job):
        if to == "yarn":
            one.migrate("zookeeper")
            one.runs_standalone()
    expected.migrate(to)
    for count in range(1, 6):
        for step in job.migration().steps(to)[:-1][:count]:
            step.do()
        assert job.factory == f"migrating-to-{to}"
    job.migrate(to)
    assert job.factory == to
    assert job.epochs() == expected.epochs()
    assert job.nodes.kept == expected.nodes.kept
    assert set(job.fenced) == set(expected.fenced)


def test_to_yarn_no_generation_may_begin_and_epochs_are_above_it() -> None:
    """What stood in the newest version is fenced; a later migration goes on from there."""
    job = Job()
    job.migrate("zookeeper")
    ran = job.runs_standalone()
    (member,) = ran.members
    job.fenced.clear()
    assert len(job.migrate("yarn")) == 5
    assert (ran.version, job.nodes.kept.version) == (9, 10)
    assert member.incarnation in job.fenced
    plan = job.nodes.kept.plan
    assert plan is not None
    assert member.incarnation not in {m.incarnation for m in plan.members}
    assert set(job.epochs().values()) == {10}
    assert job.factory == "yarn"
    assert job.migrate("yarn") == []
    job.migrate("zookeeper")
    assert job.nodes.kept.version >= max(job.epochs().values()) >= 10


def test_what_cannot_be_migrated_is_refused() -> None:
    """One line; nothing was changed."""
    job = Job()
    assert Job().migration().steps("yarn") == []
    job.nodes.kept = replace(job.nodes.kept, processors=(P,))
    with pytest.raises(ConfigError, match="these processors are registered in ZooKeeper: p; stop"):
        job.migrate("zookeeper")
    job.nodes.kept = replace(job.nodes.kept, processors=())
    for recorded, to, line in (
        ("local", "zookeeper", "has run by homeport run-local, whose folder is on one machine"),
        ("migrating-to-yarn", "zookeeper", "finish it by homeport migrate --to=yarn"),
        ("migrating-to-zookeeper", "yarn", "finish it by homeport migrate --to=zookeeper"),
        ("zookeeper", "yarn", "ZooKeeper has no version of the job there, or an older one"),
    ):
        ConfigManager(job.stream).set(FACTORY, recorded, "test")
        job.stream.catch_up()
        with pytest.raises(ConfigError, match=line):
            job.migrate(to)
    assert job.fenced == []
