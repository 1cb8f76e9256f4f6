"""The launchers that have checked in, and the time of each one's last check-in.

A launcher counts from when it sent the last check-in that was answered. The AM counts from when it
received that, plus a margin, so that it never gives up first (safety C1). An AM that has stood
still received nothing: it gives each launcher the whole time again (safety L4).
"""

from collections.abc import Collection
from dataclasses import dataclass

from homeport.appmaster.allocation.protocol.events import LauncherSilent, ResourceEnded
from homeport.appmaster.allocation.protocol.observation import SkeinContainer
from homeport.job_coordinator.model.ids import Host, RequestId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.status.shape import SpareReport

MARGIN = 0.2
"""How much longer the AM waits than the launcher, as a part of the lease."""


@dataclass(slots=True)
class LauncherEntry:
    """One launcher, as of its last check-in. ``pid``: its child's pid, while it has a child.

    ``spare``: the process that waits to be the next child; None: there is none. ``package``: the
    child's; None: the submission's. ``prepared``, ``python``, ``version``: see ``CheckIn``.
    """

    resource_id: ResourceId
    request_id: RequestId
    host: Host
    pid: int
    running: Incarnation | None
    heard_ms: int
    spare: SpareReport | None = None
    package: str | None = None
    prepared: str | None = None
    python: str | None = None
    version: str | None = None
    end: SkeinContainer | None = None
    """The end of its container, once the cluster manager has reported it."""

    def gone(self) -> ResourceEnded | LauncherSilent:
        """Return the event for a launcher that was silent for the whole limit."""
        if self.end is None:
            return LauncherSilent(self.resource_id)
        return self.end.ended(self.request_id, self.resource_id)


class LauncherTable:
    """Launchers by resource. Times are given by the caller, in ms of one clock that never stops.

    ``limit_ms``: after how much silence a launcher must have killed its child.
    """

    def __init__(self, lease_ms: int, now_ms: int) -> None:
        self.limit_ms = round(lease_ms * (1 + MARGIN))
        self._standstill_ms = lease_ms // 2
        self._checked_ms = now_ms
        self._entries: dict[ResourceId, LauncherEntry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def heard(self, entry: LauncherEntry) -> None:
        """Note that the launcher of ``entry`` has checked in, at ``entry.heard_ms``."""
        known = self._entries.get(entry.resource_id)
        entry.end = known.end if known is not None else None
        self._entries[entry.resource_id] = entry

    def find(self, resource_id: ResourceId) -> LauncherEntry | None:
        """Return the launcher of the resource; None: none has checked in, or it is gone."""
        return self._entries.get(resource_id)

    def ended(self, resource_id: ResourceId, end: SkeinContainer) -> None:
        """Note that the cluster manager has reported the end of the launcher's container."""
        entry = self._entries.get(resource_id)
        if entry is not None:
            entry.end = end

    def forget(self, resource_id: ResourceId) -> None:
        """Forget the launcher, which is known to be gone."""
        self._entries.pop(resource_id, None)

    def all(self) -> tuple[LauncherEntry, ...]:
        """Return every launcher that is not known to be gone, by resource."""
        return tuple(self._entries[r] for r in sorted(self._entries))

    def silent(self, now_ms: int, held: Collection[ResourceId] = ()) -> tuple[LauncherEntry, ...]:
        """Return the launchers that were silent for the whole limit, and forget them.

        ``held`` launchers are left out: their children have leases, and only the keeper reports
        that one has run out. Call this often: after a long pause this process has stood still.
        """
        if now_ms - self._checked_ms > self._standstill_ms:
            for entry in self._entries.values():
                entry.heard_ms = now_ms
        self._checked_ms = now_ms
        found = tuple(
            e
            for e in self.all()
            if e.resource_id not in held and now_ms - e.heard_ms >= self.limit_ms
        )
        for entry in found:
            self.forget(entry.resource_id)
        return found
