"""The world of ``tests/exhaustive`` on many hosts: chosen from instead of searched, then calmed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.exhaustive.by_itself import Moves
from tests.exhaustive.people import Assignment
from tests.exhaustive.small_world import SmallWorld
from tests.exhaustive.things import HostLife, Launcher, Life, World

Choice = Callable[[int], int]
"""A number below another one: what is taken of so many."""


class Cluster(SmallWorld):
    """A job on many hosts, some of which may join later."""

    def goes_on(self, world: World, choose: Choice) -> World:
        """One thing happens by itself; where nothing is left to happen, a timer runs out."""
        return self._taken(world, self.free(world), choose(8))

    def suffers(self, world: World, choose: Choice) -> World:
        """Something goes wrong: with a host, with a launcher, or with the driver and its timers."""
        kind = choose(4)
        if world.result or (kind == 3 and choose(3)):
            return world
        if kind < 2 and world.launchers:
            launcher = world.launchers[choose(len(world.launchers))]
            if launcher.life is Life.UP:
                wrong = list(self._of_a_launcher(world, launcher))
                return self._taken(world, iter(wrong), choose(len(wrong) or 1))
        if kind == 2:
            return self._host_suffers(world, choose)
        return self._taken(world, self._of_driver(world), choose(6))

    def _host_suffers(self, world: World, choose: Choice) -> World:
        place = choose(len(self.hosts))
        host, life = self.hosts[place], world.hosts[place]
        if life is not HostLife.UP:
            return world
        return self._normal(
            self._host_lost(world, host) if choose(2) else self._host_freezes(world, host)
        )

    def is_relieved(self, world: World, choose: Choice) -> World:
        """A late message comes, or a host is back, or wakes."""
        return self._taken(world, self.relief(world), choose(8))

    # --- people

    def has_people(self, world: World) -> bool:
        """Whether the driver takes what people want."""
        return self._is_open_to_people(world)

    def changes(self, world: World, assignment: Assignment) -> World:
        """The model is this one from now on."""
        self.plan(assignment)
        return self._judged(self._normal(self.changed(world)))

    def commands(self, world: World, processor: str, destination: str) -> World:
        """An operator commands this, possible or not."""
        return self._judged(self._normal(self.commanded(world, processor, destination)))

    def is_shut_down(self, world: World) -> World:
        """An operator ends the job."""
        return self._judged(self._normal(self.fed(world, ("shutdown",))))

    def _taken(self, world: World, moves: Moves, number: int) -> World:
        """The move of this number, else the last one there is."""
        after = world
        for _, following in moves:
            after = following
            if not number:
                break
            number -= 1
        return self._judged(self._normal(after))

    def _judged(self, world: World) -> World:
        self.judge(world)
        return world

    # --- calm

    def mended(self, world: World) -> World:
        """Every host lives and stands still no more, nothing is late, everybody is heard."""
        while (relieved := next(self.relief(world), None)) is not None:
            world = self._judged(relieved[1])
        return world

    def rounds(self, world: World, bound: int) -> int:
        """After how many rounds of calm all that can be placed runs; ``bound``: at most.

        A round: all reports arrive, YARN grants each request, each launcher and its child take one
        step; and where none of that changes anything, each timer runs out.
        """
        for count in range(bound + 1):
            if self.is_well(world):
                return count
            world = self._judged(self._normal(self._after_round(world)))
        raise AssertionError(f"not settled after {bound} rounds: {self._shown(world)}")

    def _after_round(self, world: World) -> World:
        before = world
        while (stated := self._first_change(world, self._news(world))) is not None:
            world = stated
        for request, host in world.pending:
            if (request, host) in world.pending:
                for _, granted in self._granted(world, request, host):
                    world = self._poll(granted, request)
                    break
        for launcher in before.launchers:
            for now in self._same(world, launcher):
                world = self._first_change(world, self._of_one(world, now)) or world
        if world == before:
            for timer in self.memory.timers[world.machine]:
                world = self.fed(world, ("timer", timer))
        return world

    def _first_change(self, world: World, moves: Iterator[tuple[str, World]]) -> World | None:
        """Return the first that differs in normal form: what a status states is no step."""
        start = self._normal(world)
        return next((after for _, after in moves if self._normal(after) != start), None)

    @staticmethod
    def _same(world: World, launcher: Launcher) -> list[Launcher]:
        return [x for x in world.launchers if x.request == launcher.request]

    def _shown(self, world: World) -> str:
        state = self.memory.states[world.machine]
        return "\n".join(map(str, (*state.containers, *state.resources, world)))


def bound_of(cluster: Cluster) -> int:
    """Rounds of calm after which all that can be placed runs, at most.

    Counted for the container that is last, from the worst world. Every wait ends in a round, as
    YARN grants at once and no process is slow:

    1. All reports arrive: what is gone, and what YARN has ended. Where a driver began again, each
       launcher speaks, and all are accounted for.
    2. Hosts are observed by such a driver; an active without a place requests one,
       or the driver orders a standby to stop.
    3. The standby's launcher gets the order; 4. it reports the stop and becomes the active's,
       with a permit; 5. the active has started, the standby is granted another place; 6. it has
       started, and a launcher that is left over is ordered to exit.

    Two rounds more in which nothing but timers runs out: the silence that kept hosts excluded, and
    the exclusions, after which each may be probed. And one for each other container, since of those
    that wait for the same host one is served after the other.
    """
    return 6 + 2 + len(cluster.group_of) - 1
