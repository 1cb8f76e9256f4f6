"""What may happen in the small world: by itself, as relief, and as a fault.

The allocator is the product's; everything else is described here as orders of events, without a
clock. What time decides is an order too. A launcher ends its lease before the keeper does (that is
safety C1). A timer runs out when nothing else is left to happen; a timer that runs out earlier is a
fault.

Grain. Steps that no other process can see in between are one move: a launcher that is permitted
begins its child, and the child fences, initialises its id and reads the stream at once. Only a
process that stands still in mid-start makes a difference there; this is a fault of its own, at each
step. In the coarse grain a process that has nothing to wait for does not wait: a launcher that YARN
starts checks in, a launcher that has reported a stop checks in after it, all launchers check in
with a new driver; all launchers of a host that is lost, or stands still, fall silent at once, and
wake at once. A slow process is a fault there. In the fine grain (``is_fine``) it is not.
"""

from __future__ import annotations

from homeport.appmaster.allocation.job_state.state import JobPhase
from homeport.appmaster.allocation.protocol.events import TimerKind
from homeport.job_coordinator.model.placement import CANCEL
from tests.exhaustive.by_itself import ByItself, Moves
from tests.exhaustive.judges import judge_world
from tests.exhaustive.things import (
    End,
    HostLife,
    Launcher,
    Life,
    World,
    launcher_of,
    with_host,
    with_launcher,
)


