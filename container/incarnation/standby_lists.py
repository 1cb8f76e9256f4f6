"""Where a mixed container finds the list of standbys that it keeps, while its active tasks work.

A standalone processor writes its child a file. The AM of a job on YARN has the JobModels: its
answers to check-ins name the version in force, and the launcher writes that into the memory that it
shares with the container.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from homeport.config.errors import HomeportError, UnavailableError
from homeport.container.incarnation.context import IncarnationContext
from homeport.container.incarnation.coordinators import ApplicationMaster
from homeport.container.incarnation.environment import orders_file
from homeport.job_coordinator.model.codec import decode_job_model
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.job_model import ContainerModel

_LOG = logging.getLogger(__name__)


class StandbyLists(Protocol):
    """The lists of standbys, one after the other."""

    def news(self) -> Mapping[ProcessorId, ContainerModel] | None:
        """Return the containers that have the list, if it is new; None: it is the last one."""


class FileLists:
    """The lists that a processor writes into a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_at: tuple[int, int] | None = None

    def news(self) -> Mapping[ProcessorId, ContainerModel] | None:
        """As of ``StandbyLists``."""
        try:
            found = self._path.stat()
            key = (found.st_ino, found.st_mtime_ns)
            if key == self._read_at:
                return None
            text = self._path.read_bytes()
        except FileNotFoundError:
            return None
        containers = decode_job_model(text).containers
        self._read_at = key
        return containers


class ModelLists:
    """The lists in the JobModels of the AM, by version."""

    def __init__(self, context: IncarnationContext, master: ApplicationMaster) -> None:
        self._context = context
        self._master = master
        self._version = context.permit.model_version

    def news(self) -> Mapping[ProcessorId, ContainerModel] | None:
        """As of ``StandbyLists``; a version that the AM does not have is passed over."""
        version = self._context.launcher.model_version
        if version <= self._version:
            return None
        own = self._context.permit.incarnation.processor_id
        try:
            containers = self._master.job_model(own, version).containers
        except UnavailableError as error:
            _LOG.warning("%s: the standbys stay for now", error)
            return None
        except HomeportError as error:
            _LOG.warning("the standbys stay: %s", error)
            self._version = version
            return None
        self._version = version
        return containers


def lists_of(context: IncarnationContext) -> StandbyLists:
    """Return the lists of a mixed container."""
    if isinstance(context.coordinator, ApplicationMaster):
        return ModelLists(context, context.coordinator)
    epoch = context.permit.incarnation.epoch
    return FileLists(context.environment.work_dir / orders_file(epoch))
