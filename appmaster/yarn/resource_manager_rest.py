"""The ResourceManager's REST interface: nodes, applications, scheduler and settings.

Finds the ResourceManager as any Hadoop client does: by ``yarn-site.xml`` (and ``core-site.xml``) in
the folder that ``HADOOP_CONF_DIR`` names. No JVM is started; every call has a time limit and fails
as one line.
"""

from __future__ import annotations

import getpass
import http.client
import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from homeport.appmaster.allocation.protocol.events import HostReport
from homeport.appmaster.yarn.scheduler import (
    CAPACITY,
    Node,
    Partition,
    Scheduler,
    scheduler_of,
    shared_labels,
)
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.http.direct import OPENER
from homeport.job_coordinator.model.ids import Host, host_of

APPLICATION_TAG = "homeport"
JOB_TAG_PREFIX = "homeport-job-"
HTTPS_TAG = "homeport-https"
"""The tag of a job that serves https, which YARN's proxy does not reach."""
PAGE = "homeport"
"""The name of the job coordinator below ``pages/`` of the application's page."""


CONF_DIR_VARIABLE = "HADOOP_CONF_DIR"
APPLICATION_TYPE = "skein"
ACTIVE_STATES = frozenset({"NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING"})

_TIMEOUT_S = 10.0
_NODE_TIMEOUT_S = 3.0
_VARIABLE = re.compile(r"\$\{([^${}]+)\}")
_MAX_SUBSTITUTIONS = 20
_DEFAULT_PORTS = {"http": 8088, "https": 8090}


@dataclass(frozen=True, slots=True)
class Application:
    """One application as the ResourceManager reports it.

    ``final_status`` is UNDEFINED until the end.
    """

    application_id: str
    name: str
    state: str
    final_status: str
    diagnostics: str
    tracking_url: str
    am_log_url: str
    started_ms: int
    tags: frozenset[str] = frozenset()

    @property
    def is_active(self) -> bool:
        """Whether it has not ended."""
        return self.state in ACTIVE_STATES


