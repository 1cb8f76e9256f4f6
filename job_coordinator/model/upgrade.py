"""Models an upgrade, and a rolling restart, of a running job, container by container.

PURE. What was ordered, and how far it has come, are records of the coordinator stream, in the form
that ``metadata.upgrade`` gives them. Packages are named by the SHA-256 of their archive; None is
the package of the submission, which YARN has localised.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from homeport.config.config import Config
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.job_package import Package
from homeport.job_coordinator.model.wire_form import Number, Text

SUBJECT = "configuration"
"""What a rolling restart changes, for lines of the log."""
REWRITTEN = "the values from before were written"


class UpgradeDirection(StrEnum):
    """What an operator wants of an upgrade."""

    FORWARD = "forward"
    """All processors are to have the new package."""
    BACK = "back"
    """All are to have the package from before."""


class UpgradePhase(StrEnum):
    """How far an upgrade has come."""

    FORWARD = "forward"
    """One processor after the other gets the new package."""
    BACK = "back"
    """One after the other gets the package from before."""
    DONE = "done"
    """All have the new package, and later processors get it too."""
    GONE_BACK = "gone-back"
    """All have the package from before."""

    @property
    def is_final(self) -> bool:
        """Whether the upgrade is over."""
        return self in {self.DONE, self.GONE_BACK}


@dataclass(frozen=True, slots=True)
class UpgradeOrder:
    """What an operator has ordered, for one run of the job.

    ``id``: the upgrade; an order back names the one that it takes back. ``application``: the run
    of the job that it is meant for. ``watch_ms``: how long each processor is watched before the
    next one. ``by``: the user that ordered it, for people.
    """

    id: Text
    application: Text
    package: Package
    watch_ms: Number
    direction: UpgradeDirection = UpgradeDirection.FORWARD
    by: str = ""


@dataclass(frozen=True, slots=True)
class UpgradeOrders:
    """The orders of operators, for one run of the job.

    ``forward``: the last order of an upgrade. ``back``: the last order to take one back. None:
    there is none. ``refused``: the id of the last order that the driver has refused; None: it has
    refused none. ``why``: the reason of that refusal, for people.
    """

    forward: UpgradeOrder | None = None
    back: UpgradeOrder | None = None
    refused: str | None = None
    why: str = ""

    def is_new(self, state: UpgradeState | None) -> bool:
        """Return whether the driver still has to take the order forward, or to refuse it."""
        order = self.forward
        if order is None or order.id == self.refused:
            return False
        return state is None or state.id != order.id

    def cancels(self, state: UpgradeState | None) -> bool:
        """Return whether the order back cancels the order forward before it begins."""
        ids = {order.id for order in (self.forward, self.back) if order is not None}
        return self.back is not None and self.is_new(state) and len(ids) == 1

    def takes_back(self, state: UpgradeState | None) -> bool:
        """Return whether the order back is of the recorded upgrade, which still goes forward."""
        if self.back is None or state is None or state.id != self.back.id:
            return False
        return state.phase in {UpgradePhase.FORWARD, UpgradePhase.DONE}


@dataclass(frozen=True, slots=True)
class UpgradeState:
    """How far an upgrade has come, as the driver has recorded it before it acts on it.

    ``previous``: the package before ``package``. ``given``: the processors that are wanted with
    ``package``, in the order in which they got it; the others are wanted with ``previous``, unless
    the phase is final. ``current``: the processor that is on its way, or watched; None: none.
    ``lag_before``: how many records it was behind when it became the current one; None: not known.
    ``reason``: why the upgrade goes back, for people; empty: it does not go back. ``last_line``:
    the last line of the log of the container that failed, which may hold a secret; empty: none.
    ``subject``: what is new, for people: a package, or the configuration of a rolling restart.
    """

    id: Text
    application: Text
    package: Text
    previous: str | None
    watch_ms: Number
    phase: UpgradePhase = UpgradePhase.FORWARD
    given: tuple[ProcessorId, ...] = ()
    current: ProcessorId | None = None
    lag_before: Number | None = None
    reason: str = ""
    last_line: str = ""
    subject: str = "package"

    @property
    def story(self) -> str:
        """Why it goes back, with the last line; for those that may read logs."""
        return ": ".join(filter(None, (self.reason, self.last_line)))

    def wanted(self, processor_id: ProcessorId) -> str | None:
        """Return the package that the next incarnation of the processor is to run."""
        if self.phase.is_final:
            return self.left
        return self.package if processor_id in self.given else self.previous

    @property
    def left(self) -> str | None:
        """The package that all have once it is over; while it is under way, the one from before."""
        return self.package if self.phase is UpgradePhase.DONE else self.previous


@dataclass(frozen=True, slots=True)
class RollingRestart:
    """How far a changed configuration has come.

    ``state``: which processors have it; its packages are the releases of ``release``. ``version``:
    of the JobModel that brought the changed values. ``first``: the first JobModel since the last
    values that all containers ran with. ``back``: the JobModel that has those again; None: none
    has. ``former``: {key: its value in them}, secrets included; None: it was not set.
    """

    state: UpgradeState
    version: Number
    first: Number
    back: Number | None
    former: Mapping[str, str | None]

    @property
    def is_under_way(self) -> bool:
        """Whether a container may still have other values than it is wanted with."""
        return not self.state.phase.is_final

    @property
    def lacks_former(self) -> bool:
        """Whether it goes back and no JobModel has the former values, so they must be written."""
        return self.state.phase is UpgradePhase.BACK and self.back is None

    def release(self, version: int) -> str:
        """Return which values a container has that started with that version of the JobModel."""
        if version < self.first or (self.back is not None and version >= self.back):
            return release_of(self.first - 1)
        return release_of(min(version, self.version))

    def is_former(self, config: Config) -> bool:
        """Return whether ``config`` has each former value."""
        return all(config.get(key) == value for key, value in self.former.items())


def release_of(version: int) -> str:
    """Return the name of the values that came with that version of the JobModel, for people."""
    return f"JobModel {version}"
