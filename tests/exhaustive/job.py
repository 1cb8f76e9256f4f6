"""One job on one cluster: what the driver, its launchers and their children do on each message.

The allocator is the product's; everything else is mirrored here. What may happen, and when, is
``by_itself`` and ``small_world``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from homeport.appmaster.allocation.job_state.state import AllocatorState, JobPhase, initial_state
from homeport.appmaster.allocation.protocol.events import (
    ChargedFailures,
    FailoverRecord,
    JobModelPublished,
)
from homeport.appmaster.allocation.protocol.instructions import Record, WriteFailover
from homeport.appmaster.allocation.protocol.settings import AllocatorSettings
from homeport.appmaster.job_model.publication import Owners, TaskChange, announcement
from homeport.job_coordinator.grouper.standby_models import temporary_id
from homeport.job_coordinator.metadata.epochs import ProcessorEpoch
from homeport.job_coordinator.model.ids import Host, ProcessorId
from tests.exhaustive.judges import require
from tests.exhaustive.memory import Memory, Order, incarnation_of, owner_of
from tests.exhaustive.numbering import Numbering
from tests.exhaustive.people import NO_PEOPLE, WARM, Assignment, Model, People
from tests.exhaustive.stream_records import written
from tests.exhaustive.things import (
    Child,
    Command,
    EpochRecord,
    HostLife,
    Launcher,
    Life,
    Message,
    Stream,
    World,
    launcher_of,
    settled,
    with_fenced,
    with_launcher,
)

Moves = Iterator[tuple[str, World]]
GRANTS, STARTS, STOPS, REPORTS, KEEPER = "grants", "starts", "stops", "reports", "the keeper"

SETTINGS = AllocatorSettings(
    host_affinity_enabled=True,
    retry_count=-1,
    retry_window_ms=300_000,
    fail_job_after_retries=True,
    request_timeout_ms=5_000,
    check_in_timeout_ms=60_000,
)


class Job:
    """The rules of one cluster and one job.

    ``groups``: {active: its standbys}. ``hosts``: their names. ``is_fine``: see ``small_world``.
    ``models``: by version, the first one first; those that people have not published yet too.
    ``is_in_time``: children, hosts and the driver go wrong, YARN takes back, and that is all: no
    message is late or lost, and no launcher is slow.
    """

    start_order = ("fence", "init", "check", "restore")
    """What a child does before it reports that it has started (safety I3)."""
    has_margin = True
    """The keeper ends a lease after its launcher has (safety C1)."""
    awaits_all = True
    """A new driver places nothing before all that had a permit are accounted for."""

    def __init__(
        self,
        groups: Mapping[str, tuple[str, ...]],
        hosts: tuple[str, ...],
        settings: AllocatorSettings = SETTINGS,
        homes: Mapping[str, str] | None = None,
        people: People = NO_PEOPLE,
        *,
        is_fine: bool = False,
        is_in_time: bool = False,
    ) -> None:
        self.groups = groups
        self.hosts = hosts
        self.settings = settings
        self.group_of = {
            p: a
            for a, replicas in groups.items()
            for p in (a, *replicas, temporary_id(ProcessorId(a)))
        }
        self.homes = homes or {}
        self.people = people
        self.models: list[Model] = []
        everybody = [p for a, replicas in groups.items() for p in (a, *replicas)]
        for assignment in ({p: p for p in everybody}, *people.plan):
            self.plan(assignment)
        self.is_fine = is_fine
        self.is_in_time = is_in_time
        self.memory = Memory()
        self._numbering = Numbering(self.memory)
        self._places = {host: i for i, host in enumerate(hosts)}
        self.causes: tuple[str, ...] = ("failed",)
        self.partners: tuple[str, ...] = ()
        """Of which nothing more may come, one at a time: see ``things.World.silent``. GRANTS: YARN
        grants no request. STARTS: children stand still in their start. STOPS: children do not end
        that are ordered to. REPORTS: nothing is reported of what standbys have left to read, of
        their Sparks, nor of processes that wait for a permit. KEEPER: it calls no lease over."""

    def plan(self, assignment: Assignment) -> None:
        """This is the last model that people will publish."""
        model = Model.of(assignment, self.groups)
        for processor in model.tasks:
            self.group_of.setdefault(processor, processor)
            self.group_of.setdefault(temporary_id(ProcessorId(processor)), processor)
        self.models.append(model)

    def tasks_of(self, child: Child) -> tuple[str, ...]:
        """What the child owns by the model that its permit named."""
        return self.models[child.version - 1].tasks.get(child.owner[0], ())

    # --- the beginning, and the driver's

    def deployed(self, absent: tuple[str, ...] = ()) -> World:
        """The job was submitted, nothing has been asked; these hosts are not in the cluster yet."""
        lives = tuple(HostLife.DOWN if h in absent else HostLife.UP for h in self.hosts)
        stream = Stream(homes=tuple(sorted(self.homes.items())))
        world = World(0, lives, tuple(h for h in self.hosts if h not in absent), stream)
        world = self._announced(world, self._initial(1))
        return self._normal(self.fed(world, ("hosts", world.rm)))

    def _initial(self, next_request: int) -> AllocatorState:
        return initial_state(self.settings, next_request)

    def _announced(
        self, world: World, state: AllocatorState, gainers: frozenset[ProcessorId] | None = None
    ) -> World:
        publication = self._publication(world, gainers)
        outcome = self.memory.fresh_step(state, publication)
        return self._applied(world, outcome.machine, outcome.records, outcome.effects)

    def _owners(self, stream: Stream) -> Owners:
        records = {
            ProcessorId(p): ProcessorEpoch(
                r.epoch, r.version, tuple(incarnation_of(o) for o in r.fence), r.permitted
            )
            for p, r in stream.epochs
        }
        return Owners(records, {})

    def _publication(
        self, world: World, gainers: frozenset[ProcessorId] | None
    ) -> JobModelPublished:
        stream, model = world.stream, self.models[world.version - 1]
        homes, owners = dict(stream.homes), self._owners(stream)
        processors = {
            ProcessorId(p): Host(homes[p]) if p in homes else None for p in sorted(model.tasks)
        }
        gainers = owners.perhaps_gainers() if gainers is None else gainers
        stopped = tuple(map(incarnation_of, stream.stopped))
        published = announcement(world.version, processors, owners, gainers, stopped)
        replicas = {s: a for a, standbys in model.groups.items() for s in standbys}
        failovers = {
            ProcessorId(f.active): FailoverRecord(
                f.epoch,
                ProcessorId(f.standby) if f.standby else None,
                Host(f.host) if f.host else None,
                f.step,
                tuple(map(ProcessorId, f.used)),
            )
            for f in stream.failovers
            if f.active in model.groups
        }
        return replace(
            published,
            standbys={ProcessorId(s): ProcessorId(a) for s, a in replicas.items()},
            failovers=failovers,
            failures={
                ProcessorId(p): ChargedFailures(count, self.settings.retry_window_ms)
                for p, count in stream.failures
            },
        )

    def _restarted(self, world: World) -> World:
        """The driver is killed, and the next one begins with what the stream says."""
        before = self.memory.states[world.machine]
        permitted = {(p, r.permitted) for p, r in world.stream.epochs if r.permitted}
        world = world._replace(
            launchers=tuple(x._replace(is_known=False) for x in world.launchers),
            pending=(),
            gone=(),
            ended=(),
            late=(),
            cancelled=(),
            adopting=tuple(sorted(permitted - {*world.stream.stopped})) if self.awaits_all else (),
        )
        world = self._announced(self._in_force(world), self._initial(before.next_request_id))
        for command in world.stream.commands:
            world = self.fed(world, ("resumed", command))
        return world

    def _in_force(self, world: World) -> World:
        """Without failovers to a standby that the model does not have, as a temporary one."""
        known = self.models[world.version - 1].tasks
        kept = tuple(f for f in world.stream.failovers if not f.standby or f.standby in known)
        return world._replace(stream=world.stream._replace(failovers=kept))

    # --- people

    def _is_open_to_people(self, world: World) -> bool:
        """Whether the driver takes what people want: it knows what runs, and the job goes on."""
        return not world.adopting and self.memory.states[world.machine].phase is JobPhase.ACTIVE

    def changed(self, world: World) -> World:
        """The next version of the model is in the stream, and the allocator has it."""
        version = world.version + 1
        before, after = (self.models[n].task_models() for n in (version - 2, version - 1))
        change = TaskChange(
            before, after, self._owners(world.stream), is_new=True, restart_all=False
        )
        epochs = dict(world.stream.epochs)
        for p, record in change.raised(version):
            fence = tuple(map(owner_of, record.fence))
            epochs[p] = EpochRecord(record.epoch, fence, record.permitted, version)
        homes = tuple((p, host) for p, host in world.stream.homes if p in after)
        stream = world.stream._replace(
            epochs=tuple(sorted(epochs.items())), homes=homes, failures=()
        )
        world = world._replace(version=version, stream=stream)
        return self._announced(world, self.memory.states[world.machine], change.gainers())

    def commanded(self, world: World, processor: str, destination: str) -> World:
        """An operator commands this, after all that was commanded before."""
        number = max((c.number for c in world.stream.commands), default=0) + 1
        is_warm, to = destination.startswith(WARM), destination.removeprefix(WARM)
        command = Command(number, processor, to, is_warm=is_warm)
        stream = world.stream._replace(commands=(*world.stream.commands, command))
        return self.fed(world._replace(stream=stream), ("placement", command))

    # --- events and what follows from them

    def _normal(self, world: World) -> World:
        return self._numbering.normal(world)

    def fed(self, world: World, key: Message) -> World:
        """The world after the driver has received this event."""
        return self._stated(world, key)[0]

    def _stated(self, world: World, key: Message) -> tuple[World, Order | None]:
        outcome = self.memory.step(world.machine, key)
        applied = self._applied(world, outcome.machine, outcome.records, outcome.effects)
        return applied, outcome.order

    def _applied(
        self,
        world: World,
        machine: int,
        records: tuple[Record, ...],
        effects: tuple[tuple[str, Any, str], ...],
    ) -> World:
        if world.machine != machine:
            world = world._replace(machine=machine)
        if records:
            self._judge_choices(world, records)
            world = world._replace(stream=written(world.stream, records))
        for what, which, host in effects:
            if what == "ask":
                pending = (*world.pending, (which, host))
                world = world._replace(pending=pending)
            elif what == "cancel":
                world = self._cancelled(world, which)
            else:
                require(not world.result, "a job ends once")
                valid = [x for x in world.launchers if x.child and x.is_lease_good]
                require(not valid, "nothing runs when the job ends")
                why = which != "FAILED" or world.was_charged
                require(why, "a job fails only for what counts as a failure")
                world = world._replace(result=which)
        return world

    def _judge_choices(self, world: World, records: tuple[Record, ...]) -> None:
        """No standby is chosen twice while one that was not chosen yet runs well."""
        before = {f.active: f for f in world.stream.failovers}
        well = {
            x.child.owner[0]
            for x in world.launchers
            if x.child and x.life is Life.UP and x.host in world.rm and not x.is_denied
        }
        for record in records:
            old = before.get(record.active) if isinstance(record, WriteFailover) else None
            if isinstance(record, WriteFailover) and old and record.standby in old.used:
                standbys = self.models[world.version - 1].groups[record.active]
                left = well.intersection(standbys).difference(old.used)
                require(not left, "a standby is chosen once in a failover")

    def _cancelled(self, world: World, request: int) -> World:
        """YARN ends what there is of this request, and says so: at once, if nothing can come."""
        left = tuple(p for p in world.pending if p[0] != request)
        world = world._replace(pending=left)
        for launcher in world.launchers:
            if launcher.request != request:
                continue
            if launcher.is_denied:
                return world  # its end was reported before
            if launcher.life is Life.FROZEN:
                return with_launcher(world, launcher._replace(is_doomed=True))
            self._judge_end(world, launcher)
            world = self._without(world, launcher)
        is_late = any(m[:2] == ("check-in", request) for m in world.late)
        is_to_be_reported = any(end[0] == request for end in world.ended)
        if not is_late and not is_to_be_reported:
            return self.fed(world, ("ended", request, False))
        if not is_to_be_reported:
            ended = tuple(sorted({*world.ended, (request, False, "")}))
            world = world._replace(ended=ended)
        if is_late:
            world = world._replace(cancelled=tuple(sorted({*world.cancelled, request})))
        return world

    def _without(self, world: World, launcher: Launcher, host: str = "") -> World:
        """The launcher is gone, and its child with it; the keeper will say so if it knew it.

        ``host``: all that was there is gone.
        """
        gone = world.gone
        if launcher.is_known:
            gone = tuple(sorted({*gone, (launcher.request, launcher.said, host)}))
        left = tuple(x for x in world.launchers if x.request != launcher.request)
        return world._replace(launchers=left, gone=gone)

    # --- launchers

    def _obeyed(
        self, world: World, launcher: Launcher, order: Order | None, steps: int | None = None
    ) -> World:
        """The launcher has executed its order. ``steps``: its new child stands still there."""
        if order is None or launcher not in world.launchers:
            return world
        if order.verb == "exit":
            left = self._without(world, launcher._replace(is_known=False))
            return self.fed(left, ("ended", launcher.request, False))
        owner, ran = order.owner, dict(launcher.ran)
        assert owner is not None
        if order.verb == "run" and owner not in ran:
            if launcher.child is not None:
                require(launcher.child.owner == owner, "a permit is for a launcher without a child")
                return world
            child = self._next_child(launcher, Child(owner, order.fence, order.version))
            return self._begun(world, launcher._replace(has_resting=False), child, steps)
        if launcher.child is not None and launcher.child.owner == owner:
            self._judge_end(world, launcher)
            resting = launcher._replace(has_resting=order.verb == "let go")
            is_deaf = world.silent == STOPS
            return world if is_deaf else self._child_stopped(world, resting, "ordered")
        cause = ran.get(owner, "ordered")
        ran[owner] = cause
        stated = launcher._replace(ran=tuple(sorted(ran.items())), report=(owner, cause))
        return with_launcher(world, stated)

    def _next_child(self, launcher: Launcher, child: Child) -> Child:
        """What begins, in the process that rests or in another one: it takes nothing over."""
        del launcher
        return child

    def _begun(self, world: World, launcher: Launcher, child: Child, steps: int | None) -> World:
        before = [x for x in world.launchers if child.owner in dict(x.ran)]
        require(not before, "one child per incarnation")
        world = with_launcher(world, launcher._replace(child=child))
        self._judge_permit(world, launcher, child)
        if steps is None:
            return self._run_on(world, launcher.request)
        for _ in range(steps):
            world = self._child_step(world, launcher.request)
        return world

    def _judge_permit(self, world: World, launcher: Launcher, child: Child) -> None:
        processor, epoch = child.owner
        standing = [
            x
            for x in world.launchers
            if x.host == launcher.host
            and x.child
            and x.child.owner[0] != processor
            and self.group_of[x.child.owner[0]] == self.group_of[processor]
            and x.is_lease_good
        ]
        require(not standing, "Invariant-2: an active starts after its standby has stopped")
        written = dict(world.stream.epochs).get(processor, EpochRecord(0, (), 0))
        require(written.epoch >= epoch, "a permit has its record")

    def _judge_end(self, world: World, launcher: Launcher) -> None:
        """An active that is ended by the allocator has been replaced, or people want its end."""
        child = launcher.child
        is_needed = (
            child is not None
            and self._is_newest(world, child)
            and not launcher.is_revoked
            and self.memory.states[world.machine].phase is JobPhase.ACTIVE
            and child.owner[0] in self.models[world.version - 1].groups
            and not self.people.commands
        )
        require(not is_needed, f"{launcher} is ended without need")

    def _run_on(self, world: World, request: int) -> World:
        """A child begins: it goes as far as its head read, and records what it has fenced."""
        launcher = launcher_of(world, request)
        while launcher.child and launcher.child.done <= self.start_order.index("check"):
            world = self._child_step(world, request)
            launcher = launcher_of(world, request)
        return world

    def _child_step(self, world: World, request: int) -> World:
        """The next step of a child's start."""
        launcher = launcher_of(world, request)
        child = launcher.child
        assert child is not None
        match self.start_order[child.done]:
            case "fence":
                world = with_fenced(world, child.fence)
            case "init":
                child = child._replace(is_open=not child.is_next)
            case "check" if not self._is_newest(world, child):
                return self._child_stopped(world, launcher, "lease-lost")
            case "check":
                world = self._fences_reported(world, launcher, child)
                launcher = launcher_of(world, request)
        return with_launcher(world, launcher._replace(child=child._replace(done=child.done + 1)))

    def _is_newest(self, world: World, child: Child) -> bool:
        return dict(world.stream.epochs)[child.owner[0]].epoch == child.owner[1]

    def _fences_reported(self, world: World, launcher: Launcher, child: Child) -> World:
        if "fence" not in self.start_order[: child.done] or launcher.life is not Life.UP:
            return world
        stream = world.stream
        epochs = tuple(
            (p, r._replace(fence=tuple(o for o in r.fence if o not in child.fence)))
            for p, r in stream.epochs
        )
        world = world._replace(stream=stream._replace(epochs=epochs))
        return self.fed(world, ("fences", child.owner, child.fence)) if child.fence else world

    def _child_stopped(self, world: World, launcher: Launcher, cause: str) -> World:
        child = launcher.child
        assert child is not None
        ran = tuple(sorted({**dict(launcher.ran), child.owner: cause}.items()))
        stopped = launcher._replace(
            child=None, ran=ran, report=(child.owner, cause), is_revoked=False
        )
        return with_launcher(world, stopped)

    def _polled(self, world: World, launcher: Launcher) -> tuple[World, Order | None]:
        """It has checked in, and the driver has decided; the answer is on its way."""
        running = launcher.child.owner if launcher.child else None
        launcher = launcher._replace(is_known=True)
        world = settled(with_launcher(world, launcher), running)
        key = ("check-in", launcher.request, launcher.host, running)
        return self._stated(world, key)
