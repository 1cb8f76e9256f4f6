"""What the coordination of a processor works with: its tree, its work, its planner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import JobModel
from homeport.job_coordinator.standalone.plan import Plan
from homeport.job_coordinator.standalone.protocol import (
    FollowStandbys,
    Record,
    StartWork,
    WorkEnded,
    WorkStarted,
)
from homeport.job_coordinator.zookeeper.session import SessionLease
from homeport.job_coordinator.zookeeper.tree import Readings, Sink


class Tree(Protocol):
    """Where the processors of a job find each other. See ``ZooKeeperTree``."""

    @property
    def name(self) -> str:
        """What it is, for errors."""

    @property
    def last_fault(self) -> str:
        """What went wrong last with the connection; "": nothing."""

    @property
    def session_timeout_ms(self) -> int:
        """How long a session that is silent is kept."""

    url: str
    """Where the processor answers HTTP, to be set before it registers; empty: nowhere."""

    def begin(self, sink: Sink) -> None:
        """Give ``sink`` what is seen from now on."""

    def write(self, record: Record) -> None:
        """Write the record, after all before it."""

    def confirm(self, incarnation: Incarnation) -> None:
        """Give the sink whether the incarnation, which has fenced its list, may go on."""

    def renew(self) -> None:
        """Close the session and begin a new one."""

    def model(self, version: int) -> JobModel:
        """Return the JobModel of a version that was seen; it has no configuration."""

    def readings(self) -> Readings:
        """Return what a computation reads now."""

    def close(self) -> None:
        """Write what is left, as far as can be, and end the session."""


@dataclass(frozen=True, slots=True)
class WorkFenced:
    """The incarnation has fenced its list, and asks whether it may go on."""

    incarnation: Incarnation


WorkReport = WorkFenced | WorkStarted | WorkEnded


class ProcessorWork(Protocol):
    """The one incarnation of a processor, if there is one. To be used from one thread."""

    def prepare(self) -> None:
        """Make ready what a start takes: one may come soon."""

    def start(self, order: StartWork, model: JobModel, lease: SessionLease) -> None:
        """Begin the work, which ends with its lease; OSError: it cannot be started."""

    def follow(self, order: FollowStandbys, model: JobModel) -> None:
        """Keep these standbys from now on, if it lives; OSError: the list cannot be handed over."""

    def stop(self) -> bool:
        """Order it to commit and end; return whether there is one. Its report comes later."""

    def kill(self) -> None:
        """Kill it; no report of it comes."""

    def confirm(self, incarnation: Incarnation) -> None:
        """Let it go on."""

    def reports(self) -> Sequence[WorkReport]:
        """Return what is new; an end that takes too long is brought about."""


class Planner(Protocol):
    """Computes JobModels, in a thread of its own."""

    def prepare(self) -> None:
        """Make ready what a computation takes: one may come soon."""

    def compute(self, base: int, plan: Plan | None) -> None:
        """Give the answer later, and no earlier one; ``plan``: of version ``base``, or None."""

    def close(self) -> None:
        """Let no answer come."""
