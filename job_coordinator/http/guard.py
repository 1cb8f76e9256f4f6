"""Accepts or refuses a request by its token, role, number of wrong tokens, and page of origin.

SHELL around ``callers`` and ``port.connections``. It accepts the job's own token even from an
address with too many wrong tokens: 256 random bits are not guessed, and a program on a host of the
cluster must not be able to keep the launchers of that host from their AM.
"""

import hmac
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from aiohttp import web

from homeport.config.access_tokens import RESERVED
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.job_coordinator.access.job_access import ACCESS_ROUTE, address_text
from homeport.job_coordinator.access.served_access import ServedAccess
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.http.callers import (
    Caller,
    OperatorTokens,
    Role,
    is_of_another_page,
    is_own,
    names_of,
)
from homeport.job_coordinator.http.port.connections import LIMIT, WrongTokens
from homeport.job_coordinator.http.port.listening import Handler
from homeport.job_coordinator.http.port.turns import Turns
from homeport.job_coordinator.http.responses import error_answer, json_answer
from homeport.job_coordinator.model.json_values import compact_json, shown

READING: Final = frozenset({"GET", "HEAD"})

_CALLER: Final = web.RequestKey("caller", Caller)
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_log = logging.getLogger(__name__)


def caller(request: web.Request) -> Caller:
    """Return the caller of an accepted request."""
    found: Caller = request[_CALLER]
    return found


@dataclass(frozen=True, slots=True)
class Rights:
    """The role that each request needs.

    Args:
        changing: {route: role for a change}; on other routes a change needs ``Role.JOB``.
        reading: {route: role for reading}; other routes need no role while reading is open.
        public: routes without data of a job, which never need a role.
    """

    changing: Mapping[str, Role] = field(default_factory=dict)
    reading: Mapping[str, Role] = field(default_factory=dict)
    public: frozenset[str] = frozenset()

    def needed(self, request: web.Request, config: Config | None) -> Role:
        """Return the role that this request needs."""
        resource = request.match_info.route.resource
        route = "" if resource is None else resource.canonical
        if request.method not in READING:
            return self.changing.get(route, Role.JOB)
        if (
            route in {*self.public, ACCESS_ROUTE}
            or config is None
            or keys.JOB_COORDINATOR_READ_OPEN.read(config)
        ):
            return self.reading.get(route, Role.NONE)
        return self.reading.get(route, Role.READ)


class Guard:
    """Checks each request; runs on one event loop.

    ``config`` returns the configuration in force, which has the tokens of operators; None: none is
    in force yet. ``names``: those of this machine; ``learned`` adds others.
    """

    def __init__(
        self,
        access: ServedAccess,
        config: Callable[[], Config | None],
        rights: Rights,
        names: Iterable[str] = (),
    ) -> None:
        self._access = access
        self._operators = OperatorTokens()
        self._config = config
        self._rights = rights
        self._names = names_of(names)
        self._wrong = WrongTokens()
        self._turns = Turns()

    def learned(self, names: Iterable[str]) -> None:
        """Note further names of this machine."""
        self._names |= names_of(names)

    async def show_access(self, request: web.Request) -> web.StreamResponse:
        """Answer which token and certificate are valid, with the proof."""
        address = address_text(request.get_extra_info("sockname"))
        return json_answer(compact_json(self._access.answer(request.query.get("nonce"), address)))

    @web.middleware
    async def check(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Return the handler's answer, or a refusal."""
        found = self._identified(request)
        if isinstance(found, Caller):
            request[_CALLER] = found
            refusal = self._refusal(request, found)
            is_change = refusal is None and request.method not in READING
            if is_change or found.role is Role.JOB:
                return refusal or await handler(request)
        else:
            refusal = found
        async with self._turns.one(request):
            if request.transport is None:
                raise ConnectionResetError("the caller has not waited for its turn")
            return refusal or await handler(request)

    def _identified(self, request: web.Request) -> Caller | web.Response:
        """Return the caller; refuse a wrong token even where none is needed."""
        address = request.remote or ""
        offered = _bearer_token(request)
        config = self._config()
        if config is not None:
            self._access.exchange(keys.JOB_COORDINATOR_ACCESS_GENERATION.read(config))
        if offered is None:
            return Caller("", Role.NONE, address)
        if hmac.compare_digest(offered, self._access.token):
            if isinstance(request.protocol, Handler):
                request.protocol.is_known()
            return Caller(RESERVED, Role.JOB, address)
        if offered in self._access.former:
            return _unauthorized("the job's token has been exchanged")
        now_ms = boot_ms()
        wait_ms = self._wrong.wait_ms(address, now_ms)
        if wait_ms:
            seconds = -(-wait_ms // 1000)
            return error_answer(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"{LIMIT} wrong tokens have come from this address: try again in {seconds} s",
                {"Retry-After": str(seconds)},
            )
        if config is not None:
            self._operators.configured(config)
        name, role = self._operators.holder(offered)
        if role is Role.NONE:
            if self._wrong.shown(address, now_ms):
                _log.warning("%d wrong tokens have come from %s within a minute", LIMIT, address)
            return _unauthorized("the bearer token is not this job's")
        return Caller(name, role, address)

    def _refusal(self, request: web.Request, found: Caller) -> web.Response | None:
        is_reading = request.method in READING
        config = self._config()
        if found.role is Role.NONE and (refusal := self._of_another_name(request, config)):
            return refusal
        page = map(request.headers.get, ("Origin", "Sec-Fetch-Site", "Host"))
        if not is_reading and is_of_another_page(*page):
            return error_answer(
                HTTPStatus.FORBIDDEN, "a page of another server has made this request"
            )
        needed = self._rights.needed(request, config)
        if found.role >= needed:
            return None
        if found.role is Role.NONE:
            return _unauthorized("a bearer token is needed")
        return error_answer(
            HTTPStatus.FORBIDDEN,
            f"the token {found.name} has the role {found.role.name.lower()}: this request needs "
            f"{needed.name.lower()}",
        )

    def _of_another_name(self, request: web.Request, config: Config | None) -> web.Response | None:
        """Return a refusal if the request is for another server; a page has no token."""
        key = keys.JOB_COORDINATOR_URL_NAMES
        further = () if config is None else names_of(key.read(config))
        for host in request.headers.getall("Host", ()):
            if not is_own(host, self._names, further):
                return error_answer(
                    HTTPStatus.MISDIRECTED_REQUEST,
                    f"Host is {shown(host)}: it must be an address, or a name of this machine; ask "
                    f"by one, or add the name to {key.name}",
                )
        return None


def _bearer_token(request: web.Request) -> bytes | None:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip().encode("utf-8", "surrogateescape") if scheme.lower() == "bearer" else None


def _unauthorized(reason: str) -> web.Response:
    return error_answer(HTTPStatus.UNAUTHORIZED, reason, {"WWW-Authenticate": "Bearer"})
