"""Readers without a token share answers, and wait for each other; launchers do not wait."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPConnection
from typing import Any

import pytest
from coordinator_server import BEARER, CHECK_IN, ORDER, Backend, Loop, Served, serving

from homeport.config.errors import UnavailableError
from homeport.job_coordinator.http.messages import CheckIn, Order
from homeport.job_coordinator.http.port import shared, turns
from homeport.job_coordinator.http.port.shared import Shared
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.status.shape import ShownStatus

READERS = 200


class Noting(Backend):
    """Notes the order of its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.before: Callable[[], object] = list
        """Called at a check-in; ``seen``: what it returned."""
        self.seen: object = None

    def locality(self) -> Mapping[ProcessorId, Host]:
        """A reader's question."""
        self.asked.append("locality")
        return super().locality()

    def status(self) -> ShownStatus:
        """A reader's question."""
        self.asked.append("status")
        return super().status()

    async def check_in(self, message: CheckIn) -> Order:
        """A launcher's."""
        self.asked.append("check-in")
        self.seen = self.before()
        return await super().check_in(message)


@pytest.fixture
def noting(loop: Loop) -> Iterator[Served]:
    """A server before a backend that notes."""
    with serving(loop, Noting()) as served:
        yield served


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The time of what is shared."""
    now = [0]
    monkeypatch.setattr(shared, "boot_ms", lambda: now[0])
    return now


def _asking(served: Served, path: str, source: str = "127.0.0.1") -> HTTPConnection:
    """A request that has been sent from that address."""
    connection = HTTPConnection("127.0.0.1", served.port, 30, (source, 0))
    connection.request("GET", path)
    return connection


def _asked(served: Served) -> list[str]:
    assert isinstance(served.backend, Noting)
    return served.backend.asked


@pytest.mark.parametrize("path", ["/locality?processorId=0", "/nothing", "/v1/packages/0"])
def test_a_check_in_waits_for_few_of_many_readers(loop: Loop, noting: Served, path: str) -> None:
    """It came last; those that are refused are no faster than those that get an answer."""
    connected = [_asking(noting, "/locality?processorId=0") for _ in range(READERS)]
    for connection in connected:
        assert connection.getresponse().read()
    _asked(noting).clear()
    backend = noting.backend
    assert isinstance(backend, Noting)
    backend.before = noting.server._metrics.text
    go = loop.stand_still()
    for connection in connected:
        connection.request("GET", path)
    launcher = HTTPConnection("127.0.0.1", noting.port, timeout=30)
    launcher.request("POST", "/v1/check-in", json.dumps(CHECK_IN.to_json()), BEARER)
    go.set()
    assert Order.from_json(json.loads(launcher.getresponse().read())) == ORDER
    for connection in connected:
        assert connection.getresponse().read()
        connection.close()
    launcher.close()
    if path.startswith("/locality"):
        assert _asked(noting).index("check-in") < READERS // 4
    assert isinstance(backend.seen, bytes)
    assert _refused(backend.seen.decode()) < READERS // 2


def _refused(metrics: str) -> float:
    """Of the text of the metrics, how many requests were refused."""
    lines = [x for x in metrics.splitlines() if 'code="40' in x and "_total{" in x]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def test_a_reader_of_another_address_waits_for_few_of_the_first(loop: Loop, noting: Served) -> None:
    """Addresses take turns, so that two that ask much keep no third one from reading."""
    connected = [
        _asking(noting, "/locality?processorId=0", source)
        for source in ("127.0.0.1", "127.0.0.8")
        for _ in range(READERS // 2)
    ]
    other = _asking(noting, "/locality?processorId=0", "127.0.0.9")
    for connection in [*connected, other]:
        assert connection.getresponse().read()
    _asked(noting).clear()
    backend = noting.backend
    assert isinstance(backend, Noting)
    backend.before = noting.server._metrics.text
    go = loop.stand_still()
    for connection in connected[: READERS // 2]:
        connection.request("GET", "/locality?processorId=0")
    other.request("GET", "/v1/status")
    for connection in connected[READERS // 2 :]:
        connection.request("GET", "/locality?processorId=0")
    go.set()
    for connection in [*connected, other]:
        assert connection.getresponse().read()
        connection.close()
    assert _asked(noting).index("status") < READERS // 4


@pytest.mark.parametrize(
    "path", ["/v1/status", "/locality", "/metrics", "/health", "/ui/state", "/v1/events"]
)
def test_what_readers_see_is_made_once_a_second(
    noting: Served, clock: list[int], path: str
) -> None:
    """Compressed or not, with whatever query; a program of the job sees what is now."""
    noting.call("GET", path)
    before = len(_asked(noting))
    answers = {noting.call("GET", f"{path}?n={n}&m=1")[2] for n in range(5)}
    noting.call("GET", path, Accept_Encoding="gzip")
    assert len(answers) == 1
    assert len(_asked(noting)) == before
    clock[0] += 1000
    noting.call("GET", path)
    if path in {"/v1/status", "/locality", "/metrics", "/health"}:
        assert len(_asked(noting)) == before + 1
        noting.call("GET", path, None, **BEARER)
        noting.call("GET", path, None, **BEARER)
        assert len(_asked(noting)) == before + 3


def test_log_lines_are_shared_with_none_who_may_not_see_them(noting: Served) -> None:
    """What an earlier caller with a token saw is not what one without gets."""
    with_token = noting.call("GET", "/v1/status", None, **BEARER)[2]
    without = noting.call("GET", "/v1/status")[2]
    assert b"KeyError" in with_token
    assert b"KeyError" not in without


@pytest.mark.parametrize(("took_ms", "kept_ms"), [(10, 1000), (700, 2800)])
def test_what_takes_long_is_kept_longer(
    loop: Loop, clock: list[int], took_ms: int, kept_ms: int
) -> None:
    """Else nothing but readers would be served."""
    made = list[int]()

    async def make() -> int:
        clock[0] += took_ms
        made.append(clock[0])
        return len(made)

    async def story() -> list[int]:
        kept = Shared()
        first = await asyncio.gather(*(kept.get("x", make) for _ in range(5)))
        clock[0] += kept_ms - 1
        again = await kept.get("x", make)
        clock[0] += 1
        return [*first, again, await kept.get("x", make)]

    assert loop.run(story()) == [1, 1, 1, 1, 1, 1, 2]


def test_a_failure_is_not_kept_and_what_is_kept_is_bounded(loop: Loop) -> None:
    """All that waited for the failure have it; queries of any number are forgotten."""
    made = list[object]()

    async def story() -> None:
        kept = Shared()

        async def fail() -> object:
            raise UnavailableError("not now")

        found = await asyncio.gather(
            *(kept.get("x", fail) for _ in range(3)), return_exceptions=True
        )
        assert [str(error) for error in found] == ["not now"] * 3

        def make(what: object) -> Callable[[], Any]:
            async def one() -> object:
                made.append(what)
                return what

            return one

        for number in range(1000):
            assert await kept.get(number, make(number)) == number
        assert len(kept._made) == 64
        assert await kept.get(-1, make(-1)) == -1
        assert await kept.get(-1, fail) == -1

    loop.run(story())


def test_a_reader_waits_for_its_turn_for_a_while_only(
    loop: Loop, noting: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503 in one line; the places are free again when those before it have their answers."""
    monkeypatch.setattr(turns, "_WAIT_S", 0.05)
    held = [_held_turn(loop, noting) for _ in range(4)]
    error = noting.error("GET", "/v1/status")
    assert error.startswith("503 too many requests without the job's token")
    assert noting.client().check_in(CHECK_IN) == ORDER
    for event in held:
        loop.loop.call_soon_threadsafe(event.set)
    assert noting.call("GET", "/v1/status")[0] == 200


