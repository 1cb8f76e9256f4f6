"""Faults of store directories under real containers and a real broker."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from stream_containers import Job, Make, Running

from homeport.container.host.exit_codes import EXIT_UNAVAILABLE

WORDS = 6000


def _produce(job: Job) -> None:
    """Every word once more: enough of them for many blocks of a table in each partition."""
    job.produce([(i % 2, b"p%d-word-%05d" % (i % 2, i), b"") for i in range(WORDS)])


def _counted(job: Job, container: Running, times: int) -> None:
    job.until(lambda: job.processed() == times * WORDS, container)


def _directory(job: Job, task: str) -> Path:
    return job.folder / "stores" / f"{job.config['job.name']}-1" / "counts" / task


def _table(path: Path) -> Path:
    return max(path.glob("*.sst"), key=lambda file: file.stat().st_size)


def _is_exact(job: Job, times: int) -> None:
    assert set(job.table("changelog").values()) == {times.to_bytes(8, "big")}
    assert set(job.table("out").values()) == {str(times).encode()}
    assert len(job.table("out")) == WORDS


def _restored(job: Job, container: Running, start: int) -> dict[str, tuple[str, str | None]]:
    """{task: (kind, refusal)} of the start with that number among those that came so far."""
    report = job.report(container, start)
    return {t: (r.kind.value, r.refusal) for t, r in report.restored["counts"].items()}


GOOD = ("none", None)
BAD = ("full", "damaged-store")


def test_each_fault_of_the_files_is_healed_by_the_store_alone(make: Make) -> None:
    """After each fault one store is read in full and the other reads nothing; no count is lost."""
    job = make()
    first = job.start(1)
    _produce(job)
    _counted(job, first, 1)
    assert first.stop() == 143
    faults: list[Callable[[Path], object]] = [
        lambda path: os.truncate(_table(path), 5000),
        lambda path: next(path.glob("MANIFEST-*")).unlink(),
        lambda path: (path / "CURRENT").write_text("MANIFEST-999999\n", "ascii"),
    ]
    for number, fault in enumerate(faults, start=2):
        spoilt, whole = ("Partition 0", "Partition 1")[:: 1 if number % 2 else -1]
        fault(_directory(job, spoilt.replace(" ", "_")))
        container = job.start(number, fence=[number - 1])
        assert _restored(job, container, number) == {spoilt: BAD, whole: GOOD}
        _produce(job)
        _counted(job, container, number)
        assert container.stop() == 143
        _is_exact(job, number)
        stated = container.log.read_text(encoding="utf-8")
        assert f"store counts/{spoilt} is read in full: " in stated


def test_damage_met_while_running_ends_the_container_and_heals_at_the_next_start(
    make: Make,
) -> None:
    """The cause is one line, nothing of its transaction is sent, and all is counted once."""
    job = make()
    first = job.start(1)
    _produce(job)
    _counted(job, first, 1)
    assert first.stop() == 143
    table = _table(_directory(job, "Partition_0"))
    with table.open("r+b") as file:
        # Neither the first block, with the position, nor the index at the end.
        file.seek(table.stat().st_size // 3)
        file.write(b"\xff" * 300)
    second = job.start(2, fence=[1])
    expected = {"Partition 0": GOOD, "Partition 1": GOOD}
    assert _restored(job, second, 2) == expected
    _produce(job)
    last = second.last_line()
    assert last.startswith("error: task 'Partition 0' failed in process_batch: DamagedStoreError: ")
    assert "Corruption: block checksum mismatch" in last
    assert second.process.returncode == 1
    third = job.start(3, fence=[2])
    assert _restored(job, third, 3)["Partition 0"] == BAD
    _counted(job, third, 2)
    assert third.stop() == 143
    _is_exact(job, 2)


def test_a_file_where_the_directory_should_be_is_left_and_reported(make: Make) -> None:
    """The file is not the job's: one line names it; when it is gone the job goes on."""
    job = make()
    path = _directory(job, "Partition_1")
    path.parent.mkdir(parents=True)
    path.write_text("somebody's", "ascii")
    first = job.start(1)
    remedy = "put a folder of this user's in its place, or nothing"
    assert first.last_line() == f"error: {path}: it is no folder; {remedy}"
    assert first.process.returncode == 1
    assert path.read_text("ascii") == "somebody's"
    path.unlink()
    second = job.start(2, fence=[1])
    _produce(job)
    _counted(job, second, 1)
    assert second.stop() == 143
    _is_exact(job, 1)


def test_a_predecessor_that_has_not_ended_is_waited_for_and_named(make: Make) -> None:
    """It stands still and holds its stores: the successor waits, ends uncharged, then goes on."""
    keys = {"task.shutdown.ms": "800", "cluster-manager.container.lease.ms": "1000"}
    job = make(**keys)
    first = job.start(1)
    _produce(job)
    _counted(job, first, 1)
    first.process.send_signal(signal.SIGSTOP)

    second = job.start(2, fence=[1])
    holder = (
        f"held by pid {first.process.pid} on nm1 (job {job.config['job.name']}-1 processor 0 "
        "epoch 1): waiting for it"
    )
    last = second.last_line()
    assert second.process.returncode == EXIT_UNAVAILABLE
    assert holder in second.log.read_text(encoding="utf-8")
    assert f"another process has it open after 2 s of waiting: pid {first.process.pid} on " in last
    assert last.endswith("a predecessor that has not ended yet")

    third = job.start(3, fence=[1, 2])
    job.until(lambda: holder in third.log.read_text(encoding="utf-8"), third)
    first.stop(signal.SIGKILL)
    _produce(job)
    _counted(job, third, 2)
    assert third.stop() == 143
    _is_exact(job, 2)
