"""A job of one processor: its folder is its tree."""

from __future__ import annotations

import errno
import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from homeport.config.config import Config
from homeport.config.errors import ConfigError, StoreError
from homeport.container.standalone.local_tree import LocalTree
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskModel,
)
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.standalone.machine import step
from homeport.job_coordinator.standalone.plan import Member, Plan
from homeport.job_coordinator.standalone.protocol import (
    Computed,
    ComputeModel,
    Event,
    Instruction,
    ProcessorTimerFired,
    ProcessorTimerKind,
    Publish,
    PublishRefused,
    StartTimer,
    StartWork,
    StopRequested,
    StopWork,
    WorkEnded,
    WorkStarted,
)
from homeport.job_coordinator.standalone.state import Life, ProcessorState
from homeport.job_coordinator.zookeeper.session import Connection

OWN, TASK, HERE = ProcessorId("0"), TaskName("Partition 0"), Host("here")
MODEL = JobModel(
    Config({}),
    {OWN: ContainerModel(OWN, {TASK: TaskModel(TASK, (SystemStreamPartition("k", "in", 0),), 0)})},
)


@dataclass
class _Driven:
    """The machine on the tree; all that it orders is done at once."""

    tree: LocalTree
    state: ProcessorState = field(default_factory=lambda: ProcessorState(OWN, HERE))
    queue: list[Event] = field(default_factory=list)
    started: list[StartWork] = field(default_factory=list)
    answers: list[tuple[Incarnation, bool]] = field(default_factory=list)

    def event(self, connection: Connection, event: Event) -> None:
        assert connection.is_up
        self.queue.append(event)

    def confirmed(self, incarnation: Incarnation, *, is_newest: bool) -> None:
        self.answers.append((incarnation, is_newest))

    def broken(self, cause: str) -> None:
        raise AssertionError(cause)

    def run(self, *events: Event) -> None:
        self.queue += events
        while self.queue:
            decision = step(self.state, self.queue.pop(0))
            self.state = decision.state
            for record in decision.records:
                self.tree.write(record)
            for instruction in decision.instructions:
                self._carry_out(instruction)

    def _carry_out(self, instruction: Instruction) -> None:
        if isinstance(instruction, StartTimer):
            timer = instruction.timer
            if timer in self.state.timers and timer.kind is ProcessorTimerKind.DEBOUNCE:
                self.queue.append(ProcessorTimerFired(timer))
        elif isinstance(instruction, ComputeModel):
            found = self.tree.readings()
            assert found.version == instruction.base, "it computes before it has seen the newest"
            answer = Computed(instruction.base, found.registrations, MODEL, found.fenced)
            self.queue.append(answer)
        elif isinstance(instruction, StartWork):
            self.started.append(instruction)
            assert self.tree.model(instruction.version).containers.keys() == {OWN}
            self.tree.confirm(Incarnation(OWN, instruction.generation))
            self.queue.append(WorkStarted(instruction.generation))
        elif isinstance(instruction, StopWork):
            self.queue.append(WorkEnded(self.state.work.generation, StopCause.ORDERED))


def driven(folder: Path) -> _Driven:
    """A processor that has begun in the folder, and works."""
    made = _Driven(LocalTree(folder))
    made.tree.acquire()
    made.tree.begin(made)
    made.run()
    return made


def test_a_generation_never_recurs_and_fences_the_one_before(tmp_path: Path) -> None:
    """Whether the process before has left in order, or was killed."""
    first = driven(tmp_path / "job")
    assert [(s.generation, s.fence) for s in first.started] == [(1, ())]
    first.tree.close()  # as the end of the process does
    second = driven(tmp_path / "job")
    assert [(s.generation, s.fence) for s in second.started] == [(2, (Incarnation(OWN, 1),))]
    assert second.tree.readings().task_hosts == {TASK: HERE}
    assert second.answers == [(Incarnation(OWN, 2), True)]
    second.run(StopRequested())
    assert second.state.life is Life.ENDED
    second.tree.close()
    third = driven(tmp_path / "job")
    assert [(s.generation, s.fence) for s in third.started] == [(3, (Incarnation(OWN, 2),))]
    third.tree.close()


