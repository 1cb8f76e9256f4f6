"""Clients of ZooKeeper by a job's keys: user, certificate, and the ACL of the nodes they make.

SHELL. This module reads the secrets from the places that the keys name. No error and no log has
one.
"""

import logging
import os
import socket
import ssl
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import puresasl.mechanisms
from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionDropped,
    SASLException,
    SessionClosedRequireSaslError,
)
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.states import KeeperState
from kazoo.security import CREATOR_ALL_ACL, make_acl, make_digest_acl_credential

from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import TextKey
from homeport.config.declarations.standalone_keys import DIGEST, GSSAPI
from homeport.config.errors import ConfigError
from homeport.config.settings.standalone_section import StandaloneConfig
from homeport.config.settings.zookeeper_access import ENV, FILE, ZooKeeperAccess, ZooKeeperTls
from homeport.job_coordinator.clocks import boot_ms

REFUSALS = (SessionClosedRequireSaslError, SASLException)
"""Errors of a server that requires a user that it knows, or of a failed exchange of SASL."""
Credentials = Mapping[str, Any]
"""Arguments of kazoo's client; they hold secrets."""


def credentials_of(access: ZooKeeperAccess) -> Credentials:
    """Return the client's credentials; kazoo reads the files of TLS again for each connection.

    ConfigError: a secret or a file is not where its key names it, or cannot be read.
    """
    found: dict[str, Any] = {}
    owner: tuple[str, str] | None = None
    if access.tls is not None:
        found |= _tls(access.tls)
    if access.scheme == GSSAPI:
        found["sasl_options"] = _gssapi(access)
    elif access.scheme:
        password = _secret(keys.JOB_COORDINATOR_ZK_AUTH_PASSWORD, access.password)
        if access.scheme == DIGEST:
            found["auth_data"] = [(DIGEST, f"{access.username}:{password}")]
            owner = DIGEST, make_digest_acl_credential(access.username, password)
        else:
            owner = "sasl", access.username
            found["sasl_options"] = {
                "mechanism": access.scheme,
                "username": access.username,
                "password": password,
            }
    if access.is_owned:
        # many jobs of a host may share a certificate, but a user is one owner
        found["default_acl"] = [make_acl(*owner, all=True)] if owner else list(CREATOR_ALL_ACL)
    return found


_LEAST_SERVERS = 3
_CLOSED = "socket connection broken"
"""Kazoo's words for a server that closes the connection before it answers."""


class Faults(logging.Logger):
    """Kazoo's logger of one client, which keeps the last fault of each server.

    ``is_quiet``: whether to log nothing, since the fault goes into an error.
    """

    def __init__(self, *, is_quiet: bool = False) -> None:
        super().__init__("kazoo")
        self.parent = logging.getLogger("kazoo")
        self._is_quiet = is_quiet
        self._found: deque[str] = deque(maxlen=1)
        self.is_refused = False
        """Whether ZooKeeper has refused the user."""

    @property
    def last(self) -> str:
        """The last faults, in their order, each once; "": there is none."""
        return "; ".join(dict.fromkeys(self._found))

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 - the name is logging's
        """Return True for faults: ``handle`` gets them whatever is logged."""
        return level >= logging.WARNING or super().isEnabledFor(level)

    def handle(self, record: logging.LogRecord) -> None:
        """Keep a fault; log the record as usual."""
        _, _, text = record.getMessage().partition(": ")
        if record.exc_info:
            self._found.append(repr(record.exc_info[1]))
        elif record.levelno >= logging.WARNING and text:  # other lines have no cause
            self._found.append(_in_words(text.removeprefix("socket connection error: ")))
        if not self._is_quiet and super().isEnabledFor(record.levelno):
            super().handle(record)

    def watch(self, client: KazooClient) -> None:
        """Watch for a refusal of the client's user, and keep faults of each of its servers.

        Kazoo tries the servers in rounds, each round in another order, and each server as often as
        it is named (``with_short_waits``). The kept number in a row has a fault of every server.
        """
        times = len(client.hosts) // len(set(client.hosts))
        self._found = deque(self._found, maxlen=2 * (len(client.hosts) - times) + 1)

        def on_state(_state: str) -> None:
            if client.client_state == KeeperState.AUTH_FAILED:
                self.is_refused = True

        client.add_listener(on_state)


