"""What the rules look at: one job's run."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from check_history.incarnations import Incarnation, incarnations_of
from check_history.kept import EVENTS
from check_history.reading import Job


@dataclass(frozen=True)
class Run:
    """What the rules look at; ``incarnations`` in the order of their permits.

    ``first_epochs``: {processor: the first epoch of whose permit on nothing is gone}.
    """

    job: Job
    incarnations: tuple[Incarnation, ...]
    allow_gaps: bool = False
    first_epochs: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, job: Job, *, allow_gaps: bool = False) -> Run:
        """The run of a job."""
        run = cls(job, tuple(incarnations_of(job)), allow_gaps)
        for incarnation in run.incarnations:
            granted = incarnation.one("driver", "permit-granted")
            if granted is not None and run.is_kept(EVENTS, granted.at):
                processor_id, epoch = incarnation.key
                run.first_epochs[processor_id] = min(
                    epoch, run.first_epochs.get(processor_id, epoch)
                )
        return run

    def is_kept(self, kind: str, at: int) -> bool:
        """Whether nothing of a kind is gone that was written at this time or later, by anyone."""
        until = self.job.trimmed.get(kind)
        return until is None or self.is_after(at, until)

    def has_permit(self, incarnation: Incarnation) -> bool:
        """Whether nothing is gone that was written after its permit was granted, or repeated.

        Epochs grow: so it is with all later ones of its processor. Transactions apart, here too.
        """
        first = self.first_epochs.get(incarnation.key[0])
        return EVENTS not in self.job.trimmed or (first is not None and incarnation.key[1] >= first)

    def is_whole(self, incarnation: Incarnation) -> bool:
        """Whether nothing is gone of what was written of it, transactions apart.

        The first permit that is there may repeat one that is not: a driver repeats that of a
        launcher that it adopts.
        """
        first = self.first_epochs.get(incarnation.key[0])
        return self.has_permit(incarnation) and (
            EVENTS not in self.job.trimmed or incarnation.key[1] != first
        )

    def is_after(self, later: int, earlier: int) -> bool:
        """Whether ``later`` is surely after ``earlier``."""
        return later > earlier + self.job.tolerance_ms

    @cached_property
    def standalone(self) -> frozenset[str]:
        """The processors that a user has started: their own processes wrote a history, no AM's."""
        return frozenset(
            event.processor_id
            for event in self.job.events
            if event.role == "processor" and event.processor_id is not None
        )

    def has_role(self, role: str) -> bool:
        """Whether anybody of that role wrote a history."""
        return any(event.role == role for event in self.job.events)
