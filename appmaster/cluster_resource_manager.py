"""ClusterResourceManager: what a cluster manager can do, and what it can report.

The contract, for implementations and for callers:

1. A call may block; the driver makes it off its event loop. One call at a time is served, so a
   report is never older than one returned before.
2. Every call raises UnavailableError where there is no answer, and then may or may not have taken
   effect. Any call may be repeated: what has taken effect once takes none the second time.
3. A report of resources and hosts is a whole snapshot, never a change, so that one that is lost
   or late heals with the next. Of the end of a container there is one report, in the first answer
   after it: the caller keeps it.
4. Whatever is said of a resource is evidence for a request only, never that what ran in it has
   stopped (safety P1): a container counts as ended from the moment it is cancelled.
5. A request has no end of its own. It is granted when there is room, or when its host is back,
   until it is cancelled; giving up is the allocator's.
6. The implementation outlives no driver. What it must know of earlier drivers of the attempt it
   reads when it is made: of what those asked for, the granted containers stay, and the others are
   withdrawn with the first report, as their expiry is lost with their driver.

Every implementation passes ``tests/support/cluster_resource_manager_conformance.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from homeport.appmaster.allocation.protocol.events import HostReport
from homeport.appmaster.allocation.protocol.instructions import JobResult
from homeport.appmaster.allocation.protocol.observation import SkeinContainer
from homeport.job_coordinator.model.ids import Host, RequestId, ResourceId


@dataclass(frozen=True, slots=True)
class ResourceReport:
    """One container as the cluster manager sees it; ``resource_id`` is None until it is granted."""

    container: SkeinContainer
    resource_id: ResourceId | None = None


class ClusterResourceManager(Protocol):
    """One application on a cluster, as one driver has it. See the contract above."""

    def hosts(self) -> tuple[HostReport, ...]:
        """Return what each host has, by name: live hosts now, and lost ones where known.

        A machine that dies stays live until the cluster manager has noticed, which takes minutes.
        """

    def request(
        self, request_id: RequestId, host: Host | None, environment: Mapping[str, str]
    ) -> None:
        """Request a container with ``environment``: on ``host`` and nowhere else, or anywhere.

        A second request of one number is the first. Its size is the application's.

        Raises:
            UnavailableError: the cluster manager refused or did not answer; or the host joined
                after the submission and cannot be asked for by name. If there is a container all
                the same, it is ended with the next report.
        """

    def cancel(self, request_id: RequestId) -> None:
        """Withdraw the request, or end its container; do nothing where there is none.

        A launcher that is already on its way may still check in.
        """

    @property
    def next_request_id(self) -> int:
        """A number above that of every request made so far, by earlier drivers too."""

    def resources(self) -> tuple[ResourceReport, ...]:
        """Return all containers of ours that have not ended, and once each of those that have.

        Of one that has ended: how, in the cluster manager's words; whether for its own fault;
        whether the cluster took it back. Where it ran is not said: its launcher says that.
        """

    def request_of(self, skein_id: str) -> RequestId | None:
        """The request that a container was added for, ended or not; None: not one of ours."""

    def add_page(self, url: str) -> None:
        """Link ``url`` in the application's page, where the cluster manager has one."""

    def finish(self, result: JobResult, diagnostics: str) -> None:
        """End the application with this result; its containers are ended by force.

        No other call need be answered from then on.
        """
