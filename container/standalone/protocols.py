"""What the coordination of a processor works with: its tree, its work, its planner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

    def urls(self) -> Mapping[int, str]:
        """{number of a registration that was seen: where its processor answers HTTP}."""

    def begin(self, sink: Sink) -> None:
        """From now on ``sink`` gets what is seen."""

    def write(self, record: Record) -> None:
        """Write the record, after all before it."""

    def confirm(self, incarnation: Incarnation) -> None:
        """The sink gets whether the incarnation, which has fenced its list, may go on."""

    def renew(self) -> None:
        """The session is closed, and a new one begins."""

    def model(self, version: int) -> JobModel:
        """The JobModel of a version that was seen; it has no configuration."""

    def readings(self) -> Readings:
        """What a computation reads now."""

    def close(self) -> None:
        """What was to be written is, as far as can be; the session is over."""


@dataclass(frozen=True, slots=True)
class WorkFenced:
    """The incarnation has fenced its list, and asks whether it may go on."""

    incarnation: Incarnation


WorkReport = WorkFenced | WorkStarted | WorkEnded


class ProcessorWork(Protocol):
    """The one incarnation of a processor, if there is one. To be used from one thread."""

    def prepare(self) -> None:
        """It may have to start soon: what that takes is made ready."""

    def start(self, order: StartWork, model: JobModel, lease: SessionLease) -> None:
        """Begin the work, which ends with its lease; OSError: it cannot be started."""

    def follow(self, order: FollowStandbys, model: JobModel) -> None:
        """Keep these standbys from now on, if it lives; OSError: the list cannot be handed over."""

    def stop(self) -> bool:
        """It is to commit and end; whether there is one. The report of its end comes later."""

    def kill(self) -> None:
        """There is none, and no report of it comes."""

    def confirm(self, incarnation: Incarnation) -> None:
        """It may go on."""

    def reports(self) -> Sequence[WorkReport]:
        """What is new; an end that takes too long is brought about."""


class Planner(Protocol):
    """Computes JobModels, in a thread of its own."""

    def prepare(self) -> None:
        """It may have to compute soon: what that takes is made ready."""

    def compute(self, base: int, plan: Plan | None) -> None:
        """Give the answer later, and no earlier one; ``plan``: of version ``base``, or None."""

    def close(self) -> None:
        """No answer comes."""
