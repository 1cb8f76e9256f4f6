"""The work of a processor as a child process; the child is a program of the test's own."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from homeport.config.config import Config
from homeport.container.standalone.child_work import ChildWork
from homeport.container.standalone.protocols import WorkFenced, WorkReport
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.grouper.standby_models import standby_task
from homeport.job_coordinator.model.codec import decode_job_model
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskModel,
)
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.standalone.plan import Standby
from homeport.job_coordinator.standalone.protocol import (
    FollowStandbys,
    StartWork,
    WorkEnded,
    WorkStarted,
)
from homeport.job_coordinator.zookeeper.session import SessionLease

OWN, TASK = ProcessorId("p"), TaskName("Partition 0")
KEYS = {
    "job.name": "j",
    "job.default.system": "kafka",
    "task.class": "m:C",
    "task.inputs": "kafka.in",
    "task.shutdown.ms": "500",
    "systems.kafka.consumer.bootstrap.servers": "a:1",
}
CHILD = """
import os, signal, sys, threading
from homeport.container.host.lease_memory import watch_lease
from homeport.container.host.permit import Permit
memory = watch_lease(os.environ)
stopped = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: None if "deaf" in sys.argv else os._exit(143))
while line := sys.stdin.readline():
    permit = Permit.from_json(line)
    epoch = permit.incarnation.epoch
    print(permit.incarnation, permit.fence, os.environ["HOMEPORT_LOCATION_ID"], flush=True)
    assert '"job.name":"j"' in permit.model.replace(" ", "")
    memory.fenced = epoch
    while memory.confirmed != epoch:
        stopped.wait(0.01)
    memory.started = epoch
    if "fails" in sys.argv:
        print("error: poison found", flush=True)
        os._exit(1)
    if "finishes" in sys.argv:
        memory.is_finished = True
        os._exit(0)
    assert sys.stdin.readline() == "rest\\n"
    if "deaf" in sys.argv:
        stopped.wait()
    if "ends" in sys.argv:
        os._exit(143)
    memory.say_rests(epoch)
"""

Make = Callable[..., ChildWork]


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Make]:
    """Makes works; none has a child afterwards."""
    made: list[ChildWork] = []

    def make(*arguments: str, **keys: str) -> ChildWork:
        config = Config({**KEYS, **keys})
        command = (sys.executable, "-c", CHILD, *arguments)
        work = ChildWork(OWN, Host("here"), config, tmp_path, os.environ, command)
        made.append(work)
        return work

    yield make
    for each in made:
        each.kill()


def begun(work: ChildWork, lease: SessionLease, generation: int = 7) -> None:
    """The generation has fenced, was confirmed, and works."""
    model = JobModel(
        Config({}),
        {
            OWN: ContainerModel(
                OWN, {TASK: TaskModel(TASK, (SystemStreamPartition("kafka", "in", 0),), 0)}
            )
        },
    )
    fence = (Incarnation(OWN, 3),)
    own = Incarnation(OWN, generation)
    work.start(StartWork(9, generation, (TASK,), fence), model, lease)
    assert next_of(work) == WorkFenced(own)
    work.confirm(Incarnation(OWN, generation - 1))
    assert list(work.reports()) == []
    work.confirm(own)
    assert next_of(work) == WorkStarted(own.epoch)


_UNREAD: dict[ChildWork, list[WorkReport]] = {}


def next_of(work: ChildWork) -> WorkReport:
    """Its next report."""
    deadline, pause = time.monotonic() + 60, threading.Event()
    unread = _UNREAD.setdefault(work, [])
    while not unread:
        assert time.monotonic() < deadline
        unread += work.reports()
        pause.wait(0.01)
    return unread.pop(0)


def long_lease() -> SessionLease:
    """One that lasts longer than the test."""
    lease = SessionLease()
    lease.renew(boot_ms() + 600_000)
    return lease


def test_a_child_gets_its_permit_and_ends_when_it_is_stopped(work: Make, tmp_path: Path) -> None:
    """Its log has its generation's name."""
    own = work()
    assert not own.stop()
    begun(own, long_lease())
    assert own.stop()
    end = next_of(own)
    assert isinstance(end, WorkEnded)
    assert end.cause is StopCause.ORDERED
    (line,) = said(tmp_path, 7)
    assert line.startswith("Incarnation(processor_id='p', epoch=7) (Incarnation(processor_id='p'")
    assert line.endswith("here")
    assert not own.stop()


def rested(work: ChildWork) -> None:
    """Its incarnation has stopped in order."""
    assert work.stop()
    end = next_of(work)
    assert isinstance(end, WorkEnded)
    assert end.cause is StopCause.ORDERED
    assert not work.stop()


def said(folder: Path, generation: int) -> list[str]:
    """The lines of the log of the process that began as that generation."""
    return (folder / f"container-{generation}.log").read_text(encoding="utf-8").splitlines()


def test_the_next_incarnation_is_run_by_the_process_that_rests(work: Make, tmp_path: Path) -> None:
    """It has to fence and to be confirmed as the first one had; its session is another one."""
    own, lease = work(), SessionLease()
    lease.renew(boot_ms() + 600_000)
    begun(own, lease)
    rested(own)
    lease.renew(boot_ms() + 1_200_000)  # no incarnation is under it any more
    assert own._idle is not None
    assert own._idle.memory.deadline_ms > boot_ms() + 10**9
    begun(own, long_lease(), 8)
    rested(own)
    assert [line.split(")")[0] for line in said(tmp_path, 7)] == [
        f"Incarnation(processor_id='p', epoch={generation}" for generation in (7, 8)
    ]
    assert not (tmp_path / "container-8.log").exists()


