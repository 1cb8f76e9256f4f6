"""What a searched world of standalone processors consists of: ZooKeeper, Kafka, processes."""

from __future__ import annotations

from typing import NamedTuple

from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.standalone.plan import Plan, Standby
from homeport.job_coordinator.standalone.protocol import (
    BarrierPhase,
    Record,
    RenewSession,
    StartWork,
)


class Tree(NamedTuple):
    """ZooKeeper; ``joined`` and ``phase`` are of the newest version's barrier.

    ``nodes``: (number, index of the process) of each registration.
    """

    next_number: int = 1
    nodes: tuple[tuple[int, int], ...] = ()
    plan: Plan | None = None
    phase: BarrierPhase = BarrierPhase.NEW
    joined: frozenset[tuple[str, int]] = frozenset()
    fenced: tuple[tuple[str, int], ...] = ()
    locality: tuple[tuple[str, str], ...] = ()


class Run(NamedTuple):
    """An incarnation at work. ``done``: 0 nothing, 1 list fenced, 2 own id begun, 3 checked.

    ``standbys``: the replicas that it keeps now.
    """

    order: StartWork
    number: int
    done: int = 0
    standbys: tuple[Standby, ...] = ()


class Process(NamedTuple):
    """One process: its machine, by number, and what the shell has not done yet.

    ``outbox``: the tree's thread does it in this order; a renewal takes its turn, and until then
    what befalls the old session is an event. ``is_dead``: nothing of it runs. ``session``: whether
    it has one for ZooKeeper. ``is_cut``: no connection. ``is_unaware``: its session is over, and
    it does not know. ``is_to_stop``: a stop of its work was ordered.
    """

    machine: int
    is_dead: bool = False
    session: bool = False
    is_cut: bool = False
    is_unaware: bool = False
    outbox: tuple[Record | RenewSession, ...] = ()
    run: Run | None = None
    is_to_stop: bool = False


class World(NamedTuple):
    """Everything. ``writers``: the incarnations that Kafka takes writes of.

    ``silent``: the partner of which nothing more comes (see ``silent.py``), with the index of its
    process; None: there is none. ``is_late``: the time of a barrier was over in that silence.
    """

    tree: Tree
    processes: tuple[Process, ...]
    writers: frozenset[Incarnation] = frozenset()
    silent: tuple[str, int] | None = None
    is_late: bool = False


def with_process(world: World, index: int, process: Process) -> World:
    """The world with this process in its place."""
    processes = (*world.processes[:index], process, *world.processes[index + 1 :])
    return world._replace(processes=processes)
