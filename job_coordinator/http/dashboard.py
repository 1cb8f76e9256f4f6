"""The dashboard below ``/ui/``: its files, the state that they show, and streams of new states.

SHELL. The dashboard only reads (``actions`` changes the job). As from the other reading routes,
every client that reaches the port gets it, with secrets masked and without log lines. All clients
share one look at the job, so a hundred pages cost as much as one. Without a page the server only
takes a point of the plots every 15 seconds.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib import resources
from typing import Any, Final

from aiohttp import web

from homeport.config.errors import UnavailableError, WireError
from homeport.job_coordinator.clocks import boot_ms, wall_ms
from homeport.job_coordinator.http.port.shared import SharedAnswers
from homeport.job_coordinator.http.port.turns import end_turn
from homeport.job_coordinator.model.json_values import compact_json
from homeport.job_coordinator.status.shape import ShownStatus
from homeport.job_coordinator.ui.plots import MAX_CONTAINERS, STEP_MS, Plots
from homeport.job_coordinator.ui.snapshot import snapshot

MAX_STREAMS: Final = 32
"""Pages that have a stream of new states; a further page polls every few seconds."""

MAX_PLOTTED: Final = 60
"""Containers whose plots one request gets."""

_EVERY_S: Final = 1.0
"""Between two looks at a job of up to 500 containers while a page is open; longer for larger jobs,
as a look takes longer."""
_CONTAINERS_A_SECOND: Final = 500
_HEARTBEAT_S: Final = 10.0
_STALL_S: Final = 30.0
"""How long a page may read nothing from its stream."""

_TYPES: Final = {
    "css": "text/css",
    "html": "text/html",
    "js": "text/javascript",
    "svg": "image/svg+xml",
}
_INDEX: Final = "index.html"
_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-cache",
}

_SLASH, _PAGE, _FILE = "/ui", "/ui/", r"/ui/{file:[a-z_]+\.[a-z]+}"
FILE_ROUTES: Final = frozenset({_SLASH, _PAGE, "/ui/{file}"})
"""The routes of the page's files, which are the same for every job."""

_log = logging.getLogger(__name__)

Look = Callable[[], Awaitable[ShownStatus]]
"""Returns the status now; UnavailableError where another server answers for the job."""