class SmallWorld(ByItself):
    """A job in which things go wrong."""

    def faults(self, world: World) -> Moves:
        """What may go wrong."""
        if world.result:
            return
        for label, after in self._gone_wrong(world):
            normal = self._normal(after)
            if normal != world:
                yield label, normal

    def _gone_wrong(self, world: World) -> Moves:
        for launcher in world.launchers:
            if launcher.life is Life.UP:
                yield from self._of_a_launcher(world, launcher)
        for host in self.hosts:
            place = self._places[host]
            if world.hosts[place] is HostLife.UP:
                yield f"{host} is lost", self._host_lost(world, host)
                yield f"{host} freezes", self._host_freezes(world, host)
        yield from self._of_driver(world)
        for partner in self.partners if not world.silent else ():
            yield f"nothing more comes of {partner}", world._replace(silent=partner)
        if self._is_open_to_people(world):
            yield from self._of_people(world)

    def _of_people(self, world: World) -> Moves:
        """Commands to containers, one at a time, and the end of the job."""
        if not world.stream.commands:
            for processor, to in self.people.commands:
                yield f"{processor} to {to}", self.commanded(world, processor, to)
        elif self.people.may_cancel:
            processor = world.stream.commands[0].processor
            yield f"cancel of {processor}", self.commanded(world, processor, CANCEL)
        if self.people.may_shut_down:
            yield "the job is shut down", self.fed(world, ("shutdown",))

    def _of_driver(self, world: World) -> Moves:
        """The driver, and what it waits for: it dies, Skein is slow, a time is over too early."""
        if self.memory.states[world.machine].phase in {JobPhase.ACTIVE, JobPhase.ENDING}:
            yield from self._restarts(world)
        if not self.is_fine and not self.is_in_time:
            yield from self._slow_grants(world)
        waits = {
            TimerKind.REQUEST_EXPIRY,
            TimerKind.CHECK_IN,
            TimerKind.SPARE_SPARK,
            TimerKind.COMMAND,
            TimerKind.PREPARATION,
        }
        yield from self._timers(world, frozenset(waits))

    def _slow_grants(self, world: World) -> Moves:
        for request, host in world.pending:
            for place, granted in self._granted(world, request, host):
                yield f"{place} granted {request}, slow", granted

    def _of_a_launcher(self, world: World, launcher: Launcher) -> Moves:
        if launcher.child is None or not self.is_in_time:
            yield f"{launcher} dies", self._dies(world, launcher, is_taken_back=False)
        if launcher.child is not None:
            yield from self._of_a_child(world, launcher)
        if launcher.has_resting:
            gone = launcher._replace(has_resting=False)
            yield f"resting process of {launcher} dies", with_launcher(world, gone)
        if self.is_in_time:
            return
        if launcher.is_known and not launcher.is_denied:
            denied = with_launcher(world, launcher._replace(said=End.ENDED))
            charged = denied._replace(was_charged=True)
            yield f"Skein errs of {launcher}", self.fed(charged, ("ended", launcher.request, False))
        yield from self._faults_of_speech(world, launcher)

    def _of_a_child(self, world: World, launcher: Launcher) -> Moves:
        taken = self._dies(world, launcher, is_taken_back=True)
        yield f"{launcher} is taken back", taken
        for cause in self.causes:
            after = self._child_stopped(world, launcher, cause)
            charged = world.was_charged or cause in {"failed", "killed"}
            yield f"child of {launcher} {cause}", after._replace(was_charged=charged)
        is_one_of_many = any(x.host == launcher.host and x is not launcher for x in world.launchers)
        if is_one_of_many and not self.is_in_time:
            # else it is its host that freezes
            yield f"{launcher} freezes", with_launcher(world, launcher._replace(life=Life.FROZEN))
        if launcher.is_known and not self.is_in_time:
            yield f"{launcher} is cut off", with_launcher(world, launcher._replace(life=Life.CUT))

    def _faults_of_speech(self, world: World, launcher: Launcher) -> Moves:
        if launcher.report is not None:
            if not self.is_fine:
                yield f"{launcher} reports, is slow", self._reported(world, launcher)
            late = (("stopped", *launcher.report), *world.late)
            twice = self._reported(world._replace(late=late), launcher)
            yield f"{launcher} reports twice", twice
        elif launcher.child is not None or not world.adopting:
            yield from self._faults_of_a_poll(world, launcher)

    def _faults_of_a_poll(self, world: World, launcher: Launcher) -> Moves:
        running = launcher.child.owner if launcher.child else None
        key = ("check-in", launcher.request, launcher.host, running)
        if key not in world.late:
            yield f"check-in of {launcher} delayed", world._replace(late=(key, *world.late))
        stated, order = self._polled(world, launcher)
        if order is None:
            return
        yield f"answer to {launcher} lost", stated
        if stated.stream != world.stream:
            yield f"{launcher} polls, driver restarts", self._restarted(stated)
        is_new = order.verb == "run" and launcher.child is None
        if is_new and order.owner not in dict(launcher.ran):
            known = launcher._replace(is_known=True)
            for done in range(0 if order.fence else 1, self.start_order.index("check") + 1):
                begun = self._obeyed(stated, known, order, done)
                frozen = launcher_of(begun, launcher.request)._replace(life=Life.FROZEN)
                yield f"{launcher} begins, freezes after step {done}", with_launcher(begun, frozen)

    def _dies(
        self, world: World, launcher: Launcher, *, is_taken_back: bool, host: str = ""
    ) -> World:
        ended = tuple(sorted({*world.ended, (launcher.request, is_taken_back, host)}))
        charged = world.was_charged or not is_taken_back
        dead = self._without(world, launcher, host)
        if launcher.is_denied:
            return dead
        return dead._replace(ended=ended, was_charged=charged)

    def _host_lost(self, world: World, host: str) -> World:
        for launcher in world.launchers:
            if launcher.host == host:
                world = self._dies(world, launcher, is_taken_back=True, host=host)
        return with_host(world, self._places[host], HostLife.DOWN)

    def _host_freezes(self, world: World, host: str) -> World:
        for launcher in world.launchers:
            if launcher.host == host:
                world = with_launcher(world, launcher._replace(life=Life.FROZEN))
        return with_host(world, self._places[host], HostLife.FROZEN)

    def _restarts(self, world: World) -> Moves:
        """The driver is killed; a launcher with a report sends it to the next one."""
        restarted = self._restarted(world)
        if self.is_fine:
            yield "driver restarts", restarted
            return
        speakers = [x for x in restarted.launchers if x.life is Life.UP and (x.child or x.report)]
        is_one_slow = len(speakers) > 1 and not self.is_in_time
        for silent in (None, *speakers) if is_one_slow else (None,):
            after = restarted
            for launcher in speakers:
                if launcher is not silent:
                    after = self._speaks(after, launcher)
            but = f", does not hear {silent}" if silent else ""
            yield f"driver restarts{but}", after

    def _speaks(self, world: World, launcher: Launcher) -> World:
        if launcher.report is not None:
            return self._reported(world, launcher)
        return self._poll(world, launcher.request)

    def judge(self, world: World) -> None:
        """The world is as it must be, always."""
        checked = self.start_order.index("check") + 1
        state = self.memory.states[world.machine]
        judge_world(world, self.group_of, self.tasks_of, state, checked)

    def shown(self, world: World) -> list[str]:
        """The allocator's rows, its timers, and the rest."""
        state = self.memory.states[world.machine]
        shown = [str(part) for part in (*state.containers, *state.resources, *state.early)]
        return [*shown, str(sorted(map(str, state.timers))), str(world)]

    def states(self) -> str:
        """How many states of the allocator there are so far."""
        return f"{len(self.memory.states)} states of the allocator"
