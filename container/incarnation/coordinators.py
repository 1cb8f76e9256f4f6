"""What an incarnation reports to in its start: the AM of a YARN job, or its processor.

A processor, which users start themselves, is the parent of the incarnation and talks to it by the
memory that they share: no incarnation of it needs a session with ZooKeeper of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from homeport.container.host.lease_memory import LeaseMemory
from homeport.container.host.permit import Permit
from homeport.container.host.stop_flag import OvertakenError, StopFlag
from homeport.container.incarnation import start_up
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.http.messages import Started
from homeport.job_coordinator.metadata.epochs import EpochManager

_STEP_S = 0.02


class Coordinator(Protocol):
    """What a stream container needs of its job coordinator."""

    @property
    def keeps_locality(self) -> bool:
        """Whether it is the coordinator that writes down where the tasks are."""

    def config(self) -> Mapping[str, str]:
        """Return the configuration in force."""

    def confirm(self, stream: CoordinatorStream, permit: Permit) -> None:
        """Record that the permit's list is fenced for good; OvertakenError: a newer one is.

        Safety I3. ``stream``: read to its head after the own transactional id was initialised.
        """

    def report_started(
        self, message: Started, history: Callable[..., None], stop: StopFlag
    ) -> None:
        """Report to the coordinator that the container has started."""


class ApplicationMaster:
    """The coordinator of a job on YARN, which keeps permits in the coordinator stream."""

    keeps_locality = False

    def __init__(self, client: CoordinatorClient) -> None:
        self.client = client

    def config(self) -> Mapping[str, str]:
        """Return the configuration in force."""
        return self.client.config()

    def confirm(self, stream: CoordinatorStream, permit: Permit) -> None:
        """As ``start_up.require_newest`` and ``start_up.report_fenced``."""
        start_up.require_newest(stream, permit)
        start_up.report_fenced(stream, permit)

    def report_started(
        self, message: Started, history: Callable[..., None], stop: StopFlag
    ) -> None:
        """As ``start_up.report_started``."""
        start_up.report_started(self.client, message, history, stop)


class ProcessorCoordinator:
    """The processor that is the parent of this incarnation.

    ``memory``: shared with it. ``tree``: the id of its tree; empty: it has none.
    """

    keeps_locality = True

    def __init__(
        self, memory: LeaseMemory, config: Mapping[str, str], stop: StopFlag, tree: str = ""
    ) -> None:
        self._tree = tree
        self._memory = memory
        self._config = config
        self._stop = stop

    def config(self) -> Mapping[str, str]:
        """Return the configuration of the processor, which does not change."""
        return self._config

    def confirm(self, stream: CoordinatorStream, permit: Permit) -> None:
        """Return once the processor has it in its tree; one that was overtaken is ended.

        The stream has it too: where a tree is lost, it says that the job has run under one.
        """
        epoch = permit.incarnation.epoch
        self._memory.fenced = epoch
        while self._memory.confirmed != epoch:
            self._stop.pause(_STEP_S)
        start_up.report_fenced(stream, permit)
        stream.catch_up()  # what the list names is superseded from now on
        require_tree(stream, self._tree)

    def report_started(
        self,
        message: Started,
        history: Callable[..., None],
        stop: StopFlag,  # noqa: ARG002 - of the protocol
    ) -> None:
        """Report the start in the memory, for the processor."""
        self._memory.started = message.incarnation.epoch
        start_up.note_started(message, history)


def require_tree(stream: CoordinatorStream, own: str) -> None:
    """Raise OvertakenError where another tree goes on with the job (safety A6)."""
    found = EpochManager(stream).read_tree()
    if found not in {"", own}:
        raise OvertakenError("the job goes on in another folder: run-local --adopt began there")
