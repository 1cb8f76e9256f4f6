"""ClusterResourceManager: what a cluster manager can be told, and what it can report.

Whoever implements it may block; the driver calls it off its event loop. A report is a whole
snapshot, never a change, so that one that is lost or late heals with the next. What the manager
says of a resource is no evidence of what runs in it (safety P1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from homeport.appmaster.allocation.events import HostReport
from homeport.appmaster.allocation.instructions import JobResult
from homeport.appmaster.allocation.observation import SkeinContainer
from homeport.job_coordinator.model.ids import Host, RequestId, ResourceId


@dataclass(frozen=True, slots=True)
class ResourceReport:
    """One container as the cluster manager sees it; ``resource_id`` is None until it is granted."""

    container: SkeinContainer
    resource_id: ResourceId | None = None


class ClusterResourceManager(Protocol):
    """One application on a cluster. Every call raises UnavailableError where there is no answer."""

    def hosts(self) -> tuple[HostReport, ...]:
        """What each host of the cluster has; those that are live now, and lost ones if known."""

    def request(
        self, request_id: RequestId, host: Host | None, environment: Mapping[str, str]
    ) -> None:
        """A container with ``environment`` is asked for: strictly on ``host``, or anywhere (None).

        Raises:
            UnavailableError: it is not; the cluster manager refused or did not answer.
        """

    def cancel(self, request_id: RequestId) -> None:
        """The request is withdrawn, or its container is being ended; nothing if it has ended."""

    @property
    def next_request_id(self) -> int:
        """A number above that of every request made so far, by earlier drivers too."""

    def resources(self) -> tuple[ResourceReport, ...]:
        """All containers of ours that have not ended, and once those that have."""

    def request_of(self, skein_id: str) -> RequestId | None:
        """The request that a container was added for; None where it is not one of ours."""

    def add_page(self, url: str) -> None:
        """``url`` is linked in the application's page, where the cluster manager has one."""

    def finish(self, result: JobResult, diagnostics: str) -> None:
        """The application has ended with this result; its containers are ended by force."""
