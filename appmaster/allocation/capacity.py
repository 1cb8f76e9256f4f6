"""What follows from the observed hosts, as from a cluster that is too small for a container.

PURE. While no live host is large enough, no request is made: the ResourceManager refuses such a
request, and Skein's AM does not survive the refusal. Containers wait until a large host is back.

If no host is large enough, lost ones included, for as long as a launcher may take to check in, the
job ends FAILED. The time is for a ResourceManager that was just started: its nodes come one by one.

Source: Samza 1.8, which fails a job whose containers exceed the cluster's maximum.
"""

from collections.abc import Collection

from homeport.appmaster.allocation import container_allocator as allocator
from homeport.appmaster.allocation import exclusion
from homeport.appmaster.allocation.job_end import begin_ending
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.hosts import Room, room_of
from homeport.appmaster.allocation.job_state.state import ContainerPhase, Containers, JobPhase
from homeport.appmaster.allocation.protocol.events import HostsObserved, Timer, TimerKind
from homeport.appmaster.allocation.protocol.instructions import JobResult
from homeport.appmaster.allocation.protocol.reasons import ReasonKind
from homeport.config.number_text import counted

TOO_SMALL = Timer(TimerKind.TOO_SMALL)
"""Runs while the cluster, lost hosts included, is too small for a container."""


def hosts_observed(draft: Draft, event: HostsObserved) -> None:
    """Set the live hosts and their room; without reports the room stays as it was."""
    was = draft.room
    if event.reports:
        draft.room = room_of(event.reports, draft.settings)
    allocator.observe_hosts(draft, event)
    exclusion.hosts_observed(draft)
    if was.is_large_enough and not draft.room.is_large_enough:
        draft.because(ReasonKind.CLUSTER_TOO_SMALL, detail=_sizes(draft))
        allocator.withdraw_ungranted(draft, "no live host can hold a container")


def is_hopeless(phase: JobPhase, room: Room, queued: Collection[object]) -> bool:
    """Return whether a container waits that not even a lost host could hold."""
    return phase is JobPhase.ACTIVE and not room.could_be and bool(queued)


def settle(draft: Draft) -> None:
    """Run the timer while ``is_hopeless``."""
    queued = draft.containers.indexed(Containers.PHASE, ContainerPhase.QUEUED)
    if not is_hopeless(draft.phase, draft.room, queued):
        draft.cancel_timer(TOO_SMALL)
    elif TOO_SMALL not in draft.timers:
        draft.set_timer(TOO_SMALL, draft.settings.check_in_timeout_ms)


def time_is_over(draft: Draft) -> None:
    """End the job, whose cluster was too small all the time."""
    begin_ending(draft, JobResult.FAILED, f"no host can hold a container: {_sizes(draft)}")


def _sizes(draft: Draft) -> str:
    settings, (memory_mb, cores) = draft.settings, draft.room.largest
    needed = counted(settings.container_cores, "core")
    return (
        f"one needs {settings.container_memory_mb} MB and {needed} "
        f"(cluster-manager.container.memory.mb and .cpu.cores), and no host of the cluster has "
        f"more than {memory_mb} MB or {counted(cores, 'core')}"
    )
