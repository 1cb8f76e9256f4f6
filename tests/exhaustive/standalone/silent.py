"""Processors of which one partner falls silent: from then on nothing more comes from it.

What is left is time, and people. A barrier's time ends once, ZooKeeper ends the session of what it
does not hear, a processor gives up a session that it does not hear of. People do what the pages
tell: they stop the processor that is named there, or repair ZooKeeper or Kafka. So a wait that
has neither an end nor a page that names its partner leads to no good world.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from homeport.job_coordinator.standalone.protocol import BarrierPhase, Timer, TimerFired, TimerKind
from homeport.job_coordinator.standalone.state import Life, WorkPhase
from homeport.job_coordinator.standalone.waits import waits
from tests.exhaustive.standalone.by_itself import Moves
from tests.exhaustive.standalone.small_world import SmallWorld
from tests.exhaustive.standalone.things import World

STILL, WORK, ZOOKEEPER, KAFKA = "coordination", "work", "ZooKeeper", "Kafka"
"""Partners. STILL: a processor that stands still, its session alive. WORK: its child, which reports
neither start nor stop. ZOOKEEPER: for one processor. KAFKA: for what a leader computes."""
_OF_WORK = ("fences", "begins as", "checks", "has stopped work")
_OF_ZOOKEEPER = ("reconnects", "renews its session")
_OF_TREE = ("writes Join", "writes CloseBarrier", "writes Deregister", "writes WriteLocality")
"""A thread of their own writes these, and no answer comes."""
_MOVING = frozenset({WorkPhase.STARTING, WorkPhase.STOPPING})


class SilentWorld(SmallWorld):
    """One partner of ``partners`` falls silent, as a fault that is counted."""

    partners: tuple[str, ...] = (STILL, WORK, ZOOKEEPER, KAFKA)

    def free(self, world: World) -> Moves:
        """What happens by itself without the partner; what time and people do about it."""
        if world.silent is None:
            yield from super().free(world)
            return
        yield from self._spoken(world, super().free(world))
        yield from self._in_time(world, *world.silent)

    def relief(self, world: World) -> Moves:
        """As for all, without the partner."""
        moves = super().relief(world)
        yield from moves if world.silent is None else self._spoken(world, moves)

    def faults(self, world: World) -> Moves:
        """As for all; and a partner falls silent."""
        yield from super().faults(world)
        if world.silent is not None:
            return
        for kind in self.partners:
            for index, process in enumerate(world.processes):
                silent = world._replace(silent=(kind, index))
                if kind == KAFKA:
                    yield "nothing more comes of Kafka", silent
                    break
                if not process.is_dead and (kind != ZOOKEEPER or process.session):
                    label = f"nothing more comes of the {kind} of {self.ids[index]}{index}"
                    yield label, self._cut(silent, index) if kind == ZOOKEEPER else silent

    def _spoken(self, world: World, moves: Moves) -> Moves:
        """Those in which the partner takes no part."""
        assert world.silent is not None
        kind, index = world.silent
        name = f"{self.ids[index]}{index}"
        for label, after in moves:
            done = label.removeprefix(f"{name} ") if label.startswith(f"{name} ") else ""
            is_mute = {
                STILL: done and done not in _OF_TREE,
                WORK: done.startswith(_OF_WORK),
                ZOOKEEPER: done in _OF_ZOOKEEPER or label == f"session of {name} begins",
                KAFKA: label.endswith(" has computed"),
            }
            if not is_mute[kind]:
                yield label, after

    def _in_time(self, world: World, kind: str, index: int) -> Moves:
        """The ends of times, and what people do that have read the pages."""
        process, name = world.processes[index], f"{self.ids[index]}{index}"
        healed = world._replace(silent=None)
        if kind == ZOOKEEPER:
            timer = Timer(TimerKind.SESSION)
            if timer in self.state(process).timers:
                yield f"{name} gives up", self.fed(world, index, TimerFired(timer))
            if process.session:
                yield f"session of {name} ends", self._expired(world, index)
            # People come late: by then nothing works that ZooKeeper does not hear.
            if process.is_dead or (process.run is None and self._is_named(world, kind)):
                yield "ZooKeeper is repaired", healed
            return
        late = list(self._late(world))
        yield from late
        if kind == KAFKA:
            if self._is_named(world, kind):
                yield "Kafka is repaired", healed
        elif process.is_dead:
            yield f"{name} is gone", healed
        elif not late and (self._is_named(world, self.ids[index]) or self._shows(world, index)):
            yield f"people kill {name}", self._dies(healed, index)

    def _late(self, world: World) -> Iterator[tuple[str, World]]:
        """The time of an open barrier is over, once."""
        assert world.silent is not None
        for index, process in enumerate(world.processes):
            is_mute = world.silent == (STILL, index)
            state = self.state(process)
            if process.is_dead or is_mute or world.is_late or not state.is_leader:
                continue
            if state.barrier_phase is BarrierPhase.NEW and state.closed != state.version:
                timer = Timer(TimerKind.BARRIER, state.version)
                fired = self.fed(world, index, TimerFired(timer))
                yield f"the time of barrier {state.version} is over", fired._replace(is_late=True)

    def _is_named(self, world: World, partner: str) -> bool:
        """Whether a page names it as what is waited for."""
        texts = (t for p in world.processes if not p.is_dead for t in waits(self.state(p)))
        return any(re.search(rf"\b{partner}\b", text) for text in texts)

    def _shows(self, world: World, index: int) -> bool:
        """Whether its own page shows that it does not work."""
        state = self.state(world.processes[index])
        return bool(list(waits(state))) or state.work.phase in _MOVING or state.life is Life.ENDED
