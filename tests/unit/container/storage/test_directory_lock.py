"""Which process may open a directory, how long others wait for it, and their errors."""

from __future__ import annotations

import logging
import os
import re
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from homeport.container.host.disk_space import DiskForbiddenError
from homeport.container.host.stop_flag import StopFlag, StopRequestedError
from homeport.container.storage.directory_lock import (
    LOCK_FILE,
    DirectoryHeldError,
    DirectoryLock,
    Holder,
    LockWait,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation

TOOL = Holder(12, "NM1", 5)
CONTAINER = Holder(13, "NM2", 6, "0", 3, "job-1")
HOLD = """
import sys
from pathlib import Path
from homeport.container.storage.directory_lock import DirectoryLock, Holder, NO_WAIT
lock = DirectoryLock(Path(sys.argv[1]), Holder.of_this_process(), NO_WAIT)
print("held", flush=True)
sys.stdin.read()
"""


def test_the_error_of_a_second_opener_names_the_holder(tmp_path: Path) -> None:
    """Pid, host and incarnation, as the holder wrote them; from its release it is free."""
    first = DirectoryLock(tmp_path, CONTAINER, LockWait())
    stated = (
        f"{tmp_path}: another process has it open: pid 13 on NM2 (job job-1 processor 0 epoch 3)"
    )
    with pytest.raises(DirectoryHeldError, match=re.escape(stated) + "$") as raised:
        DirectoryLock(tmp_path, TOOL, LockWait())
    assert raised.value.holder == CONTAINER
    first.release()
    second = DirectoryLock(tmp_path, TOOL, LockWait())
    with pytest.raises(DirectoryHeldError, match=r"pid 12 on NM1$"):
        DirectoryLock(tmp_path, CONTAINER, LockWait())
    second.release()


@pytest.mark.parametrize("text", ["", "no json", "[]", '{"pid": 1}', '{"pid":1,"more":2}'])
def test_a_lock_without_a_holders_name_is_held_all_the_same(tmp_path: Path, text: str) -> None:
    """The text is for people; the lock is the kernel's (safety S5)."""
    first = DirectoryLock(tmp_path, TOOL, LockWait())
    (tmp_path / LOCK_FILE).write_text(text)
    with pytest.raises(DirectoryHeldError, match="its lock does not say"):
        DirectoryLock(tmp_path, CONTAINER, LockWait())
    first.release()


def test_the_lock_identifies_its_container(tmp_path: Path) -> None:
    """Its own pid, the job, and the incarnation that it runs."""
    own = Holder.of("job-1", Incarnation(ProcessorId("4"), 7), Host("NM1"))
    lock = DirectoryLock(tmp_path, own, LockWait())
    with pytest.raises(DirectoryHeldError) as raised:
        DirectoryLock(tmp_path, TOOL, LockWait())
    assert raised.value.holder == own
    assert (own.processor_id, own.epoch, own.job, own.host) == ("4", 7, "job-1", "NM1")
    lock.release()


def test_a_held_lock_is_waited_for_with_progress_and_taken_when_free(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The kernel frees it when its holder is killed; until then the log names the holder."""
    argv = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        pauses: list[float] = []

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 3:
                other.send_signal(signal.SIGKILL)
            threading.Event().wait(seconds)

        with caplog.at_level(logging.INFO):
            DirectoryLock(tmp_path, TOOL, LockWait(60.0, pause)).release()
    assert len(pauses) >= 3
    # A client of an earlier test may log meanwhile, from a thread of its own.
    held, free = (r.getMessage() for r in caplog.records if r.name == DirectoryLock.__module__)
    assert held.startswith(f"{tmp_path} is held by pid {other.pid} on ")
    assert held.endswith("waiting for it, 0 s so far, at most 60 s")
    assert free.startswith(f"{tmp_path} is free after ")


def test_the_wait_ends_at_its_limit_and_says_so_every_few_seconds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """After it the opener is refused, in one line that says how long it waited."""
    now_s = [0.0]

    def pause(_seconds: float) -> None:
        now_s[0] += 1.0

    first = DirectoryLock(tmp_path, CONTAINER, LockWait())
    stated = r"another process has it open after 12 s of waiting: pid 13 on NM2 \(job job-1 "
    with caplog.at_level(logging.INFO), pytest.raises(DirectoryHeldError, match=stated):
        DirectoryLock(tmp_path, TOOL, LockWait(12.0, pause, lambda: now_s[0]))
    assert [line.split("for it, ")[1].split(",")[0] for line in caplog.messages] == [
        "0 s so far",
        "5 s so far",
        "10 s so far",
    ]
    first.release()


def test_a_container_that_is_ordered_to_stop_waits_no_longer(tmp_path: Path) -> None:
    """And holds nothing afterwards."""
    first = DirectoryLock(tmp_path, CONTAINER, LockWait())
    stop = StopFlag()
    stop.set()
    with pytest.raises(StopRequestedError):
        DirectoryLock(tmp_path, TOOL, LockWait(60.0, stop.pause))
    first.release()
    DirectoryLock(tmp_path, TOOL, LockWait()).release()


def test_a_lock_is_not_inherited(tmp_path: Path) -> None:
    """A child that outlives its parent, such as a JVM, must not hold its stores."""
    lock = DirectoryLock(tmp_path, TOOL, LockWait())
    argv = [sys.executable, "-c", "print('here', flush=True); input()"]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, close_fds=False) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"here\n"
        lock.release()
        DirectoryLock(tmp_path, CONTAINER, LockWait()).release()
        child.kill()


def test_a_directory_of_another_user_is_reported(another_users_folder: Path) -> None:
    """One line with the cause and what to do; nothing is touched."""
    with pytest.raises(DiskForbiddenError, match=r"Permission denied, for user [0-9]+: what is"):
        DirectoryLock(another_users_folder, TOOL, LockWait(), below=another_users_folder)


def test_a_disk_that_takes_no_more_does_not_keep_a_lock_from_being_taken(tmp_path: Path) -> None:
    """The holder's name is for people only."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        lock = DirectoryLock(tmp_path, TOOL, LockWait())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    with pytest.raises(DirectoryHeldError, match="its lock does not say"):
        DirectoryLock(tmp_path, CONTAINER, LockWait())
    lock.release()


def test_a_second_release_closes_no_other_file(tmp_path: Path) -> None:
    """In a process that goes on, the number of the lock's file is soon another one's."""
    lock = DirectoryLock(tmp_path, TOOL, LockWait())
    lock.release()
    with (tmp_path / "other").open("w") as other:
        lock.release()
        os.fstat(other.fileno())
