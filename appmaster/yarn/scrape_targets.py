"""Prometheus' HTTP service discovery of the metrics of all running jobs.

Only the ResourceManager is read. A target is an address of YARN's proxy, which finds the
ApplicationMaster, so another attempt on another host changes no target. The module needs homeport
and the standard library alone, so it runs where homeport's requirements are not installed.
"""

import json
import logging
import os
import socket
import sys
import urllib.parse
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from homeport.appmaster.yarn.resource_manager_rest import (
    APPLICATION_TAG,
    HTTPS_TAG,
    PAGE,
    Application,
    ResourceManagerRest,
)
from homeport.config.errors import HomeportError, UnavailableError

_log = logging.getLogger(__name__)

_STATES = frozenset({"ACCEPTED", "RUNNING"})
"""A job whose ApplicationMaster is away for longer must stay a target, so that it is missed."""
_IDLE_S = 60.0


UrlOf = Callable[[Application], str | None]
"""Returns where a job answers that serves https; "": nowhere yet; None: the job is not known."""


def targets(
    applications: Iterable[Application], rm_url: str, https_url: UrlOf = lambda _: None
) -> tuple[list[Mapping[str, Any]], list[Application]]:
    """Return a target for each job that runs or waits for its AM; and the jobs left out.

    Labels: ``job_name``, ``job_id``, ``application``. Left out are jobs that serve https and are
    not known to ``https_url``: YARN's proxy does not trust their certificates.

    ``rm_url``: where the proxy is, unless an application has an address of it. ``https_url``
    returns where the ApplicationMaster of a job is that serves https.
    """
    found, left_out = [], []
    for application in applications:
        if application.state not in _STATES or APPLICATION_TAG not in application.tags:
            continue
        if HTTPS_TAG not in application.tags:
            found.append(_target(application, _page(application, rm_url)))
            continue
        url = https_url(application)
        if url:
            found.append(_target(application, url))
        elif url is None:
            left_out.append(application)
    return found, left_out


def of_yarn(
    rest: ResourceManagerRest | None, https_url: UrlOf
) -> tuple[list[Mapping[str, Any]], list[Application]]:
    """Return the ``targets`` for all that YARN knows now; nothing without a YARN.

    UnavailableError: YARN does not answer, or Kafka for a job that serves https.
    """
    if rest is None:
        return [], []
    return targets(rest.tagged_applications(APPLICATION_TAG), rest.url, https_url)


def _page(application: Application, rm_url: str) -> str:
    url = application.tracking_url
    if not url.startswith(("http://", "https://")):  # no attempt has begun
        url = f"{rm_url}/proxy/{application.application_id}/"
    return f"{url.rstrip('/')}/pages/{PAGE}/"


def _target(application: Application, url: str) -> Mapping[str, Any]:
    place = urllib.parse.urlsplit(url)
    # <job.name>_<job.id>: an id with "_" in it is cut in the wrong place, and the rest is right.
    name, _, job_id = application.name.rpartition("_")
    return {
        "targets": [place.netloc],
        "labels": {
            "__scheme__": place.scheme,
            "__metrics_path__": f"{place.path}metrics",
            "job_name": name,
            "job_id": job_id,
            "application": application.application_id,
        },
    }


class TargetServer(ThreadingHTTPServer):
    """Answers every GET with the present targets; 503 where YARN does not answer.

    Prometheus then keeps the targets that it has. It listens at ``host`` and ``port``.

    ``rest``: None: only ``others`` are targets, of jobs that YARN does not know.
    """

    daemon_threads = True

    def __init__(
        self,
        rest: ResourceManagerRest | None,
        host: str,
        port: int,
        https_url: UrlOf = lambda _: None,
        others: Callable[[], list[Mapping[str, Any]]] = list,
    ) -> None:
        """Listen; nothing is answered before ``serve_forever``.

        UnavailableError: it cannot listen there.
        """
        self._rest = rest
        self._https_url = https_url
        self._others = others
        self._named: set[str] = set()
        self._is_away = False
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise UnavailableError(
                f"cannot listen on {host}:{port} ({error}): give --listen a free port of an "
                "address of this machine"
            ) from None

    def answer(self) -> bytes:
        """Return the body; log once each job that is left out, and that YARN is away.

        HomeportError: YARN does not answer, or Kafka for a job that serves https, or ZooKeeper for
        a standalone job.
        """
        try:
            found, left_out = of_yarn(self._rest, self._https_url)
            found += self._others()
        except HomeportError as error:
            if not self._is_away:
                _log.error("%s", error)
            self._is_away = True
            raise
        self._is_away = False
        for application in left_out:
            if application.application_id not in self._named:
                self._named.add(application.application_id)
                _log.warning(why_left_out(application))
        return json.dumps(found).encode()

    def handle_error(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        """Ignore a client that has gone while YARN was slow."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def why_left_out(application: Application) -> str:
    """Return one line: why a job is no target."""
    return (
        f"{application.application_id} ({application.name}) is no target: it serves https, which "
        "YARN's proxy does not reach; homeport metrics-targets --config-path=FILE, with the job's "
        "file, finds its ApplicationMaster itself"
    )


class _Handler(BaseHTTPRequestHandler):
    server: TargetServer
    timeout = _IDLE_S

    def do_GET(self) -> None:
        try:
            code, kind, body = HTTPStatus.OK, "application/json", self.server.answer()
        except HomeportError as error:
            code, kind = HTTPStatus.SERVICE_UNAVAILABLE, "text/plain"
            body = f"{error}\n".encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the library has it
        """Log no request."""


def main() -> None:
    """Serve at the host and port that the command line names: the role of the docker image."""
    host, port = sys.argv[1:]
    rest = ResourceManagerRest.from_environment(os.environ)
    TargetServer(rest, host, int(port)).serve_forever()


if __name__ == "__main__":
    main()
