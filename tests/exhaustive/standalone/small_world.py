"""The small world of standalone processors: beginnings, faults and judgement."""

from __future__ import annotations

import itertools
from collections import Counter

from homeport.job_coordinator.model.ids import Host, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.standalone.plan import Plan, fits, present
from homeport.job_coordinator.standalone.protocol import (
    BarrierPhase,
    Disconnected,
    EndCause,
    ProcessorTimer,
    ProcessorTimerFired,
    ProcessorTimerKind,
    StopRequested,
    WorkEnded,
)
from homeport.job_coordinator.standalone.state import Life, WorkPhase
from tests.exhaustive.judges import require
from tests.exhaustive.standalone.by_itself import ALL, ByItself, Moves
from tests.exhaustive.standalone.things import Process, Tree, World, with_process

__all__ = ["ALL", "SmallWorld"]

_NO_FAULT_OF_THE_JOB = {StopCause.UNAVAILABLE, StopCause.CUT_OFF, StopCause.LEASE_LOST}
_IN_ORDER = {StopCause.FINISHED, StopCause.SIGNALLED, StopCause.ORDERED}


class SmallWorld(ByItself):
    """What may happen besides, and what must hold."""

    def settled(self) -> World:
        """All run, each with its tasks."""
        world, steps = self.begun(), 0
        while not self.is_well(world):
            _, world = next(self.free(world))
            steps += 1
            assert steps < 1000
        return world

    def held_up(self, *held: str) -> World:
        """All has happened from the beginning but moves whose labels begin so."""
        world, is_over = self.begun(), False
        while not is_over:
            moves = (after for label, after in self.free(world) if not label.startswith(held))
            after = next(moves, None)
            is_over, world = after is None, world if after is None else after
        return world

    def after(self, world: World, *labels: str) -> World:
        """These moves have come, in this order."""
        for label in labels:
            moves = itertools.chain(self.free(world), self.relief(world), self.faults(world))
            world = next(found for said, found in moves if said == label)
        return world

    # --- what need not come, and faults

    def relief(self, world: World) -> Moves:
        """A dead process begins again; a cut one gives its session up, or ZooKeeper does."""
        for index, process in enumerate(world.processes):
            name = f"{self.ids[index]}{index}"
            ended = self.state(process).life is Life.ENDED
            if process.is_dead and not ended and "may_restart" in self._may and not process.session:
                again = with_process(world, index, self._new(index))
                yield f"{name} starts again", self._session_begun(again, index)
            if process.is_cut:
                timer = ProcessorTimer(ProcessorTimerKind.SESSION)
                if timer in self.state(process).timers:
                    yield f"{name} gives up", self.fed(world, index, ProcessorTimerFired(timer))
                if process.session:
                    yield f"session of {name} ends", self._expired(world, index)
                yield from self._of_work(world, index, name)

    def faults(self, world: World) -> Moves:
        """What is counted: deaths, lost sessions and connections, slowness, stops."""
        for index, process in enumerate(world.processes):
            name = f"{self.ids[index]}{index}"
            if process.is_dead:
                continue
            if "may_die" in self._may:
                yield f"{name} dies", self._dies(world, index)
            if "may_expire" in self._may and process.session:
                yield f"session of {name} ends", self._expired(world, index)
            if "may_cut" in self._may and not process.is_cut and process.session:
                yield f"{name} is cut off", self._cut(world, index)
            if "may_stop" in self._may and self.state(process).life is not Life.LEAVING:
                yield f"{name} is to stop", self.fed(world, index, StopRequested())
            yield from self._ends_of_work(world, index, name)
            for timer in self.state(process).timers:
                if (
                    "is_slow" in self._may
                    and timer.kind is ProcessorTimerKind.BARRIER
                    and not process.outbox
                ):
                    late = self.fed(world, index, ProcessorTimerFired(timer))
                    yield f"{name} waited for barrier {timer.version}", late

    def _cut(self, world: World, index: int) -> World:
        process = world.processes[index]
        process = process._replace(is_cut=True, outbox=self._renewals(process))
        world = with_process(world, index, process)
        if self.state(process).life is Life.ENDED:
            return self._gone(world, index)
        return self.fed(world, index, Disconnected())

    def _ends_of_work(self, world: World, index: int, name: str) -> Moves:
        process = world.processes[index]
        if "may_lose_work" in self._may and process.run and not process.is_to_stop:
            for cause in StopCause:
                yield f"work of {name} ends: {cause.value}", self._ended(world, index, cause)

    def _ended(self, world: World, index: int, cause: StopCause) -> World:
        """The work has ended by itself; the processor stays, leaves or fails, as the cause is."""
        process, run = world.processes[index], world.processes[index].run
        assert run is not None
        writers = world.writers - {self._incarnation(index, run)}
        is_stopping = self.state(process).work.phase is WorkPhase.STOPPING
        world = with_process(world._replace(writers=writers), index, process._replace(run=None))
        world = self.fed(world, index, WorkEnded(run.order.generation, cause))
        after = self.state(world.processes[index])
        leaves = cause not in _NO_FAULT_OF_THE_JOB and not is_stopping
        fails = leaves and cause not in _IN_ORDER
        was_leaving = self.state(process).life is Life.LEAVING
        is_leaving = after.life in {Life.LEAVING, Life.ENDED}
        require(is_leaving == (leaves or was_leaving), f"a processor leaves wrongly: {cause.value}")
        has_failed = after.end is EndCause.FAILED
        require(has_failed == fails, f"a processor fails wrongly: {cause.value}")
        return world

    def _dies(self, world: World, index: int) -> World:
        process = world.processes[index]
        dead = Process(self._new(index).machine, is_dead=True, session=process.session)
        if process.run is None:
            return with_process(world, index, dead)
        writers = world.writers - {self._incarnation(index, process.run)}
        return with_process(world._replace(writers=writers), index, dead)

    # --- judgement

    def judge(self, world: World) -> None:
        """One owner of a task: among live sessions always, and for Kafka whatever went wrong."""
        live: dict[TaskName, int] = {}
        places: dict[tuple[Host, TaskName], int] = {}
        readers: dict[TaskName, list[Incarnation]] = {}
        numbers = {n for n, _ in world.tree.nodes}
        for index, process in enumerate(world.processes):
            state, run = self.state(process), process.run
            counts_down = (
                state.is_connected and ProcessorTimer(ProcessorTimerKind.SESSION) in state.timers
            )
            require(not counts_down, "the time of a session runs while it is connected")
            if run is None:
                continue
            both = set(run.order.tasks).intersection(s.task for s in run.standbys)
            require(not both, f"{sorted(both)} are active and standby in one process")
            if run.number in numbers:
                for task in (*run.order.tasks, *(s.task for s in run.standbys)):
                    at = self.places[index], task
                    require(places.setdefault(at, index) == index, f"{at} is open twice")
            if run.done < 3:
                continue
            for task in run.order.tasks:
                readers.setdefault(task, []).append(self._incarnation(index, run))
                if run.number in numbers:
                    require(task not in live, f"{task} is active twice in sessions that stand")
                    live[task] = index
        for task, found in readers.items():
            writers = [i for i in found if i in world.writers]
            require(len(writers) <= 1, f"Kafka takes writes of two incarnations of {task}")
            newest = max(found, key=lambda i: i.epoch)
            verdict = f"Kafka takes writes of an old owner of {task} after a newer one began"
            require(not writers or writers[0] == newest, verdict)

    def is_well(self, world: World) -> bool:
        """Every process that lives is a member of the newest version, and has its tasks."""
        tree = world.tree
        living = [p for p in world.processes if not p.is_dead]
        if any(p.session for p in world.processes if p.is_dead):
            return False
        if not living:
            return True
        return (
            fits(tree.plan, self._registrations(tree))
            and len(tree.nodes) == len(living)
            and tree.phase is BarrierPhase.DONE
            and all(self._is_settled(tree.plan, p) for p in living)
            and self._is_complete(tree.plan)
            and self._has_standbys(tree)
            and self._is_located(tree)
        )

    def _is_complete(self, plan: Plan | None) -> bool:
        tasks = sorted(str(task) for m in plan.members for task in m.tasks) if plan else []
        return tasks == sorted(self.tasks)

    def _has_standbys(self, tree: Tree) -> bool:
        """As many of each task as there are other locations, at most as many as are wanted."""
        there = present(self._registrations(tree))
        count = min(self.replicas, len({r.location for r in there}) - 1)
        found = Counter(
            s.task for m in (tree.plan.members if tree.plan else ()) for s in m.standbys
        )
        return all(found[TaskName(task)] == count for task in self.tasks)

    def _is_settled(self, plan: Plan | None, process: Process) -> bool:
        state = self.state(process)
        entry = plan.of(state.sequence) if plan else None
        if process.outbox or process.is_cut or process.is_unaware or process.is_to_stop:
            return False
        if entry is None or state.plan != plan or state.life is not Life.MEMBER:
            return False
        if not entry.tasks and not entry.standbys and process.run is None:
            return state.work.phase is WorkPhase.IDLE
        run = process.run
        return (
            run is not None
            and run.done == 3
            and run.order.generation == entry.generation
            and run.standbys == entry.standbys
        )

    def _is_located(self, tree: Tree) -> bool:
        places = {r.sequence: r.location for r in self._registrations(tree)}
        members = tree.plan.members if tree.plan else ()
        wanted = {
            name: places[m.sequence]
            for m in members
            for name in (*m.tasks, *(standby.name for standby in m.standbys))
        }
        return wanted.items() <= dict(tree.locality).items()

    def shown(self, world: World) -> list[str]:
        """ZooKeeper, then each process with its machine."""
        shown = [str(world.tree), f"writers {sorted(world.writers)}"]
        for process in world.processes:
            shown += [str(process), f"  {self.state(process)}"]
        return shown

    def bound(self, faults: int) -> str:
        """Within what the worlds lie: all of them, in every order of what may happen."""
        kinds = ", ".join(sorted(self._may))
        replicas = f", standbys of each {self.replicas}" if self.replicas else ""
        there = f"processors {len(self.ids)}, tasks {len(self.tasks)}{replicas}"
        return f"{there}, faults at most {faults}{f' of {kinds}' if faults else ''}"

    def states(self) -> str:
        """How many states of the machine there are so far."""
        return f"{len(self._states)} states of the machine"
