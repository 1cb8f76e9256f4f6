"""Section plan: the next version of a large standalone job, as its leader computes it.

Pure: the snapshot that a planner reads, the JobModel by the grouper of standalone jobs, the step of
the leader's machine that publishes it, and the bytes that go to ZooKeeper.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.processes import peak_mb, result_of
from benchmarks.report import Row, Spent, figure, table
from benchmarks.standalone.light import computed_by, config_of
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.standalone.machine import step
from homeport.job_coordinator.standalone.nodes import encode_plan
from homeport.job_coordinator.standalone.plan import Plan, Registration
from homeport.job_coordinator.standalone.protocol import Publish
from homeport.job_coordinator.standalone.state import Life, ProcessorState
from homeport.job_coordinator.zookeeper.tree import Readings

PROCESSORS, TASKS = 200, 10_000
_TITLE = (
    f"A version of {TASKS:,} tasks on {PROCESSORS} processors: JobModel and the leader's step (CPU)"
)
_LIMIT_S = 0.5
_WHAT = {
    "first": "the first version",
    "death": "after the death of one processor",
    "loss": "after the death of a tenth of them",
    "join": "after one has joined",
}


@dataclass(frozen=True, slots=True)
class Version:
    """A version, and what it took. Units: seconds."""

    plan: Plan
    s: float
    cpu_s: float
    encode_s: float

    def figures(self, before: Version | None) -> dict[str, float]:
        """What is printed of it; ``moved``: tasks that another processor had before."""
        were = {} if before is None else _owners(before.plan)
        moved = sum(were.get(task, owner) != owner for task, owner in _owners(self.plan).items())
        return {
            "s": self.s,
            "cpu_s": self.cpu_s,
            "encode_s": self.encode_s,
            "moved": moved,
            "lost": self.plan.lost,
            "unbacked": self.plan.unbacked,
        }


def _owners(plan: Plan) -> dict[TaskName, ProcessorId]:
    return {task: member.processor_id for member in plan.members for task in member.tasks}


def measured(processors: int, tasks: int, standbys: int) -> dict[str, object]:
    """The first version, one after a death, after the loss of a tenth, and after one has joined.

    Two processors are at each location.
    """
    there = [
        Registration(n, ProcessorId(f"p{n:03d}"), Host(f"host{n // 2:03d}"))
        for n in range(processors)
    ]
    first = _next(None, there, tasks, standbys)
    survivors = there[:1] + there[2:]
    death = _next(first, survivors, tasks, standbys)
    tenth = max(1, processors // 10)
    loss = _next(first, there[:1] + there[1 + tenth :], tasks, standbys)
    newcomer = Registration(processors, ProcessorId("new"), Host("new"))
    join = _next(first, [*there, newcomer], tasks, standbys)
    return {
        "first": first.figures(None),
        "death": death.figures(first),
        "loss": loss.figures(first),
        "join": join.figures(first),
        "peak_mb": peak_mb(),
    }


def _next(
    before: Version | None, there: Sequence[Registration], tasks: int, standbys: int
) -> Version:
    plan = None if before is None else before.plan
    hosts = {} if before is None or plan is None else _hosts(plan, there)
    config = config_of(standbys)
    version = 0 if plan is None else plan.version
    leader = ProcessorState(
        there[0].processor_id,
        there[0].location,
        Life.MEMBER,
        is_connected=True,
        sequence=there[0].sequence,
        registrations=tuple(there),
        plan=plan,
        computing=version,
    )
    readings = Readings(version, tuple(there), hosts, {})
    gc.collect()  # what came before is no part of the figure
    spent = Spent()
    decision = step(leader, computed_by(config, tasks, readings, plan))
    took = spent.so_far()
    (published,) = (r for r in decision.records if isinstance(r, Publish))
    spent = Spent()
    encode_plan(published.plan, there[0].sequence)
    return Version(published.plan, *took, spent.so_far()[0])


def _hosts(plan: Plan, there: Sequence[Registration]) -> dict[TaskName, Host]:
    places = {r.processor_id: r.location for r in there}
    return {
        name: places[member.processor_id]
        for member in plan.members
        if member.processor_id in places
        for name in (*member.tasks, *(standby.name for standby in member.standbys))
    }


def rows() -> Iterator[Row]:
    """Without standbys, and with one of each task."""
    for standbys, name in ((0, "no standbys"), (1, "a standby each")):
        found = result_of("standalone.plan.measured", PROCESSORS, TASKS, standbys)
        for key, what in _WHAT.items():
            one = found[key]
            yield from table(
                one,
                (f"{name}: {what}", "cpu_s", "s", _LIMIT_S),
                ("  by the clock", "s", "s", None),
                ("  then: its bytes for ZooKeeper", "encode_s", "s", None),
            )
        yield figure("  tasks that one death has moved", found["death"]["moved"], "tasks")
        if standbys:
            what = "  of those of a dead tenth not started on a backup"
            yield figure(what, found["loss"]["unbacked"], "tasks")
        yield figure("  largest memory of the process", found["peak_mb"], "MB")


SECTIONS = {"plan": (_TITLE, rows)}
