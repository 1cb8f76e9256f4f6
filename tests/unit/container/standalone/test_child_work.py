"""What a processor orders of its child, in which order; no process is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL, Signals
from typing import Any

import pytest
from small_jobs import KEYS

from homeport.config.config import Config
from homeport.container.host.lease_memory import LeaseMemory
from homeport.container.host.orders import rest_order
from homeport.container.standalone import child_work
from homeport.container.standalone.child_work import ChildWork
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import ContainerModel, JobModel, TaskModel
from homeport.job_coordinator.standalone.protocol import StartWork
from homeport.job_coordinator.zookeeper.session import SessionLease

OWN, TASK = ProcessorId("p"), TaskName("Partition 0")
MODEL = JobModel(Config({}), {OWN: ContainerModel(OWN, {TASK: TaskModel(TASK, (), 0)})})
SHUTDOWN_MS = 500


@dataclass
class _Process:
    """A child that does nothing, and keeps what it gets; ``deadlines``: at each message."""

    memory: LeaseMemory
    pid: int = 1
    log_file: Path = Path("log")
    messages: list[str] = field(default_factory=list)
    deadlines: list[int] = field(default_factory=list)
    signals: list[Signals] = field(default_factory=list)

    def name_log(self, log_name: str) -> None:
        self.log_file = Path(log_name)

    def send(self, text: str) -> None:
        self.messages.append(text)
        self.deadlines.append(self.memory.deadline_ms)

    def signal(self, number: Signals) -> None:
        self.signals.append(number)

    def poll(self) -> None:
        """It lives."""


class _Clock:
    """A clock of the test alone."""

    now_ms = 1_000_000

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    """The clock of the works."""
    made = _Clock()
    monkeypatch.setattr(child_work, "boot_ms", made)
    return made


@pytest.fixture
def process(clock: _Clock, monkeypatch: pytest.MonkeyPatch) -> _Process:
    """The child of each work."""
    made = _Process(LeaseMemory.endless(clock()))

    class Made:
        """Stands for the class of child processes."""

        @staticmethod
        def start(*_arguments: Any, **_more: Any) -> _Process:  # noqa: ANN401 - passed by
            """The one."""
            return made

    monkeypatch.setattr(child_work, "ChildProcess", Made)
    return made


def _begun(folder: Path, lease: SessionLease) -> ChildWork:
    """Generation 7 has its permit."""
    work = ChildWork(
        OWN, Host("here"), Config({**KEYS, "task.shutdown.ms": str(SHUTDOWN_MS)}), folder, {}
    )
    work.start(StartWork(9, 7, (TASK,), ()), MODEL, lease)
    return work


def test_a_permit_goes_out_when_its_lease_is_in_the_childs_memory(
    process: _Process, clock: _Clock, tmp_path: Path
) -> None:
    """Safety C2: a child that works without a deadline would outlive this process's session."""
    lease = SessionLease()
    lease.renew(clock() + 24_000)
    _begun(tmp_path, lease)
    assert process.deadlines == [clock() + 24_000]
    lease.renew(clock() + 30_000)
    assert process.memory.deadline_ms == clock() + 30_000


def test_a_child_that_does_not_stop_in_time_is_killed(
    process: _Process, clock: _Clock, tmp_path: Path
) -> None:
    """Its successors wait for it; it is killed again as long as it is there."""
    work = _begun(tmp_path, SessionLease())
    assert work.stop([TASK])
    clock.now_ms += SHUTDOWN_MS - 1
    assert not work.reports()
    assert work.stop()  # ordered twice, it has no more time
    assert process.messages[1:] == [rest_order([TASK])]
    assert process.signals == []
    for count in (1, 2):
        clock.now_ms += max(SHUTDOWN_MS, 1000)
        process.memory.beat_ms = clock()
        assert not work.reports()
        assert process.signals == [SIGKILL] * count


def test_a_child_that_has_no_order_to_stop_is_not_killed(
    process: _Process, clock: _Clock, tmp_path: Path
) -> None:
    """However long it works."""
    work = _begun(tmp_path, SessionLease())
    clock.now_ms += 100 * SHUTDOWN_MS
    process.memory.beat_ms = clock()
    work.reports()
    assert process.signals == []
