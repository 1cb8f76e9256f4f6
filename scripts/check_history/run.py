"""What the rules look at: one job's run."""

from __future__ import annotations

from dataclasses import dataclass

from check_history.incarnations import Incarnation, incarnations_of
from check_history.reading import Job


@dataclass(frozen=True)
class Run:
    """What the rules look at; ``incarnations`` in the order of their permits."""

    job: Job
    incarnations: tuple[Incarnation, ...]
    allow_gaps: bool = False

    @classmethod
    def of(cls, job: Job, *, allow_gaps: bool = False) -> Run:
        """The run of a job."""
        return cls(job, tuple(incarnations_of(job)), allow_gaps)

    def is_after(self, later: int, earlier: int) -> bool:
        """Whether ``later`` is surely after ``earlier``."""
        return later > earlier + self.job.tolerance_ms

    def has_role(self, role: str) -> bool:
        """Whether anybody of that role wrote a history."""
        return any(event.role == role for event in self.job.events)
