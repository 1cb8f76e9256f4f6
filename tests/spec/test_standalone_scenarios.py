"""Samza's ZooKeeper scenarios (reference 14.9, Z1 to Z15), shown by the pure machine.

Whole flows run in the small world of the searches: the product's machines on a ZooKeeper that is a
value, in one of the orders that may come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from small_jobs import store_keys

from homeport.config.config import Config
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import PreviousAssignment
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import JobModel, SystemStream, TaskModel
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.standalone import protocol as wire
from homeport.job_coordinator.standalone.machine import step
from homeport.job_coordinator.standalone.plan import Member, Plan, Registration
from homeport.job_coordinator.standalone.state import HeldWork, Life, ProcessorState, WorkPhase
from tests.exhaustive.standalone.small_world import ALL, SmallWorld
from tests.exhaustive.standalone.things import World

P, Q = ProcessorId("p"), ProcessorId("q")
T = TaskName("t")
THERE = (Registration(1, P, Host("a")), Registration(2, Q, Host("b")))
PLAN = Plan(2, (Member(P, 1, 2, (T,)), Member(Q, 2, 2)))


class _Flow:
    """Processors that have settled; after ``suffer`` they have again."""

    def __init__(self, ids: str, tasks: Sequence[str] = ("t", "u")) -> None:
        self._rules = SmallWorld(tuple(ids), tuple(tasks), ALL)
        self.world = self._settled(self._rules.begun())

    def _settled(self, world: World) -> World:
        while not self._rules.is_well(world):
            _, world = next(self._rules.free(world))
            for state in map(self._rules.state, world.processes):
                assert not state.is_leader or state.sequence == world.tree.nodes[0][0]
        return world

    def suffer(self, fault: str) -> None:
        """This befalls them, and what follows from it by itself has happened."""
        self.world = self._settled(dict(self._rules.faults(self.world))[fault])

    def restart(self, name: str) -> None:
        """The processor dies, and is back before the debounce time is over."""
        world = dict(self._rules.faults(self.world))[f"{name} dies"]
        world = dict(self._rules.free(world))[f"session of {name} ends"]
        world = dict(self._rules.relief(world))[f"{name} starts again"]
        self.world = self._settled(dict(self._rules.free(world))[f"{name} writes Register"])

    @property
    def leaders(self) -> list[str]:
        states = map(self._rules.state, self.world.processes)
        return [str(s.processor_id) for s in states if s.is_leader]

    @property
    def plan(self) -> Plan:
        plan = self.world.tree.plan
        assert plan is not None
        return plan

    @property
    def tasks(self) -> dict[str, list[str]]:
        return {str(m.processor_id): list(map(str, m.tasks)) for m in self.plan.members}


def leader(barrier: wire.BarrierSeen) -> ProcessorState:
    """The first of two processors, which has joined, with the barrier's timer."""
    timer = wire.ProcessorTimer(wire.ProcessorTimerKind.BARRIER, 2)
    return ProcessorState(
        P,
        Host("a"),
        life=Life.MEMBER,
        is_connected=True,
        sequence=1,
        registrations=THERE,
        plan=PLAN,
        barrier=barrier,
        joined=2,
        timers=frozenset({timer}),
    )


def test_the_first_registration_leads() -> None:
    """Z1: of three the first alone; the second where that is gone; no change where another goes."""
    flow = _Flow("pqr")
    assert flow.leaders == ["p"]
    flow.suffer("r2 dies")
    assert flow.leaders == ["p"]
    flow.suffer("p0 dies")
    assert flow.leaders == ["q"]


def test_a_barrier_is_done_or_timed_out_once() -> None:
    """Z2: DONE when both have joined, TIMED_OUT when one has not; afterwards nothing changes it."""
    one, both = ((P, 1),), ((P, 1), (Q, 2))
    new = wire.BarrierPhase.NEW
    waiting = leader(wire.BarrierSeen(2, new, one))
    done = step(waiting, wire.BarrierSeen(2, new, both))
    assert done.records == (wire.CloseBarrier(2, wire.BarrierPhase.DONE),)
    timer = wire.ProcessorTimerFired(wire.ProcessorTimer(wire.ProcessorTimerKind.BARRIER, 2))
    late = step(waiting, timer)
    assert late.records == (wire.CloseBarrier(2, wire.BarrierPhase.TIMED_OUT),)
    for decision in (done, late):
        for event in (timer, wire.BarrierSeen(2, new, both), wire.BarrierSeen(2, new, one)):
            assert step(decision.state, event).records == ()


def test_processors_beyond_the_tasks_wait() -> None:
    """Z5: a second processor of one task has none, and takes it over; Samza's ends instead."""
    flow = _Flow("pq", "t")
    assert flow.tasks == {"p": ["t"], "q": []}
    flow.suffer("p0 dies")
    assert flow.tasks == {"q": ["t"]}


