"""Section keeper: a thousand launchers renew their leases, each once a second."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator

from benchmarks import cpu_time, processes
from benchmarks.allocator.adoption_launchers import exchange, post
from benchmarks.report import Row, at_least, at_most, figure
from homeport.appmaster.lease.lease_server import LeaseServer
from homeport.appmaster.lease.lease_table import LeaseTable, RenewalGuard
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.http.messages import Renewal
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation

LAUNCHERS, SECONDS = 1_000, 20
TOKEN = "of-the-benchmark"  # noqa: S105 - opens this server only
ATTEMPT = 1
LEASE_MS = 10_000
_ISOLATION_MS = 60_000
_WATCH_S = 0.5
_GRANTED = b'"granted"'


def rows() -> Iterator[Row]:
    """The share of a core that the keeper's server needs, and its answers to the launchers."""
    with processes.serving("allocator.keeper.serve", LAUNCHERS) as (pid, port):
        before = cpu_time.cpu_s(pid)
        answers, slowest_s = asyncio.run(_renew(port))
        cpu_s = cpu_time.cpu_s(pid) - before
    # By the time that it should take: a busy machine takes longer, which is no merit.
    yield at_most("CPU of the keeper, of one core", 100 * cpu_s / SECONDS, 30, "%")
    yield figure("CPU of one renewal", cpu_s / sum(answers.values()) * 1e3, "ms")
    yield at_least("renewals granted", answers["granted"], LAUNCHERS * SECONDS, "")
    yield figure("longest wait of a launcher", slowest_s, "s")


async def _renew(port: int) -> tuple[Counter[str], float]:
    """The answers to all launchers, and the longest wait for one in seconds."""
    answers: Counter[str] = Counter()
    waits = await asyncio.gather(*(_launcher(port, n, answers) for n in range(LAUNCHERS)))
    return answers, max(waits)


async def _launcher(port: int, number: int, answers: Counter[str]) -> float:
    """As a launcher does, on a new connection each time; its longest wait in seconds."""
    body = Renewal(ATTEMPT, Incarnation(ProcessorId(str(number)), 1)).to_json()
    request = post("127.0.0.1", TOKEN, "v1/lease", body)
    loop = asyncio.get_running_loop()
    begin, longest = loop.time() + number / LAUNCHERS, 0.0
    for second in range(SECONDS):
        await asyncio.sleep(begin + second - loop.time())
        sent = loop.time()
        answer = await exchange("127.0.0.1", port, request)
        answers["granted" if _GRANTED in answer else "refused"] += 1
        longest = max(longest, loop.time() - sent)
    return longest


def serve(launchers: int) -> None:
    """Serve as the lease keeper before so many incarnations, until standard input ends.

    No coordinator stream is read: that it was, just now, is taken for granted, and costs the keeper
    two fetches a second whatever the job.
    """
    asyncio.run(_serve(launchers))


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


SECTIONS = {"keeper": ("1,000 launchers renew their leases, each once a second, for 20 s", rows)}
