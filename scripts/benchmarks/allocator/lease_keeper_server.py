"""The lease keeper's server before so many incarnations, in a process of its own.

Prints the port, serves until its standard input is closed. No coordinator stream is read: that it
was, just now, is taken for granted, and costs the keeper two fetches a second whatever the job.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from homeport.appmaster.lease.lease_server import LeaseServer
from homeport.appmaster.lease.lease_table import LeaseTable, RenewalGuard
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation

TOKEN = "of-the-benchmark"  # noqa: S105 - opens this server only
ATTEMPT = 1
LEASE_MS = 10_000
_ISOLATION_MS = 60_000
_WATCH_S = 0.5


async def _serve(launchers: int) -> None:
    table = LeaseTable(LEASE_MS, boot_ms())
    guard = RenewalGuard(_ISOLATION_MS)
    server = LeaseServer(table, guard, lease_ms=LEASE_MS, attempt=ATTEMPT, access=TOKEN)
    for number in range(launchers):
        table.register(Incarnation(ProcessorId(str(number)), 1), boot_ms())
    guard.fetched_ms = boot_ms()
    url = await server.start("127.0.0.1", 0, None)
    print(url.rstrip("/").rpartition(":")[2], flush=True)
    closed = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    while not closed.done():
        await asyncio.wait([closed], timeout=_WATCH_S)
        guard.fetched_ms = boot_ms()
    await server.stop()


def main() -> None:
    """Serve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--launchers", type=int, required=True)
    asyncio.run(_serve(parser.parse_args().launchers))


if __name__ == "__main__":
    main()
