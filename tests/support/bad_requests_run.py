"""A real driver with its server in this process, and thousands of bad requests to it.

What the process holds afterwards is measured too. So it is to be a process of its own: in one that
has run other tests, their threads and what they have left in memory count along.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bad_requests import BadRequest, BadRequests
from driver_attempts import FIRST, Am

from homeport.appmaster.driver.actions.operator_actions import DriverActions
from homeport.appmaster.driver.http_backend import DriverDecisions
from homeport.config.access_tokens import digest_of
from homeport.config.declarations import all_keys as keys
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.http.actions import Operators
from homeport.job_coordinator.http.messages import OrderKind, Stopped
from homeport.job_coordinator.http.server import JobCoordinatorServer
from homeport.job_coordinator.model.outcomes import StopCause

JOB, ADA, EVE = "jobs-own-pLaNtEd", "adas-pLaNtEd", "eves-pLaNtEd"
SECRET = "hunter2-pLaNtEd"  # noqa: S105 - of this test only
SECRETS = tuple(text.encode() for text in (JOB, ADA, EVE, SECRET))
MARK = "pLaNtEd"
AT_ONCE, SILENT_S, LIMIT_S, INTERNAL = 100, 0.5, 240.0, 500
TOKENS = {
    keys.JOB_COORDINATOR_OPERATE_TOKENS.name: f"ada:{digest_of(ADA.encode())}",
    keys.JOB_COORDINATOR_READ_TOKENS.name: f"eve:{digest_of(EVE.encode())}",
    "my.own.password": SECRET,
}
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")


async def answer_to(port: int, data: bytes, address: str) -> bytes:
    """All that the server says to these bytes, until it closes, or waits for more of them."""
    found = b""
    with suppress(ConnectionError):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
        try:
            async with asyncio.timeout(SILENT_S):
                writer.write(data)
                while piece := await reader.read(65_536):
                    found += piece
        except TimeoutError:
            pass
        finally:
            writer.transport.abort()
    return found


async def _ask(
    port: int, requests: Iterator[BadRequest], statuses: Counter[int], faults: list[bytes]
) -> None:
    for number, request in enumerate(requests):
        # Else the limit of wrong tokens would answer most of them.
        answer = await answer_to(port, request.data, f"127.0.{number % 3}.{number % 200 + 1}")
        codes = list(map(int, _STATUS.findall(answer[:200])))
        statuses.update(codes)
        # An answer may repeat what its own request has shown, and to the job has its secrets.
        unknown = [s for s in SECRETS if s not in request.data and not request.is_job]
        if max(codes, default=0) >= INTERNAL or any(secret in answer for secret in unknown):
            faults.append(request.data[:500] + b"\n-> " + answer[:300])


def ask_all(port: int, requests: BadRequests, count: int) -> tuple[Counter[int], list[bytes]]:
    """How many answers of each status, and faults: 500 or more, or a secret; many at once."""
    statuses, faults = Counter[int](), list[bytes]()
    made = requests.some(count)

    async def all_of_them() -> None:
        await asyncio.gather(*(_ask(port, made, statuses, faults) for _ in range(AT_ONCE)))

    asyncio.run(all_of_them())
    return statuses, faults


def resident_kb() -> int:
    """What this process has in memory, without what it could give back."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.findall(r"VmRSS:\s+(\d+) kB", text)[0])


def open_files() -> int:
    """How many files and sockets it has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


@dataclass(frozen=True)
class Found:
    """What came of the requests.

    ``statuses``: {status: answers}. ``faults``: answers of 500 or more, or with a secret that the
    request had not. ``growth_kb``: of this process's memory in each part after the warm-up.
    ``said``: log, audit trail and history.
    """

    statuses: Counter[int]
    faults: list[bytes]
    growth_kb: list[int]
    said: str


def run(folder: Path, count: int, parts: int) -> Found:
    """All requests are answered, and the job has ended; nothing of them is open or runs.

    The first of the ``parts``, which are alike, is the warm-up.
    """
    log = folder / "log"
    logging.basicConfig(filename=log, level=logging.INFO)
    am, statuses, faults = Am(folder / "history"), Counter[int](), list[bytes]()
    growth_kb: list[int] = []

    async def story() -> None:
        await am.started()
        am.stream.write(wire.set_config(key, value) for key, value in TOKENS.items())
        await am.until(lambda: am.job_models.model.config.get("my.own.password") == SECRET)
        operators = Operators(
            DriverActions(am.driver, am.job_models.model.config, lambda _: None),
            am.driver.audit.trail,
        )
        server = JobCoordinatorServer(
            am.backend,
            JOB,
            "127.0.0.1",
            0,
            DriverDecisions(am.driver),
            operators=operators,
            launchers=am.backend,
        )
        _, port = await server.start()
        requests = BadRequests(21, (JOB, ADA, EVE))
        tasks = files = memory_kb = 0
        for part in range(parts):
            answers = await asyncio.to_thread(ask_all, port, requests, count // parts)
            statuses.update(answers[0])
            faults.extend(answers[1])
            await am.rounds()
            if part == 0:
                tasks, files = len(asyncio.all_tasks()), open_files()
            else:
                growth_kb.append(resident_kb() - memory_kb)
            memory_kb = resident_kb()
        await am.until(lambda: len(asyncio.all_tasks()) <= tasks + 2)
        await am.until(lambda: open_files() <= files + 4)
        await server.stop()
        await am.backend.stopped(Stopped(FIRST, StopCause.FINISHED, 0))
        await am.until_order(OrderKind.EXIT)

    async def both() -> None:
        async with asyncio.timeout(LIMIT_S):
            await asyncio.gather(am.driver.run("http://am/"), story())

    asyncio.run(both())
    texts = [log.read_text(), str(am.driver.audit.trail.to_json()), *map(str, am.history())]
    return Found(statuses, faults, growth_kb, "\n".join(texts))