def test_a_process_that_rests_has_no_deadline(work: Make, tmp_path: Path) -> None:
    """The session of its last incarnation may end meanwhile."""
    own, lease = work(), SessionLease()
    pause = threading.Event()

    def renew() -> None:
        while not pause.wait(0.1):
            lease.renew(boot_ms() + 1500)

    lease.renew(boot_ms() + 1500)
    renewing = threading.Thread(target=renew)
    renewing.start()
    try:
        begun(own, lease)
        rested(own)
    finally:
        pause.set()
        renewing.join()
    pause.clear()
    while boot_ms() < lease.deadline_ms + 300:
        pause.wait(0.05)
    begun(own, long_lease(), 8)
    assert len(said(tmp_path, 7)) == 2


def test_a_process_that_ends_at_its_stop_is_replaced(work: Make, tmp_path: Path) -> None:
    """As one does that could not stop in order."""
    own = work("ends")
    begun(own, long_lease())
    rested(own)
    begun(own, long_lease(), 8)
    assert len(said(tmp_path, 7)) == len(said(tmp_path, 8)) == 1


def test_a_process_that_has_died_while_it_rested_is_replaced(work: Make, tmp_path: Path) -> None:
    """As for want of memory."""
    own = work()
    begun(own, long_lease())
    rested(own)
    assert own._idle is not None
    own._idle.signal(signal.SIGKILL)
    own._idle.wait()
    begun(own, long_lease(), 8)
    assert len(said(tmp_path, 7)) == len(said(tmp_path, 8)) == 1


def test_a_process_that_was_made_ready_runs_the_first_incarnation(
    work: Make, tmp_path: Path
) -> None:
    """Made once, before there is a permit; without one it goes at the end."""
    own = work()
    own.prepare()
    own.prepare()
    assert list(tmp_path.glob("starting-*.log")) == [tmp_path / "starting-0.log"]
    begun(own, long_lease())
    own.prepare()
    assert list(tmp_path.glob("*.log")) == [tmp_path / "container-7.log"]
    unused = work()
    unused.prepare()
    unused.kill()
    assert unused._idle is None


def test_a_child_ends_with_its_lease_and_a_lease_that_is_renewed_keeps_it(work: Make) -> None:
    """Whatever its parent does meanwhile."""
    lease = SessionLease()
    lease.renew(boot_ms() + 600_000)
    own = work()
    begun(own, lease)
    other = SessionLease()
    other.renew(boot_ms())
    own.reports()
    assert list(own.reports()) == []  # another session's lease is not its own
    short = SessionLease()
    short.renew(boot_ms() + 1)
    second = work()
    model = JobModel(Config({}), {OWN: ContainerModel(OWN, {})})
    second.start(StartWork(1, 1, (), ()), model, short)
    ends = [report for report in [next_of(second)] if isinstance(report, WorkEnded)]
    while not ends:
        ends = [report for report in [next_of(second)] if isinstance(report, WorkEnded)]
    assert ends[0].cause is StopCause.LEASE_LOST
    assert ends[0].text.startswith("the session did not last")


@pytest.mark.long
def test_a_child_that_does_not_stop_is_killed(work: Make) -> None:
    """Z10: after task.shutdown.ms; its end is that of an order, and no fault."""
    own = work("deaf")
    begun(own, long_lease())
    assert own.stop()
    end = next_of(own)
    assert isinstance(end, WorkEnded)
    assert end.cause is StopCause.ORDERED


@pytest.mark.long
@pytest.mark.parametrize(
    ("word", "cause", "text"),
    [("fails", StopCause.FAILED, "poison found"), ("finishes", StopCause.FINISHED, "Incarnation")],
)
def test_an_end_has_its_cause_and_the_last_line(
    work: Make, word: str, cause: StopCause, text: str
) -> None:
    """The line of a failure is what the processor ends with."""
    own = work(word)
    begun(own, long_lease())
    end = next_of(own)
    assert isinstance(end, WorkEnded)
    assert end.cause is cause
    assert end.text.startswith(text)
    assert "; log " in end.text


def test_a_child_finds_the_list_of_its_standbys(work: Make, tmp_path: Path) -> None:
    """In a file of its generation, which goes with it; without a child nothing is written."""
    own = work()
    task = TaskModel(TASK, (SystemStreamPartition("kafka", "in", 0),), 0)
    replica = standby_task(task, 0)
    other = ProcessorId("q")
    containers = {
        OWN: ContainerModel(OWN, {replica.task_name: replica}),
        other: ContainerModel(other, {TASK: task}),
    }
    order = FollowStandbys(10, (Standby(TASK, replica.task_name),))
    own.follow(order, JobModel(Config({}), containers))
    assert list(tmp_path.glob("standbys-*")) == []
    begun(own, long_lease())
    own.follow(order, JobModel(Config({}), containers))
    read = decode_job_model((tmp_path / "standbys-7.json").read_bytes())
    assert read.containers[OWN].tasks[replica.task_name].state_of == TASK
    own.kill()
    assert list(tmp_path.glob("standbys-*")) == []