def test_an_incarnation_that_is_not_the_newest_does_not_go_on(tmp_path: Path) -> None:
    """And nothing is noted of it. A new session is a new registration."""
    made = driven(tmp_path)
    made.tree.confirm(Incarnation(OWN, 7))
    assert made.answers[-1] == (Incarnation(OWN, 7), False)
    assert made.tree.readings().fenced == {OWN: 1}
    with pytest.raises(StoreError, match="there is no version 9"):
        made.tree.model(9)
    made.tree.renew()  # as after work that ended for want of Kafka
    assert made.tree.readings().registrations == ()
    made.tree.close()


def test_two_processes_do_not_run_one_job(tmp_path: Path) -> None:
    """The second one says where the first one is."""
    first, second = LocalTree(tmp_path), LocalTree(tmp_path)
    first.acquire()
    with pytest.raises(ConfigError) as caught:
        second.acquire()
    assert str(caught.value) == (
        f"--work-dir = {str(tmp_path)!r}: another process runs this job there; stop that one"
    )
    first.close()
    second.acquire()
    second.close()
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match="it must be a folder that can be written"):
        LocalTree(tmp_path / "file").acquire()


NO_BASE64 = '{"registrations": 1, "version": 1, "plan": "abc"}'


@pytest.mark.parametrize("text", ["", "{}", "[1", '{"registrations": "x"}', NO_BASE64])
def test_a_damaged_file_is_never_taken_for_none(tmp_path: Path, text: str) -> None:
    """A generation could recur; the line names the file."""
    (tmp_path / "coordination.json").write_text(text, encoding="utf-8")
    tree = LocalTree(tmp_path)
    for _ in range(2):  # the folder is free after the first refusal
        with pytest.raises(StoreError, match=r"coordination\.json"):
            tree.acquire()
    tree.close()


def test_a_plan_that_was_not_saved_whole_changes_nothing(tmp_path: Path) -> None:
    """A file that was being written is not looked at."""
    made = driven(tmp_path)
    made.tree.close()
    (tmp_path / "coordination.tmp").write_text("{", encoding="utf-8")
    again = driven(tmp_path)
    assert again.started[0].generation == 2
    again.tree.close()


def test_a_folder_whose_files_cannot_be_locked_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on some network drives: not for another process's sake, and in one line."""

    def flock(_fd: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("homeport.container.standalone.local_tree.fcntl.flock", flock)
    with pytest.raises(ConfigError) as caught:
        LocalTree(tmp_path).acquire()
    assert str(caught.value) == (
        f"--work-dir = {str(tmp_path)!r}: its file lock must be one that can be locked "
        "(No locks available); name a folder on a local disk"
    )


def test_a_report_is_kept_before_its_incarnation_may_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Safety I1: what has reported may write, and a process that comes back has to fence it."""
    made = driven(tmp_path)
    kept: list[object] = []
    plan = Plan(2, (Member(OWN, 1, 2, (TASK,)),), model=MODEL)
    made.tree.write(Publish(plan, 1))
    confirmed = made.confirmed

    def read(incarnation: Incarnation, *, is_newest: bool) -> None:
        text = (tmp_path / "coordination.json").read_text(encoding="utf-8")
        kept.append(json.loads(text)["fenced"])
        confirmed(incarnation, is_newest=is_newest)

    monkeypatch.setattr(made, "confirmed", read)
    made.tree.confirm(Incarnation(OWN, 2))
    assert kept == [{"0": 2}]
    made.tree.close()


def test_a_version_that_leaves_out_what_has_reported_meanwhile_is_refused(tmp_path: Path) -> None:
    """Reports of former members are deleted, too."""
    made = driven(tmp_path)
    model = JobModel(Config({}), {ProcessorId("1"): MODEL.containers[OWN]})
    plan = Plan(2, (Member(ProcessorId("1"), 2, 2, (TASK,)),), model=model)
    made.queue.clear()
    made.tree.write(Publish(plan, 1, (Incarnation(OWN, 1),)))
    assert made.queue == [PublishRefused(2)]
    assert made.tree.readings().version == 1
    made.tree.write(Publish(plan, 1, (Incarnation(OWN, 7),)))
    assert (made.tree.readings().version, made.tree.readings().fenced) == (2, {})
    made.tree.close()
