"""Plans with which a job changes between YARN and standalone processors."""

from __future__ import annotations

import pytest

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.job_coordinator.grouper.standby_models import standby_task
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import ContainerModel, JobModel, TaskModel
from homeport.job_coordinator.standalone.handover import (
    first_plan,
    is_handed_over,
    last_plan,
    require_known,
    require_none_registered,
    to_fence,
)
from homeport.job_coordinator.standalone.nodes import decode_plan, encode_plan
from homeport.job_coordinator.standalone.plan import (
    NO_SESSION,
    Member,
    Plan,
    Registration,
    Standby,
    fits,
    next_plan,
)

A, B = TaskName("a"), TaskName("b")
KEPT = standby_task(TaskModel(A, (), 0), 0)
P, Q = ProcessorId("p"), ProcessorId("q")


def incarnation(processor_id: ProcessorId, generation: int) -> Incarnation:
    """One that may write."""
    return Incarnation(processor_id, generation)


def test_what_ran_on_yarn_becomes_a_version_above_every_epoch() -> None:
    """It has the tasks' owners; a first processor gets the next version, and a new generation."""
    containers = {
        ProcessorId("0"): ContainerModel(ProcessorId("0"), {A: TaskModel(A, (), 0)}),
        ProcessorId("1"): ContainerModel(
            ProcessorId("1"), {B: TaskModel(B, (), 1), KEPT.task_name: KEPT}
        ),
    }
    model = JobModel(Config({}), containers)
    plan = first_plan(8, model)
    assert [(m.processor_id, m.sequence, m.generation, m.tasks) for m in plan.members] == [
        ("0", NO_SESSION, 8, (A,)),
        ("1", NO_SESSION, 8, (B,)),
    ]
    assert [m.standbys for m in plan.members] == [(), (Standby(A, KEPT.task_name),)]
    stored = encode_plan(plan, NO_SESSION)
    assert decode_plan(8, stored.value, stored.segments) == plan
    registered = (Registration(0, ProcessorId("0"), Host("h")),)
    assert is_handed_over(plan)
    assert not fits(plan, registered)
    after = next_plan(plan, registered, {ProcessorId("0"): (A, B)}, {})
    assert (after.version, after.members[0].generation) == (9, 9)
    assert not is_handed_over(after)


def test_no_incarnation_of_the_last_plan_may_begin_and_each_is_to_be_fenced() -> None:
    """Those that the plan lists, and the members themselves; a fenced list is not listed again."""
    before = Plan(
        5,
        (Member(P, 3, 5, (A,), (incarnation(Q, 4),)), Member(Q, 4, 4, (B,), (incarnation(P, 2),))),
    )
    plan = last_plan(before, {Q: 4})
    assert plan.version == 6
    assert is_handed_over(plan)
    assert {m.incarnation for m in before.members}.isdisjoint(m.incarnation for m in plan.members)
    assert to_fence(plan) == (incarnation(P, 5), incarnation(Q, 4))
    assert to_fence(last_plan(before, {})) == (
        incarnation(P, 2),
        incarnation(P, 5),
        incarnation(Q, 4),
    )


def test_what_may_write_to_a_task_that_is_gone_is_to_be_fenced() -> None:
    """On YARN the task may come back, and no record there has its former owner."""
    before = Plan(5, (Member(P, 3, 4, (A,)),), former=(incarnation(Q, 2),))
    assert to_fence(last_plan(before, {P: 4})) == (incarnation(P, 4), incarnation(Q, 2))


def test_a_job_that_never_ran_is_not_handed_over() -> None:
    """It has no plan."""
    assert not is_handed_over(None)


def test_a_job_changes_hands_only_while_no_processor_is_registered() -> None:
    """Those that are registered are named."""
    require_none_registered("j", ())
    with pytest.raises(ConfigError, match=r"job\.name = 'j': the job runs: .*: p, q; stop them"):
        require_none_registered("j", (P, Q))


def test_a_tree_without_the_newest_version_is_refused() -> None:
    """An older copy, or another tree, would give out numbers that incarnations have had."""
    plan = Plan(5, ())
    assert require_known(plan, 5) is plan
    for newest in (None, Plan(4, ())):
        with pytest.raises(ConfigError, match="no version of the job there, or an older one"):
            require_known(newest, 5)