def read_hadoop_files(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Return {key: value} from those XML files in ``folder`` that exist; later files win.

    ``${key}`` is not replaced.

    UnavailableError: a file is not XML.
    """
    values: dict[str, str] = {}
    for name in names:
        path = folder / name
        if not path.is_file():
            continue
        try:
            root = ET.parse(path).getroot()  # noqa: S314 - the administrator's own file
        except ET.ParseError as e:
            raise UnavailableError(f"{path} is not a Hadoop configuration file ({e})") from None
        for entry in root.iter("property"):
            key = (entry.findtext("name") or "").strip()
            if key:
                values[key] = (entry.findtext("value") or "").strip()
    return values


def substituted(values: Mapping[str, str], text: str) -> str:
    """Return ``text`` with each known ``${key}`` replaced by its value, as in Hadoop."""
    for _ in range(_MAX_SUBSTITUTIONS):
        replaced = _VARIABLE.sub(lambda m: values.get(m.group(1), m.group(0)), text)
        if replaced == text:
            break
        text = replaced
    return text


def resource_manager_urls(values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the base URLs of the ResourceManagers in a configuration, in its order."""
    scheme = "https" if values.get("yarn.http.policy") == "HTTPS_ONLY" else "http"
    of_scheme = ".https" if scheme == "https" else ""
    key = f"yarn.resourcemanager.webapp{of_scheme}.address"
    ids = map(str.strip, values.get("yarn.resourcemanager.ha.rm-ids", "").split(","))
    urls = []
    for suffix in [f".{i}" for i in ids if i] or [""]:
        address = substituted(values, values.get(key + suffix, ""))
        if not address or "${" in address:
            host = substituted(values, values.get(f"yarn.resourcemanager.hostname{suffix}", ""))
            address = f"{host}:{_DEFAULT_PORTS[scheme]}" if host else ""
        if address:
            urls.append(f"{scheme}://{address}")
    return tuple(urls)


def _application_of(body: Mapping[str, Any]) -> Application:
    return Application(
        application_id=str(body["id"]),
        name=str(body.get("name", "")),
        state=str(body.get("state", "")),
        final_status=str(body.get("finalStatus", "")),
        diagnostics=str(body.get("diagnostics") or "").strip(),
        tracking_url=str(body.get("trackingUrl") or ""),
        am_log_url=str(body.get("amContainerLogs") or ""),
        started_ms=int(body.get("startedTime", 0)),
        tags=frozenset(str(body.get("applicationTags") or "").split(",")) - {""},
    )


def _settings_of(body: Mapping[str, Any]) -> dict[str, str]:
    found = body.get("properties") or ()
    return {str(p["key"]): str(p["value"]) for p in found if p.get("value") is not None}


def _node_of(body: Mapping[str, Any]) -> Node:
    free_mb = int(body.get("availMemoryMB", 0))
    free_cores = int(body.get("availableVirtualCores", 0))
    # Of a lost node the ResourceManager says that nothing is free or used, but still what it has.
    total = body.get("totalResource") or {}
    report = HostReport(
        host=host_of(str(body["nodeHostName"])),
        rack=str(body["rack"]) if body.get("rack") else None,
        memory_mb=int(total.get("memory", free_mb + int(body.get("usedMemoryMB", 0)))),
        cores=int(total.get("vCores", free_cores + int(body.get("usedVirtualCores", 0)))),
        free_memory_mb=free_mb,
        free_cores=free_cores,
        is_live=body.get("state") == "RUNNING",
        web=str(body.get("nodeHTTPAddress") or ""),
    )
    return Node(report, frozenset(str(x) for x in body.get("nodeLabels") or ()) - {""})


class ApplicationHosts:
    """The hosts for an application's containers, by its queue and its label."""

    def __init__(
        self,
        rest: ResourceManagerRest,
        queue: str,
        label: str | None,
        address: Callable[[str], str] = str,
    ) -> None:
        """``address``: returns the address of a web service whose host only a table knows."""
        self._rest, self._queue, self._label = rest, queue, label
        self._address = address
        self._partition: Partition | None = None
        self._is_known = False

    def host_reports(self) -> tuple[HostReport, ...]:
        """Return ``ResourceManagerRest.host_reports`` for these hosts alone."""
        if not self._is_known:
            scheduler = self._rest.scheduler()
            self._partition = self._rest.partition(scheduler, self._queue, self._label)
            self._is_known = True
        found = self._rest.host_reports(self._partition)
        return tuple(replace(report, web=self._address(report.web)) for report in found)


class ResourceManagerRest:
    """The REST interface of the ResourceManagers at ``urls``, for several threads."""

    def __init__(self, urls: Sequence[str], source: str, timeout_s: float = _TIMEOUT_S) -> None:
        self.urls = tuple(urls)
        self._source = source
        self._timeout_s = timeout_s

    @classmethod
    def from_folder(cls, folder: Path) -> ResourceManagerRest:
        """Return the ResourceManager in the Hadoop client configuration in ``folder``.

        UnavailableError: the folder has no yarn-site.xml, or that names no ResourceManager.
        """
        if not (folder / "yarn-site.xml").is_file():
            raise UnavailableError(
                f"{CONF_DIR_VARIABLE} = {str(folder)!r} has no yarn-site.xml: let it name the "
                "folder with the cluster's Hadoop configuration"
            )
        urls = resource_manager_urls(read_hadoop_files(folder, ("core-site.xml", "yarn-site.xml")))
        if not urls:
            raise UnavailableError(
                f"{folder / 'yarn-site.xml'} names no ResourceManager: set "
                "yarn.resourcemanager.webapp.address"
            )
        return cls(urls, str(folder))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> ResourceManagerRest:
        """Return the ResourceManager in the configuration in ``HADOOP_CONF_DIR``.

        UnavailableError: the variable is not set, or as for ``from_folder``.
        """
        folder = environment.get(CONF_DIR_VARIABLE, "")
        if not folder:
            raise UnavailableError(
                f"{CONF_DIR_VARIABLE} is not set: let it name the folder with the cluster's "
                "Hadoop configuration; of a local cluster: "
                'eval "$(homeport local env --name NAME)"'
            )
        return cls.from_folder(Path(folder))

    @property
    def url(self) -> str:
        """Base URL of the (first) ResourceManager, for people."""
        return self.urls[0]

    def require_reachable(self) -> None:
        """Check that a ResourceManager answers.

        UnavailableError: none does, or what answers there is something else.
        """
        if "clusterInfo" not in self._get("/ws/v1/cluster/info"):
            raise UnavailableError(
                f"what answers at {', '.join(self.urls)} (from {self._source}) is not a YARN "
                f"ResourceManager: let {CONF_DIR_VARIABLE} name the right configuration"
            )

    def nodes(self) -> tuple[Node, ...]:
        """Return all NodeManagers that the ResourceManager knows, lost ones included, by host."""
        body = self._get("/ws/v1/cluster/nodes").get("nodes") or {}
        found = map(_node_of, body.get("node") or ())
        return tuple(sorted(found, key=lambda node: node.report.host))

    def host_reports(self, partition: Partition | None = None) -> tuple[HostReport, ...]:
        """Return the hosts that the ResourceManager knows, by name; RUNNING ones are live.

        Of several NodeManagers on one host, the one with most free memory counts. ``partition``:
        None: hosts with any labels.
        """
        has = (lambda _: True) if partition is None else partition.has
        reports = [node.report for node in self.nodes() if has(node.labels)]
        reports.sort(key=lambda report: (report.is_live, report.free_memory_mb))
        best = {report.host: report for report in reports}
        return tuple(best[host] for host in sorted(best))

    def running_hosts(self) -> frozenset[Host]:
        """Return the hosts whose NodeManager is RUNNING."""
        return frozenset(node.report.host for node in self.nodes() if node.report.is_live)

    def scheduler(self) -> Scheduler:
        """Return the scheduler, with its queues."""
        return scheduler_of(self._get("/ws/v1/cluster/scheduler"))

    def partition(self, scheduler: Scheduler, queue: str, label: str | None) -> Partition | None:
        """Return the nodes for containers with ``label`` in ``queue``; None: all of them."""
        if scheduler.kind != CAPACITY:
            return None
        found = scheduler.queue(queue)
        wanted = label or (found.default_label if found is not None else "")
        shared = shared_labels(self._get("/ws/v1/cluster/get-node-labels"))
        return Partition(wanted, shared)

    def applications(self, name: str) -> tuple[Application, ...]:
        """Return the Skein applications named ``name`` that YARN remembers, oldest first."""
        found = self._applications(applicationTypes=APPLICATION_TYPE)
        return tuple(application for application in found if application.name == name)

    def tagged_applications(self, tag: str) -> tuple[Application, ...]:
        """Return the applications with that tag that have not ended, oldest first."""
        states = ",".join(sorted(ACTIVE_STATES))
        return tuple(self._applications(states=states, applicationTags=tag))

    def _applications(self, **query: str) -> list[Application]:
        text = urllib.parse.urlencode(query, safe=",")
        body = self._get(f"/ws/v1/cluster/apps?{text}").get("apps") or {}
        found = [_application_of(a) for a in body.get("app") or ()]
        return sorted(found, key=lambda a: (a.started_ms, a.application_id))

    def application(self, application_id: str) -> Application | None:
        """Return the application of that id; None where the ResourceManager does not know it."""
        try:
            return _application_of(self._get(f"/ws/v1/cluster/apps/{application_id}")["app"])
        except KeyError:
            return None

    def setting(self, key: str) -> str | None:
        """Return the value of ``key`` in the ResourceManager's configuration; None: not known."""
        try:
            body = self._get("/conf?" + urllib.parse.urlencode({"name": key, "format": "json"}))
        except UnavailableError:
            return None
        value = (body.get("property") or {}).get("value")
        return None if value is None else str(value)

    def settings(self) -> dict[str, str]:
        """Return the ResourceManager's settings, without those in its scheduler's own files.

        UnavailableError: it does not show them, as with Kerberos.
        """
        return _settings_of(self._get("/conf"))

    def node_settings(self, web: str) -> dict[str, str]:
        """Return the settings of the NodeManager with the web address ``web``; see ``settings``."""
        scheme = urllib.parse.urlsplit(self.url).scheme
        node = ResourceManagerRest((f"{scheme}://{web}",), web, _NODE_TIMEOUT_S)
        return node.settings()

    def kill(self, application_id: str) -> None:
        """Ask the ResourceManager to kill the application; it ends a little later.

        UnavailableError: refused, or no answer.
        """
        user = urllib.parse.urlencode({"user.name": getpass.getuser()})
        path = f"/ws/v1/cluster/apps/{application_id}/state?{user}"
        self._request("PUT", path, json.dumps({"state": "KILLED"}).encode())

    def _get(self, path: str) -> dict[str, Any]:
        return self._request("GET", path, None)

    def _request(self, method: str, path: str, body: bytes | None) -> dict[str, Any]:
        """Return the first answer of any ResourceManager; {} for a 404 or an empty body."""
        failure: Exception | None = None
        for url in self.urls:
            headers = {"Accept": "application/json", "Content-Type": "application/json"}
            request = urllib.request.Request(  # noqa: S310 - the scheme is ours
                url + path, data=body, headers=headers, method=method
            )
            try:
                with OPENER.open(request, timeout=self._timeout_s) as answer:
                    text = answer.read()
                parsed = json.loads(text) if text else {}
            except urllib.error.HTTPError as e:
                with e:
                    if e.code == http.client.NOT_FOUND:
                        return {}
                failure = e
            except (OSError, http.client.HTTPException, ValueError) as e:
                # ValueError: a standby answers in plain text, another program on the port in HTML
                failure = e
            else:
                return parsed if isinstance(parsed, dict) else {}
        raise UnavailableError(
            f"YARN ResourceManager at {', '.join(self.urls)} (from {self._source}) does not "
            f"answer ({failure}): start it, or let {CONF_DIR_VARIABLE} name the right configuration"
        )
