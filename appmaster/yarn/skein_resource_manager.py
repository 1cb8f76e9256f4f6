"""ClusterResourceManager on Skein, from inside the AM's container.

Skein's list of completed containers only grows, so each poll reads the list of the others: a
request that has left it has ended, and only then its end is looked up.
"""

import functools
import logging
import os
import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from homeport.appmaster.allocation.protocol.events import HostReport
from homeport.appmaster.allocation.protocol.instructions import JobResult
from homeport.appmaster.allocation.protocol.observation import SkeinContainer, SkeinContainerState
from homeport.appmaster.cluster_resource_manager import ResourceReport
from homeport.appmaster.yarn.resource_manager_rest import (
    PAGE,
    ApplicationHosts,
    ResourceManagerRest,
)
from homeport.appmaster.yarn.skein_driver import Skein, import_skein
from homeport.appmaster.yarn.skein_jar import HOST_VARIABLE
from homeport.appmaster.yarn.submission import SERVICE
from homeport.config.declarations.cluster_keys import CONTAINER_MEMORY_MB
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.model.ids import Host, RequestId, ResourceId

_LEDGER_NAME = "requests"


class RequestLedger:
    """The file of {Skein container: request}: one line each, appended.

    It lives as long as the AM's container, and so as Skein's containers. A driver that died before
    it wrote a line has left a Skein container without one; no permit was ever given for it.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / _LEDGER_NAME

    def read(self) -> Mapping[str, RequestId]:
        """Return {Skein id: request}; a last line that is not whole is left out."""
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        whole, _, _ = text.rpartition("\n")
        pairs = (line.split() for line in whole.splitlines())
        return {pair[0]: RequestId(int(pair[1])) for pair in pairs if len(pair) == 2}  # noqa: PLR2004 - a pair

    def add(self, skein_id: str, request_id: RequestId) -> None:
        """Append the line, for the next driver."""
        with self._path.open("ab") as file:
            file.write(f"{skein_id} {request_id}\n".encode())


_CALL_TIMEOUT_S = 10.0
_COMPLETED = ("SUCCEEDED", "FAILED", "KILLED")
_STATES = {
    "WAITING": SkeinContainerState.REQUESTED,
    "REQUESTED": SkeinContainerState.REQUESTED,
    "RUNNING": SkeinContainerState.RUNNING,
}
_MAX_DIAGNOSTICS = 8000
_MEMORY = re.compile(r"(physical|virtual) memory used|exceeding memory limits")
_TAKEN_BACK = (
    "Container released on a *lost* node",  # -100
    "Container expired since it was unused",  # -100
    "Most of the disks failed",  # -101
    "Container preempted by scheduler",  # -102
)
_CUT = "\n...\n"

log = logging.getLogger("driver")


def connect(application_id: str, address: str) -> Skein:
    """Return a client of Skein's AM at ``address`` whose every call has a time limit.

    Must be called in a container, whose working directory has the application's certificate.
    """
    skein = import_skein(os.environ)

    class LimitedClient(skein.ApplicationClient):  # type: ignore[misc, name-defined]  # skein has no types
        """Skein sets no deadline: a hung AM would hang the driver."""

        def _call(self, method: str, request: object, timeout: float = _CALL_TIMEOUT_S) -> object:
            return super()._call(method, request, timeout=timeout)

    return LimitedClient(address, application_id, security=skein.Security.from_default())


class ReportedEnd(NamedTuple):
    """The end of a container; the fields are those of ``ResourceEnded``."""

    story: str
    is_own_fault: bool = False
    is_taken_back: bool = False


def reported_end(message: str) -> ReportedEnd:
    """Return how a container ended, from Skein's message.

    Skein passes no exit code on. For codes above 0 it has one fixed text, for memory beyond the
    limit (YARN's -104 and -103) a sentence of its own. For other codes below 0 it repeats YARN's
    message, which is a constant of the ResourceManager or the NodeManager.
    """
    text = " ".join(message.split()).rstrip(".")
    if _MEMORY.search(text):
        said = f"YARN killed it for its memory: {text}; {CONTAINER_MEMORY_MB.name} says how much"
        return ReportedEnd(said, is_own_fault=True)
    return ReportedEnd(text, is_taken_back=text.startswith(_TAKEN_BACK))


def shortened(diagnostics: str) -> str:
    """Return at most 8000 characters: the beginning has the event, the end the error."""
    if len(diagnostics) <= _MAX_DIAGNOSTICS:
        return diagnostics
    half = (_MAX_DIAGNOSTICS - len(_CUT)) // 2
    return f"{diagnostics[:half]}{_CUT}{diagnostics[-half:]}"


class SkeinResourceManager:
    """The containers of one application. Thread-safe: one Skein call at a time.

    ``rest`` has the live hosts. ``ledger``: the requests of earlier drivers of this attempt. Those
    that were not granted are withdrawn, and so are containers without a line.
    """

    def __init__(
        self, client: Skein, rest: ResourceManagerRest | ApplicationHosts, ledger: RequestLedger
    ) -> None:
        self._client = client
        self._rest = rest
        self._lock = threading.Lock()
        self._ledger = ledger
        self._requests: dict[str, RequestId] = dict(ledger.read())
        self._skein_ids = {request_id: skein_id for skein_id, request_id in self._requests.items()}
        self._inherited = frozenset(self._requests)
        self._known = set(self._skein_ids)

    def hosts(self) -> tuple[HostReport, ...]:
        """Return the hosts for the application; RUNNING ones are live."""
        return self._rest.host_reports()

    def request_of(self, skein_id: str) -> RequestId | None:
        """Return the request that a Skein container was added for; None where it is not ours."""
        return self._requests.get(skein_id)

    def request(
        self, request_id: RequestId, host: Host | None, environment: Mapping[str, str]
    ) -> None:
        """Request a container; see the protocol."""
        if request_id in self._known:
            return
        named = {} if host is None else {HOST_VARIABLE: host}
        container = self._call(
            lambda: self._client.add_container(SERVICE, env={**environment, **named})
        )
        self._ledger.add(container.id, request_id)
        self._requests[container.id] = request_id
        self._known.add(request_id)
        self._skein_ids[request_id] = container.id

    @property
    def next_request_id(self) -> int:
        """See the protocol."""
        return max(self._known, default=0) + 1

    def cancel(self, request_id: RequestId) -> None:
        """Withdraw the request, or end its container; see the protocol."""
        skein_id = self._skein_ids.get(request_id)
        if skein_id is not None:
            self._call(lambda: self._kill(skein_id))

    def resources(self) -> tuple[ResourceReport, ...]:
        """Return all containers that have not ended, and those that just did; see the protocol."""
        active = {c.id: c for c in self._call(self._client.get_containers)}
        for skein_id in [i for i, c in active.items() if self._is_stray(i, str(c.state))]:
            log.warning("container %s, requested by a driver that has ended: killed", skein_id)
            self._call(functools.partial(self._kill, skein_id))
        reports = [
            ResourceReport(
                SkeinContainer(i, self._requests.get(i), _STATES[str(c.state)]),
                ResourceId(c.yarn_container_id) if c.yarn_container_id else None,
            )
            for i, c in sorted(active.items())
        ]
        ended = [s for s in self._skein_ids.values() if s not in active]
        return tuple(reports + (self._bury(ended) if ended else []))

    def _is_stray(self, skein_id: str, state: str) -> bool:
        if skein_id not in self._requests:
            return True
        is_granted = _STATES[state] is SkeinContainerState.RUNNING
        return skein_id in self._inherited and not is_granted

    def add_page(self, url: str) -> None:
        """Link ``url`` in Skein's page of the application."""
        self._call(lambda: self._client.ui.add_page(PAGE, url, "Homeport"))

    def finish(self, result: JobResult, diagnostics: str) -> None:
        """End the application with this result."""
        self._call(lambda: self._client.shutdown(result.value, shortened(diagnostics)))

    def _bury(self, skein_ids: list[str]) -> list[ResourceReport]:
        completed = self._call(lambda: self._client.get_containers(states=_COMPLETED))
        stories = {c.id: c for c in completed}
        reports = []
        for skein_id in skein_ids:
            request_id = self._requests[skein_id]
            del self._skein_ids[request_id]
            said = stories.get(skein_id)
            resource_id = said.yarn_container_id if said is not None else ""
            end = reported_end(str(said.exit_message) if said is not None else "")
            ended = SkeinContainer(
                skein_id, request_id, SkeinContainerState.ENDED, None, **end._asdict()
            )
            reports.append(ResourceReport(ended, ResourceId(resource_id) if resource_id else None))
        return reports

    def _kill(self, skein_id: str) -> None:
        try:
            self._client.kill_container(skein_id)
        except (KeyError, ValueError):
            return  # it has ended already

    def _call(self, call: Callable[[], Skein]) -> Skein:
        import skein  # noqa: PLC0415 - as in connect

        try:
            with self._lock:
                return call()
        except (skein.exceptions.SkeinError, KeyError, ValueError) as e:
            raise UnavailableError(f"Skein's AM: {' '.join(str(e).split())}") from None
