"""The client of the job coordinator's HTTP routes: for launchers, containers and commands.

SHELL. It is synchronous and uses the standard library alone, so that a launcher starts fast. It
retries nothing, since only the caller knows how long it may wait. It ignores the environment's
proxies: the AM is a neighbour.
"""

from __future__ import annotations

import gzip
import secrets
import ssl
import zlib
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPSConnection
from threading import Lock
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from homeport.config.errors import (
    ConfigError,
    HomeportError,
    NoRightError,
    UnavailableError,
    WireError,
)
from homeport.job_coordinator.access.job_access import (
    ACCESS_ROUTE,
    JobSecret,
    ShownAccess,
    address_text,
)
from homeport.job_coordinator.http.messages import (
    STARTED_BYTES,
    CheckIn,
    LeaseGrant,
    Order,
    Renewal,
    Started,
    Stopped,
)
from homeport.job_coordinator.http.pinned_tls import client_context, unverified_context
from homeport.job_coordinator.model.codec import decode_job_model, decode_locality
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.job_model import JobModel
from homeport.job_coordinator.model.json_values import compact_json, parse_object, required_field
from homeport.job_coordinator.model.wire_form import decoded, value_of
from homeport.job_coordinator.status.outlook import ShownOutlook
from homeport.job_coordinator.status.shape import ShownStatus

_OK: Final = 200
_UNAUTHORIZED: Final = 401
_NO_RIGHT: Final = frozenset({_UNAUTHORIZED, 403, 429})
_SERVER_FAULT: Final = 500
_REDIRECT: Final = 307
_REDIRECTS: Final = 3
"""If the leader changes meanwhile, a second redirection finds the new one."""


_CLOSING: Final = {"Connection": "close"}
_Answer = tuple[int, bytes, HTTPMessage]


