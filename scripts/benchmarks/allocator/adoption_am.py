"""The AM of a job of many launchers: the real supervisor, lease keeper and driver, without YARN.

The stand-in is the cluster manager alone: it grants each request at once, on hosts that exist by
name only, and writes each grant as a line of a file. The program that stands in for the launchers
reads this file. With ``--driver`` this is the driver's program.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from homeport.appmaster.allocation.protocol.events import HostReport
from homeport.appmaster.allocation.protocol.instructions import JobResult
from homeport.appmaster.allocation.protocol.observation import SkeinContainer, SkeinContainerState
from homeport.appmaster.cluster_resource_manager import ClusterResourceManager, ResourceReport
from homeport.appmaster.programs import application_master, supervisor
from homeport.appmaster.programs.am_container import AmContainer
from homeport.job_coordinator.model.ids import Host, RequestId, ResourceId

GRANTS_NAME, CANCELS_NAME = "grants.jsonl", "cancels"
HOSTS = 100
_RESOURCE_STEM = "container_1700000000000_0001_01_"
_SKEIN_STEM = "of-the-benchmark_"
_ROOM_MB, _ROOM_CORES = 1_000_000, 1_000


class GrantingCluster:
    """``ClusterResourceManager`` of hosts by name; what it has granted outlives the driver."""

    def __init__(self, folder: Path, hosts: tuple[Host, ...]) -> None:
        self._grants, self._cancels = folder / GRANTS_NAME, folder / CANCELS_NAME
        self._hosts = hosts
        self._granted = {
            RequestId(int(json.loads(line)["request"])) for line in _lines(self._grants)
        }
        self._cancelled = {RequestId(int(line)) for line in _lines(self._cancels)}
        self._stated = set(self._cancelled)

    def hosts(self) -> tuple[HostReport, ...]:
        """All live, with room for everybody."""
        room = (_ROOM_MB, _ROOM_CORES)
        return tuple(HostReport(host, None, *room, *room) for host in self._hosts)

    def request(
        self, request_id: RequestId, host: Host | None, environment: Mapping[str, str]
    ) -> None:
        """The stand-in grants the request on the requested host, or on the next one."""
        if request_id in self._granted:
            return
        grant = {
            "request": request_id,
            "resource": resource_of(request_id),
            "skein_id": f"{_SKEIN_STEM}{request_id}",
            "host": host or self._hosts[request_id % len(self._hosts)],
            "url": environment["SAMZA_COORDINATOR_URL"],
        }
        self._granted.add(request_id)
        with self._grants.open("a", encoding="utf-8") as file:
            file.write(json.dumps(grant) + "\n")

    def cancel(self, request_id: RequestId) -> None:
        """Its container has ended."""
        if request_id in self._granted - self._cancelled:
            self._cancelled.add(request_id)
            with self._cancels.open("a", encoding="utf-8") as file:
                file.write(f"{request_id}\n")

    @property
    def next_request_id(self) -> int:
        """See the protocol."""
        return max(self._granted, default=0) + 1

    def resources(self) -> tuple[ResourceReport, ...]:
        """What was granted runs until it is cancelled."""
        reports = []
        for request_id in sorted(self._granted - self._stated):
            is_ended = request_id in self._cancelled
            state = SkeinContainerState.ENDED if is_ended else SkeinContainerState.RUNNING
            container = SkeinContainer(f"{_SKEIN_STEM}{request_id}", request_id, state)
            reports.append(ResourceReport(container, resource_of(request_id)))
        self._stated |= self._cancelled
        return tuple(reports)

    def request_of(self, skein_id: str) -> RequestId | None:
        """The number at the end."""
        number = skein_id.removeprefix(_SKEIN_STEM)
        found = RequestId(int(number)) if number.isdecimal() else None
        return found if found in self._granted else None

    def add_page(self, url: str) -> None:
        """There is no page."""

    def finish(self, result: JobResult, diagnostics: str) -> None:
        """No process waits for the end."""


def resource_of(request_id: RequestId) -> ResourceId:
    """The resource that is granted for the request; the AM's own container is number 1."""
    return ResourceId(f"{_RESOURCE_STEM}{request_id + 1:06d}")


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def _open_cluster(container: AmContainer) -> tuple[ClusterResourceManager, str]:
    hosts = tuple(Host(f"host-{number:03d}") for number in range(HOSTS))
    return GrantingCluster(container.folder, hosts), ""


def main() -> int:
    """Supervises until SIGTERM; or drives."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", action="store_true")
    if parser.parse_args().driver:
        return application_master.main(_open_cluster)
    driver = (sys.executable, "-m", "benchmarks.allocator.adoption_am", "--driver")
    supervisor.PROGRAMS = {**supervisor.PROGRAMS, "driver": driver}
    return supervisor.main()


if __name__ == "__main__":
    sys.exit(main())
