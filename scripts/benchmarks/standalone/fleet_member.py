"""Light processors in one process, until standard input ends; prints what they come to.

A line is JSON: ``at`` (seconds since 1970), ``processor``, and ``computes`` (the base of a version
that its leader begins to compute) or ``works`` (the generation that works), with the newest version
that it has seen, whether its barrier is done, and the number of the registrations that it sees.
"""

from __future__ import annotations

import json
import sys
import threading
import time

from benchmarks.standalone.light import LightPlanner, LightWork
from homeport.config.config import Config
from homeport.config.settings.standalone_section import StandaloneConfig
from homeport.container.standalone.coordination import Coordination, Times
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.standalone.protocol import BarrierPhase, ComputeModel, Event
from homeport.job_coordinator.standalone.state import ProcessorDecision, ProcessorState, WorkPhase
from homeport.job_coordinator.zookeeper.tree import ZooKeeperTree

_LOCK = threading.Lock()


def _say(**fields: object) -> None:
    with _LOCK:
        print(json.dumps({"at": time.time(), **fields}), flush=True)


class Member:
    """One processor; ``stop``, then ``join``."""

    def __init__(self, name: str, settings: StandaloneConfig, root: str, tasks: int) -> None:
        self._said: object = None
        own, tree = ProcessorId(name), ZooKeeperTree(settings, root)
        times = Times.of(settings)
        self._coordination = Coordination(
            own, Host(name), tree, LightWork(own), times, self._note, self._decided
        )
        planner = LightPlanner(tasks, tree.readings, self._coordination.planned)
        self._thread = threading.Thread(target=self._coordination.run, args=(planner,))
        self._thread.start()

    def _note(self, state: ProcessorState) -> None:
        work = state.work
        works = work.generation if work.phase is WorkPhase.RUNNING else 0
        done = state.barrier_phase is BarrierPhase.DONE
        said = {"works": works, "version": state.version, "done": done}
        if said != self._said:
            self._said = said
            _say(processor=state.processor_id, **said)

    def _decided(self, _event: Event, decision: ProcessorDecision) -> None:
        for instruction in decision.instructions:
            if isinstance(instruction, ComputeModel):
                there = len(decision.state.registrations)
                own = decision.state.processor_id
                _say(processor=own, computes=instruction.base, there=there)

    def stop(self) -> None:
        """It leaves."""
        self._coordination.stop()

    def join(self) -> None:
        """It has left."""
        self._thread.join()


def main(connect: str, root: str, debounce_ms: str, tasks: str, *names: str) -> None:
    """They run until standard input ends; a name on it makes that one leave."""
    keys = {
        "job.coordinator.zk.connect": connect,
        "job.coordinator.zk.session.timeout.ms": "20000",
        "job.debounce.time.ms": debounce_ms,
    }
    settings = StandaloneConfig.of(Config(keys))
    members = {name: Member(name, settings, f"{root}/job", int(tasks)) for name in names}
    for line in sys.stdin:
        members[line.strip()].stop()
    for member in members.values():
        member.stop()
    for member in members.values():
        member.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
