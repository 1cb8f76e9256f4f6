"""IncarnationContext: what the parts of one incarnation share. Container: runs one incarnation."""

from __future__ import annotations

import functools
import logging
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from homeport.config.settings.sections import StandbyConfig
from homeport.container.container_job import ContainerJob
from homeport.container.host.lease_memory import LeaseMemory
from homeport.container.host.permit import Permit
from homeport.container.host.stop_flag import StopFlag
from homeport.container.incarnation.coordinators import ApplicationMaster, ProcessorCoordinator
from homeport.container.incarnation.environment import Environment, am_client
from homeport.container.kafka.kept_clients import KeptClients
from homeport.job_coordinator import logs
from homeport.job_coordinator.history.writer import HistoryWriter
from homeport.job_coordinator.model.codec import decode_job_model
from homeport.job_coordinator.model.job_model import JobModel, TaskMode
from homeport.job_coordinator.standalone.child_model import part_of
from homeport.job_coordinator.status.container_report import ContainerReport

_LOG = logging.getLogger(__name__)

History = Callable[..., None]


class Phases:
    """Counts the seconds of each phase of a start."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._began = time.monotonic()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time in the block to that of ``name``."""
        began = time.monotonic()
        yield
        self.seconds[name] = round(self.seconds.get(name, 0.0) + time.monotonic() - began, 3)

    def elapsed_s(self) -> float:
        """Return the seconds since the first own step."""
        return time.monotonic() - self._began

    def total(self) -> dict[str, float]:
        """Return every phase, and the whole under ``total``."""
        return {**self.seconds, "total": round(self.elapsed_s(), 3)}


@dataclass(frozen=True)
class IncarnationContext:
    """The job of one container, its permit and surroundings, and where it reports.

    ``history``: writes an event of this incarnation. ``send``: hands a report to the launcher.
    ``pause``: waits the seconds given; raises StopRequestedError to end what is under way.
    ``clients``: those of Kafka that its process keeps.
    ``is_mixed``: whether the container may have standby tasks beside active ones; ``standbys``:
    those that it begins with; None: none.
    """

    job: ContainerJob
    permit: Permit
    environment: Environment
    coordinator: ApplicationMaster | ProcessorCoordinator
    stop: StopFlag
    launcher: LeaseMemory
    history: History
    send: Callable[[ContainerReport], None]
    pause: Callable[[float], None]
    phases: Phases = field(default_factory=Phases)
    clients: KeptClients = field(default_factory=KeptClients)
    is_mixed: bool = False
    standbys: JobModel | None = None

    @staticmethod
    def of_permit(
        text: str, stop: StopFlag, launcher: LeaseMemory, clients: KeptClients
    ) -> IncarnationContext:
        """Return the context that follows from a permit, with the JobModel from the coordinator.

        HomeportError: the permit or the environment is not what a parent process gives, or the AM
        does not answer. StopRequestedError: the order to stop came.
        """
        phases, permit = Phases(), Permit.from_json(text)
        environment = Environment.of(os.environ, Path.cwd())
        own = permit.incarnation
        named = (own.processor_id, own.epoch, environment.host, permit.model_version, os.getpid())
        logs.add_facts(processor=own.processor_id, epoch=own.epoch, host=environment.host)
        _LOG.info("processor %s epoch %d on %s, JobModel %d, pid %d", *named)
        coordinator: ApplicationMaster | ProcessorCoordinator
        if permit.model:
            with phases.phase("model"):
                model = decode_job_model(permit.model.encode())
            tree = environment.tree
            coordinator = ProcessorCoordinator(launcher, model.config, stop, tree)
        else:
            coordinator = master = ApplicationMaster(am_client(os.environ, Path.cwd()), stop)
            with phases.phase("model"):
                model = master.job_model(own.processor_id, permit.model_version)
        standby, standbys = StandbyConfig.of(model.config), None
        is_mixed = standby.enabled if permit.model else standby.is_mixed
        if is_mixed:
            standbys = part_of(model, own.processor_id, TaskMode.STANDBY)
            # A container without active tasks has its standbys.
            model = part_of(model, own.processor_id, TaskMode.ACTIVE) or standbys or model
        job = ContainerJob.of(model, own.processor_id)
        return IncarnationContext(
            job,
            permit,
            environment,
            coordinator,
            stop,
            launcher,
            history_of(job, permit, environment, is_mixed=is_mixed),
            launcher.announce,
            stop.pause,
            phases,
            clients=clients,
            is_mixed=is_mixed,
            standbys=standbys,
        )


def history_of(
    job: ContainerJob, permit: Permit, environment: Environment, *, is_mixed: bool = False
) -> History:
    """Return a writer of this incarnation's events; those of a standby container name its active.

    One that is mixed may have active tasks next: its events name no role.
    """
    folder, max_mb = environment.history_folder(job.job), job.job.history_max_mb
    writer = HistoryWriter(folder, "container", environment.host, max_mb)
    role = {}
    if job.active_processor is not None and not is_mixed:
        role = {"processor_role": "standby", "active_processor_id": job.active_processor}
    own = permit.incarnation
    return functools.partial(writer.event, processor_id=own.processor_id, epoch=own.epoch, **role)


class Container(ABC):
    """Runs one incarnation: ``run`` once; ``kill_children`` in any case afterwards."""

    def __init__(self, context: IncarnationContext) -> None:
        self._context = context
        self.shutdown_ms = context.job.task.shutdown_ms
        self.is_over = False
        """Whether it has ended in order, and its process may run another incarnation."""

    @abstractmethod
    def run(self) -> bool:
        """Return whether its tasks have finished; False after the order to stop.

        In either case all that is committed is on the disk. HomeportError: the container has
        failed. StopRequestedError: the order came before its work began.
        """

    def kill_children(self) -> None:
        """End the processes that it has started."""
