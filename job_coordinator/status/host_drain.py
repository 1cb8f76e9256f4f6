"""The drain of a host: which containers leave it, in which order, and when the drain is over.

PURE. ``homeport drain`` and the dashboard's action share these rules. A key of the configuration
names the drained hosts. Each container on one has its own request to move to any other host; an
active container moves warm.
"""

from collections.abc import Iterator, Sequence

from homeport.config.errors import ConfigError, UnavailableError
from homeport.job_coordinator.model.ids import Host, ProcessorId, host_of
from homeport.job_coordinator.model.list_change import ListChange
from homeport.job_coordinator.model.placement import PlacementStatus
from homeport.job_coordinator.status.outlook import ShownOutlook
from homeport.job_coordinator.status.shape import Phase, ShownStatus

_ROUNDS = 3
"""How often a container is moved that comes back, or whose move fails."""
TAKEN_MS = 60_000
"""How long the key may take to be in force; if it takes longer, another key is refused."""
_TERMINAL = frozenset({Phase.FINISHED, Phase.FAILED, Phase.STOPPED})

UNDONE = "what has no order to stop stays, and moves that are under way for the drain end"
"""The last words about a drain that the operator takes back."""

Move = tuple[ProcessorId, bool]
"""A container that must leave, and whether its destination first reads its state (warm)."""


class HostDrain:
    """The progress of all moves away from a host."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._rounds = _ROUNDS
        self._failed: dict[ProcessorId, str] = {}

    def next_moves(self, status: ShownStatus) -> list[Move]:
        """Return the moves that are due now; none if the drain is over, or was taken back.

        Call this when all earlier moves have an answer.
        """
        if self._rounds == 0 or not self._is_drained(status):
            return []
        self._rounds -= 1
        self._failed.clear()
        return moves(self.host, status)

    def answered(self, processor: ProcessorId, status: PlacementStatus, message: str) -> None:
        """Note the final answer to a container's move."""
        if status is not PlacementStatus.SUCCEEDED:
            self._failed[processor] = message

    def done(self) -> str:
        """Return the sentence for a drain that is over, when all containers have left."""
        return f"{self.host} has no container of the job"

    def fault(self, status: ShownStatus) -> str | None:
        """Return which containers have stayed in a drain that is over, and why; None: none."""
        left = [processor for processor, _ in moves(self.host, status)]
        if not left:
            return None
        if not self._is_drained(status):
            return f"the drain of {self.host} was taken back: processor {', '.join(left)} stays"
        why = "; ".join(f"{p}: {self._failed[p]}" for p in left if p in self._failed)
        return (
            f"{self.host} still has processor {', '.join(left)} ({why}); it gets no other "
            f"container; homeport drain {self.host} goes on, --undo takes it back"
        )

    def _is_drained(self, status: ShownStatus) -> bool:
        return self.host in status.drained_hosts


def left_on_drained_hosts(status: ShownStatus) -> Iterator[str]:
    """Yield which containers are on drained hosts, a sentence for each host."""
    for name in status.drained_hosts:
        here = [processor for processor, _ in moves(Host(name), status)]
        if here:
            yield (
                f"{name} is drained and has processor {', '.join(here)}, which restarts there: "
                f"homeport drain {name} moves what is left, --undo takes the drain back"
            )


def moves(host: Host, status: ShownStatus) -> list[Move]:
    """Return what must leave the host, active ones first."""
    found = [
        (c.processor_id, c.role == "active")
        for c in status.containers
        if c.host == host and c.phase not in _TERMINAL and not c.is_temporary
    ]
    return sorted(found, key=lambda move: (not move[1], move[0]))


def require_host(host: Host, status: ShownStatus) -> None:
    """Require that the job knows the host; else ConfigError."""
    used = {c.host for c in status.containers if c.host}
    known = sorted({*status.hosts, *used})
    if host not in known:
        raise ConfigError(
            "HOST", host, "the job knows no host of that name", f"there are {', '.join(known)}"
        )


def am_stays(host: Host, status: ShownStatus) -> str | None:
    """Return a sentence if the AM runs on the host, since no command moves it; else None."""
    if status.job.host != host:  # an AM of an earlier version does not report its host
        return None
    return (
        f"the ApplicationMaster runs on {host}, and stays there: when that host goes down all "
        "containers end too, and start again at home once YARN has started the next attempt"
    )


def without_place(outlook: ShownOutlook) -> str | None:
    """Return which containers have no place elsewhere by ``what-if``; None: none."""
    if not outlook.unplaced:
        return None
    rule = f"the other hosts have no place for processor {', '.join(outlook.unplaced)}"
    return f"{rule}: {outlook.shortage}" if outlook.shortage else rule


def not_taken(key: str) -> UnavailableError:
    """Return the error for a running job that does not take the key in time."""
    return UnavailableError(
        f"the running job has not taken {key} in {TAKEN_MS} ms: see config in homeport status"
    )


def host_change(before: Sequence[str], host: Host, *, is_drained: bool) -> ListChange:
    """Return the change that adds the host to the drained hosts, or removes it."""
    known = tuple(name for name in before if host_of(name) == host)
    if is_drained:
        return ListChange(() if known else (host,))
    return ListChange((), known)