def _held_turn(loop: Loop, served: Served) -> asyncio.Event:
    """A turn that is held until the event is set."""

    class Request(dict[Any, Any]):
        remote = "127.0.0.1"

    async def hold() -> asyncio.Event:
        done, has_turn = asyncio.Event(), asyncio.Event()

        async def held() -> None:
            request: Any = Request()
            async with served.server._guard._turns.one(request):
                has_turn.set()
                await done.wait()

        done.task = asyncio.ensure_future(held())  # type: ignore[attr-defined]  # kept alive
        await has_turn.wait()
        return done

    return loop.run(hold())


def test_one_that_has_gone_costs_no_answer(loop: Loop, noting: Served) -> None:
    """Its turn goes to the next one."""
    held = [_held_turn(loop, noting) for _ in range(4)]
    _asked(noting).clear()
    with socket.create_connection(("127.0.0.1", noting.port), timeout=30) as gone:
        gone.sendall(b"GET /v1/status HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        waiting = noting.server._guard._turns._waiting

        async def until_waiting(count: int) -> None:
            async with asyncio.timeout(30):
                while sum(map(len, waiting.values())) != count:  # noqa: ASYNC110 - it sends no signal
                    await asyncio.sleep(0.01)

        loop.run(until_waiting(1))
    asking = _asking(noting, "/locality?processorId=0")
    loop.run(until_waiting(2))
    for event in held:
        loop.loop.call_soon_threadsafe(event.set)
    assert asking.getresponse().status == 200
    asking.close()
    assert "status" not in _asked(noting)
