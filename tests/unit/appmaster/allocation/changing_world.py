"""The world of ``cluster_world`` when people change the model, and when its driver dies.

What the driver's shell does is told here, and there, in a few lines: what it reads back of its
records when it starts anew, and that it places nothing before all that it permitted are accounted
for. The publication of a model is the product's, on records that are values.
"""

from __future__ import annotations

from dataclasses import replace

from homeport.appmaster.allocation.job_state.state import JobPhase, initial_state
from homeport.appmaster.job_model.publication import Change, Owners, announcement
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import TaskModel
from tests.unit.appmaster.allocation.cluster_world import (
    Assignment,
    Moves,
    World,
    faults,
    fed,
)


def _tasks(assignment: Assignment) -> dict[ProcessorId, frozenset[TaskModel]]:
    found: dict[ProcessorId, set[TaskModel]] = {}
    for task, processor in assignment:
        found.setdefault(ProcessorId(processor), set()).add(TaskModel(TaskName(task), (), 0))
    return {p: frozenset(tasks) for p, tasks in found.items()}


def changed(world: World, assignment: Assignment) -> World:
    """The next version of the model is published, and the allocator is told."""
    owners = Owners(dict(world.records), {})
    before, after = _tasks(world.models[-1]), _tasks(assignment)
    change = Change(before, after, owners, is_new=True, restart_all=False)
    version = len(world.models) + 1
    records = dict(world.records) | dict(change.raised(version))
    world = replace(
        world, models=(*world.models, assignment), records=tuple(sorted(records.items()))
    )
    return _announced(world, change.gainers())


def _announced(world: World, gainers: frozenset[ProcessorId] = frozenset()) -> World:
    homes = dict(world.localities)
    processors = {p: homes.get(p) for p in _tasks(world.models[-1])}
    owners = Owners(dict(world.records), {})
    told = announcement(len(world.models), processors, owners, gainers)
    standbys = {s: active for s, active in world.standbys if s in processors}
    return fed(world, replace(told, standbys=standbys, failovers=dict(world.failovers)))


def changes(world: World) -> Moves:
    """What people do: the next model of the plan. Not while a driver looks for what runs."""
    if world.plan and not world.adopting and world.state.phase is JobPhase.ACTIVE:
        planned, *left = world.plan
        yield "model changes", changed(replace(world, plan=tuple(left)), planned)


def restarted(world: World) -> World:
    """The driver is killed, and the next one begins with what the stream says."""
    world = replace(
        world,
        state=initial_state(world.state.settings, world.state.next_request_id),
        launchers=tuple(replace(x, has_checked_in=False) for x in world.launchers),
        asleep=tuple(replace(x, has_checked_in=False) for x in world.asleep),
        dead=(),
        seen=None,
        late=None,
        adopting=frozenset(Incarnation(p, r.permitted) for p, r in world.records if r.permitted),
    )
    return _announced(world)


def deaths_of_the_driver(world: World) -> Moves:
    """It is killed, and started again."""
    if world.result is None and world.state.phase is JobPhase.ACTIVE:
        yield "driver restarts", restarted(world)


def faults_and_deaths(world: World) -> Moves:
    """What may go wrong, the driver's death included."""
    yield from faults(world)
    yield from deaths_of_the_driver(world)
