"""Asks ZooKeeper's servers about themselves, and tries a session of the job's user.

The session makes one ephemeral node, below the lowest node of the job's path that exists, and
removes it at once. Nothing else is written.
"""

import http.client
import json
import socket
import time
import uuid
from dataclasses import replace

from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError, NotReadOnlyCallError

from homeport.appmaster.doctor.zookeeper_checks import ServerFacts, SessionFacts
from homeport.config.config import Config
from homeport.config.settings.standalone_section import StandaloneConfig
from homeport.job_coordinator.http.direct import OPENER
from homeport.job_coordinator.zookeeper.client import no_right
from homeport.job_coordinator.zookeeper.tool_session import job_root, tool_session

_TIMEOUT_S = 5.0
_PORT = 2181
_MOST = 1 << 20
_WORD = b"srvr"
_MONITOR = "/commands/monitor"


def server_facts(settings: StandaloneConfig) -> tuple[ServerFacts, ...]:
    """Return the answers of each server that the job names.

    With TLS the doctor sends no four-letter words, because they would need a client's certificate.
    Where the words give no mode, it requests that of AdminServer on the same host.
    """
    servers = [server.strip() for server in settings.connect.split(",")]
    has_tls = settings.access.tls is not None
    return tuple(_server(server, settings.admin_port, has_tls=has_tls) for server in servers)


def _server(server: str, admin_port: int, *, has_tls: bool) -> ServerFacts:
    host, separator, port = server.rpartition(":")
    if not separator or server.endswith("]"):
        host, port = server, str(_PORT)
    try:
        with socket.create_connection((host.strip("[]"), int(port)), _TIMEOUT_S) as connection:
            text = "" if has_tls else _answer(connection)
    except OSError as fault:
        return ServerFacts(server, fault=f"it does not answer: {fault}")
    if "not currently serving" in text or not (text or has_tls):
        return ServerFacts(server, fault="it answers, and does not serve: it has no quorum")
    found = ServerFacts(server, said=text)
    return found if found.mode else replace(found, monitor=_monitor(host, admin_port))


def _answer(connection: socket.socket) -> str:
    connection.settimeout(_TIMEOUT_S)
    connection.sendall(_WORD)
    said = b""
    while len(said) < _MOST and (piece := connection.recv(4_096)):
        said += piece
    return said.decode("utf-8", "replace")


def _monitor(host: str, port: int) -> dict[str, object]:
    """Return AdminServer's answer; empty: AdminServer gives this machine none."""
    try:
        with OPENER.open(f"http://{host}:{port}{_MONITOR}", timeout=_TIMEOUT_S) as answer:
            said = json.loads(answer.read(_MOST))
    except (OSError, http.client.HTTPException, ValueError):
        return {}
    is_answer = isinstance(said, dict) and said.get("command") == "monitor" and not said["error"]
    return said if is_answer else {}


def session_facts(config: Config, settings: StandaloneConfig) -> SessionFacts:
    """Return the findings of a session with the job's own user and time-out.

    ConfigError: a credential for ZooKeeper is not where the configuration has it.
    RefusedError: ZooKeeper refuses the user.
    UnavailableError: there is no session; the line has the cause.
    """
    granted_ms = settings.session_timeout_ms

    def note_time_out(_begun_ms: int, session_ms: int) -> None:
        nonlocal granted_ms
        granted_ms = session_ms

    root, session_s = job_root(config, settings), settings.session_timeout_ms / 1000
    with tool_session(
        settings, root, _TIMEOUT_S, session_s=session_s, on_connection=note_time_out
    ) as client:
        place, is_seen = _nearest(client, root)
        if not is_seen:
            refusal = no_right(settings, place)
            return SessionFacts(settings.session_timeout_ms, granted_ms, place, refusal)
        return _probed(client, settings, place, granted_ms)


def _nearest(client: KazooClient, root: str) -> tuple[str, bool]:
    """Return the lowest existing node on the path to ``root``, and whether this user may see it."""
    found, path = "/", ""
    for name in root.strip("/").split("/"):
        path += f"/{name}"
        try:
            if client.exists(path) is None:
                break
        except NoAuthError:
            return path, False
        found = path
    return found, True


def _probed(
    client: KazooClient, settings: StandaloneConfig, place: str, granted_ms: int
) -> SessionFacts:
    asked_ms = settings.session_timeout_ms
    node = f"{place.rstrip('/')}/doctor-{uuid.uuid4().hex}"
    before_ms = int(time.time() * 1000)
    try:
        client.create(node, b"", ephemeral=True)
        after_ms, made_ms = int(time.time() * 1000), client.exists(node).ctime
        client.delete(node)
    except NoAuthError:
        return SessionFacts(asked_ms, granted_ms, place, no_right(settings, place))
    except NotReadOnlyCallError:
        return SessionFacts(asked_ms, granted_ms, place, "the server is read-only")
    ahead_ms = max(0, made_ms - after_ms) or min(0, made_ms - before_ms)
    return SessionFacts(asked_ms, granted_ms, place, ahead_ms=ahead_ms)
