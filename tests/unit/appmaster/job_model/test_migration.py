"""Which steps a migration has left, and what they leave in stream and nodes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from nodes_in_memory import NodesInMemory
from own_records import write_permit
from stream_in_memory import InMemoryCoordinatorStream

from homeport.appmaster.job_model.migration import Migration, MigrationStep
from homeport.appmaster.job_model.publication import Owners
from homeport.config.config import Config
from homeport.config.errors import ConfigError, UnavailableError
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.epochs import EpochManager, FenceReport, ProcessorEpoch
from homeport.job_coordinator.metadata.recorded_model import recorded_model
from homeport.job_coordinator.metadata.state_reset import ResetPhase, StateReset, StateResetManager
from homeport.job_coordinator.metadata.task_assignment import (
    LocalityManager,
    TaskAssignmentManager,
    TaskPartitionManager,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import ContainerModel, JobModel, TaskModel
from homeport.job_coordinator.standalone.plan import Plan, Registration, next_plan

FACTORY = "job.coordinator.factory"
CONFIG = Config({"job.name": "j", "job.default.system": "kafka"})
A, B = TaskName("a"), TaskName("b")
ZERO, ONE, P = ProcessorId("0"), ProcessorId("1"), ProcessorId("p")


class Job:
    """A job that ran on YARN: two containers, one of which a JobModel has overtaken."""

    def __init__(self, *, is_new: bool = False) -> None:
        """``is_new``: it has not run on YARN yet."""
        self.stream, self.nodes = InMemoryCoordinatorStream(), NodesInMemory()
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
        if is_new:
            stream.catch_up()
            return
        LocalityManager(stream).write(ZERO, [A], Host("nm1"), 5)
        write_permit(epochs, ZERO, ProcessorEpoch(5, 1))
        fence = (Incarnation(ONE, 6),)
        write_permit(epochs, ONE, ProcessorEpoch(7, 1, fence, permitted=6))
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

    def floors(self) -> dict[ProcessorId, int]:
        """{container: what its next epoch on YARN is above}."""
        owners = Owners.read(self.stream)
        return {p: owners.floor_of(p) for p in (ZERO, ONE, ProcessorId("2"), ProcessorId("3"))}

    def runs_standalone(self, **tasks: str) -> Plan:
        """Publish a version of these processors, which have begun and left again.

        ``tasks`` {processor: names}; without any, one has taken all tasks.
        """
        kept = self.nodes.kept
        owned = {ProcessorId(p): [TaskName(t) for t in names] for p, names in tasks.items()}
        owned = owned or {P: [A, B]}
        there = [Registration(3 + n, p, Host("nm1")) for n, p in enumerate(owned)]
        plan = next_plan(kept.plan, there, owned, kept.fenced)
        begun = {m.processor_id: m for m in plan.members}
        for p, member in begun.items():
            if kept.fenced.get(p) != member.generation:
                report = FenceReport(member.generation, member.fence)
                EpochManager(self.stream).write_fenced(p, report)
        self.stream.catch_up()
        fenced = {**kept.fenced, **{p: m.generation for p, m in begun.items()}}
        if kept.plan is not None:
            plan = replace(plan, model=kept.plan.model)
        self.nodes.kept = replace(
            kept, version=plan.version, written=kept.written + 1, plan=plan, fenced=fenced
        )
        return plan


def _do(steps: Iterable[MigrationStep]) -> None:
    for step in steps:
        step.do()


def test_to_zookeeper_raises_fences_and_publishes_above_every_epoch() -> None:
    """The locations go along; a second migration has nothing to do."""
    job = Job()
    assert len(job.migrate("zookeeper")) == 6
    assert job.factory == "zookeeper"
    assert set(job.fenced) == {Incarnation(ZERO, 5), Incarnation(ONE, 6)}
    assert job.epochs() == {ZERO: 6, ONE: 8}
    assert job.nodes.kept.version == 8
    assert job.nodes.kept.hosts == {A: "nm1"}
    assert not Owners.read(job.stream).overtaken
    assert recorded_model(job.stream, Config({})).containers == job.nodes.kept.plan.model.containers  # type: ignore[union-attr]  # it was published
    assert job.migrate("zookeeper") == []


@pytest.mark.parametrize(("to", "times"), [("zookeeper", 0), ("yarn", 0), ("zookeeper", 1)])
def test_a_migration_that_ends_after_any_step_is_only_run_again(to: str, times: int) -> None:
    """The same comes of it, and the mark stands until the end.

    ``times``: so often it went there and back before.
    """
    expected, job = Job(), Job()
    for one in (expected, job):
        for _ in range(times):
            one.migrate("zookeeper")
            one.migrate("yarn")
            permit = ProcessorEpoch(one.floors()[ZERO] + 1, 1)
            write_permit(EpochManager(one.stream), ZERO, permit)
            one.stream.catch_up()
            one.fenced.clear()
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
    assert job.nodes.kept.version >= EpochManager(job.stream).highest()
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
    assert set(job.floors().values()) == {10}
    assert member.incarnation in job.fenced
    plan = job.nodes.kept.plan
    assert plan is not None
    assert member.incarnation not in {m.incarnation for m in plan.members}
    assert job.epochs() == {ZERO: 6, ONE: 8}
    assert job.factory == "yarn"
    assert job.migrate("yarn") == []
    job.migrate("zookeeper")
    assert job.nodes.kept.version >= 10


def test_numbers_of_processors_that_had_left_do_not_come_again_on_yarn() -> None:
    """Their ids are container ids, and reports of fences name them: no permit is one of those."""
    for job in (Job(), Job(is_new=True)):
        job.migrate("zookeeper")
        ConfigManager(job.stream).set(FACTORY, "zookeeper", "test")
        for tasks in ({"0": "a", "1": "b", "2": "", "3": ""}, {"1": "ab"}, {"0": "ab"}):
            job.runs_standalone(**tasks)
        job.migrate("yarn")
        epochs = EpochManager(job.stream)
        named = {i for report in epochs.read_fenced().values() for i in report.fenced}
        assert {i.processor_id for i in named} >= {ZERO, ONE}
        assert max(i.epoch for i in named) < job.nodes.kept.version == epochs.highest()
        for p, floor in job.floors().items():
            assert Incarnation(p, floor + 1) not in named
            assert floor == job.nodes.kept.version


def test_the_tasks_of_a_container_are_where_it_was() -> None:
    """Tasks without a host of their own in the stream."""
    job = Job()
    job.stream.write([wire.set_container_host_assignment("1", "nm2")])
    job.stream.catch_up()
    job.migrate("zookeeper")
    assert job.nodes.kept.hosts == {A: "nm1", B: "nm2"}


def test_no_job_is_migrated_on_the_rest_of_a_state() -> None:
    """A reset has begun, and is not finished."""
    job = Job()
    StateResetManager(job.stream).write(StateReset(1, ResetPhase.BEGUN))
    job.stream.catch_up()
    with pytest.raises(ConfigError, match="a reset of the job's state began with submission 1"):
        job.migrate("zookeeper")


def test_a_tree_that_is_further_than_yarn_goes_on_from_there() -> None:
    """A version is above the one that is there, whatever that is of."""
    job = Job()
    for _ in range(20):
        job.runs_standalone(p="a", q="b")
    job.migrate("zookeeper")
    assert job.nodes.kept.version == 21


def test_a_job_born_standalone_goes_to_yarn_and_back_without_having_run_there() -> None:
    """No permit shows that there is something to migrate, but the floor does."""
    job = Job(is_new=True)
    assert job.migrate("zookeeper") == []
    ConfigManager(job.stream).set(FACTORY, "zookeeper", "test")
    job.runs_standalone()
    job.migrate("yarn")
    version = job.nodes.kept.version
    assert job.epochs() == {}
    assert len(job.migrate("zookeeper")) == 3
    assert (job.factory, job.nodes.kept.version) == ("zookeeper", version)


@pytest.mark.parametrize("to", ["zookeeper", "yarn"])
def test_a_version_that_others_publish_meanwhile_stands(to: str) -> None:
    """The step that comes too late fails, and the mark keeps the job from a start."""
    job = Job()
    if to == "yarn":
        job.migrate("zookeeper")
        job.runs_standalone()
    steps = job.migration().steps(to)
    stands = job.runs_standalone()
    with pytest.raises(UnavailableError, match="or another migration ended"):
        _do(steps)
    assert (job.nodes.kept.plan, job.factory) == (stands, f"migrating-to-{to}")


def test_a_tree_that_is_an_older_copy_is_refused() -> None:
    """An incarnation has reported a generation above its newest version: numbers would recur."""
    job = Job()
    job.migrate("zookeeper")
    job.runs_standalone()
    copy = job.nodes.kept
    job.runs_standalone(q="ab")
    newest, job.nodes.kept = job.nodes.kept, copy
    with pytest.raises(
        ConfigError, match=r"or an older one than has run; .* no older copy of them"
    ):
        job.migrate("yarn")
    assert job.factory == "zookeeper"
    job.nodes.kept = newest
    job.migrate("yarn")
    job.nodes.kept = copy
    job.migrate("zookeeper")
    assert job.nodes.kept.version > newest.version


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
