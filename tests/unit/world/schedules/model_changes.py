"""Schedules of I1, I2 and P1 while the JobModel of a running job changes (design 5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from homeport.appmaster.allocation import container_allocator, invariants
from homeport.appmaster.allocation.protocol.events import JobModelPublished
from homeport.appmaster.job_model import publication
from homeport.appmaster.job_model.publication import TaskChange
from homeport.job_coordinator.metadata.epochs import ProcessorEpoch
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from tests.unit.world.am import Attempt
from tests.unit.world.clock import Process
from tests.unit.world.rules import schedule
from tests.unit.world.scene import Scene

_KEYS = (b"l", b"k")
"""Keys whose outputs come to where their inputs were, by partition."""


def _both_work(scene: Scene) -> tuple[Attempt, Process]:
    """0@1 and 1@1 have counted what each has; the child of 1@1, which is about to be retired."""
    attempt = scene.attempt()
    scene.until(lambda: scene.started() == 2, "both have started")
    _more_comes(scene)
    return attempt, scene.hosts.child("1@1")


def _more_comes(scene: Scene, limit_ms: int = 60_000) -> None:
    for partition, key in enumerate(_KEYS):
        scene.produce(2, key, partition)
    scene.until_counted(limit_ms)


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
    "I1", lists_its_own_chain_only, "1@1 wrote to task 1 after 0@3", containers=2, partitions=2
)
def a_task_moves_while_its_owner_sleeps(scene: Scene) -> None:
    """1@1 is about to send when its machine stands still; it wakes when 0@3 has its task."""
    attempt, child = _both_work(scene)
    scene.world.network.mute[attempt.driver.name] = "init homeport.j.1.processor"
    scene.halt(child, "send to out", 2, _KEYS[1], partition=1)
    scene.freeze(child.host)
    _one_is_left(scene)
    scene.until_started("0@3")
    scene.until_counted()
    scene.wake_up(child)
    scene.run(2000)


# -- P1


def permits_who_gains_at_once(patch: pytest.MonkeyPatch) -> None:
    """A container that gets a task does not wait for the stop of its former owner."""
    patch.setattr(container_allocator, "may_be_permitted", lambda *_: True)
    patch.setattr(invariants, "check_step", lambda *_: None)


@schedule(
    "P1", permits_who_gains_at_once, "0@3 was permitted while 1@1 ran", containers=2, partitions=2
)
def a_former_owner_is_slow_to_stop(scene: Scene) -> None:
    """1@1 stands still in a commit when it must stop: its launcher waits, and kills it."""
    _, child = _both_work(scene)
    scene.halt(child, "commit homeport.j.1.processor.1.1", 2, _KEYS[1], partition=1)
    _one_is_left(scene)
    scene.until(lambda: scene.has_fact("driver:permit-granted", "0@3"), "0@3 is permitted")
    scene.require(not child.is_alive, "0@3 was permitted while 1@1 ran")
    _more_comes(scene)


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
    takes_whoever_runs_for_well,
    "it is not so that 0@3 has started",
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
    _more_comes(scene)


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
    leaves_retired_ones_as_they_are,
    "1@1 wrote to task 1 after 0@3",
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
    scene.produce(2, _KEYS[1], partition=1)
    scene.until_counted()
    scene.wake_up(child)
    scene.produce(2, _KEYS[1], partition=1)
    scene.run(1000)
    scene.produce(2, _KEYS[1], partition=1)
    scene.run(1500)
