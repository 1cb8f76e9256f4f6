"""Schedules of A5 and A6: a job goes between YARN and standalone processors; I1, I2, P1: models.

The processors have no part in this world but what they leave in coordinator stream and Kafka.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from nodes_in_memory import NodesInMemory

from homeport.appmaster.allocation import container_allocator, cooperative_change, invariants
from homeport.appmaster.allocation.protocol.events import JobModelPublished
from homeport.appmaster.job_model import publication
from homeport.appmaster.job_model.publication import NEVER, Owners, TaskChange
from homeport.appmaster.lease.fencing import fence_all
from homeport.cli.yarn import migrate_command
from homeport.cli.yarn.migrate_command import Where
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.epochs import EpochManager, FenceReport, ProcessorEpoch, Rank
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import ContainerModel, JobModel, TaskModel
from homeport.job_coordinator.standalone.plan import Plan, Registration, next_plan
from tests.unit.world.am import Attempt
from tests.unit.world.clock import Process
from tests.unit.world.judges import counted
from tests.unit.world.rules import schedule, without
from tests.unit.world.scene import KEYS, Scene


def does(scene: Scene, name: str, act: Callable[[], object]) -> Process:
    """A program of an operator, or a processor, that does this."""
    process = scene.clock.process(name, "cli")
    process.spawn(act)
    return process


def is_done(scene: Scene, process: Process) -> None:
    """It has ended, and well."""
    scene.until(lambda: not process.is_alive, f"{process.name} has ended")
    assert process.failure is None, process.failure


def migrating(scene: Scene, nodes: NodesInMemory, to: Where, submission: int) -> Process:
    """The steps of ``homeport migrate``, which has claimed that submission number."""
    there: Any = nodes
    config = scene.world.config
    return does(
        scene,
        f"migrate {submission}",
        lambda: migrate_command.carry_out(config, there, to, submission),
    )


def a_version(scene: Scene, nodes: NodesInMemory, tasks: Mapping[str, tuple[str, ...]]) -> Plan:
    """These processors alone are registered, and have begun: each has fenced its list, and itself.

    ``tasks`` {processor: its tasks}.
    """
    kept = nodes.kept
    owned = {ProcessorId(p): tuple(map(TaskName, names)) for p, names in tasks.items()}
    there = [Registration(n, p, Host("a")) for n, p in enumerate(owned, 1)]
    plan = next_plan(kept.plan, there, owned, kept.fenced)
    begun = [m for m in plan.members if kept.fenced.get(m.processor_id) != m.generation]
    containers = {
        p: ContainerModel(p, {t: TaskModel(t, (), int(t[-1])) for t in names})
        for p, names in owned.items()
    }

    def begin() -> None:
        with CoordinatorStreamStore.of(scene.world.config, source="homeport") as stream:
            stream.bootstrap()
            key, own = keys.JOB_COORDINATOR_FACTORY.name, Where.ZOOKEEPER.value
            ConfigManager(stream).set(key, own, "homeport")
            for member in begun:
                fence_all(scene.world.config, [*member.fence, member.incarnation])
                report = FenceReport(member.generation, member.fence)
                EpochManager(stream).write_fenced(member.processor_id, report)

    is_done(scene, does(scene, f"version {plan.version}", begin))
    nodes.kept = replace(
        kept,
        version=plan.version,
        written=kept.written + 1,
        plan=replace(plan, model=JobModel(Config({}), containers)),
        fenced={**kept.fenced, **{m.processor_id: m.generation for m in begun}},
    )
    return plan


# -- A5


@contextlib.contextmanager
def _without_a_rank(config: Config, _rank: Rank) -> Iterator[CoordinatorStreamStore]:
    with CoordinatorStreamStore.of(config, source="homeport") as stream:
        stream.bootstrap()
        yield stream


# A migration writes the stream as any tool does.
@schedule("A5", "a container of YARN's counts beside p@3")
@without(migrate_command, "outranking", _without_a_rank)
def a_driver_lives_on_while_its_job_is_migrated(scene: Scene) -> None:
    """YARN calls the application killed; AM and container are cut off from the RM alone.

    Then a processor takes the task: it fences what the newest version lists, and itself. The driver
    must not permit the number that this version has for a container that never runs: its holder
    could initialise its id after that.
    """
    attempt = scene.working()
    nodes = NodesInMemory()
    is_done(scene, migrating(scene, nodes, Where.ZOOKEEPER, 2))
    a_version(scene, nodes, {"p": ("Partition 0",)})
    before = counted(scene.world)
    scene.run(15_000)
    scene.produce(5)
    scene.run(15_000)
    beside = counted(scene.world) > before
    scene.require(not beside, "a container of YARN's counts beside p@3")
    scene.require(not attempt.supervisor.is_alive, "the attempt that was outranked lives on")


# -- A6


def _ran_standalone(scene: Scene) -> None:
    """Processors 0 to 2 had the tasks, and left one after the other; then the job goes to YARN.

    The last report of 2 says that it has fenced 1@1.
    """
    nodes = NodesInMemory()
    a_version(scene, nodes, {"0": ("Partition 0",), "1": ("Partition 1",), "2": ()})
    a_version(scene, nodes, {"0": ("Partition 0",), "2": ("Partition 1",)})
    a_version(scene, nodes, {"0": ("Partition 0", "Partition 1")})
    is_done(scene, migrating(scene, nodes, Where.YARN, 1))


def _newest(scene: Scene, processor: str) -> str:
    """The newest incarnation of the processor that has started."""
    names = [str(f.who) for f in scene.world.facts_of("container:started")]
    return [name for name in names if name.startswith(f"{processor}@")][-1]


def _sleeps_with_a_task(scene: Scene, processor: str, containers: int) -> Process:
    """Its machine stands still as it is about to send, and its task goes elsewhere."""
    child = scene.hosts.child(_newest(scene, processor))
    scene.halt(child, "send to out", 2, KEYS[1], partition=1)
    scene.freeze(child.host)
    scene.configure("job.container.count", str(containers))
    return child


def _wakes_up(scene: Scene, child: Process) -> None:
    """After its successor has counted all."""
    scene.until_counted()
    scene.wake_up(child)
    scene.run(2000)


# What a processor of no record ran as before is not looked for.
@schedule("A6", "1@1 wrote to task 1 after 0@", containers=2, partitions=2)
@without(Owners, "floor_of", lambda owners, p: owners.records.get(p, NEVER).epoch)
def a_processor_that_ran_standalone_is_a_container_again(scene: Scene) -> None:
    """A report of its standalone time says that 1@1 is fenced for good."""
    _ran_standalone(scene)
    attempt = scene.attempt(submission=2)
    scene.until(lambda: scene.started() == 2, "both have started")
    scene.work_each()
    scene.world.network.mute[attempt.driver.name] = "init homeport.j.1.processor"
    child = _sleeps_with_a_task(scene, "1", containers=1)
    started = scene.started()
    scene.until(lambda: scene.started() > started, "the next one of 0 has started")
    _wakes_up(scene, child)


def any_report_of_the_processor_counts(patch: pytest.MonkeyPatch) -> None:
    """A list counts as fenced where the processor has reported any higher number."""

    def listed(
        owners: Owners, processor_id: ProcessorId, record: ProcessorEpoch
    ) -> frozenset[Incarnation]:
        report = owners.reports.get(processor_id)
        if not record.is_raised and report is not None and report.epoch >= record.epoch:
            return frozenset()
        return frozenset(record.fence) - owners._fenced

    patch.setattr(Owners, "_listed", listed)


@schedule("A6", "0@5 wrote to task 1 after 1@5", any_report_of_the_processor_counts, partitions=2)
def a_container_is_added_whose_id_ran_standalone(scene: Scene) -> None:
    """1 gets a task of 0@5, which sleeps: its list has no permit yet, but an old report has."""
    _ran_standalone(scene)
    attempt = scene.attempt(submission=2)
    scene.until(lambda: scene.started() == 1, "it has started")
    scene.work_each()
    scene.world.network.mute[attempt.driver.name] = "init homeport.j.1.processor"
    child = _sleeps_with_a_task(scene, "0", containers=2)
    scene.until(lambda: _successor(scene, child) is not None, "0 begins again")
    later = _successor(scene, child)
    assert later is not None
    later.stop()
    scene.until_started("1@5")
    _wakes_up(scene, child)


def _successor(scene: Scene, child: Process) -> Process | None:
    """The next child of the same processor."""
    name = child.name.partition("@")[0]
    later = (c for c in scene.hosts.children if c.name.startswith(f"{name}@") and c is not child)
    return next(later, None)


# --- schedules of I1, I2 and P1 while the JobModel of a running job changes (design 5)


def _both_work(scene: Scene) -> tuple[Attempt, Process]:
    """0@1 and 1@1 have counted what each has; the child of 1@1, which is about to be retired."""
    attempt = scene.attempt()
    scene.until(lambda: scene.started() == 2, "both have started")
    scene.work_each()
    return attempt, scene.hosts.child("1@1")


def _one_is_left(scene: Scene) -> None:
    """Processor 0 gets the task of processor 1, which is retired."""
    scene.configure("job.container.count", "1")


# -- I1


def lists_its_own_chain_only(patch: pytest.MonkeyPatch) -> None:
    """A container that gets a task fences those of its own processor."""

    def own(change: TaskChange, processor_id: ProcessorId) -> tuple[Incarnation, ...]:
        return change.owners.unfenced(processor_id)

    patch.setattr(TaskChange, "_fence", own)


@schedule(
    "I1", "1@1 wrote to task 1 after 0@3", lists_its_own_chain_only, containers=2, partitions=2
)
def a_task_moves_while_its_owner_sleeps(scene: Scene) -> None:
    """1@1 is about to send when its machine stands still; it wakes when 0@3 has its task."""
    attempt, child = _both_work(scene)
    scene.world.network.mute[attempt.driver.name] = "init homeport.j.1.processor"
    scene.halt(child, "send to out", 2, KEYS[1], partition=1)
    scene.freeze(child.host)
    _one_is_left(scene)
    scene.until_started("0@3")
    scene.until_counted()
    scene.wake_up(child)
    scene.run(2000)


# -- P1


def permits_who_gains_at_once(patch: pytest.MonkeyPatch) -> None:
    """A container that gets a task neither works on nor waits until its former owner has let go."""
    patch.setattr(cooperative_change, "_former_owner", lambda *_: None)
    patch.setattr(container_allocator, "may_be_permitted", lambda *_: True)
    patch.setattr(invariants, "check_step", lambda *_: None)


@schedule(
    "P1", "0@3 was permitted while 1@1 ran", permits_who_gains_at_once, containers=2, partitions=2
)
def a_former_owner_is_slow_to_stop(scene: Scene) -> None:
    """1@1 stands still in a commit when it must stop: its launcher waits, and kills it."""
    _, child = _both_work(scene)
    scene.halt(child, "commit homeport.j.1.processor.1.1", 2, KEYS[1], partition=1)
    _one_is_left(scene)
    scene.until(lambda: scene.has_fact("driver:permit-granted", "0@3"), "0@3 is permitted")
    scene.require(not child.is_alive, "0@3 was permitted while 1@1 ran")
    scene.work_each()


# -- I2


def takes_whoever_runs_for_well(patch: pytest.MonkeyPatch) -> None:
    """A driver that starts again does not look which epochs a model has raised."""
    announce = publication.announcement

    def announce_without_raises(*arguments: Any) -> JobModelPublished:  # noqa: ANN401 - as the product's
        stated = announce(*arguments)
        return replace(stated, floors=stated.epochs, retired={})

    patch.setattr(publication, "announcement", announce_without_raises)


@schedule(
    "I2",
    "it is not so that 0@3 has started",
    takes_whoever_runs_for_well,
    containers=2,
    partitions=2,
)
def a_driver_dies_when_it_has_published(scene: Scene) -> None:
    """No container has an order to stop. The next driver finds 0@1 and 1@1, both overtaken."""
    attempt, child = _both_work(scene)
    driver = attempt.driver
    driver.stop_at("application_1_0001.1 answered")
    _one_is_left(scene)
    scene.until(lambda: driver.is_stopped, "the model is published")
    driver.kill()
    scene.until_started("0@3")
    scene.require(not child.is_alive, "1@1 still runs")
    scene.work_each()


def leaves_retired_ones_as_they_are(patch: pytest.MonkeyPatch) -> None:
    """Only processors of the new model are raised."""
    raised = TaskChange.raised

    def raised_in_the_model(
        change: TaskChange, version: int
    ) -> Iterator[tuple[ProcessorId, ProcessorEpoch]]:
        return (pair for pair in raised(change, version) if pair[0] in change.after)

    patch.setattr(TaskChange, "raised", raised_in_the_model)


@schedule(
    "I2",
    "1@1 wrote to task 1 after 0@3",
    leaves_retired_ones_as_they_are,
    containers=2,
    partitions=2,
)
def a_retired_one_begins_when_it_wakes(scene: Scene) -> None:
    """1@1 has its permit and has done nothing yet when its machine stands still.

    Its own init comes after the fence of 0@3, and Kafka accepts it.
    """
    scene.attempt()
    child = scene.child("1@1")
    scene.halt(child, "init homeport.j.1.processor.1.1")
    scene.freeze(child.host)
    _one_is_left(scene)
    scene.until_started("0@3")
    scene.produce(2, KEYS[1], partition=1)
    scene.until_counted()
    scene.wake_up(child)
    scene.produce(2, KEYS[1], partition=1)
    scene.run(1000)
    scene.produce(2, KEYS[1], partition=1)
    scene.run(1500)
