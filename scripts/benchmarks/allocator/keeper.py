"""Section keeper: a thousand launchers renew their leases, each once a second."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator

from benchmarks import processes
from benchmarks.allocator.lease_keeper_server import ATTEMPT, TOKEN
from benchmarks.report import Row, at_least, at_most, figure
from homeport.job_coordinator.http.messages import Renewal
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.json_values import compact_json

LAUNCHERS, SECONDS = 1_000, 20
TITLE = "1,000 launchers renew their leases, each once a second, for 20 s"
_GRANTED = b'"granted"'


def rows() -> Iterator[Row]:
    """The share of a core that the keeper's server needs, and its answers to the launchers."""
    with processes.serving("allocator.lease_keeper_server", "--launchers", str(LAUNCHERS)) as (
        pid,
        port,
    ):
        before = processes.cpu_s(pid)
        answers, slowest_s = asyncio.run(_renew(port))
        cpu_s = processes.cpu_s(pid) - before
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
    request = _request(number)
    loop = asyncio.get_running_loop()
    begin, longest = loop.time() + number / LAUNCHERS, 0.0
    for second in range(SECONDS):
        await asyncio.sleep(begin + second - loop.time())
        sent = loop.time()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        answer = await reader.read()
        writer.close()
        answers["granted" if _GRANTED in answer else "refused"] += 1
        longest = max(longest, loop.time() - sent)
    return longest


def _request(number: int) -> bytes:
    body = compact_json(Renewal(ATTEMPT, Incarnation(ProcessorId(str(number)), 1)).to_json())
    head = (
        f"POST /v1/lease HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + body
