"""The parts that a processor's coordination drives: its tree, its work and its planner."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from homeport.job_coordinator.model.ids import TaskName
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
        """Its name, for errors."""

    @property
    def last_fault(self) -> str:
        """The last error of the connection; "": there was none."""

    @property
    def session_timeout_ms(self) -> int:
        """How long a silent session is kept."""

    url: str
    """Where the processor answers HTTP, to be set before it registers; empty: nowhere."""

    def begin(self, sink: Sink) -> None:
        """Begin a session; ``sink`` gets all events from now on."""

    def write(self, record: Record) -> None:
        """Write the record, after all before it."""

    def confirm(self, incarnation: Incarnation) -> None:
        """Report to the sink whether the incarnation, which has fenced its list, may go on."""

    def renew(self) -> None:
        """Close the session and begin a new one."""

    def model(self, version: int) -> JobModel:
        """Return the JobModel of a version that was seen; it has no configuration."""

    def readings(self) -> Readings:
        """Return the present input of a computation."""

    def close(self) -> None:
        """Write the pending records, as far as possible, and end the session."""


@dataclass(frozen=True, slots=True)
class WorkFenced:
    """The incarnation has fenced its list, and asks whether it may go on."""

    incarnation: Incarnation


WorkReport = WorkFenced | WorkStarted | WorkEnded


class ProcessorWork(Protocol):
    """The one incarnation of a processor, if there is one. To be used from one thread."""

    def prepare(self) -> None:
        """Get ready for a start, which may come soon."""

    def start(self, order: StartWork, model: JobModel, lease: SessionLease) -> None:
        """Begin the work, which ends with its lease; OSError: it cannot be started."""

    def follow(self, order: FollowStandbys, model: JobModel) -> None:
        """Have the work keep these standbys from now on; OSError: it does not get the list."""

    def stop(self, kept: Collection[TaskName] = ()) -> bool:
        """Order the work to commit and end; return whether there is any. Its report comes later.

        ``kept``: as of ``StopWork``.
        """

    def kill(self) -> None:
        """Kill the work; no report of it comes."""

    def confirm(self, incarnation: Incarnation) -> None:
        """Let the incarnation, which has fenced its list, go on."""

    def reports(self) -> Sequence[WorkReport]:
        """Return what is new; kill a work that takes too long to stop."""


class Planner(Protocol):
    """Computes JobModels, in a thread of its own."""

    def prepare(self) -> None:
        """Get ready for a computation, which may come soon."""

    def compute(self, base: int, plan: Plan | None) -> None:
        """Answer later, and answer no earlier call; ``plan``: that of version ``base``, or None."""

    def close(self) -> None:
        """Give no further answer."""
