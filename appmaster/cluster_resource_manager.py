"""ClusterResourceManager: the operations and reports of a cluster manager.

The contract, for implementations and for callers:

1. A call may block; the driver makes it off its event loop. Calls are served one at a time, so a
   report is never older than one returned before.
2. A call without an answer raises UnavailableError, and may or may not have taken effect. Any call
   may be repeated: it has no further effect.
3. A report of resources and hosts is a whole snapshot, never a change: a lost or late one does no
   harm: the next one has all. The end of a container is reported once, in the first answer after
   it: the caller keeps it.
4. A report of a resource is evidence for a request alone, never that the container in it has
   stopped (safety P1): a cancelled container counts as ended at once.
5. A request does not expire. It is granted when there is room, or when its host is back, until it
   is cancelled; giving up is the allocator's decision.
6. An implementation lives as long as its driver. At its start it reads the requests of earlier
   drivers of the attempt: granted containers stay, and the first report withdraws the others, as
   their expiry is lost with their driver.

Every implementation passes ``tests/support/cluster_resource_manager_conformance.py``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from homeport.appmaster.allocation.protocol.events import HostReport
from homeport.appmaster.allocation.protocol.instructions import JobResult
from homeport.appmaster.allocation.protocol.observation import SkeinContainer
from homeport.job_coordinator.model.ids import Host, RequestId, ResourceId


@dataclass(frozen=True, slots=True)
class ResourceReport:
    """One container, by the cluster manager; ``resource_id``: None until it is granted."""

    container: SkeinContainer
    resource_id: ResourceId | None = None


class ClusterResourceManager(Protocol):
    """One application on a cluster, for one driver. See the contract above."""

    def hosts(self) -> tuple[HostReport, ...]:
        """Return the reports of live hosts, and of lost ones where known, by name.

        A machine that dies stays live until the cluster manager notices it, which takes minutes.
        """

    def request(
        self, request_id: RequestId, host: Host | None, environment: Mapping[str, str]
    ) -> None:
        """Request a container with ``environment``: on ``host`` and nowhere else, or anywhere.

        A second request with the same number does nothing. The size is the application's.

        UnavailableError: the cluster manager refused or did not answer. If there is a container all
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
        """Return all our containers that have not ended, and each that has ended once.

        A report of an end has the cluster manager's story, whether it was the container's own
        fault, and whether the cluster took it back. It has no host: the launcher reports that.
        """

    def request_of(self, skein_id: str) -> RequestId | None:
        """Return the request of a container, ended or not; None: it is not ours."""

    def add_page(self, url: str) -> None:
        """Link ``url`` in the application's page, if the cluster manager has one."""

    def finish(self, result: JobResult, diagnostics: str) -> None:
        """End the application with this result, and its containers by force.

        Later calls need no answer.
        """
