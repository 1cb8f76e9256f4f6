"""A processor waits: each wait names the event that must come, and its process."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.standalone.plan import Registration, next_plan
from homeport.job_coordinator.standalone.protocol import BarrierPhase, BarrierSeen
from homeport.job_coordinator.standalone.state import HeldWork, Life, ProcessorState, WorkPhase
from homeport.job_coordinator.standalone.waits import waits

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
