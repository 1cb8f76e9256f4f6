"""What an upgrade sees of the job, as one immutable value.

PURE. The package of a container is the one that its launcher reports, never the one that was
ordered.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from homeport.job_coordinator.model.ids import ProcessorId


@dataclass(frozen=True, slots=True)
class ContainerSeen:
    """One processor of the job that has not finished.

    Attributes:
        processor_id: its id.
        replica_of: the active that it is a standby of; None: it is active itself.
        is_running: whether it has reported its start, and was not ordered to stop.
        is_known: whether ``package`` is known, from the launcher of its live incarnation.
        package: that it runs; None: the submission's.
        prepared: that its launcher has ready for its next incarnation; None: none.
        lag: of an active its unread input, of a standby how far it is behind, in records; None: not
            known.
        quiet_ms: for how long an active has neither committed nor found its input empty.
        failures: how many are charged to it.
        watched_ms: for how long this driver has seen the incarnation run with its package.
        refusal: why a restart of this incarnation was not carried out; empty: it was not refused.
        unprepared: why the launcher does not have another package ready; empty: not known.
        is_down: whether it has no launcher, and may wait for one for ever.
    """

    processor_id: ProcessorId
    replica_of: ProcessorId | None = None
    is_running: bool = True
    is_known: bool = True
    package: str | None = None
    prepared: str | None = None
    lag: int | None = 0
    quiet_ms: int = 0
    failures: int = 0
    watched_ms: int = 0
    refusal: str = ""
    unprepared: str = ""
    is_down: bool = False

    @property
    def group(self) -> ProcessorId:
        """The id of its active container."""
        return self.replica_of or self.processor_id

    def runs(self, package: str | None) -> bool:
        """Return whether its launcher reports an incarnation of it that runs with ``package``."""
        return self.is_known and self.package == package


@dataclass(frozen=True, slots=True)
class Seen:
    """The job now.

    ``containers``: in any order, without temporary standbys. ``hindrance``: what else goes on, as a
    command, so that nothing may begin; empty: nothing. ``warm_lag``:
    ``cluster-manager.warm-move.max.records``. ``retry_count``: failures that are forgiven; below
    zero: all. ``step_ms``: for how long this driver has had the present record.
    """

    containers: tuple[ContainerSeen, ...]
    hindrance: str = ""
    warm_lag: int = 10_000
    retry_count: int = -1
    step_ms: int = 0

    def find(self, processor_id: ProcessorId | None) -> ContainerSeen | None:
        """Return the container of the processor; None: it has finished, or there is none."""
        return next((c for c in self.containers if c.processor_id == processor_id), None)

    @property
    def obstacle(self) -> str:
        """Why no container may be stopped now; empty: all run, and nothing else goes on."""
        return self.hindrance or _lacking(self.containers)

    def group_obstacle(self, container: ContainerSeen) -> str:
        """Return ``obstacle``, but of the containers that are down count only those of its group.

        Its group keeps the state at hand.
        """
        others = (c for c in self.containers if c.group == container.group or not c.is_down)
        return self.hindrance or _lacking(list(others))


def _lacking(containers: Sequence[ContainerSeen]) -> str:
    missing = sorted(c.processor_id for c in containers if not c.is_running)
    if missing:
        return f"processor {', '.join(missing)} does not run"
    return unheard([c for c in containers if not c.is_known])


def unheard(containers: Sequence[ContainerSeen]) -> str:
    """Return a clause that names the containers without a check-in; empty: there are none."""
    names = ", ".join(sorted(c.processor_id for c in containers))
    return f"the launcher of processor {names} was not heard" if names else ""


def in_order(containers: Sequence[ContainerSeen]) -> list[ContainerSeen]:
    """Return the groups by id, in each the standbys first: new code reads state before it writes.

    Ids that are numbers are in the order of the numbers.
    """
    return sorted(
        containers,
        key=lambda c: (_by_number(c.group), c.replica_of is None, _by_number(c.processor_id)),
    )


def _by_number(processor_id: ProcessorId) -> tuple[int, int, str]:
    """Return a sort key: numbers come first, by their value."""
    is_number = processor_id.isascii() and processor_id.isdigit()
    return (0, int(processor_id), "") if is_number else (1, 0, processor_id)
