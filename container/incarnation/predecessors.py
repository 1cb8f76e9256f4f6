"""Predecessors that have not quite ended: how long they may take, and whose fault that is not.

A permit may be given before the kernel has taken a killed predecessor's locks away, and a launcher
kills an isolated one only when its lease has run out.
"""

from __future__ import annotations

from homeport.config.errors import UnavailableError
from homeport.container.container_job import ContainerJob
from homeport.container.host.permit import Permit
from homeport.container.storage.container_storage import ContainerStorage
from homeport.container.storage.directory_lock import DirectoryHeldError, Holder

_LEASE_PARTS = 5
"""The AM's side counts a fifth of the lease more than the launcher's."""


def longest_stop_s(job: ContainerJob) -> float:
    """How long an incarnation can live after the order to stop, or without its lease.

    The second comes before the first where a child hangs after its launcher's order to stop.
    """
    lease_ms = job.cluster.lease_ms
    return (job.task.shutdown_ms + lease_ms + lease_ms // _LEASE_PARTS) / 1000


def open_stores(storage: ContainerStorage, job: ContainerJob, permit: Permit) -> None:
    """The stores are open.

    Raises:
        UnavailableError: a predecessor still holds a directory: no failure of this container's.
        StoreError: another process does, or a directory cannot be used.
    """
    try:
        storage.open()
    except DirectoryHeldError as error:
        if error.holder is None or not is_predecessor(job.job.directory_name, permit, error.holder):
            raise
        raise UnavailableError(f"{error}: a predecessor that has not ended yet") from None


def is_predecessor(job: str, permit: Permit, holder: Holder) -> bool:
    """Whether ``holder`` says to be an incarnation of ``job`` whose place the permit takes."""
    own = permit.incarnation
    if holder.epoch is None or holder.job != job:
        return False
    if permit.model or holder.processor_id == own.processor_id:
        # Generations of standalone processors are versions, which are in one order for all.
        return holder.epoch < own.epoch
    return any(
        (i.processor_id, i.epoch) == (holder.processor_id, holder.epoch) for i in permit.fence
    )
