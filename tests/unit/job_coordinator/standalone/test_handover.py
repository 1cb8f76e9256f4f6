"""Plans with which a job changes between YARN and standalone processors."""

from __future__ import annotations

from dataclasses import replace

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
from homeport.job_coordinator.standalone.protocol import BarrierPhase, BarrierSeen
from homeport.job_coordinator.standalone.state import HeldWork, Life, ProcessorState, WorkPhase
from homeport.job_coordinator.standalone.waits import waits

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


ONE, TWO = ProcessorId("one"), ProcessorId("two")
THERE = (Registration(1, ONE, Host("h1")), Registration(2, TWO, Host("h2")))
PLAN = next_plan(None, THERE, {ONE: (TaskName("a"),), TWO: (TaskName("b"),)}, {})
IDLE = next_plan(None, THERE, {ONE: (TaskName("a"),)}, {}, frozenset())
DONE = BarrierSeen(1, BarrierPhase.DONE)
LEADER = ProcessorState(
    ONE,
    Host("h1"),
    Life.MEMBER,
    is_connected=True,
    sequence=1,
    registrations=THERE,
    plan=PLAN,
    barrier=DONE,
    work=HeldWork(WorkPhase.RUNNING, 1, (TaskName("a"),)),
)
OTHER = replace(LEADER, processor_id=TWO, location=Host("h2"), sequence=2)
CHANGED = "for version 2 (The processors are not the members of the newest version)"
FIRST_ONE = CHANGED.replace("2", "1")
COMPUTED = "it is computed from what Kafka and ZooKeeper answer"
ALONE = THERE[:1]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (LEADER, []),
        (replace(LEADER, is_connected=False), ["for ZooKeeper to answer"]),
        (replace(OTHER, plan=IDLE, work=HeldWork()), ["for tasks: version 1 has none for it"]),
        (
            replace(LEADER, sequence=3, registrations=(Registration(1, ONE, Host("h9")), THERE[1])),
            ["for the end of registration 1 at h9, which has its id"],
        ),
        (replace(OTHER, barrier=None), []),
        (
            replace(OTHER, barrier=None, work=HeldWork()),
            ["for ZooKeeper to show the barrier of version 1"],
        ),
        (
            replace(OTHER, barrier=BarrierSeen(1, BarrierPhase.NEW, ((ONE, 1),))),
            ["until two have joined version 1"],
        ),
        (
            replace(OTHER, barrier=BarrierSeen(1, BarrierPhase.NEW, ((ONE, 1), (TWO, 2)))),
            ["until one at h1, which leads, has closed version 1"],
        ),
        (
            replace(LEADER, barrier=BarrierSeen(1, BarrierPhase.TIMED_OUT)),
            ["for version 2 (The barrier timed out): nothing may change for job.debounce.time.ms"],
        ),
        (replace(LEADER, registrations=ALONE, computing=1), [f"{CHANGED}: {COMPUTED}"]),
        (replace(LEADER, computing=1), [f"for version 2: {COMPUTED}"]),
        (
            replace(LEADER, plan=None, barrier=None, work=HeldWork(), computing=0),
            ["for a version after 0 that has a place for it", f"{FIRST_ONE}: {COMPUTED}"],
        ),
        (replace(LEADER, publishing=2), ["for version 2: ZooKeeper takes it"]),
        (
            replace(OTHER, registrations=(THERE[0], replace(THERE[1], sequence=3)), sequence=3),
            ["for a version after 1 that has a place for it", f"{CHANGED}: one at h1 leads"],
        ),
        (
            replace(OTHER, registrations=(), plan=None, barrier=None),
            ["for a version after 0 that has a place for it"],
        ),
        (replace(OTHER, registrations=()), [f"{CHANGED}: the first processor leads"]),
        (replace(LEADER, is_connected=False, computing=1), ["for ZooKeeper to answer"]),
    ],
)
def test_what_a_processor_waits_for(state: ProcessorState, expected: list[str]) -> None:
    """Each obstacle has its words, and what is not in the way has none."""
    assert list(waits(state)) == expected
