"""When the standbys of mixed containers are dealt again, and lost tasks go to them.

PURE. Tasks of a container that cannot go home go at once. Standbys follow once all containers have
stayed where they are for a moment: at a submission, or after a restart of the AM, they come one
after the other, and each deal is a version of the JobModel.
"""

from dataclasses import dataclass, replace

import msgspec

from homeport.appmaster.allocation.job_state.state import AllocatorState
from homeport.job_coordinator.grouper.mixed_failover import Failover, failed_over
from homeport.job_coordinator.grouper.mixed_standbys import Places
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.job_model import JobModel
from homeport.job_coordinator.standalone.standby_view import after
from homeport.job_coordinator.status.outlook import ShownOutlook
from homeport.job_coordinator.status.shape import ShownTakenOver

QUIET_S = 1.0
"""How long the containers stay where they are before standbys are dealt."""
_LONGEST_S = 10.0
"""How long a deal waits for that."""


@dataclass(frozen=True, slots=True)
class Due:
    """A JobModel that is due: these containers are ``lost``, and the others are at ``places``."""

    lost: frozenset[ProcessorId]
    places: Places

    def why(self, found: Failover) -> str:
        """Return the reason of the version, for people."""
        if not self.lost:
            return "standbys are dealt where containers run"
        names = ", ".join(sorted(self.lost))
        return (
            f"containers {names} cannot go home: {found.lost} tasks go to others, "
            f"{found.unbacked} of them without a standby"
        )


class Quiet:
    """Whether the containers have stayed where they are since the last version for their places."""

    def __init__(self) -> None:
        self._done: Places | None = None
        self._seen: Places | None = None
        self._seen_s = self._new_s = 0.0

    @property
    def is_first(self) -> bool:
        """Whether no version has been made yet."""
        return self._done is None

    def look(self, places: Places, now_s: float) -> bool:
        """Note where the containers are; return whether that is news since the last version."""
        if places != self._seen:
            if self._seen is None or self._seen == self._done:
                self._new_s = now_s
            self._seen, self._seen_s = places, now_s
        return places != self._done

    def is_over(self, now_s: float, *, is_whole: bool = True) -> bool:
        """Return whether they have stayed there for a moment, or have come and gone for long.

        ``is_whole``: no container is on its way, so that a moment is enough.
        """
        return (is_whole and now_s - self._seen_s >= QUIET_S) or now_s - self._new_s >= _LONGEST_S

    def done(self, places: Places) -> None:
        """Note that the version for these places is in force."""
        self._done = places


def places_of(state: AllocatorState) -> Places:
    """Return where containers of the JobModel run, or hold a launcher."""
    hosts = ((c, state.host_of(c)) for c in state.containers)
    held = {c.processor_id: h for c, h in hosts if h and not (c.is_retired or c.is_temporary)}
    return Places(held, state.racks)


def with_tasks(outlook: ShownOutlook, model: JobModel, places: Places) -> ShownOutlook:
    """Return the outlook with where the tasks of mixed containers go that cannot go home."""
    if not outlook.tasks_moved:
        return outlook
    left = {p: h for p, h in places.hosts.items() if h not in outlook.hosts}
    found = failed_over(model, outlook.tasks_moved, replace(places, hosts=left))
    moved: dict[ProcessorId, dict[ProcessorId, int]] = {p: {} for p in outlook.tasks_moved}
    before = model.owners
    for task, owner in sorted(found.model.owners.items()):
        if owner != before[task]:
            counts = moved[before[task]]
            counts[owner] = counts.get(owner, 0) + 1
    return msgspec.structs.replace(outlook, tasks_moved=moved, unbacked=found.unbacked)


class MixedRoles:
    """Remembers what is lost, and for which places standbys were dealt last."""

    def __init__(self) -> None:
        self.taken_over = ShownTakenOver()
        self._lost: frozenset[ProcessorId] = frozenset()
        self._quiet = Quiet()

    def lost(self, processor_id: ProcessorId) -> None:
        """Note that other containers must take the tasks of this one."""
        self._lost |= {processor_id}

    def due(self, places: Places, now_s: float, count: int) -> Due | None:
        """Return the JobModel that is due; None: none is.

        ``count``: of the job's containers. A deal waits for those that have no place yet: a standby
        stays where it is dealt, and a later takeover finds less room at standbys.
        """
        is_news = self._quiet.look(places, now_s)
        if self._lost:
            there = {p: h for p, h in places.hosts.items() if p not in self._lost}
            return Due(self._lost, replace(places, hosts=there))
        is_whole = len(places.hosts) >= count
        is_due = is_news and places.hosts and self._quiet.is_over(now_s, is_whole=is_whole)
        return Due(frozenset(), places) if is_due else None

    def done(self, due: Due, found: Failover, version: int) -> None:
        """Note that the version is in force, or changes nothing."""
        self._lost -= due.lost
        self._quiet.done(due.places)
        self.taken_over = after(self.taken_over, found.lost, found.unbacked, version)
