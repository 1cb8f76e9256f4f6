"""Hosts that fell silent are lost now: they are not asked until they are known, or may, live.

PURE. The ResourceManager takes minutes to call a host lost; its launchers are known to be silent
after a lease. So a host all of whose launchers fell silent, without YARN's word that one of them
ended, is excluded from placement at once, and what it ran is not charged (safety P2).

An exclusion ends with a check-in from the host; with the ResourceManager's word that it is lost,
since from then on its report that it runs again is believed; or by decay: after a while one
launcher may be requested there, the probe, and if none comes of that, the host is excluded again
(safety P3). The silent launchers were cancelled in the step of their silence, before any probe.

Where more than half of all hosts fall silent at once, the fault is taken to be the AM's own: those
are not excluded, and the log says so (safety L5). "At once" is the time that leases take to run out
one after the other when the AM is cut off from all. The only host is never excluded.
"""

from __future__ import annotations

from collections.abc import Collection

from homeport.appmaster.allocation import container_allocator as allocator
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.state import (
    Exclusion,
    JobPhase,
    Resources,
    exclusion_timer,
    silence_timer,
)
from homeport.appmaster.allocation.protocol.events import TimerKind
from homeport.appmaster.allocation.protocol.instructions import SuspectOurselves
from homeport.appmaster.allocation.protocol.reasons import ReasonKind
from homeport.job_coordinator.model.ids import Host

EXCLUSION_MS = 60_000


def suspects_itself(silent: Collection[Host], hosts: Collection[Host]) -> bool:
    """Whether more than half of all hosts fell silent at once: the fault is here (safety L5)."""
    return len(hosts) > 1 and 2 * len(set(silent) & set(hosts)) > len(set(hosts))


def is_lost(draft: Draft, host: Host | None) -> bool:
    """Whether what ran there was lost with its host: not charged. None: no host was named."""
    if host is None or draft.hosts is None:
        return False
    return host not in draft.hosts or host in draft.silent or host in draft.exclusions


def launcher_fell_silent(draft: Draft, host: Host) -> None:
    """Forget a launcher of the host that fell silent; return whether it was the last one."""
    hosts = draft.hosts or ()
    if draft.phase is not JobPhase.ACTIVE or host not in hosts or len(hosts) == 1:
        return
    if draft.resources.indexed(Resources.HOST, host):
        return
    draft.silent |= {host}
    draft.set_timer(silence_timer(host), draft.settings.silence_ms)
    if suspects_itself(draft.silent, hosts):
        _suspect_ourselves(draft, host)
    else:
        _exclude(draft, host, "the last of them just now")


def _suspect_ourselves(draft: Draft, host: Host) -> None:
    """Suspect ourselves; ``host``: the one after which it is so."""
    for silent in sorted(draft.silent):
        _end(draft, silent)
    together = ", ".join(sorted(draft.silent))
    draft.because(ReasonKind.FAULT_HERE, host=host, detail=together)
    draft.instruct(SuspectOurselves(tuple(sorted(draft.silent))))


def _exclude(draft: Draft, host: Host, why: str) -> None:
    draft.because(ReasonKind.HOST_EXCLUDED, host=host, detail=why)
    draft.exclusions[host] = Exclusion(host)
    draft.set_timer(exclusion_timer(host), draft.settings.exclusion_ms)
    allocator.leave(draft, host, "its launchers fell silent")


def probe_failed(draft: Draft, host: Host | None) -> None:
    """Exclude a host again whose probe brought no launcher."""
    if host is not None and host in draft.exclusions:
        _exclude(draft, host, "no launcher came of the probe")


def host_spoke(draft: Draft, host: Host) -> None:
    """Note that the host lives: a launcher there checked in."""
    if host in draft.exclusions:
        draft.because(ReasonKind.HOST_OPEN, host=host, detail="a launcher there checked in")
    _forget(draft, host)


def _forget(draft: Draft, host: Host) -> None:
    draft.silent -= {host}
    draft.cancel_timer(silence_timer(host))
    _end(draft, host)


def hosts_observed(draft: Draft) -> None:
    """Forget hosts that the ResourceManager does not call live, and an only host.

    Where that leaves more than half of all hosts silent, the fault is taken to be ours after all.
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
    """Place nothing any more."""
    for host in sorted({*draft.silent, *draft.exclusions}):
        _forget(draft, host)


def _end(draft: Draft, host: Host) -> None:
    draft.cancel_timer(exclusion_timer(host))
    draft.exclusions.pop(host, None)


def time_is_over(draft: Draft, kind: TimerKind, host: Host) -> None:
    """End the time for which a host is just silent, or not probed; the timer is off."""
    if kind is TimerKind.SILENCE:
        draft.silent -= {host}
    else:
        draft.exclusions[host] = Exclusion(host, is_probed=True)
        draft.because(ReasonKind.HOST_TO_BE_PROBED, host=host)
