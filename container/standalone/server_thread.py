"""The HTTP server of a processor, on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import threading

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.container.standalone.processor_page import ProcessorPage
from homeport.job_coordinator.http.pinned_tls import url_at
from homeport.job_coordinator.http.server import JobCoordinatorServer

_LOG = logging.getLogger(__name__)

_LOOPBACK = "127.0.0.1"


class ServerThread:
    """Serves a page between ``start`` and ``stop``.

    No token is given to anybody: secrets stay masked, and nothing is taken but questions.

    Args:
        page: what is served.
        config: of the processor, which says where.
    """

    def __init__(self, page: ProcessorPage, config: Config) -> None:
        self._loop = asyncio.new_event_loop()
        self._host = keys.JOB_COORDINATOR_URL_HOST.read(config) or _own_address()
        port = keys.JOB_COORDINATOR_URL_PORT.read(config)
        self._server = JobCoordinatorServer(
            page, secrets.token_hex(), self._host, port, page, peers=page
        )
        self._thread = threading.Thread(target=self._loop.run_forever, name="http", daemon=True)

    def start(self) -> str:
        """The server answers; its URL. CannotListenError where it cannot listen there."""
        self._thread.start()
        try:
            _, port = asyncio.run_coroutine_threadsafe(self._server.start(), self._loop).result()
        except BaseException:  # whatever it was, nothing stays behind
            self.stop()
            raise
        url = url_at((self._host, port), None)
        _LOG.info("the processor answers at %s", url)
        return url

    def stop(self) -> None:
        """Nothing is served, and the thread has ended."""
        asyncio.run_coroutine_threadsafe(self._server.stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _own_address() -> str:
    """Of this machine's name; where that has none, only programs of this machine reach it."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        _LOG.warning(
            "the name of this machine has no address: the processor answers this machine alone; "
            "%s says where it is to answer",
            keys.JOB_COORDINATOR_URL_HOST.name,
        )
        return _LOOPBACK
