"""A lease keeper as a process with few files, and clients that take its connections.

Run as a program: ``flooded_port.py HOST FILES [FOLDER]``; it prints its URL, and keeps leases until
its input ends. FOLDER has key and certificate where it is to speak TLS.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from homeport.appmaster.lease.lease_server import LeaseServer
from homeport.appmaster.lease.lease_table import LeaseTable, RenewalGuard
from homeport.job_coordinator.access.served_access import ServedAccess
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.http.messages import LeaseAnswer, Renewal
from homeport.job_coordinator.http.pinned_tls import CERTIFICATE_FILE_NAME, server_context
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation

TOKEN = "a-token-of-a-test"  # noqa: S105 - opens a server of this test only
FILES = 300
LEASE_MS = 10_000
TIMEOUT_S = LEASE_MS / 4000
"""A launcher's."""

ONE = Incarnation(ProcessorId("0"), 1)


@dataclass
class FloodedKeeper:
    """The process, and the connections that a test has opened to it."""

    url: str
    log: Path
    certificate: str | None

    def client(self, *, holds: bool = False) -> CoordinatorClient:
        """A launcher's client, with the job's token; ``holds``: one connection."""
        return CoordinatorClient(self.url, TOKEN, TIMEOUT_S, self.certificate, holds=holds)

    def is_renewed(self, client: CoordinatorClient | None = None) -> bool:
        """Whether a renewal with the right token is granted; UnavailableError: no answer."""
        granted = (client or self.client()).renew(Renewal(1, ONE))
        return granted.answer is LeaseAnswer.GRANTED

    def connected(self, source: str = "", sent: bytes = b"") -> socket.socket:
        """A connection from that address, on which that has been sent."""
        address = urlsplit(self.url)
        assert address.hostname is not None
        assert address.port is not None
        origin = (source, 0) if source else None
        found = socket.create_connection((address.hostname, address.port), TIMEOUT_S, origin)
        found.sendall(sent)
        return found


def is_closed(connection: socket.socket) -> bool:
    """Whether the other side has closed it, with nothing unread before."""
    looks = select.poll()  # select() takes no descriptor above 1023, and a worker may have more
    looks.register(connection, select.POLLIN)
    if not looks.poll(0):
        return False
    try:
        return connection.recv(1, socket.MSG_PEEK) == b""
    except ConnectionError:
        return True


@contextlib.contextmanager
def flooded_keeper(
    folder: Path, host: str = "127.0.0.1", files: int = FILES, *, is_tls: bool = False
) -> Iterator[FloodedKeeper]:
    """A keeper with that many files at most; ``folder``: for its log, and has key and certificate.

    It has ended afterwards.
    """
    log = folder / "keeper.log"
    command = [sys.executable, __file__, host, str(files), *([str(folder)] if is_tls else [])]
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr
        )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            url = process.stdout.readline().decode().strip()
            assert url, log.read_text(encoding="utf-8")
            certificate = folder / CERTIFICATE_FILE_NAME
            text = certificate.read_text(encoding="ascii") if is_tls else None
            yield FloodedKeeper(url, log, text)
        finally:
            process.stdin.close()
            process.wait(30)


async def _keep(host: str, folder: Path | None) -> None:
    table = LeaseTable(LEASE_MS, boot_ms())
    table.register(ONE, boot_ms())
    tls = None if folder is None else server_context(folder)
    guard = RenewalGuard(1_000_000, boot_ms())
    server = LeaseServer(
        table, guard, lease_ms=LEASE_MS, attempt=1, access=ServedAccess(TOKEN, tls=tls)
    )
    sys.stdout.write(f"{await server.start(host, 0, None)}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    await server.stop()


def main() -> None:
    """Keeps leases until the input ends."""
    logging.basicConfig(level=logging.INFO)
    files = int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    asyncio.run(_keep(sys.argv[1], Path(sys.argv[3]) if len(sys.argv) > 3 else None))


if __name__ == "__main__":
    main()
