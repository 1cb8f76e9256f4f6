"""Processors of one job on one ZooKeeper: what happens by itself.

The machines are the product's. What the search mirrors is the shell (records before instructions,
one event at a time, snapshots as they are when they are read), the start of an incarnation
(safety I3) and Kafka's fencing. ``rules`` that a mutant takes out are class attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType

from homeport.config.config import Config
from homeport.job_coordinator.grouper.mixed_standbys import Places, on_backups, with_mixed_standbys
from homeport.job_coordinator.grouper.previous_assignment import PreviousAssignment
from homeport.job_coordinator.grouper.task_name_grouper import GroupByContainerIds, TaskLocality
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import ContainerModel, JobModel, TaskModel
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.standalone import machine
from homeport.job_coordinator.standalone.plan import Plan, Registration, present
from homeport.job_coordinator.standalone.protocol import (
    BarrierPhase,
    BarrierSeen,
    CloseBarrier,
    Computed,
    Deregister,
    EndProcessor,
    Event,
    FollowStandbys,
    Instruction,
    Join,
    PlanSeen,
    ProcessorsSeen,
    ProcessorTimer,
    ProcessorTimerFired,
    ProcessorTimerKind,
    Publish,
    PublishRefused,
    Reconnected,
    Record,
    Register,
    Registered,
    RenewSession,
    SessionBegun,
    SessionExpired,
    StartWork,
    StopWork,
    WorkEnded,
    WorkOvertaken,
    WorkStarted,
    WriteLocations,
)
from homeport.job_coordinator.standalone.state import Life, ProcessorState
from tests.exhaustive.judges import require
from tests.exhaustive.standalone.things import Process, Run, Tree, World, with_process

Moves = Iterator[tuple[str, World]]
_NO_MODEL = JobModel(Config({}), {})
ALL = frozenset({"may_die", "may_expire", "may_stop", "may_cut", "is_slow", "may_restart"})
_Step = tuple[int, tuple[Record, ...], tuple[Instruction, ...]]


@cache
def _grouped(
    tasks: tuple[str, ...],
    there: tuple[Registration, ...],
    plan: Plan | None,
    replicas: int,
    locality: tuple[tuple[str, str], ...],
) -> JobModel:
    """What the planner answers."""
    hosts = {TaskName(name): Host(place) for name, place in locality}
    models = {TaskName(task): TaskModel(TaskName(task), (), i) for i, task in enumerate(tasks)}
    places = {r.processor_id: r.location for r in there}
    members = plan.members if plan else ()
    standbys: dict[TaskName, dict[TaskName, ProcessorId]] = {}
    for member in members:
        for standby in member.standbys:
            standbys.setdefault(standby.task, {})[standby.name] = member.processor_id
    before = PreviousAssignment(
        task_processors={t: m.processor_id for m in members for t in m.tasks},
        standbys=standbys,
        task_hosts=hosts,
        processor_hosts=places,
    )
    moved = on_backups(before, places, models)
    known = {t: TaskLocality(p, moved.task_hosts.get(t)) for t, p in moved.task_processors.items()}
    found = GroupByContainerIds(Config({})).group(tuple(models.values()), known, dict(places))
    active = {p: ContainerModel(p, {t: models[t] for t in sorted(ts)}) for p, ts in found.items()}
    mixed = with_mixed_standbys(active, Places(places), before, replicas)
    return JobModel(Config({}), mixed)


@cache
def _registrations(
    ids: tuple[str, ...], nodes: tuple[tuple[int, int], ...], places: tuple[Host, ...]
) -> tuple[Registration, ...]:
    return tuple(Registration(n, ProcessorId(ids[i]), places[i]) for n, i in sorted(nodes))


class ByItself:
    """Processors with these ids, in this order, and these tasks.

    ``may_die``, ``may_expire``, ``may_cut``, ``may_stop``: which faults there are.
    ``is_slow``: a barrier's time may be over before all have joined. ``may_restart``: a dead
    process may begin again. All of them, where nothing is said. ``replicas``: standbys of each
    task. ``places``: the location of each processor; each has its own, where nothing is said.
    ``files``: {task or standby: where an earlier life of the job has left its files}.
    """

    compares_version = True
    requires_leader = True
    compares_reports = True
    keeps_reports = True
    fences = True
    checks = True

    def __init__(
        self,
        ids: Sequence[str] = ("p", "q"),
        tasks: Sequence[str] = ("t", "u"),
        faults: frozenset[str] = ALL,
        replicas: int = 0,
        places: Sequence[str] = (),
        files: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.ids = tuple(ids)
        self.replicas = replicas
        self.places = tuple(
            Host(place) for place in places or (f"at-{name}-{i}" for i, name in enumerate(ids))
        )
        self.tasks = tuple(tasks)
        self._files = tuple(sorted(files.items()))
        self._may = faults
        self._states: list[ProcessorState] = []
        self._numbers: dict[ProcessorState, int] = {}
        self._steps: dict[tuple[int, int], _Step] = {}
        self._events: dict[object, int] = {}
        self._models: dict[int, JobModel] = {}

    # --- beginnings

    def begun(self) -> World:
        """All processes have just started."""
        tree = Tree(locality=self._files)
        world = World(tree, tuple(self._new(i) for i in range(len(self.ids))))
        for i in range(len(self.ids)):
            world = self._session_begun(world, i)
        return world

    def _new(self, index: int) -> Process:
        name = self.ids[index]
        state = ProcessorState(ProcessorId(name), self.places[index])
        return Process(self._number(state))

    def state(self, process: Process) -> ProcessorState:
        """The state of its machine."""
        return self._states[process.machine]

    def _number(self, state: ProcessorState) -> int:
        if state not in self._numbers:
            self._numbers[state] = len(self._states)
            self._states.append(state)
        return self._numbers[state]

    # --- the shell

    def fed(self, world: World, index: int, event: Event) -> World:
        """The machine has taken the event; its records wait, its instructions are done."""
        process = world.processes[index]
        number, records, instructions = self._step(process.machine, event)
        process = process._replace(machine=number, outbox=(*process.outbox, *records))
        for instruction in instructions:
            if isinstance(instruction, StartWork):
                self._judge_start(world, process, instruction)
                number = self.state(process).sequence or 0
                run = Run(instruction, number, standbys=instruction.standbys)
                process = process._replace(run=run, is_to_stop=False)
            elif isinstance(instruction, FollowStandbys):
                require(process.run is not None, "standbys are to change and nothing runs")
                if process.run is not None:
                    run = process.run._replace(standbys=instruction.standbys)
                    process = process._replace(run=run)
            elif isinstance(instruction, StopWork):
                process = process._replace(is_to_stop=True)
            elif isinstance(instruction, RenewSession):
                process = process._replace(outbox=(*process.outbox, instruction))
        world = with_process(world, index, process)
        if any(isinstance(x, EndProcessor) for x in instructions) and not process.outbox:
            return self._gone(world, index)
        return world

    def _step(self, number: int, event: Event) -> _Step:
        if isinstance(event, Computed):
            reports = tuple(sorted(event.fenced.items()))
            self._models[id(event.model)] = event.model  # so that its id stays its own
            key: object = (event.base, event.registrations, id(event.model), reports)
        else:
            key = event
        at = (number, self._events.setdefault(key, len(self._events)))
        if at not in self._steps:
            made = machine.step(self._states[number], event)
            self._steps[at] = (self._number(made.state), made.records, made.instructions)
        return self._steps[at]

    def _judge_start(self, world: World, process: Process, order: StartWork) -> None:
        plan = world.tree.plan
        require(process.run is None, "an incarnation starts beside another one")
        require(plan is not None and plan.version >= order.version, "a version that is not there")
        if plan is not None and plan.version == order.version:
            done = world.tree.phase is BarrierPhase.DONE
            require(done, "a version starts whose barrier is not done")

    def _session_begun(self, world: World, index: int) -> World:
        """A record that came to its turn before found no connection: it is lost."""
        process = world.processes[index]._replace(session=True, is_cut=False, outbox=())
        world = with_process(world, index, process)
        if self.state(process).life is Life.ENDED:
            return self._gone(world, index)
        return self.fed(world, index, SessionBegun())

    def _written(self, world: World, index: int) -> World:
        """The first waiting record is in ZooKeeper, or refused by it."""
        process = world.processes[index]
        record = process.outbox[0]
        world = with_process(world, index, process._replace(outbox=process.outbox[1:]))
        if isinstance(record, RenewSession):
            world = self._closed(world, index)
        else:
            world = self._write(world, index, record)
        after = world.processes[index]
        is_over = not after.outbox and self.state(after).life is Life.ENDED
        return self._gone(world, index) if is_over else world

    def _write(self, world: World, index: int, record: Record) -> World:
        tree = world.tree
        if isinstance(record, Register):
            own = [n for n, i in tree.nodes if i == index]
            number = own[0] if own else tree.next_number
            if not own:
                nodes = (*tree.nodes, (number, index))
                tree = tree._replace(next_number=number + 1, nodes=nodes)
            return self.fed(world._replace(tree=tree), index, Registered(number))
        if isinstance(record, Publish):
            return self._published(world, index, record)
        if isinstance(record, Deregister):
            nodes = tuple(n for n in tree.nodes if n[0] != record.sequence)
            tree = tree._replace(nodes=nodes)
        elif isinstance(record, WriteLocations):
            known = dict(tree.locality)
            known.update(dict.fromkeys(map(str, record.tasks), str(record.location)))
            tree = tree._replace(locality=tuple(sorted(known.items())))
        elif tree.plan is not None and record.version == tree.plan.version:
            tree = self._at_barrier(tree, record)
        return world._replace(tree=tree)

    def _at_barrier(self, tree: Tree, record: Join | CloseBarrier) -> Tree:
        if isinstance(record, Join):
            joined = tree.joined | {(str(record.processor_id), record.sequence)}
            return tree._replace(joined=joined)
        if tree.phase is BarrierPhase.NEW:
            return tree._replace(phase=record.phase)
        return tree

    def _published(self, world: World, index: int, record: Publish) -> World:
        tree, plan = world.tree, record.plan
        newest = tree.plan.version if tree.plan else 0
        is_next = plan.version == newest + 1 or not self.compares_version
        is_there = any(n == record.leader for n, _ in tree.nodes) or not self.requires_leader
        reported = {(str(i.processor_id), i.epoch) for i in record.unreported} & set(tree.fenced)
        if not is_next or not is_there or (reported and self.compares_reports):
            return self.fed(world, index, PublishRefused(plan.version))
        members = {str(m.processor_id) for m in plan.members} if self.keeps_reports else set()
        fenced = tuple(report for report in tree.fenced if report[0] in members)
        tree = tree._replace(plan=plan, phase=BarrierPhase.NEW, joined=frozenset(), fenced=fenced)
        return world._replace(tree=tree)

    # --- by itself

    def free(self, world: World) -> Moves:
        """What happens by itself, without any fault, and leads on."""
        for index, process in enumerate(world.processes):
            name = f"{self.ids[index]}{index}"
            if process.is_dead:
                if process.session:
                    yield f"session of {name} ends", self._expired(world, index)
            elif process.is_cut:
                yield f"{name} reconnects", self._reconnected(world, index)
                if RenewSession() in process.outbox:
                    yield f"{name} renews its session", self._renewed(world, index)
            elif not process.session and not process.is_unaware:
                yield f"session of {name} begins", self._session_begun(world, index)
            elif process.outbox:
                if process.is_unaware:
                    yield f"{name} learns of its end", self._learns_of_its_end(world, index)
                else:
                    record = type(process.outbox[0]).__name__
                    yield f"{name} writes {record}", self._written(world, index)
            else:
                yield from self._of_one(world, index, name)

    def _of_one(self, world: World, index: int, name: str) -> Moves:
        process = world.processes[index]
        if process.is_unaware:
            yield f"{name} learns of its end", self._learns_of_its_end(world, index)
        else:
            for label, event in self._news(world, process):
                yield f"{name} {label}", self.fed(world, index, event)
        yield from self._of_work(world, index, name)

    def _news(self, world: World, process: Process) -> Iterator[tuple[str, Event]]:
        state, tree = self.state(process), world.tree
        there = self._registrations(tree)
        if not process.session:
            return
        if state.registrations != there and state.life is not Life.OUT:
            yield "sees processors", ProcessorsSeen(there)
        if tree.plan is not None:
            if state.version < tree.plan.version:
                yield f"sees plan {tree.plan.version}", PlanSeen(tree.plan)
            elif state.version == tree.plan.version:
                # a leader's machine alone looks at which members have joined
                joined = tuple(sorted((ProcessorId(p), n) for p, n in tree.joined))
                joined = joined if state.is_leader else ()
                seen = BarrierSeen(tree.plan.version, tree.phase, joined)
                if state.barrier != seen:
                    yield f"sees barrier {seen.phase.value} {joined}", seen
        yield from self._own_news(world, state)

    def _own_news(self, world: World, state: ProcessorState) -> Iterator[tuple[str, Event]]:
        tree = world.tree
        if state.computing >= 0:
            yield "has computed", self._computed(tree, state.computing)
        debounce = ProcessorTimer(ProcessorTimerKind.DEBOUNCE)
        if debounce in state.timers:
            yield "has seen calm", ProcessorTimerFired(debounce)
        twin = ProcessorTimer(ProcessorTimerKind.DUPLICATE)
        if twin in state.timers and state.twin is not None:
            owners = [i for n, i in tree.nodes if n == state.twin.sequence]
            if owners and not world.processes[owners[0]].is_dead:
                yield "waited for its twin", ProcessorTimerFired(twin)

    def _registrations(self, tree: Tree) -> tuple[Registration, ...]:
        return _registrations(self.ids, tree.nodes, self.places)

    def _computed(self, tree: Tree, base: int) -> Computed:
        there = self._registrations(tree)
        model = _NO_MODEL
        if there:
            files = tree.locality
            model = _grouped(self.tasks, present(there), tree.plan, self.replicas, files)
        fenced = {ProcessorId(p): generation for p, generation in tree.fenced}
        return Computed(base, there, model, fenced)

    def _of_work(self, world: World, index: int, name: str) -> Moves:
        process = world.processes[index]
        run = process.run
        if process.is_to_stop:
            writers = world.writers - ({self._incarnation(index, run)} if run else set())
            after = process._replace(run=None, is_to_stop=False)
            stopped = with_process(world._replace(writers=writers), index, after)
            generation = self.state(process).work.generation
            ended = WorkEnded(generation, StopCause.ORDERED)
            yield f"{name} has stopped work", self.fed(stopped, index, ended)
        elif run is not None and run.done == 0:
            left = world.writers - set(run.order.fence if self.fences else ())
            fenced = with_process(world, index, process._replace(run=run._replace(done=1)))
            yield f"{name} fences {len(run.order.fence)}", fenced._replace(writers=left)
        elif run is not None and run.done == 1:
            own = self._incarnation(index, run)
            begun = with_process(world, index, process._replace(run=run._replace(done=2)))
            yield f"{name} begins as {own}", begun._replace(writers=world.writers | {own})
        elif run is not None and run.done == 2 and not (process.is_unaware and self.checks):
            yield f"{name} checks", self._checked(world, index, run)

    def _incarnation(self, index: int, run: Run) -> Incarnation:
        return Incarnation(ProcessorId(self.ids[index]), run.order.generation)

    def _checked(self, world: World, index: int, run: Run) -> World:
        process, own = world.processes[index], self._incarnation(index, run)
        plan = world.tree.plan
        stands = plan is not None and any(m.incarnation == own for m in plan.members)
        if not stands and self.checks:
            after = with_process(world, index, process._replace(run=None))
            after = after._replace(writers=world.writers - {own})
            return self.fed(after, index, WorkOvertaken(own.epoch))
        fenced = {**dict(world.tree.fenced), str(own.processor_id): own.epoch}
        tree = world.tree._replace(fenced=tuple(sorted(fenced.items())))
        after = with_process(
            world._replace(tree=tree), index, process._replace(run=run._replace(done=3))
        )
        return self.fed(after, index, WorkStarted(own.epoch))

    # --- sessions

    def _expired(self, world: World, index: int) -> World:
        """For ZooKeeper the session is over."""
        process = world.processes[index]
        nodes = tuple(n for n in world.tree.nodes if n[1] != index)
        process = process._replace(session=False, is_unaware=not process.is_dead)
        return with_process(world._replace(tree=world.tree._replace(nodes=nodes)), index, process)

    def _learns_of_its_end(self, world: World, index: int) -> World:
        """Kazoo begins another one, which a renewal that is under way closes again."""
        process = world.processes[index]
        kept = self._renewals(process)
        process = process._replace(is_unaware=False, is_cut=False, outbox=())
        if self.state(process).life is Life.ENDED:
            return self._gone(with_process(world, index, process), index)
        world = self.fed(with_process(world, index, process), index, SessionExpired())
        world = self._session_begun(world, index)
        process = world.processes[index]
        outbox = (*kept, *process.outbox)
        return with_process(world, index, process._replace(outbox=outbox))

    def _renewals(self, process: Process) -> tuple[Record | RenewSession, ...]:
        """What a lost connection leaves of the outbox: a renewal, and what comes after it."""
        waiting = process.outbox
        return waiting[waiting.index(RenewSession()) :] if RenewSession() in waiting else ()

    def _renewed(self, world: World, index: int) -> World:
        """The renewal has its turn in a connection that is down: what was before it is lost."""
        process = world.processes[index]
        process = process._replace(is_cut=False, outbox=self._renewals(process))
        return self._written(with_process(world, index, process), index)

    def _closed(self, world: World, index: int) -> World:
        """The old session is over; the new one has not begun."""
        world = self._expired(world, index)
        process = world.processes[index]._replace(is_unaware=False)
        world = with_process(world, index, process)
        return self._gone(world, index) if self.state(process).life is Life.ENDED else world

    def _reconnected(self, world: World, index: int) -> World:
        process = world.processes[index]
        if process.is_unaware:
            return self._learns_of_its_end(world, index)
        process = process._replace(is_cut=False)
        return self.fed(with_process(world, index, process), index, Reconnected())

    def _gone(self, world: World, index: int) -> World:
        """The process has ended by itself, in order: its session too."""
        process = world.processes[index]
        writers = world.writers
        if process.run is not None:
            writers = writers - {self._incarnation(index, process.run)}
        over = Process(process.machine, is_dead=True, session=process.session)
        return self._expired(with_process(world._replace(writers=writers), index, over), index)