def with_short_waits(connect: str) -> str:
    """Return the connection string with each server repeated until there are three names.

    Kazoo waits for a server's answer for the session's time-out, divided by the number of names.
    A server that is just starting may accept the connection and never answer: with one name that
    would cost the whole session.
    """
    servers, slash, root = connect.partition("/")
    names = servers.split(",")
    return ",".join(names * -(-_LEAST_SERVERS // len(names))) + slash + root


def new_client(
    settings: StandaloneConfig,
    credentials: Credentials,
    faults: Faults,
    on_connection: Callable[[int, int], None] = lambda *_: None,
    **more: Any,  # noqa: ANN401 - what kazoo's client takes
) -> KazooClient:
    """Return a client that has not begun.

    ``on_connection`` is called with each new connection: when the client began it, in ms on
    CLOCK_BOOTTIME, and the granted time-out of the session in ms, which may be shorter than the
    requested one. ``more`` goes to kazoo.
    """
    handler = _Handler(settings.access.tls is not None)
    servers = with_short_waits(settings.connect)
    client = KazooClient(servers, handler=handler, logger=faults, **credentials, **more)
    faults.watch(client)
    _watch_connections(client, on_connection)
    return client


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """Kazoo's handler, except for TLS: it trusts only the named authorities, leaks no socket."""

    def __init__(self, has_tls: bool) -> None:  # noqa: FBT001 - of one place
        super().__init__()
        self._has_tls = has_tls

    def create_connection(self, *arguments: Any, **named: Any) -> socket.socket:  # noqa: ANN401 - of kazoo
        if not self._has_tls:
            made: socket.socket = super().create_connection(*arguments, **named)
            return made
        context = _context(named["ca"])
        if named["certfile"]:
            context.load_cert_chain(named["certfile"], named["keyfile"], named["keyfile_password"])
        plain = socket.create_connection(named["address"], named["timeout"])
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            return context.wrap_socket(plain, server_hostname=named["hostname"])
        except BaseException:  # whatever the error is, close the socket
            plain.close()
            raise


def _context(ca: str) -> ssl.SSLContext:
    """Return the context of a client that trusts these authorities; empty: the system's."""
    context = ssl.create_default_context(cafile=ca)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _watch_connections(client: KazooClient, on_connection: Callable[[int, int], None]) -> None:
    """Call ``on_connection`` with each connection; handle a refusal apart from a lost one.

    Kazoo takes a connection that breaks during SASL for a refusal. It ends its thread where the
    server gives its reason, or where SASL cannot go on. A server that goes down does not refuse a
    user that was accepted before.
    """
    connection: Any = client._connection  # noqa: SLF001 - kazoo offers no other way
    connect = connection._connect  # noqa: SLF001 - as above
    was_taken = False

    def connected(*arguments: Any) -> Any:  # noqa: ANN401 - passed on as they come
        nonlocal was_taken
        begun_ms = boot_ms()
        try:
            found = connect(*arguments)
        except REFUSALS as error:
            raise AuthFailedError(repr(error)) from None
        except AuthFailedError as error:
            if was_taken and isinstance(error.__cause__, ConnectionDropped):
                raise error.__cause__ from None
            raise
        was_taken = True
        # kazoo waits for an answer for two thirds of the granted time-out
        on_connection(begun_ms, round(found[0] * 1.5))
        return found

    connection._connect = connected  # noqa: SLF001 - as above


def refused_user(settings: StandaloneConfig) -> str:
    """Return the error line for a user that ZooKeeper refuses."""
    access = settings.access
    if not access.scheme:
        return (
            f"ZooKeeper at {settings.connect} refuses clients that show no user: set "
            f"{keys.JOB_COORDINATOR_ZK_AUTH_SCHEME.name}"
        )
    key = keys.JOB_COORDINATOR_ZK_AUTH_USERNAME.name
    return (
        f"ZooKeeper at {settings.connect} refuses the user {key} = {access.username!r} "
        f"({access.scheme}): correct it, or what "
        f"{keys.JOB_COORDINATOR_ZK_AUTH_PASSWORD.name} names"
    )


def no_right(settings: StandaloneConfig, root: str) -> str:
    """Return the error line for a job that may not read or write its nodes."""
    access, shown = settings.access, "a client that shows nothing"
    if access.scheme:
        key = keys.JOB_COORDINATOR_ZK_AUTH_USERNAME.name
        shown = f"{key} = {access.username!r}"
    elif access.tls is not None and access.tls.certificate:
        key = keys.JOB_COORDINATOR_ZK_TLS_CERTIFICATE_PATH.name
        shown = f"{key} = {access.tls.certificate!r}"
    return (
        f"ZooKeeper at {settings.connect} gives {shown} no right on {root}, or on a node above it: "
        "show the user or certificate that has made these nodes, or have its owner set their ACL"
    )


def _in_words(fault: str) -> str:
    if fault == _CLOSED:
        return "a server closes the connection, as one without a quorum, or a read-only one, does"
    keys_of_tls = "TLS fails, correct the files of job.coordinator.zk.tls.*: "
    return f"{keys_of_tls}{fault}" if fault.startswith("[SSL") else fault


def _secret(key: TextKey, place: str) -> str:
    if place.startswith(ENV):
        name = place.removeprefix(ENV)
        found = os.environ.get(name, "")
        where = f"the environment variable {name!r}"
    else:
        path = place.removeprefix(FILE)
        where = f"the file {path!r}"
        try:
            found = Path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is no text"
            rule = f"{where} must hold the secret ({why})"
            raise key.error(place, rule, "write it there, for its owner alone") from None
    if not found:
        raise key.error(place, f"{where} must hold the secret", "write it there")
    return found


def _tls(tls: ZooKeeperTls) -> dict[str, Any]:
    key = keys.JOB_COORDINATOR_ZK_TLS_KEY_PASSWORD
    # without a password OpenSSL would ask the terminal for one
    password = _secret(key, tls.key_password) if tls.key_password else ""
    try:
        context = _context(tls.ca)
    except OSError as error:  # also what OpenSSL does not understand
        ca = keys.JOB_COORDINATOR_ZK_TLS_CA_PATH
        raise _unusable(ca, tls.ca, "certificates", error) from None
    if tls.certificate:
        try:
            context.load_cert_chain(tls.certificate, tls.key, password)
        except OSError as error:
            raise _unusable(
                keys.JOB_COORDINATOR_ZK_TLS_CERTIFICATE_PATH,
                tls.certificate,
                f"a certificate, and {keys.JOB_COORDINATOR_ZK_TLS_KEY_PATH.name} its key",
                error,
            ) from None
    return {
        "use_ssl": True,
        "verify_certs": True,
        "check_hostname": True,
        "ca": tls.ca,
        "certfile": tls.certificate,
        "keyfile": tls.key,
        "keyfile_password": password,
    }


def _unusable(key: TextKey, path: str, what: str, error: OSError) -> ConfigError:
    why = getattr(error, "reason", None) or error.strerror or str(error)
    rule = f"it must be a PEM file with {what} ({why})"
    return key.error(path, rule, "correct the paths, or the files")


def _gssapi(access: ZooKeeperAccess) -> dict[str, Any]:
    if not puresasl.mechanisms.have_kerberos:
        rule = "it needs the Python module kerberos, which this environment does not have"
        remedy = "install it, or use DIGEST-MD5"
        raise keys.JOB_COORDINATOR_ZK_AUTH_SCHEME.error(access.scheme, rule, remedy)
    principal = {"principal": access.username} if access.username else {}
    return {"mechanism": access.scheme, "service": "zookeeper", **principal}
