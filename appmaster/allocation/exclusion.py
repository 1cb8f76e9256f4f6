"""Excludes silent hosts from placement at once, until they live or a probe may start there.

PURE. The ResourceManager takes minutes to report a host lost; the AM notices silent launchers
after one lease. If all launchers of a host fall silent, and YARN reports the end of none, the
allocator excludes the host at once and does not charge what ran there (safety P2).

Three events end an exclusion (safety P3). A launcher on the host checks in. The ResourceManager
reports the host lost: its later report that the host runs is then reliable. The exclusion expires:
the allocator may request one launcher there, the probe, and excludes the host again if it fails.
The allocator cancels a launcher as soon as it falls silent, so before any probe.

If more than half of all hosts fall silent at once, the AM suspects itself: it excludes none of them
and logs that (safety L5). "At once" means within ``silence_ms``: in this time all leases run out
after the AM has lost its connection to all hosts. The allocator never excludes the only host.
"""

from collections.abc import Collection

from homeport.appmaster.allocation import container_allocator as allocator
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.state import JobPhase, Resources
from homeport.appmaster.allocation.protocol.events import Timer, TimerKind
from homeport.appmaster.allocation.protocol.instructions import SuspectOurselves
from homeport.appmaster.allocation.protocol.reasons import ReasonKind
from homeport.job_coordinator.model.ids import Host

EXCLUSION_MS = 60_000
"""After this time an excluded host is probed."""


def suspects_itself(silent: Collection[Host], hosts: Collection[Host]) -> bool:
    """Return whether more than half of ``hosts`` are silent: the fault is the AM's (safety L5)."""
    return len(hosts) > 1 and 2 * len(set(silent) & set(hosts)) > len(set(hosts))


def is_lost(draft: Draft, host: Host | None) -> bool:
    """Return whether ``host`` is lost, so that no loss there is charged; False for None."""
    if host is None or draft.hosts is None:
        return False
    return host not in draft.hosts or host in draft.silent or host in draft.exclusions


def launcher_fell_silent(draft: Draft, host: Host) -> None:
    """Exclude the host, or suspect ourselves, if its last launcher fell silent."""
    hosts = draft.hosts or ()
    if draft.phase is not JobPhase.ACTIVE or host not in hosts or len(hosts) == 1:
        return
    if draft.resources.indexed(Resources.HOST, host):
        return
    draft.silent |= {host}
    draft.set_timer(Timer(TimerKind.SILENCE, host), draft.settings.silence_ms)
    if suspects_itself(draft.silent, hosts):
        _suspect_ourselves(draft, host)
    else:
        _exclude(draft, host, "the last of them just now")


def _suspect_ourselves(draft: Draft, host: Host) -> None:
    """End the exclusions of silent hosts, and report the AM; ``host``: the last to fall silent."""
    for silent in sorted(draft.silent):
        _end(draft, silent)
    together = ", ".join(sorted(draft.silent))
    draft.because(ReasonKind.FAULT_HERE, host=host, detail=together)
    draft.instruct(SuspectOurselves(tuple(sorted(draft.silent))))


def _exclude(draft: Draft, host: Host, why: str) -> None:
    draft.because(ReasonKind.HOST_EXCLUDED, host=host, detail=why)
    draft.exclusions = draft.exclusions.set(host, False)  # noqa: FBT003 - a Map has no keywords
    draft.set_timer(Timer(TimerKind.EXCLUSION, host), EXCLUSION_MS)
    allocator.leave(draft, host, "its launchers fell silent")


def probe_failed(draft: Draft, host: Host | None) -> None:
    """Exclude the host again, if it is excluded: its probe started no launcher."""
    if host is not None and host in draft.exclusions:
        _exclude(draft, host, "no launcher came of the probe")


def host_spoke(draft: Draft, host: Host) -> None:
    """Note that the host lives: a launcher there checked in."""
    if host in draft.exclusions:
        draft.because(ReasonKind.HOST_OPEN, host=host, detail="a launcher there checked in")
    _forget(draft, host)


def _forget(draft: Draft, host: Host) -> None:
    draft.silent -= {host}
    draft.cancel_timer(Timer(TimerKind.SILENCE, host))
    _end(draft, host)


def hosts_observed(draft: Draft) -> None:
    """Forget hosts that the ResourceManager does not report live, and a host that is the only one.

    If more than half of the live hosts are silent then, suspect ourselves.
    """
    hosts = set(draft.hosts or ())
    kept = hosts if len(hosts) > 1 else set()
    for host in sorted({*draft.silent, *draft.exclusions} - kept):
        if host in draft.exclusions:
            why = "it is the only host" if host in hosts else "the ResourceManager calls it lost"
            draft.because(ReasonKind.HOST_OPEN, host=host, detail=f"{why}, and is believed")
        _forget(draft, host)
    doubted = [host for host in sorted(draft.silent) if host in draft.exclusions]
    if doubted and suspects_itself(draft.silent, hosts):
        _suspect_ourselves(draft, doubted[-1])


def forget_all(draft: Draft) -> None:
    """Forget all silent and excluded hosts: the job places nothing any more."""
    for host in sorted({*draft.silent, *draft.exclusions}):
        _forget(draft, host)


def _end(draft: Draft, host: Host) -> None:
    draft.cancel_timer(Timer(TimerKind.EXCLUSION, host))
    if host in draft.exclusions:
        draft.exclusions = draft.exclusions.delete(host)


def time_is_over(draft: Draft, kind: TimerKind, host: Host) -> None:
    """End the host's silence, or allow its probe, when its timer of ``kind`` has run out."""
    if kind is TimerKind.SILENCE:
        draft.silent -= {host}
    else:
        draft.exclusions = draft.exclusions.set(host, True)  # noqa: FBT003 - as above
        draft.because(ReasonKind.HOST_TO_BE_PROBED, host=host)
