"""One partner of a processor falls silent: from then on nothing more comes from it.

What is left is time, and people. A barrier's time ends once, ZooKeeper ends the session of what it
does not hear, a processor gives up a session that it does not hear of. People do what the pages
name: they stop the processor that is named there, or repair ZooKeeper or Kafka. So a wait that
has neither an end nor a page that names its partner leads to no good world.
"""

from __future__ import annotations

import re

from homeport.job_coordinator.standalone.plan import fits
from homeport.job_coordinator.standalone.protocol import (
    BarrierPhase,
    ProcessorTimer,
    ProcessorTimerFired,
    ProcessorTimerKind,
)
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
_OF_TREE = ("writes Join", "writes CloseBarrier", "writes Deregister", "writes WriteLocations")
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
            timer = ProcessorTimer(ProcessorTimerKind.SESSION)
            if timer in self.state(process).timers:
                yield f"{name} gives up", self.fed(world, index, ProcessorTimerFired(timer))
            if process.session:
                yield f"session of {name} ends", self._expired(world, index)
            if process.is_cut:
                yield from self._of_work(world, index, name)
            # People come late: by then nothing works that ZooKeeper does not hear.
            if process.is_dead or (process.run is None and self._is_named(world, kind)):
                yield "ZooKeeper is repaired", healed
            return
        leader = None if world.is_late else self._waiting_leader(world)
        if kind != KAFKA and process.is_dead:
            yield f"{name} is gone", healed
        elif leader is not None:
            yield from self._late(world, leader)
        elif self._is_shown(world, kind, index):
            if kind == KAFKA:
                yield "Kafka is repaired", healed
            else:
                yield f"people kill {name}", self._dies(healed, index)

    def _waiting_leader(self, world: World) -> int | None:
        """Which process leads, and waits for members; None: none does."""
        for index, process in enumerate(world.processes):
            state = self.state(process)
            is_mute = process.is_dead or world.silent == (STILL, index)
            is_open = state.barrier_phase is BarrierPhase.NEW and state.closed != state.version
            if state.is_leader and is_open and not is_mute:
                return index
        return None

    def _late(self, world: World, leader: int) -> Moves:
        """The time of its barrier is over, once; people wait for that."""
        state = self.state(world.processes[leader])
        timer = ProcessorTimer(ProcessorTimerKind.BARRIER, state.version)
        if timer in state.timers:
            fired = self.fed(world, leader, ProcessorTimerFired(timer))
            yield f"the time of barrier {state.version} is over", fired._replace(is_late=True)

    def _is_shown(self, world: World, kind: str, index: int) -> bool:
        """Whether all that wait say so, and a page names what is waited for."""
        speakers = [
            (i, p)
            for i, p in enumerate(world.processes)
            if not p.is_dead and (kind, i) != (STILL, index)
        ]
        plan, there = world.tree.plan, self._registrations(world.tree)
        if not all(
            (fits(plan, there) and self._is_settled(plan, p)) or self._shows(world, i)
            for i, p in speakers
        ):
            return False
        if kind == KAFKA:
            return self._is_named(world, kind)
        # A page says that its own processor stands still: it may be the only one.
        is_alone = kind == STILL and not speakers
        return is_alone or self._is_named(world, self.ids[index]) or self._shows(world, index)

    def _is_named(self, world: World, partner: str) -> bool:
        """Whether a page names it as what is waited for."""
        texts = (t for p in world.processes if not p.is_dead for t in waits(self.state(p)))
        return any(re.search(rf"\b{partner}\b", text) for text in texts)

    def _shows(self, world: World, index: int) -> bool:
        """Whether its own page shows that it does not work."""
        state = self.state(world.processes[index])
        return bool(list(waits(state))) or state.work.phase in _MOVING or state.life is Life.ENDED
