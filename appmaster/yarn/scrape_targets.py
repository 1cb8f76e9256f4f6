"""Where Prometheus finds the metrics of all running jobs: its HTTP service discovery.

Only the ResourceManager is read. A target is the address of YARN's proxy, which goes to wherever
the ApplicationMaster is, so another attempt on another host changes no target. Besides homeport it
needs the standard library alone, so it runs where homeport's requirements are not installed.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
import urllib.parse
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from homeport.appmaster.yarn.application_tags import APPLICATION_TAG, HTTPS_TAG, PAGE
from homeport.appmaster.yarn.resource_manager_rest import Application, ResourceManagerRest
from homeport.config.errors import UnavailableError

_log = logging.getLogger(__name__)

_STATES = frozenset({"ACCEPTED", "RUNNING"})
"""A job whose ApplicationMaster is away for longer must stay a target, so that it is missed."""
_IDLE_S = 60.0


def targets(applications: Iterable[Application], rm_url: str) -> list[Mapping[str, Any]]:
    """One target for each job that runs or waits for its ApplicationMaster.

    Labels: ``job_name``, ``job_id``, ``application``. Jobs that serve https are left out.

    Args:
        applications: all that YARN knows.
        rm_url: where the proxy is, unless an application has an address of it.
    """
    return [
        _target(a, rm_url)
        for a in applications
        if a.state in _STATES and APPLICATION_TAG in a.tags and HTTPS_TAG not in a.tags
    ]


def unreachable(applications: Iterable[Application]) -> list[Application]:
    """The running jobs that are left out."""
    return [a for a in applications if a.is_active and HTTPS_TAG in a.tags]


def _target(application: Application, rm_url: str) -> Mapping[str, Any]:
    url = application.tracking_url
    if not url.startswith(("http://", "https://")):  # no attempt has begun
        url = f"{rm_url}/proxy/{application.application_id}/"
    proxy = urllib.parse.urlsplit(url)
    # <job.name>_<job.id>: an id with "_" in it is cut in the wrong place, and the rest is right.
    name, _, job_id = application.name.rpartition("_")
    return {
        "targets": [proxy.netloc],
        "labels": {
            "__scheme__": proxy.scheme,
            "__metrics_path__": f"{proxy.path.rstrip('/')}/pages/{PAGE}/metrics",
            "job_name": name,
            "job_id": job_id,
            "application": application.application_id,
        },
    }


class TargetServer(ThreadingHTTPServer):
    """Answers every GET with the targets of now; 503 where YARN does not answer.

    Prometheus then keeps the targets that it has.
    """

    daemon_threads = True

    def __init__(self, rest: ResourceManagerRest, host: str, port: int) -> None:
        """It listens; nothing is answered before ``serve_forever``.

        Raises:
            UnavailableError: it cannot listen there.
        """
        self._rest = rest
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
        """The body; the log names once a job that is left out, and that YARN is away.

        Raises:
            UnavailableError: YARN does not answer.
        """
        try:
            applications = self._rest.tagged_applications(APPLICATION_TAG)
        except UnavailableError as error:
            if not self._is_away:
                _log.error("%s", error)
            self._is_away = True
            raise
        self._is_away = False
        for application in unreachable(applications):
            if application.application_id not in self._named:
                self._named.add(application.application_id)
                _log.warning(left_out(application))
        return json.dumps(targets(applications, self._rest.url)).encode()

    def handle_error(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        """A client that has gone while YARN was slow is no error."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def left_out(application: Application) -> str:
    """One line that says why a job is no target."""
    return (
        f"{application.application_id} ({application.name}) is no target: it serves https, which "
        "YARN's proxy does not reach; scrape its ApplicationMaster itself (docs/dashboards.md)"
    )


class _Handler(BaseHTTPRequestHandler):
    server: TargetServer
    timeout = _IDLE_S

    def do_GET(self) -> None:
        try:
            code, kind, body = HTTPStatus.OK, "application/json", self.server.answer()
        except UnavailableError as error:
            code, kind = HTTPStatus.SERVICE_UNAVAILABLE, "text/plain"
            body = f"{error}\n".encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the library has it
        """Requests are not logged."""


def main() -> None:
    """Serves at the host and port that the command line names: the role of the docker image."""
    host, port = sys.argv[1:]
    rest = ResourceManagerRest.from_environment(os.environ)
    TargetServer(rest, host, int(port)).serve_forever()


if __name__ == "__main__":
    main()
