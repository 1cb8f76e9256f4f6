"""What happens by itself in the small world, and what may happen as relief.

``free`` leads on, always: from every world it must be able to lead to a good one. ``relief`` need
not come: a host that is lost may stay so, and so may a message that is late.
"""

from __future__ import annotations

from collections.abc import Iterator

from homeport.appmaster.allocation.job_state.placements import SparkWait
from homeport.appmaster.allocation.job_state.state import (
    LIVE,
    ContainerPhase,
    JobPhase,
    Preparation,
)
from homeport.appmaster.allocation.protocol.events import TimerKind
from homeport.job_coordinator.model.ids import ProcessorId
from tests.exhaustive.job import GRANTS, KEEPER, REPORTS, STARTS, Job
from tests.exhaustive.judges import require
from tests.exhaustive.memory import resource_of
from tests.exhaustive.things import (
    End,
    HostLife,
    Launcher,
    Life,
    Message,
    Owner,
    World,
    launcher_of,
    settled,
    with_host,
    with_launcher,
)

Moves = Iterator[tuple[str, World]]


class ByItself(Job):
    """A job in which things happen."""

    # --- by itself

    def free(self, world: World) -> Moves:
        """What happens by itself, without any fault, and leads on."""
        if world.result:
            return
        is_quiet = True
        for label, after in self._by_itself(world):
            normal = self._normal(after)
            if normal != world:
                is_quiet = False
                yield label, normal
        if is_quiet:
            yield from self._timers(world, None)

    def _by_itself(self, world: World) -> Moves:
        yield from self._news(world)
        for request, host in world.pending if world.silent != GRANTS else ():
            for place, granted in self._granted(world, request, host):
                after = granted
                if not self.is_fine and not world.adopting:
                    after = self._poll(granted, request)
                yield f"{place} granted {request}", after
        for launcher in world.launchers:
            yield from self._of_one(world, launcher)

    def _of_one(self, world: World, launcher: Launcher) -> Moves:
        if launcher.life is Life.UP:
            yield from self._of_launcher(world, launcher)
        elif launcher.life is Life.CUT:
            yield f"{launcher} gives up", self._given_up(world, launcher)
        yield from self._lease_over(world, launcher)

    def _granted(self, world: World, request: int, host: str) -> Moves:
        """YARN starts a launcher for this request, and Skein says so."""
        pending = tuple(p for p in world.pending if p[0] != request)
        for place in (host,) if host else self.hosts:
            if world.hosts[self._places[place]] is HostLife.UP and place in world.rm:
                launchers = (*world.launchers, Launcher(request, place))
                granted = world._replace(
                    pending=pending, launchers=tuple(sorted(launchers, key=lambda x: x.request))
                )
                yield place, self.fed(granted, ("allocated", request))

    def _news(self, world: World) -> Moves:
        """The reports that YARN and the keeper can send now."""
        for owner in world.adopting if world.silent != KEEPER else ():
            if not any(_may_speak_for(x, owner) for x in world.launchers):
                yield f"{owner} is accounted for", self._lost_lease(world, owner)
        state = self.memory.states[world.machine]
        if not world.adopting and world.stream.end and state.ending is None:
            yield "the end goes on", self.fed(world, ("shutdown", world.stream.end))
        seen = state.hosts
        if not world.adopting and seen != world.rm:
            yield "hosts observed", self.fed(world, ("hosts", world.rm))
        for host in world.rm:
            if world.hosts[self._places[host]] is not HostLife.UP and seen == world.rm:
                yield f"RM loses {host}", self._rm_loses(world, host)
        for request, is_taken_back, host in world.ended:
            if host:
                continue  # the ResourceManager says that of the host
            stated = self._ends_told(world, ((request, is_taken_back, host),))
            yield f"end of {request}", stated
        if world.silent != KEEPER:
            yield from self._silences(world)

    def _silences(self, world: World) -> Moves:
        together = {host for _, _, host in world.gone if host} if not self.is_fine else set()
        for host in sorted(together):
            yield f"{host} silent", self._silent(world, [g for g in world.gone if g[2] == host])
        for gone in world.gone:
            if gone[2] not in together:
                yield f"{gone[0]} silent", self._silent(world, [gone])

    def _silent(self, world: World, all_gone: list[tuple[int, End, str]]) -> World:
        """The keeper says of launchers that are no more that they are silent."""
        for gone in all_gone:
            left = tuple(g for g in world.gone if g[0] != gone[0])
            world = self.fed(world._replace(gone=left), ("silent", *gone[:2]))
        return world

    def _lost_lease(self, world: World, owner: Owner) -> World:
        for launcher in world.launchers:
            if launcher.child and launcher.child.owner == owner:
                world = with_launcher(world, launcher._replace(is_revoked=True))
        world = settled(world, owner)
        is_retired = owner[0] not in self.models[world.version - 1].tasks
        return self.fed(world, ("retired", owner)) if is_retired else world

    def _rm_loses(self, world: World, host: str) -> World:
        """The ResourceManager gives the host up, and takes back all that it had there."""
        rm = tuple(h for h in world.rm if h != host)
        stated = self.fed(world._replace(rm=rm), ("hosts", rm))
        for launcher in world.launchers:
            if launcher.host == host and not launcher.is_denied:
                stated = self.fed(stated, ("ended", launcher.request, True))
                now = launcher_of(stated, launcher.request)
                stated = with_launcher(stated, now._replace(said=End.TAKEN_BACK, is_doomed=True))
        return self._ends_told(stated, tuple(e for e in world.ended if e[2] == host))

    def _ends_told(self, world: World, ends: tuple[tuple[int, bool, str], ...]) -> World:
        for end in ends:
            left = tuple(e for e in world.ended if e != end)
            said = End.TAKEN_BACK if end[1] else End.ENDED
            gone = tuple((r, said if r == end[0] else now, h) for r, now, h in world.gone)
            cancelled = tuple(r for r in world.cancelled if r != end[0])
            stated = world._replace(ended=left, gone=gone, cancelled=cancelled)
            world = self.fed(stated, ("ended", end[0], end[1]))
        return world

    def _of_launcher(self, world: World, launcher: Launcher) -> Moves:
        if launcher.report is not None:
            stated = self._reported(world, launcher)
            if not self.is_fine and not stated.adopting:
                stated = self._poll(stated, launcher.request)
            yield f"{launcher} reports {launcher.report}", stated
            return
        child = launcher.child
        if child is None and world.adopting:
            return
        yield f"{launcher} polls", self._poll(world, launcher.request)
        if child is None and (processor := self._prepared(world, launcher)):
            yield f"{launcher} has a process ready", self.fed(world, ("process", processor))
        is_starting = child is not None and child.done < len(self.start_order)
        if is_starting and world.silent != STARTS:
            yield f"{launcher} goes on", self._goes_on(world, launcher)
        elif child is not None and not is_starting and (what := self._awaited(world, child.owner)):
            yield f"{launcher} reports its {what}", self.fed(world, (what, child.owner))

    def _awaited(self, world: World, owner: Owner) -> str | None:
        """What is waited for, if it is a standby whose place an action is to take: lag or spark."""
        state = self.memory.states[world.machine]
        standby = state.container(ProcessorId(owner[0]))
        if standby is None or standby.epoch != owner[1]:
            return None
        if world.silent == REPORTS:
            return None
        of_it = [p for p in state.placements if p.standby == standby.processor_id]
        if of_it and standby.lag is None:
            return "lag"
        is_needed = any(p.spark is SparkWait.AWAITED for p in of_it)
        return "spark" if is_needed and not standby.has_spark else None

    def _prepared(self, world: World, launcher: Launcher) -> str | None:
        """The container for which this launcher was ordered to have a process ready."""
        if world.silent == REPORTS:
            return None
        of_it = (
            c
            for c in self.memory.states[world.machine].containers
            if c.preparation is Preparation.ORDERED
        )
        held = (c for c in of_it if c.resource_id == resource_of(launcher.request))
        return next((str(c.processor_id) for c in held), None)

    def _poll(self, world: World, request: int) -> World:
        """The launcher of this request checks in and obeys, if it is still there."""
        for launcher in [x for x in world.launchers if x.request == request]:
            stated, order = self._polled(world, launcher)
            world = self._obeyed(stated, launcher._replace(is_known=True), order)
        return world

    def _reported(self, world: World, launcher: Launcher) -> World:
        assert launcher.report is not None
        owner, cause = launcher.report
        world = settled(with_launcher(world, launcher._replace(report=None)), owner)
        return self.fed(world, ("stopped", owner, cause))

    def _goes_on(self, world: World, launcher: Launcher) -> World:
        """The next visible step of its child; the launcher reports the last one."""
        assert launcher.child is not None
        if launcher.child.done <= self.start_order.index("check"):
            return self._run_on(world, launcher.request)
        world = self._child_step(world, launcher.request)
        child = launcher_of(world, launcher.request).child
        if child is None or child.done < len(self.start_order):
            return world
        if child.owner[0] in self.models[child.version - 1].tasks:
            homes = {**dict(world.stream.homes), child.owner[0]: launcher.host}
            world = world._replace(stream=world.stream._replace(homes=tuple(sorted(homes.items()))))
        return self.fed(world, ("started", child.owner))

    def _given_up(self, world: World, launcher: Launcher) -> World:
        """Its own deadline has passed: its child has ended."""
        if launcher.child is not None:
            world = self._child_stopped(world, launcher, "lease-lost")
        return with_launcher(world, launcher_of(world, launcher.request)._replace(life=Life.OUT))

    def _lease_over(self, world: World, launcher: Launcher) -> Moves:
        """The keeper ends a lease: after its launcher has, or while that cannot act."""
        over = {Life.OUT, Life.FROZEN} if self.has_margin else {Life.CUT, Life.OUT, Life.FROZEN}
        if launcher.life not in over or not launcher.is_known:
            return
        if world.silent == KEEPER:
            return
        if self.is_fine or world.hosts[self._places[launcher.host]] is HostLife.UP:
            yield f"{launcher} silent", self._revoked(world, launcher)
            return
        known = [x for x in world.launchers if x.host == launcher.host and x.is_known]
        if known[0] is launcher:
            for one in known:
                world = self._revoked(world, launcher_of(world, one.request))
            yield f"{launcher.host} silent", world

    def _revoked(self, world: World, launcher: Launcher) -> World:
        is_revoked = launcher.is_revoked or launcher.child is not None
        silent = launcher._replace(is_known=False, is_revoked=is_revoked)
        return self.fed(with_launcher(world, silent), ("silent", launcher.request, launcher.said))

    def _timers(self, world: World, kinds: frozenset[TimerKind] | None) -> Moves:
        for timer in self.memory.timers[world.machine]:
            if kinds is None or timer.kind in kinds:
                is_charged = world.was_charged or timer.kind is TimerKind.CHECK_IN
                charged = world._replace(was_charged=is_charged)
                yield f"timer {timer}", self._normal(self.fed(charged, ("timer", timer)))

    # --- relief

    def relief(self, world: World) -> Moves:
        """What may happen by itself, but need not: all must go well without."""
        if world.result:
            return
        for label, after in self._relieved(world):
            normal = self._normal(after)
            if normal != world:
                yield label, normal

    def _relieved(self, world: World) -> Moves:
        if world.version < len(self.models) and self._is_open_to_people(world):
            yield f"model {world.version + 1} is published", self.changed(world)
        for message in world.late:
            left = tuple(m for m in world.late if m != message)
            yield f"late {message}", self._late(world._replace(late=left), message)
        for host, life in zip(self.hosts, world.hosts, strict=True):
            if life is HostLife.FROZEN:
                yield f"{host} wakes", self._host_wakes(world, host)
            elif life is HostLife.DOWN and host not in world.rm and not world.adopting:
                rm = tuple(sorted((*world.rm, host)))
                back = with_host(world, self._places[host], HostLife.UP)._replace(rm=rm)
                yield f"{host} is back", self.fed(back, ("hosts", rm))
        for launcher in world.launchers:
            place = self._places[launcher.host]
            if launcher.life in {Life.CUT, Life.OUT}:
                heard = launcher._replace(life=Life.UP)
                yield f"{launcher} is heard again", with_launcher(world, heard)
            elif launcher.life is Life.FROZEN and world.hosts[place] is HostLife.UP:
                yield f"{launcher} wakes", self._wakes(world, launcher)
                yield from self._zombie(world, launcher)

    def _late(self, world: World, message: Message) -> World:
        if message[0] == "check-in":
            alive = [x for x in world.launchers if x.request == message[1]]
            for launcher in alive:
                world = with_launcher(world, launcher._replace(is_known=True))
            if not alive:
                gone = {*world.gone, (message[1], End.NOT_SAID, "")}
                world = world._replace(gone=tuple(sorted(gone)))
        stated, order = self._stated(world, message)
        is_permit = order is not None and order.verb == "run"
        is_cancelled = message[0] == "check-in" and message[1] in world.cancelled
        require(not (is_permit and is_cancelled), "a launcher that YARN will end gets no permit")
        return stated

    def _host_wakes(self, world: World, host: str) -> World:
        """The host stands still no more; in the fine grain each launcher wakes in its own turn."""
        world = with_host(world, self._places[host], HostLife.UP)
        if host not in world.rm and not world.adopting:
            rm = tuple(sorted((*world.rm, host)))
            world = self.fed(world._replace(rm=rm), ("hosts", rm))
        for launcher in world.launchers:
            if launcher.host == host and launcher.life is Life.FROZEN and not self.is_fine:
                world = self._wakes(world, launcher)
        return world

    def _wakes(self, world: World, launcher: Launcher) -> World:
        """The launcher goes on. It sees the end of its lease, and obeys YARN's order to end."""
        if not launcher.is_revoked and not launcher.is_doomed:
            return with_launcher(world, launcher._replace(life=Life.UP))
        if launcher.is_doomed:
            ended = self._without(world, launcher)
            is_known = launcher.is_denied
            return ended if is_known else self.fed(ended, ("ended", launcher.request, False))
        awake = launcher._replace(life=Life.UP)
        world = with_launcher(world, awake)
        return self._child_stopped(world, awake, "lease-lost") if awake.child else world

    def _zombie(self, world: World, launcher: Launcher) -> Moves:
        """Before it sees that, its child gets one step further."""
        child = launcher.child
        if child is not None and launcher.is_revoked and child.done < len(self.start_order):
            step = self.start_order[child.done]
            after = self._child_step(world, launcher.request)
            yield f"zombie in {launcher}: {step}", after

    def settled(self) -> World:
        """The job was submitted, and all that can be placed runs: without a fault."""
        world = self.deployed()
        while not self.is_well(world):
            _, world = next(self.free(world))
        return world

    def is_well(self, world: World) -> bool:
        """Whether all that can be placed runs, really, and nothing is left over; or the job ended.

        On the hosts that live, every active can be placed, and one replica of it on each other.
        Where all run, no processor runs that the model does not have, and no command is open. Of a
        partner of which nothing more comes a container may wait for ever, but no command does.
        """
        if world.result:
            return True
        if world.silent and world.silent != REPORTS:
            return not world.stream.commands
        state, model = self.memory.states[world.machine], self.models[world.version - 1]
        if state.phase is not JobPhase.ACTIVE:
            return False
        room = sum(
            world.hosts[i] is HostLife.UP and h in world.rm for i, h in enumerate(self.hosts)
        )
        running = self._running(world)
        if room and not all(
            a in running and len(running.intersection(s)) >= min(len(s), room - 1)
            for a, s in model.groups.items()
        ):
            return False
        return not room or running < model.tasks.keys() or self._is_tidy(world, running)

    def _running(self, world: World) -> set[str]:
        """The processors that really run the tasks of the model in force, or have finished.

        With the inputs of that model, and such that Kafka takes what they write.
        """
        model = self.models[world.version - 1]
        started = {
            x.child.owner
            for x in world.launchers
            if x.child
            and x.life is Life.UP
            and x.child.done == len(self.start_order)
            and self.tasks_of(x.child) == model.tasks.get(x.child.owner[0])
            and self.models[x.child.version - 1].inputs == model.inputs
            and x.child.is_open
        }
        return {
            str(c.processor_id)
            for c in self.memory.states[world.machine].containers
            if (c.phase is ContainerPhase.RUNNING and (c.processor_id, c.epoch) in started)
            or c.phase is ContainerPhase.FINISHED
        }

    def _is_tidy(self, world: World, running: set[str]) -> bool:
        """Where all run: nothing is left over of launchers, requests, processors and commands.

        Nor does any container work on under a model of before.
        """
        state = self.memory.states[world.machine]
        works_on = [c for c in state.containers if c.is_overtaken and c.phase in LIVE]
        containers = {str(c.processor_id) for c in state.containers}
        spare = [x for x in world.launchers if x.child is None and x.life is Life.UP]
        left = world.pending or spare or world.stream.commands or works_on
        return containers == running and not left


def _may_speak_for(launcher: Launcher, owner: Owner) -> bool:
    """Whether this launcher may still report this incarnation to the driver."""
    runs = launcher.child is not None and launcher.child.owner == owner
    tells = launcher.report is not None and launcher.report[0] == owner
    return (runs or tells) and launcher.life in {Life.UP, Life.CUT}
