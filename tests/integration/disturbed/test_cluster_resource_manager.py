"""Skein's resource manager on a real YARN cluster keeps the contract."""

from __future__ import annotations

import contextlib
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_resource_manager_conformance import ClusterResourceManagerConformance
from waiting import until

from homeport.appmaster.cluster_resource_manager import ResourceReport
from homeport.appmaster.yarn.node_names import NodeNames
from homeport.appmaster.yarn.resource_manager_rest import ResourceManagerRest
from homeport.appmaster.yarn.skein_driver import import_skein, skein_client
from homeport.appmaster.yarn.skein_resource_manager import RequestLedger, SkeinResourceManager
from homeport.appmaster.yarn.submission import SERVICE, am_java_options, private_yarn_site
from homeport.job_coordinator.model.ids import Host
from homeport.local_cluster.cluster import LocalCluster

CONTAINER_MB = 6144
"""Two of it fit on a node of the local cluster."""
_AM_MB = 256
_LIMIT_S = 90.0
_POLL_S = 0.1
_SCRIPT = "exec sleep 600"


class BareApplication:
    """An application whose containers do nothing: a ``Subject`` of the conformance suite.

    Its service is that of a submission. No driver runs.
    """

    container_mb = CONTAINER_MB

    def __init__(
        self,
        cluster: LocalCluster,
        client: Any,  # noqa: ANN401 - skein has no types
        security: object,
        folder: Path,
    ) -> None:
        self._cluster = cluster
        self._client = client
        self._rest = ResourceManagerRest.from_folder(Path(cluster.env()["HADOOP_CONF_DIR"]))
        self._application_id = str(client.submit(_specification(cluster, security, folder)))
        self.until(lambda: str(self._report().state) == "RUNNING" and self._report().port > 0)
        am = self._report()
        # The machine of the AM must live.
        self.hosts = tuple(sorted(map(Host, cluster.nodes), key=lambda h: h != am.host))
        self._ledger = RequestLedger(folder)
        address = NodeNames.from_environment(os.environ).address(am.host)
        self._am = import_skein(os.environ).ApplicationClient(
            f"{address}:{am.port}", self._application_id, security=security
        )

    def manager(self) -> SkeinResourceManager:
        """What the attempt's next driver has."""
        return SkeinResourceManager(self._am, self._rest, self._ledger)

    def until(self, condition: Callable[[], bool]) -> None:
        """Waits for ``condition``."""
        until(condition, limit_s=_LIMIT_S, every_s=_POLL_S)

    def pass_polls(self) -> None:
        """A request that can be granted, made now, is granted before this returns."""
        before = set(self._states())
        number = self._am.add_container(SERVICE).id
        try:
            self.until(lambda: self._states().get(number) == "RUNNING")
        finally:
            self._am.kill_container(number)
        self.until(lambda: set(self._states()) <= before)

    def host_of(self, report: ResourceReport) -> Host:
        """By the address of its NodeManager."""
        found = {c.id: str(c.yarn_node_http_address) for c in self._am.get_containers()}
        return Host(found[report.container.skein_id].partition(":")[0])

    def has_started(self, report: ResourceReport) -> bool:
        """Whether its process is there."""
        return any(_processes_of(str(report.resource_id)))

    def exit(self, report: ResourceReport) -> None:
        """Its process is killed."""

        def is_gone() -> bool:
            pids = list(_processes_of(str(report.resource_id)))
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return bool(pids)

        self.until(is_gone)

    def kill_host(self, host: Host) -> None:
        """Its NodeManager is killed, then all that it started, so that it reports no end."""
        self._cluster.kill_node_manager(host)
        self._cluster.kill_node(host)

    def start_host(self, host: Host) -> None:
        """A NodeManager runs there again."""
        self._cluster.start_node(host)

    def is_over(self) -> bool:
        """Whether YARN has the result."""
        report = self._report()
        if str(report.final_status) == "UNDEFINED":
            return False
        assert str(report.final_status) == "FAILED"
        assert "the reason" in str(report.diagnostics)
        return True

    def kill(self) -> None:
        """It is gone, if it was not yet."""
        if str(self._report().final_status) == "UNDEFINED":
            self._client.kill_application(self._application_id)

    def _report(self) -> Any:  # noqa: ANN401 - skein has no types
        return self._client.application_report(self._application_id)

    def _states(self) -> dict[str, str]:
        return {c.id: str(c.state) for c in self._am.get_containers()}


@contextlib.contextmanager
def bare_application(cluster: LocalCluster, folder: Path) -> Iterator[BareApplication]:
    """An application that runs inside the block."""
    security = import_skein(os.environ).Security.new_credentials()
    with contextlib.ExitStack() as stack:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", ResourceWarning
            )  # skein leaves its log to the collector
            client = stack.enter_context(skein_client(security, folder / "skein.log", os.environ))
        application = BareApplication(cluster, client, security, folder)
        try:
            yield application
        finally:
            application.kill()


def _specification(cluster: LocalCluster, security: object, folder: Path) -> Any:  # noqa: ANN401 - skein has no types
    skein = import_skein(os.environ)
    site = folder / "yarn-site.xml"
    site.write_bytes(private_yarn_site(Path(cluster.env()["HADOOP_CONF_DIR"])))

    service = skein.Service(
        instances=0,
        relax_locality=False,
        resources=skein.Resources(memory=CONTAINER_MB, vcores=1),
        script=_SCRIPT,
        allow_failures=True,
        max_restarts=0,
    )
    return skein.ApplicationSpec(
        name="bare",
        queue="default",
        max_attempts=3,  # the ResourceManager loses an AM's container now and then (hadoop_conf)
        master=skein.Master(
            resources=skein.Resources(memory=_AM_MB, vcores=1),
            files={site.name: skein.File(str(site), type="FILE")},
            env={"_JAVA_OPTIONS": am_java_options(_AM_MB, os.environ)},
            script=f"unset _JAVA_OPTIONS\n{_SCRIPT}",
            security=security,
        ),
        services={SERVICE: service},
    )


def _processes_of(container_id: str) -> Iterator[int]:
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            is_script = (folder / "cmdline").read_bytes().startswith(b"sleep\0")
            if is_script and container_id.encode() in (folder / "environ").read_bytes():
                yield int(folder.name)


@pytest.fixture(scope="module")
def application(
    cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BareApplication]:
    """One application for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        for key, value in cluster.env().items():
            patch.setitem(os.environ, key, value)
        with bare_application(cluster, tmp_path_factory.mktemp("bare")) as started:
            yield started


class TestSkeinResourceManager(ClusterResourceManagerConformance):
    """The suite that the YARN of tests/unit/world passes too."""

    @pytest.fixture
    def subject(self, application: BareApplication) -> BareApplication:
        """The application."""
        return application