class CoordinatorClient:
    """Calls the AM at one URL; thread-safe, each call has a connection of its own.

    A client that *holds* its connection makes one call at a time by it, and has to be closed. A
    keeper whose port others flood knows that connection, so the client needs no new one.

    Every call raises UnavailableError where no answer comes in time or the AM cannot serve,
    NoRightError where the AM requires another token, and WireError where it refuses the request or
    its answer is not valid (as that of another server on the port of an AM that is gone).
    """

    def __init__(
        self,
        url: str,
        token: str | None,
        timeout_s: float = 5.0,
        certificate: str | None = None,
        secret: JobSecret | None = None,
        *,
        holds: bool = False,
    ) -> None:
        """Send nothing yet.

        Args:
            url: ``http://host:port/``, the value of SAMZA_COORDINATOR_URL; or ``https:``.
            token: the job's bearer token; without it secrets are masked and only reading works.
            timeout_s: longest wait, in seconds, for the connection and each piece of the answer.
            certificate: of the submission, as PEM: the only one that the client trusts. It has no
                effect for ``http:``.
            secret: of the submission; with it the client follows an exchange of token and
                certificate.
            holds: whether the connection stays open between calls.

        ConfigError: the URL is not of that form, or the certificate is missing or damaged.
        """
        self._url = url if url.endswith("/") else f"{url}/"
        is_tls, self._host, self._port, self._base = _address(self._url)
        self._certificate = certificate
        self._tls: ssl.SSLContext | None = None
        if is_tls:
            if certificate is None:
                rule = "the AM speaks TLS, and its certificate is not here"
                raise ConfigError("SAMZA_COORDINATOR_URL", url, rule, "submit the job again")
            self._tls = client_context(certificate)
        self._token = None if token is None else token.strip()
        self._secret = secret
        self._timeout_s = timeout_s
        self._holds = holds
        self._held: HTTPConnection | None = None
        self._calling = Lock()

    @property
    def url(self) -> str:
        """The AM's URL, which ends with a slash."""
        return self._url

    def at(self, url: str, timeout_s: float, *, holds: bool = False) -> CoordinatorClient:
        """Return a client with the same token for another URL of the job; ConfigError as above."""
        rest = (timeout_s, self._certificate, self._secret)
        return CoordinatorClient(url, self._token, *rest, holds=holds)

    def close(self) -> None:
        """Close the held connection, after a call that uses it; the next call opens another."""
        with self._calling:
            self._let_go()

    def job_model(self, version: int | None = None) -> JobModel:
        """Return the JobModel of that version, or the present one; masked without a token."""
        return decode_job_model(self._call("GET", "" if version is None else f"?version={version}"))

    def processor_model(self, processor_id: ProcessorId, version: int) -> JobModel:
        """Return the JobModel of that version with one processor alone; masked as above."""
        route = f"v1/processors/{quote(processor_id, safe='')}/model?version={version}"
        return decode_job_model(self._call("GET", route))

    def config(self) -> dict[str, str]:
        """Return the job's configuration; masked as above."""
        body = parse_object(self._call("GET", "config"), "the configuration")
        return {name: required_field(body, name, str) for name in body}

    def package(self, name: str) -> bytes:
        """Return the package with that sha256; this requires the job's token."""
        return self._call("GET", f"v1/packages/{quote(name, safe='')}")

    def locality(self) -> dict[ProcessorId, Host | None]:
        """Return where each processor last started successfully."""
        return decode_locality(self._call("GET", "locality"))

    def check_in(self, message: CheckIn) -> Order:
        """Report what runs here and return what to do next."""
        return Order.from_json(self._post("v1/check-in", message.to_json()))

    def renew(self, message: Renewal) -> LeaseGrant:
        """Renew a lease at the keeper, whose URL this client must have."""
        return LeaseGrant.from_json(self._post("v1/lease", message.to_json()))

    def started(self, message: Started) -> None:
        """Report that this stream container has started; for very many tasks, report sums."""
        self._post("v1/started", message.within(STARTED_BYTES).to_json())

    def stopped(self, message: Stopped) -> None:
        """Report that this stream container has ended."""
        self._post("v1/stopped", message.to_json())

    def shutdown(self) -> None:
        """Request the orderly end of the job."""
        self._post("v1/shutdown", {})

    def status(self) -> ShownStatus:
        """Return the state of the job: job, containers, hosts, last failures."""
        return decoded(ShownStatus, self._call("GET", "v1/status"), "the status")

    def status_body(self) -> dict[str, Any]:
        """Return the body of the status, with the fields of later versions."""
        return parse_object(self._call("GET", "v1/status"), "the status")

    def events(
        self, processor_id: ProcessorId | None = None, since: int | None = None, limit: int = 100
    ) -> dict[str, Any]:
        """Return the last events that decided something; see ``EventsAsked``."""
        asked = {"processor": processor_id, "since": since, "limit": limit}
        query = urlencode({k: v for k, v in asked.items() if v is not None})
        return parse_object(self._call("GET", f"v1/events?{query}"), "the events")

    def what_if(self, hosts: Sequence[Host]) -> ShownOutlook:
        """Return the effects that the loss of these hosts would have."""
        query = urlencode([("host", host) for host in hosts])
        answer = parse_object(self._call("GET", f"v1/what-if?{query}"), "the answer")
        return value_of(ShownOutlook, answer, "the answer")

    def audit(self) -> dict[str, Any]:
        """Return the last changes of the running job."""
        return parse_object(self._call("GET", "v1/audit"), "the audit trail")

    def access(self, secret: JobSecret) -> ShownAccess:
        """Return the server's generation and certificate, proven by the submission's secret.

        The request has no token, and trusts any certificate: the proof is stronger.

        WireError: the server does not have the secret. Other errors are as above.
        """
        return self._proven_access(secret)[0]

    def require_proof(self, secret: JobSecret) -> None:
        """Require that the server itself has the submission's secret, before it gets a token.

        A server that only passes the request on to the AM has another certificate, or address.

        WireError: it does not have the secret, or passes the request on; else as above.
        """
        access, address = self._proven_access(secret)
        if self._tls is None and access.address != address:
            raise WireError(
                f"{self._url}: it answers for the server at {access.address}: the token is not "
                "sent to it"
            )
        if self._tls is not None and access.certificate is None:
            raise WireError(f"{self._url}: it answers for a server without https")
        self._trust(access.certificate)

    def _proven_access(self, secret: JobSecret) -> tuple[ShownAccess, str]:
        nonce = secrets.token_hex(16)
        route = f"{self._base}{ACCESS_ROUTE.removeprefix('/')}?nonce={nonce}"
        connection = self._connection(self._tls and unverified_context())
        target = f"GET {self._url}{ACCESS_ROUTE.removeprefix('/')}"
        try:
            with closing(connection):
                connection.connect()
                address = address_text(connection.sock.getpeername())
                status, content, _ = _exchange(connection, ("GET", route, None, _CLOSING))
        except (OSError, HTTPException) as error:
            raise _no_answer(target, error) from error
        if status != _OK:
            raise _refused(target, status, content)
        return secret.proven(nonce, parse_object(content, "the access")), address

    def _is_renewed(self) -> bool:
        if self._secret is None:
            return False
        try:
            access = self.access(self._secret)
        except (UnavailableError, WireError):
            return False  # the refusal of the first request has the reason
        certificate, token = access.certificate, self._token
        if access.generation and token is not None:
            token = self._secret.token(access.generation)
        if (token, certificate) == (self._token, self._certificate):
            return False
        self._trust(certificate)
        self._token = token
        return True

    def _trust(self, certificate: str | None) -> None:
        if certificate is not None and self._tls is not None:
            self._certificate, self._tls = certificate, client_context(certificate)

    def _asked(self, *request: Any) -> _Answer:  # noqa: ANN401 - as of http.client
        """Return the answer to a request; OSError or HTTPException where there is none.

        A held connection that broke is replaced at once, for the same request: clients that hold
        send no request that must not come twice. A silent connection has used up the call's time.
        """
        if not self._holds:
            with closing(self._connection(self._tls)) as connection:
                return _exchange(connection, request)
        with self._calling:
            try:
                if self._held is not None:
                    with suppress(ConnectionError, ssl.SSLError):
                        return _exchange(self._held, request)
                    self._let_go()
                self._held = self._connection(self._tls)
                return _exchange(self._held, request)
            except BaseException:
                self._let_go()
                raise

    def _let_go(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.close()

    def _connection(self, tls: ssl.SSLContext | None) -> HTTPConnection:
        if tls is None:
            return HTTPConnection(self._host, self._port, timeout=self._timeout_s)
        return HTTPSConnection(self._host, self._port, timeout=self._timeout_s, context=tls)

    def _post(self, route: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return parse_object(self._call("POST", route, compact_json(body)), f"the answer to {route}")

    def _call(
        self, method: str, route: str, body: bytes | None = None, redirects: int = _REDIRECTS
    ) -> bytes:
        """Return the body of a good answer to one request; follow redirects without a token.

        The token goes only to the client's own URL.
        """
        target = f"{method} {self._url}{route}"
        request = (method, f"{self._base}{route}", body)
        try:
            status, content, found = self._followed(request)
        except (OSError, HTTPException) as error:
            raise _no_answer(target, error) from error
        encoding, location = found.get("Content-Encoding"), found.get("Location")
        if encoding == "gzip":
            content = _unpacked(content, target)
        if status == _OK:
            return content
        if status == _REDIRECT and location and self._token is None and redirects:
            parts = urlsplit(location)
            url = f"{parts.scheme}://{parts.netloc}/"
            other = CoordinatorClient(url, None, self._timeout_s, self._certificate)
            return other._call(method, location.removeprefix(url), body, redirects - 1)
        raise _refused(target, status, content)

    def _followed(self, request: tuple[str, str, bytes | None]) -> _Answer:
        """Return the answer; ask once more if the server has a new token or certificate."""
        try:
            answer = self._asked(*request, self._headers(request[2]))
            if answer[0] != _UNAUTHORIZED or not self._is_renewed():
                return answer
        except ssl.SSLCertVerificationError:
            if not self._is_renewed():
                raise
        return self._asked(*request, self._headers(request[2]))

    def _headers(self, body: bytes | None) -> dict[str, str]:
        headers = {"Accept": "application/json", "Accept-Encoding": "gzip"}
        if not self._holds:
            headers |= _CLOSING
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        return headers


def _no_answer(target: str, error: Exception) -> UnavailableError:
    return UnavailableError(f"{target}: no answer: {str(error) or type(error).__name__}")


def _refused(target: str, status: int, content: bytes) -> HomeportError:
    message = f"{target}: {status} {_error_text(content)}"
    if status in _NO_RIGHT:
        return NoRightError(message)
    return UnavailableError(message) if status >= _SERVER_FAULT else WireError(message)


def _exchange(connection: HTTPConnection, request: tuple[Any, ...]) -> _Answer:
    connection.request(*request)
    answer = connection.getresponse()
    return answer.status, answer.read(), answer.headers


def _address(url: str) -> tuple[bool, str, int | None, str]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if host is None or parts.scheme not in {"http", "https"} or parts.query or parts.fragment:
        rule = "it must be of the form http://host:port/ or https://host:port/"
        raise ConfigError("SAMZA_COORDINATOR_URL", url, rule, "take it from the output of run-job")
    return parts.scheme == "https", host, port, parts.path


def _unpacked(content: bytes, target: str) -> bytes:
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise WireError(f"{target}: the answer is not what gzip makes: {error}") from None


def _error_text(content: bytes) -> str:
    try:
        return " ".join(str(parse_object(content, "the answer").get("error", "")).split())
    except WireError:
        return ""
