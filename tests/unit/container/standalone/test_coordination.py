"""The thread of a processor, on a tree in a folder; its work and its planner are in memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from processors_in_memory import MemoryPlanner, MemoryWork
from waiting import until

from homeport.container.standalone.coordination import Coordination, Times
from homeport.container.standalone.local_tree import LocalTree
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.standalone.plan import Registration
from homeport.job_coordinator.standalone.protocol import (
    EndCause,
    EndProcessor,
    ProcessorsSeen,
    StartWork,
)
from homeport.job_coordinator.standalone.state import ProcessorState, WorkPhase
from homeport.job_coordinator.zookeeper.session import Connection, SessionLease

OWN = ProcessorId("one")
TIMES = Times(debounce=0, barrier=60_000, connection=60_000)


@dataclass
class _Local:
    """A processor alone."""

    folder: Path
    end: EndProcessor | None = None
    state: ProcessorState | None = None
    work: MemoryWork = field(default_factory=lambda: MemoryWork(OWN))

    def __post_init__(self) -> None:
        self.tree = LocalTree(self.folder)
        self.tree.acquire()
        self.coordination = Coordination(OWN, Host("here"), self.tree, self.work, TIMES, self._note)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        self.planner = MemoryPlanner(lambda: 2, self.tree.readings, self.coordination.planned)
        self.end = self.coordination.run(self.planner)

    def _note(self, state: ProcessorState) -> None:
        self.state = state

    def is_running(self, generation: int) -> bool:
        state = self.state
        work = None if state is None else state.work
        return work is not None and (work.phase, work.generation) == (WorkPhase.RUNNING, generation)

    def until_running(self, generation: int) -> None:
        until(lambda: self.is_running(generation), lambda: self.state)

    def join(self) -> EndProcessor:
        self._thread.join(60)
        assert self.end is not None, self.state
        return self.end


@pytest.fixture
def local(tmp_path: Path) -> Iterator[_Local]:
    """A processor that works as its generation 1; afterwards it is gone."""
    made = _Local(tmp_path)
    made.until_running(1)
    yield made
    made.coordination.stop()
    made.join()


@pytest.mark.parametrize("cause", [StopCause.UNAVAILABLE, StopCause.CUT_OFF, StopCause.LEASE_LOST])
def test_an_end_that_is_no_fault_of_the_works_leads_to_a_new_generation(
    local: _Local, cause: StopCause
) -> None:
    """Which fences the one before, as that may still write."""
    local.work.end(cause)
    local.until_running(2)
    assert local.work.started[1].fence == (Incarnation(OWN, 1),)


@pytest.mark.parametrize(
    ("cause", "end"),
    [
        (StopCause.FINISHED, EndProcessor(EndCause.STOPPED)),
        (StopCause.SIGNALLED, EndProcessor(EndCause.STOPPED)),
        (StopCause.FAILED, EndProcessor(EndCause.FAILED, "the work's last line")),
        (StopCause.KILLED, EndProcessor(EndCause.FAILED, "the work's last line")),
    ],
)
def test_other_ends_are_the_processors_too(
    local: _Local, cause: StopCause, end: EndProcessor
) -> None:
    """In order where the tasks have finished, or a signal stops both; else with the last line."""
    local.work.end(cause)
    assert local.join() == end
    assert len(local.work.started) == 1


def test_what_is_broken_ends_the_work_first(local: _Local) -> None:
    """And the processor with that line."""
    local.coordination.broken("the tree is gone")
    assert local.join() == EndProcessor(EndCause.FAILED, "the tree is gone")
    assert local.work.running is None


def test_a_stop_waits_for_the_work(local: _Local) -> None:
    """A work that hangs in its stop keeps its processor registered."""
    local.work.stops_silently = True
    local.coordination.stop()
    until(
        lambda: local.state is not None and local.state.work.phase is WorkPhase.STOPPING,
        lambda: local.state,
    )
    assert len(local.tree.readings().registrations) == 1
    local.work.end(StopCause.ORDERED)
    assert local.join() == EndProcessor(EndCause.STOPPED)
    assert local.tree.readings().registrations == ()


def test_what_an_earlier_connection_saw_counts_no_more(local: _Local) -> None:
    """It may be older than what is known; so may the second answer to a question sent again."""
    other = Registration(0, ProcessorId("other"), Host("there"))
    local.coordination.event(Connection(is_up=True), ProcessorsSeen((other,)))
    local.coordination.confirmed(Incarnation(OWN, 1), is_newest=False)
    local.coordination.stop()
    local.join()
    assert local.work.killed == 0
    assert local.state is not None
    assert [r.processor_id for r in local.state.registrations] == [OWN]


def test_a_generation_that_is_not_the_newest_is_ended_before_it_goes_on(tmp_path: Path) -> None:
    """The work waits for the answer, and gets none."""
    made = _Local(tmp_path)
    made.until_running(1)
    made.coordination.stop()
    made.join()
    again = Coordination(OWN, Host("here"), made.tree, work := MemoryWork(OWN), TIMES)
    work.running = Incarnation(OWN, 7)
    again._asks = work.running
    again.confirmed(work.running, is_newest=False)
    again._take_next()
    assert work.running is None


def test_work_that_cannot_be_started_ends_the_processor(tmp_path: Path) -> None:
    """As for want of memory or of files."""

    class Unable(MemoryWork):
        """Its program is not there."""

        def start(self, order: StartWork, model: object, lease: SessionLease) -> None:  # noqa: ARG002 - of the protocol
            """It is not."""
            raise FileNotFoundError(2, "No such file", "python")

    made = _Local(tmp_path, work=Unable(OWN))
    end = made.join()
    assert end.cause is EndCause.FAILED
    assert end.text.startswith("the work cannot be started: [Errno 2] No such file")


def test_a_begin_and_each_registration_make_work_and_planner_ready(local: _Local) -> None:
    """What a start takes is done while the processor waits for its session, and its version."""
    assert (local.work.prepared, local.planner.prepared) == (2, 1)
    local.work.end(StopCause.LEASE_LOST)
    local.until_running(2)
    # It is back, as all members are: the next version is computed without the debounce time.
    assert (local.work.prepared, local.planner.prepared) == (3, 1)
