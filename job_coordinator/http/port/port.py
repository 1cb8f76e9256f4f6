"""One port of a job: its routes behind their guard, the same for every program that serves.

SHELL. The job coordinator, a standalone processor and the lease keeper differ only in their routes.
They share connections, limits, headers, errors, and the log of invalid HTTP.
"""

import logging
import re
import ssl
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from aiohttp import web
from aiohttp.typedefs import Middleware

from homeport.config.errors import UnavailableError, WireError
from homeport.job_coordinator.access.job_access import ACCESS_ROUTE
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.http.guard import Guard
from homeport.job_coordinator.http.port.listening import Handler, Listener
from homeport.job_coordinator.http.responses import (
    error_answer,
    error_without_route,
    put_security_headers,
)

MAX_BODY_BYTES: Final = 1024 * 1024
"""Longest body of a POST."""

_IDLE_S: Final = 75.0
"""How long a connection may take until its next request has arrived, its headers included."""

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_LINES: Final = 60
_MINUTE_MS: Final = 60_000
_QUOTE: Final = re.compile(r"""\bb?['"]""")
"""The begin of a quotation from the request in aiohttp's messages; header names are cut too."""


class OneLineLog(logging.LoggerAdapter[logging.Logger]):
    """aiohttp's log of requests that are invalid or too large: one line instead of a traceback.

    Any program that reaches the port can send such requests, and the log must stay readable. So
    there are at most ``_LINES`` a minute. A line quotes nothing from the request, which may be a
    token with one character too many.
    """

    def __init__(self, logger: logging.Logger) -> None:
        super().__init__(logger)
        self._since_ms: int | None = None
        self._lines = 0

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:  # noqa: ANN401 - the base's signature
        """Log the message unless the minute has too many; the last line reports that."""
        now_ms = boot_ms()
        if self._since_ms is None or now_ms - self._since_ms >= _MINUTE_MS:
            self._since_ms, self._lines = now_ms, 0
        self._lines += 1
        if self._lines <= _LINES:
            super().log(level, msg, *args, **kwargs)
        if self._lines == _LINES:
            self.logger.warning("further requests that are no HTTP are not logged for a minute")

    def process(
        self, msg: object, kwargs: MutableMapping[str, Any]
    ) -> tuple[str, MutableMapping[str, Any]]:
        """Return the message, with the text of an exception."""
        error = kwargs.pop("exc_info", None)
        # A message is formatted with its arguments later.
        reason = _QUOTE.split(" ".join(str(error or "").split()), maxsplit=1)[0]
        reason = reason.rstrip(" :").replace("%", "%%")
        return f"{msg}: {reason}" if reason else str(msg), kwargs


class NotFoundError(Exception):
    """The thing that the path or the query names does not exist."""


class Port:
    """Serves between ``open`` and ``close``; runs on one event loop.

    ``before``: middlewares that see every request and every answer; those ``behind`` see accepted
    requests. ``shutdown_s``: how long requests may still take at the end.
    """

    def __init__(
        self,
        routes: Iterable[web.RouteDef],
        guard: Guard,
        log: logging.Logger,
        *,
        before: Sequence[Middleware] = (),
        behind: Sequence[Middleware] = (),
        shutdown_s: float = 1.0,
    ) -> None:
        app = web.Application(
            client_max_size=MAX_BODY_BYTES,
            middlewares=[*before, self._errors_as_json, guard.check, *behind],
        )
        app.add_routes([*routes, web.get(ACCESS_ROUTE, guard.show_access)])
        app.on_response_prepare.append(put_security_headers)
        self._log = log
        self._options: dict[str, Any] = {
            "access_log": None,
            "logger": OneLineLog(log),
            "keepalive_timeout": _IDLE_S,
        }
        self._runner = web.AppRunner(app, shutdown_timeout=shutdown_s, **self._options)
        self._listener: Listener | None = None

    async def open(
        self, host: str, port: int, tls: ssl.SSLContext | None = None
    ) -> tuple[str, int]:
        """Serve there, with TLS if it is given; return address and port.

        OSError: the address or port is not available.
        """
        server = await self._server()

        def handler(listener: Listener) -> Handler:
            return Handler(listener, server, **self._options)

        try:
            self._listener = Listener(handler, host, port, tls)
        except OSError:
            await self.close()
            raise
        return self._listener.address

    async def open_socket(self, path: Path) -> None:
        """Serve at that Unix socket; OSError where it is not available."""
        await self._server()
        await web.UnixSite(self._runner, str(path)).start()

    async def close(self) -> None:
        """Serve no more; requests have ended when this returns. A second call changes nothing."""
        listener, self._listener = self._listener, None
        if listener is not None:
            await listener.close()
        await self._runner.cleanup()

    async def _server(self) -> web.Server:
        await self._runner.setup()
        server = self._runner.server
        if not isinstance(server, web.Server):
            raise TypeError("the runner is not set up")
        inner = server.request_handler

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            """Handle a request; answer 417 to every expectation but ``100-continue``.

            aiohttp (3.14) answers expectations before any middleware, and fails at a value that is
            not UTF-8.
            """
            if isinstance(request.protocol, Handler):
                request.protocol.asked()
            expected = request.headers.get("Expect", "100-continue")
            if expected.lower() != "100-continue":
                text = "no expectation but 100-continue is met"
                return error_without_route(HTTPStatus.EXPECTATION_FAILED, text)
            return await inner(request)

        server.request_handler = handle
        return server

    @web.middleware
    async def _errors_as_json(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPException as error:
            kept = {name: value for name, value in error.headers.items() if name == "Allow"}
            text = f"{error.reason}: {request.method} {request.path}"
            return error_answer(HTTPStatus(error.status), text, kept)
        except (NotFoundError, WireError) as error:
            is_absent = isinstance(error, NotFoundError)
            status = HTTPStatus.NOT_FOUND if is_absent else HTTPStatus.BAD_REQUEST
            return error_answer(status, str(error))
        except UnavailableError as error:
            return error_answer(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        except (ConnectionError, web.RequestPayloadError):
            # The caller is gone: no one reads this answer.
            return error_answer(HTTPStatus.BAD_REQUEST, "the body broke off")
        except Exception:  # noqa: BLE001 - it is logged, and must not end a running job
            self._log.exception("%s %s failed", request.method, request.path)
            text = "internal error; its story is in the log of the AM"
            return error_answer(HTTPStatus.INTERNAL_SERVER_ERROR, text)
