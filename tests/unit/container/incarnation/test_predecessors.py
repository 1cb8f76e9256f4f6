"""A directory that another process still holds: its fault, and how long it is waited for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from small_jobs import LOGGED, job_of

from homeport.config.errors import UnavailableError
from homeport.container.container_job import ContainerJob
from homeport.container.host.permit import Permit
from homeport.container.incarnation.restoring import is_predecessor, open_stores
from homeport.container.incarnation.start_up import longest_stop_s
from homeport.container.storage.container_storage import ContainerStorage
from homeport.container.storage.directory import StoreDirectory
from homeport.container.storage.directory_lock import LOCK_FILE, NO_WAIT, DirectoryHeldError, Holder
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation

KEYS = {**LOGGED, "task.shutdown.ms": "20000", "cluster-manager.container.lease.ms": "10000"}
P0, P1 = ProcessorId("0"), ProcessorId("1")
PERMIT = Permit(Incarnation(P0, 5), 1, (Incarnation(P1, 2),))


def _holder(processor_id: ProcessorId, epoch: int, job: str = "j-1") -> Holder:
    return Holder.of(job, Incarnation(processor_id, epoch), Host("NM1"))


def _storage(folder: Path, job: ContainerJob, epoch: int) -> ContainerStorage:
    return ContainerStorage(
        folder, folder / "scratch", job.stores, job.tasks, 1 << 24, "G", NO_WAIT, _holder(P0, epoch)
    )


def test_the_wait_covers_a_stop_and_a_lease_that_runs_out() -> None:
    """task.shutdown.ms, the lease, and the AM's margin of a fifth of it."""
    assert longest_stop_s(job_of(KEYS)) == 32.0


@pytest.mark.parametrize(
    ("holder", "expected"),
    [
        (_holder(P0, 4), True),
        (_holder(P0, 5), False),
        (_holder(P0, 6), False),
        (_holder(P1, 2), True),
        (_holder(P1, 3), False),
        (_holder(P0, 4, "other-1"), False),
        (Holder.of_this_process(), False),
    ],
)
def test_predecessors_are_earlier_incarnations_and_those_of_the_permit(
    holder: Holder, *, expected: bool
) -> None:
    """Of this job alone: another's, a later one, and a tool are none."""
    assert is_predecessor("j-1", PERMIT, holder) is expected


def test_a_predecessor_that_has_not_ended_is_no_failure_of_ours(tmp_path: Path) -> None:
    """The container ends as it does when Kafka is away, which the retry keys are not charged."""
    job = job_of(KEYS)
    predecessor = _storage(tmp_path, job, 4)
    predecessor.open()
    stated = r"has it open: pid [0-9]+ on NM1 .*epoch 4\): a predecessor that has not ended yet"
    with pytest.raises(UnavailableError, match=stated):
        open_stores(_storage(tmp_path, job, 5), job, PERMIT)
    predecessor.close()
    successor = _storage(tmp_path, job, 5)
    open_stores(successor, job, PERMIT)
    successor.close()


@pytest.mark.parametrize(
    ("is_known", "said"), [(True, r"has it open: pid [0-9]+ on "), (False, "its lock does not say")]
)
def test_another_that_holds_a_directory_is_a_failure(
    tmp_path: Path, said: str, *, is_known: bool
) -> None:
    """A tool is not part of the job, and may hold it for ever; an unknown holder is none either.

    A lock with an empty file, as on a full disk, counts as held by an unknown process.
    """
    other = StoreDirectory(tmp_path / "s" / "Partition_0")
    if not is_known:
        (tmp_path / "s" / "Partition_0" / LOCK_FILE).write_bytes(b"")
    job = job_of(KEYS)
    with pytest.raises(DirectoryHeldError, match=said):
        open_stores(_storage(tmp_path, job, 5), job, PERMIT)
    other.release()


def test_generations_of_standalone_processors_are_in_one_order() -> None:
    """A lower one of any processor may still hold a directory, also one that was fenced before."""
    permit = replace(PERMIT, model="{}")
    assert is_predecessor("j-1", permit, _holder(P1, 3))
    assert not is_predecessor("j-1", permit, _holder(P1, 5))
