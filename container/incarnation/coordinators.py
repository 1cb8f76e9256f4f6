"""The coordinator of an incarnation: the AM of a YARN job, or its standalone processor.

A processor is the parent of its incarnation. They communicate by shared memory, so that no
incarnation needs a session of its own with ZooKeeper.
"""

import functools
import logging
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from homeport.config.errors import HomeportError, UnavailableError, WireError
from homeport.container.host.lease_memory import LeaseMemory
from homeport.container.host.permit import Permit
from homeport.container.host.stop_flag import OvertakenError, StopFlag
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.http.messages import Started
from homeport.job_coordinator.metadata.epochs import EpochManager, FenceReport
from homeport.job_coordinator.metadata.state_reset import StateResetManager
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.job_model import JobModel

_LOG = logging.getLogger(__name__)

_STEP_S = 0.005
_AM_PATIENCE_S = 30.0
_AM_PAUSE_S = 0.5
_Answer = TypeVar("_Answer")


class ApplicationMaster:
    """The coordinator of a job on YARN, which keeps permits in the coordinator stream.

    A driver that is being restarted is waited for. UnavailableError: the AM did not answer for half
    a minute. StopRequestedError: the order to stop came.
    """

    def __init__(self, client: CoordinatorClient, stop: StopFlag) -> None:
        self._client = client
        self._stop = stop

    def job_model(self, own: ProcessorId, version: int) -> JobModel:
        """Return the JobModel of that version with this container.

        If it has standbys, the model also has the containers of their active tasks.
        """
        ask = functools.partial(self._client.processor_model, own, version)
        return self._answered(ask, "asking again")

    def config(self) -> Mapping[str, str]:
        """Return the configuration in force, as the AM has it now."""
        return self._client.config()

    def confirm(self, stream: CoordinatorStream, permit: Permit) -> None:
        """Record the fences in the stream, if the permit is the newest of its processor."""
        require_newest(stream, permit)
        report_fenced(stream, permit)

    def report_started(self, message: Started) -> None:
        """Report the start to the AM.

        If the AM refuses the report, the container goes on: its lease alone decides whether it may.
        """
        try:
            self._answered(functools.partial(self._client.started, message), "sending it again")
        except WireError as error:
            _LOG.error("the AM does not take the report of the start: %s", error)

    def _answered(self, ask: Callable[[], _Answer], again: str) -> _Answer:
        deadline = time.monotonic() + _AM_PATIENCE_S
        while True:
            try:
                return ask()
            except UnavailableError as error:
                if time.monotonic() > deadline:
                    raise
                _LOG.warning("%s: %s", error, again)
            self._stop.pause(_AM_PAUSE_S)


class ProcessorCoordinator:
    """The processor that is the parent of this incarnation.

    ``memory``: shared with it. ``tree``: the id of its tree; empty: it has none.
    """

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
        """Return once the processor has the fences in its tree; it kills an overtaken child.

        The stream gets them too: if the tree is lost, the stream shows that the job ran under one.
        A command that changes the state fences what has reported, after it has recorded its phase:
        an incarnation that reports later finds that phase here.
        """
        epoch = permit.incarnation.epoch
        self._memory.fenced = epoch
        while self._memory.confirmed != epoch:
            self._stop.pause(_STEP_S)
        report_fenced(stream, permit)
        stream.catch_up()  # the incarnations on the list are superseded from now on
        require_tree(stream, self._tree)
        StateResetManager(stream).require_finished()

    def report_started(self, message: Started) -> None:
        """Report the start in the memory, for the processor."""
        self._memory.started = message.incarnation.epoch


def require_newest(stream: CoordinatorStream, permit: Permit) -> None:
    """Require that the permit is the newest of its processor.

    OvertakenError: a later permit or JobModel has raised the epoch. HomeportError: the stream does
    not know the permit.
    """
    own = permit.incarnation
    newest = EpochManager(stream).read_processor_epochs().get(own.processor_id)
    if newest is None or newest.epoch < own.epoch:
        said = "none" if newest is None else f"only epoch {newest.epoch}"
        raise HomeportError(
            f"the coordinator stream knows no permit for processor {own.processor_id} "
            f"epoch {own.epoch}, {said}: the permit is not from this job's AM"
        )
    if newest.epoch > own.epoch:
        raise OvertakenError(
            f"processor {own.processor_id} epoch {own.epoch} was overtaken by epoch {newest.epoch}"
        )
    if newest.model_version != permit.model_version:
        raise HomeportError(
            f"the permit names JobModel {permit.model_version}, the coordinator stream says "
            f"{newest.model_version}"
        )


def report_fenced(stream: CoordinatorStream, permit: Permit) -> None:
    """Record in the coordinator stream that the permit's list is fenced for good (safety I3).

    Only after ``require_newest``: an incarnation on the list that initialises its id later reads
    there that it was overtaken. Later permits need not list it.
    """
    own = permit.incarnation
    report = FenceReport(own.epoch, permit.fence)
    EpochManager(stream).write_fenced(own.processor_id, report)


def require_tree(stream: CoordinatorStream, own: str) -> None:
    """Raise OvertakenError where another tree goes on with the job (safety A6)."""
    found = EpochManager(stream).read_tree()
    if found not in {"", own}:
        raise OvertakenError("the job goes on in another folder: run-local --adopt began there")