class Dashboard:
    """Serves the dashboard between ``start`` and ``stop``, on the server's event loop.

    ``size`` returns how many containers the job has; None where another server answers for it.
    """

    def __init__(self, look: Look, answers: SharedAnswers, size: Callable[[], int | None]) -> None:
        self._look = look
        self._answers = answers
        self._size = size
        self._plots = Plots()
        self._files = _files()
        self._seen = _Seen()
        self._streams = 0
        self._is_over = False
        self._tasks: list[asyncio.Task[None]] = []
        self._wanted = asyncio.Event()
        self._looking = asyncio.Lock()

    def routes(self) -> list[web.RouteDef]:
        """Return what the server adds to its own."""
        return [
            web.get(_SLASH, self._get_slash),
            web.get(_PAGE, self._get_file),
            self._answers.route("/ui/state", self._state),
            web.get("/ui/stream", self._get_stream, allow_head=False),
            web.get("/ui/plots", self._get_plots),
            web.get(_FILE, self._get_file),
        ]

    def start(self) -> None:
        """Take points of the plots from now on."""
        self._tasks = [
            asyncio.ensure_future(work()) for work in (self._take_points, self._keep_looking)
        ]

    async def stop(self) -> None:
        """End all streams and all looks at the job."""
        self._is_over = True
        self._seen.end()
        for task in self._tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        self._tasks = []

    # --- files

    async def _get_slash(self, _request: web.Request) -> web.StreamResponse:
        # Relative: behind a proxy the path begins with what the proxy adds.
        return web.Response(status=308, headers={**_HEADERS, "Location": "ui/"})

    async def _get_file(self, request: web.Request) -> web.StreamResponse:
        found = self._files.get(request.match_info.get("file", _INDEX))
        if found is None:
            raise web.HTTPNotFound
        content_type, body = found
        return web.Response(body=body, headers=_HEADERS, content_type=content_type, charset="utf-8")

    # --- what they show

    async def _state(self) -> bytes:
        await self._see()
        return self._seen.body(wall_ms())

    async def _get_plots(self, request: web.Request) -> web.StreamResponse:
        names = request.query.getall("processor", ())
        if len(names) > MAX_PLOTTED:
            raise WireError(
                f"{len(names)} processors are named: a request takes {MAX_PLOTTED} at most"
            )
        return await self._answers.answer(
            request, ("plots", *names), lambda: compact_json(self._plots.to_json(names))
        )

    async def _get_stream(self, request: web.Request) -> web.StreamResponse:
        """Send server-sent events: ``state`` with each new state, ``time`` after 10 s without."""
        if self._is_over or self._streams >= MAX_STREAMS:
            raise UnavailableError(f"{MAX_STREAMS} pages have a stream already: ask for /ui/state")
        response = web.StreamResponse(
            headers={**_HEADERS, "Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
        )
        self._streams += 1
        self._wanted.set()
        end_turn(request)
        try:
            await response.prepare(request)
            await self._send(response)
        except (ConnectionError, TimeoutError):
            if request.transport is not None:
                request.transport.abort()
        finally:
            self._streams -= 1
        return response

    async def _send(self, response: web.StreamResponse) -> None:
        """Send until the server ends, or no longer answers for the job.

        A slow page gets the newest state when it has read the last one: no state is queued.
        """
        number = 0
        while self._serves():
            with suppress(TimeoutError):
                async with asyncio.timeout(_HEARTBEAT_S):
                    await self._seen.after(number)
            if not self._serves():
                return
            if self._seen.number > number:
                number, body = self._seen.number, self._seen.body(wall_ms())
                text = b"event: state\ndata: %s\n\n" % body
            else:
                # The comment is for proxies; pages see only events.
                text = b": alive\nevent: time\ndata: %d\n\n" % wall_ms()
            async with asyncio.timeout(_STALL_S):
                await response.write(text)

    def _serves(self) -> bool:
        return not self._is_over and self._size() is not None

    # --- looking

    async def _see(self) -> None:
        async with self._looking:
            if self._seen.age_ms(boot_ms()) < self._every_s() * 500:
                return
            status = await self._look()
            self._seen.see(snapshot(status, self._plots, wall_ms()), boot_ms())

    async def _keep_looking(self) -> None:
        while True:
            if not self._streams:
                self._wanted.clear()
                await self._wanted.wait()
            try:
                await self._see()
            except UnavailableError:
                pass  # another server answers for the job: its streams end
            except Exception:  # noqa: BLE001 - it is logged, and ends no page
                _log.exception("the dashboard could not look at the job")
            await asyncio.sleep(self._every_s())  # the job announces no news

    async def _take_points(self) -> None:
        while True:
            size = self._size()
            if size is not None and size <= MAX_CONTAINERS:
                try:
                    status = await self._look()
                    self._plots.take(status.containers, boot_ms())
                except UnavailableError:
                    pass  # this point is missing
                except Exception:  # noqa: BLE001 - as above: the next point may be there
                    _log.exception("the dashboard could not take a point")
            await asyncio.sleep(STEP_MS / 1000)  # until the next point is due

    def _every_s(self) -> float:
        return _EVERY_S * max(1.0, (self._size() or 0) / _CONTAINERS_A_SECOND)


class _Seen:
    def __init__(self) -> None:
        self.number = 0
        self._state: dict[str, Any] = {}
        self._body = b"{}"
        self._at_ms: int | None = None
        self._news = asyncio.Event()

    def see(self, state: dict[str, Any], at_ms: int) -> None:
        self._at_ms = at_ms
        if state != self._state:
            self._state, self._body = state, compact_json(state)
            self.number += 1
            self.end()

    def end(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def after(self, number: int) -> None:
        if self.number <= number:
            await self._news.wait()

    def age_ms(self, now_ms: int) -> float:
        return float("inf") if self._at_ms is None else now_ms - self._at_ms

    def body(self, now_ms: int) -> bytes:
        """Return the state with the time; a new time alone is no news."""
        return b'{"now_ms":%d,%s' % (now_ms, self._body[1:])


def _files() -> dict[str, tuple[str, bytes]]:
    folder = resources.files("homeport.job_coordinator.ui") / "pages"
    return {
        file.name: (_TYPES[file.name.rpartition(".")[2]], file.read_bytes())
        for file in folder.iterdir()
        if file.name.rpartition(".")[2] in _TYPES
    }
