"""Runs the probe of ``node_checks`` on each node, as a YARN application of its own.

Each node gets one small container. It prints its answer, which the NodeManager serves. The
application is killed when all nodes have answered or the time is up, and ends by itself if this
process is gone.
"""

import contextlib
import http.client
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from homeport.appmaster.doctor.node_checks import PROBE_SCRIPT, answer_of
from homeport.appmaster.yarn.kerberos import KerberosLogin
from homeport.appmaster.yarn.node_names import NodeNames
from homeport.appmaster.yarn.skein_driver import Skein, import_skein, one_line, skein_client
from homeport.appmaster.yarn.submission import am_java_options
from homeport.job_coordinator.http.direct import OPENER
from homeport.job_coordinator.model.ids import Host
from homeport.job_coordinator.own_folders import cache_folder

_AM_MB = 512
_PROBE_MB = 256
_LIFE_S = 120
_POLL_S = 0.2
_TIMEOUT_S = 3.0
Answers = dict[Host, dict[str, str] | None]


def probe_nodes(
    hosts: Sequence[Host],
    *,
    scheme: str,
    queue: str,
    label: str,
    variables: Mapping[str, str],
    login: KerberosLogin | None,
    limit_s: float,
    say: Callable[[str], None],
) -> Answers:
    """Return {host: its answer; None: there was none within ``limit_s``}.

    ``scheme``: http or https, for the NodeManagers' web services. ``variables``: environment
    variables of the script, added to the node's.

    UnavailableError: Skein's driver does not start, or YARN does not take the application.
    """
    environment = os.environ
    skein = import_skein(environment)
    log = cache_folder(environment) / "logs" / "skein-doctor.log"
    security = skein.Security.new_credentials()
    with skein_client(security, log, environment, login) as client:
        spec = _specification(skein, hosts, queue, label, variables)
        with one_line(skein, log):
            application_id = str(client.submit(spec))
        say(f"probe: {application_id} runs on {len(hosts)} nodes")
        try:
            probing = _Probing(client, application_id, security, scheme)
            return probing.answers(hosts, limit_s)
        finally:
            with contextlib.suppress(skein.exceptions.SkeinError):  # it may have ended by itself
                client.kill_application(application_id)


def _specification(
    skein: Skein, hosts: Sequence[Host], queue: str, label: str, variables: Mapping[str, str]
) -> Skein:
    services = {
        f"h-{number}": skein.Service(
            instances=1,
            nodes=[host],
            relax_locality=False,
            node_label=label,
            resources=skein.Resources(memory=_PROBE_MB, vcores=1),
            env=dict(variables),
            script=f"{PROBE_SCRIPT}sleep {_LIFE_S}\n",
            allow_failures=True,
            max_restarts=0,
        )
        for number, host in enumerate(hosts)
    }
    options = am_java_options(_AM_MB, os.environ)
    master = skein.Master(
        resources=skein.Resources(memory=_AM_MB, vcores=1), env={"_JAVA_OPTIONS": options}
    )
    # YARN may lose the first attempt: an AM container that it allocates within the very request.
    return skein.ApplicationSpec(
        name="homeport-doctor", queue=queue, max_attempts=2, master=master, services=services
    )


class _Probing:
    def __init__(self, client: Skein, application_id: str, security: object, scheme: str) -> None:
        self._client = client
        self._application_id = application_id
        self._security = security
        self._scheme = scheme
        self._names = NodeNames.from_environment(os.environ)

    def answers(self, hosts: Sequence[Host], limit_s: float) -> Answers:
        deadline = time.monotonic() + limit_s
        found: Answers = dict.fromkeys(hosts)
        am: Skein = None
        while None in found.values() and time.monotonic() < deadline:
            report = self._client.application_report(self._application_id)
            if str(report.final_status) != "UNDEFINED":
                break
            if str(report.state) != "RUNNING":
                am = None  # none yet, or another attempt is to come
            elif am is None and report.port:
                am = self._connected(str(report.host), int(report.port))
            if am is not None:
                for host, text in self._printed(am):
                    found[host] = answer_of(text) or found.get(host)
            time.sleep(_POLL_S)  # neither YARN nor a log announces a change
        return {host: found[host] for host in hosts}

    def _connected(self, host: str, port: int) -> Skein:
        skein = import_skein(os.environ)
        address = f"{self._names.address(host)}:{port}"
        return skein.ApplicationClient(address, self._application_id, security=self._security)

    def _printed(self, am: Skein) -> Iterator[tuple[Host, str]]:
        for container in am.get_containers():
            web = str(container.yarn_node_http_address or "")
            if web:
                host = Host(web.rpartition(":")[0])
                place = f"{container.yarn_container_id}/{container.service_name}.log"
                yield host, self._log(web, place)

    def _log(self, web: str, file: str) -> str:
        address = self._names.with_known_address(web)
        url = f"{self._scheme}://{address}/ws/v1/node/containerlogs/{file}"
        try:
            with OPENER.open(url, timeout=_TIMEOUT_S) as answer:
                return str(answer.read().decode(errors="replace"))
        except (OSError, http.client.HTTPException):
            return ""  # not started yet; a node that never shows it has no answer at the limit