def test_each_processor_may_read_everything() -> None:
    """Z6: all-ssp-to-single-task: one task each, of other names, with the same inputs."""
    grouper = {"job.systemstreampartition.grouper.factory": "all-ssp-to-single-task"}
    model = _computed({"in": 3}, PreviousAssignment(), (P, Q), grouper)
    found = _tasks_of(model)
    assert sorted(found) == ["Task-p", "Task-q"]
    assert len({task.system_stream_partitions for task in found.values()}) == 1


def test_the_tasks_of_a_dead_leader_go_to_the_others() -> None:
    """Z7: the next version has the two that are left, and all tasks."""
    flow = _Flow("pqr", "tuv")
    before = flow.plan.version
    flow.suffer("p0 dies")
    assert sorted(flow.tasks) == ["q", "r"]
    assert sorted(task for own in flow.tasks.values() for task in own) == ["t", "u", "v"]
    assert flow.plan.version == before + 1


def test_a_rolling_restart_within_the_debounce_time_moves_nothing() -> None:
    """Z9: each restart is one version more, with the same tasks for each id."""
    flow = _Flow("pqr", "tuvw")
    tasks, version = flow.tasks, flow.plan.version
    for number, name in enumerate(("p0", "q1", "r2"), start=1):
        flow.restart(name)
        assert (flow.tasks, flow.plan.version) == (tasks, version + number)


def _computed(
    counts: dict[str, int],
    before: PreviousAssignment,
    processors: Sequence[ProcessorId],
    more: dict[str, str],
) -> JobModel:
    """The JobModel of these processors, for inputs with so many partitions."""
    keys = {
        "job.name": "j",
        "job.default.system": "kafka",
        "task.class": "m:C",
        "task.inputs": ",".join(f"kafka.{name}" for name in counts),
        "task.name.grouper.factory": "group-by-container-ids",
        **more,
    }
    streams = {SystemStream("kafka", name): count for name, count in counts.items()}
    return calculate_job_model(Config(keys), streams, before, processors)


def _tasks_of(model: JobModel) -> dict[TaskName, TaskModel]:
    return {name: task for c in model.containers.values() for name, task in c.tasks.items()}


def _before_of(model: JobModel) -> PreviousAssignment:
    tasks = _tasks_of(model)
    return PreviousAssignment(
        task_processors={name: p for p, c in model.containers.items() for name in c.tasks},
        task_partitions={n: frozenset(t.system_stream_partitions) for n, t in tasks.items()},
        changelog_partitions={n: t.changelog_partition for n, t in tasks.items()},
    )


def test_a_stateless_job_reads_an_input_that_has_grown() -> None:
    """Z11: from 5 partitions to 100, each of them in one task."""
    small = _computed({"in": 5}, PreviousAssignment(), (P, Q), {})
    grown = _tasks_of(_computed({"in": 100}, _before_of(small), (P, Q), {}))
    assert sum(len(task.system_stream_partitions) for task in grown.values()) == 100


def test_a_stateful_job_keeps_each_key_with_its_task() -> None:
    """Z12: from 32 partitions to 64, task i has {i, i + 32}; of two inputs four partitions."""
    store = store_keys(changelog="kafka.c")
    small = _computed({"a": 32, "b": 32}, PreviousAssignment(), (P, Q), store)
    grown = _computed({"a": 64, "b": 64}, _before_of(small), (P, Q), store)
    found = _tasks_of(grown)
    assert len(found) == grown.max_change_log_stream_partitions == 32
    for number in range(32):
        inputs = found[TaskName(f"Partition {number}")].system_stream_partitions
        assert [(ssp.stream, ssp.partition) for ssp in inputs] == [
            (stream, partition) for stream in "ab" for partition in (number, number + 32)
        ]


def test_a_processors_end_has_its_cause_and_a_lost_session_is_none() -> None:
    """Z14: a failure ends it with that error; a lost session stops work, and it begins again."""
    done = wire.BarrierSeen(2, wire.BarrierPhase.DONE, ((P, 1), (Q, 2)))
    running = replace(leader(done), work=HeldWork(WorkPhase.RUNNING, 2, (T,)), timers=frozenset())
    failed = step(running, wire.WorkEnded(2, StopCause.FAILED, "poison found"))
    end = wire.EndProcessor(wire.EndCause.FAILED, "poison found")
    assert failed.instructions[-1] == end
    expired = step(running, wire.SessionExpired())
    assert [i for i in expired.instructions if isinstance(i, wire.StopWork)] == [wire.StopWork()]
    again = step(expired.state, wire.SessionExpired())
    assert not [i for i in again.instructions if isinstance(i, wire.StopWork)]
    begun = step(step(again.state, wire.WorkEnded(2, StopCause.ORDERED)).state, wire.SessionBegun())
    assert begun.records == (wire.Register(P, Host("a")),)
    stopping = step(running, wire.StopRequested())
    assert stopping.state.life is Life.LEAVING
    assert step(stopping.state, wire.StopRequested()).state == stopping.state
