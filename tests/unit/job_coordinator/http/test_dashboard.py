"""The dashboard's routes: files with their headers, state, plots, stream, and their bounds."""

from __future__ import annotations

import asyncio
import configparser
import json
import re
import socket
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import dashboard_jobs as jobs
import pytest
from coordinator_server import TOKEN, Loop, Members, Served, serving

from homeport.config.errors import UnavailableError
from homeport.job_coordinator.http import dashboard

ROOT = Path(__file__).resolve().parents[4]
PAGES = ROOT / "job_coordinator" / "ui" / "pages"
OUTSIDE = re.compile(
    r"""(?:href|src)=["'](?:/|https?:)|(?:import|from|fetch\(|EventSource\() ?["'`]/"""
)
"""An absolute path, or another server: it would not work behind YARN's proxy."""


@pytest.fixture
def page(loop: Loop) -> Iterator[Served]:
    """The server of a job of two pairs."""
    job = jobs.JobOnPage(jobs.settled_job(2, 2))
    with serving(loop, job, TOKEN, job) as served:
        yield served


def stream(port: int) -> tuple[HTTPConnection, HTTPResponse]:
    """An open stream."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/ui/stream")
    return connection, connection.getresponse()


def lines(answer: HTTPResponse, count: int) -> list[str]:
    """The next lines of a stream."""
    return [answer.readline().decode().rstrip("\n") for _ in range(count)]


def test_every_file_is_served_with_its_type_and_the_headers(page: Served) -> None:
    """No script or style of another place runs, no frame has it, and nothing is guessed."""
    for file in PAGES.iterdir():
        media = dashboard._TYPES[file.suffix[1:]]
        status, headers, body = page.call("GET", f"/ui/{file.name}")
        assert (status, body) == (200, file.read_bytes())
        assert headers["content-type"] == f"{media}; charset=utf-8"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
    status, _, body = page.call("GET", "/ui/")
    assert (status, body) == (200, (PAGES / "index.html").read_bytes())
    status, headers, _ = page.call("GET", "/ui")
    assert (status, headers["location"]) == (308, "ui/")
    for wrong in ("/ui/nothing.js", "/ui/__init__.py", "/ui/..%2fplots.py", "/ui/main.js/x"):
        assert page.call("GET", wrong)[0] == 404


def test_the_files_name_no_other_place_and_are_part_of_the_wheel() -> None:
    """Relative addresses alone; no style or script within the page; package data has them all."""
    for file in PAGES.iterdir():
        assert not OUTSIDE.search(file.read_text(encoding="utf-8")), file.name
    index = (PAGES / "index.html").read_text(encoding="utf-8")
    assert " style=" not in index
    assert "<style" not in index
    assert not re.search(r"<script(?![^>]*src=)|\son\w+=", index)
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    assert setup["options.package_data"]["homeport.job_coordinator.ui"] == "pages/*"
    assert all(file.suffix[1:] in dashboard._TYPES for file in PAGES.iterdir())


def test_the_state_is_the_job_without_secrets_and_log_lines(page: Served) -> None:
    """As the other reading routes; a wrong token is refused here too."""
    status, headers, body = page.call("GET", "/ui/state")
    found = json.loads(body)
    assert status == 200
    assert headers["content-type"] == "application/json"
    assert found["screen"]["headline"] == "All 4 containers are where they should be"
    assert found["now_ms"] > 0
    assert page.call("GET", "/ui/state", Authorization="Bearer wrong")[0] == 401
    for route in ("state", "plots?processor=0", "configuration"):
        assert jobs.SECRET not in page.call("GET", f"/ui/{route}")[2].decode()
    assert page.call("HEAD", "/ui/stream")[0] == 405  # it would never end
    assert page.call("POST", "/ui/state")[0] == 401
    assert page.call("POST", "/ui/state", Authorization=f"Bearer {TOKEN}")[0] == 405


def test_plots_are_those_of_the_processors_that_are_named(page: Served) -> None:
    """The first point is taken at once; a request has a bound."""
    found = json.loads(page.call("GET", "/ui/plots?processor=1&processor=9")[2])
    assert found["series"].keys() == {"1"}
    assert found["series"]["1"]["lag"][-1] == 11.0
    many = "&".join(f"processor={n}" for n in range(dashboard.MAX_PLOTTED + 1))
    assert page.error("GET", f"/ui/plots?{many}") == (
        "400 61 processors are named: a request takes 60 at most"
    )


def test_the_configuration_says_where_each_key_comes_from(page: Served) -> None:
    """With its secrets masked."""
    keys = {k["key"]: k for k in json.loads(page.call("GET", "/ui/configuration")[2])["keys"]}
    assert keys["task.commit.ms"]["source"] == "coordinator-stream-writer"
    assert keys["my.own.password"]["value"] == "********"


def test_a_stream_brings_what_is_new_and_ends_with_the_server(page: Served, loop: Loop) -> None:
    """The state at once, the next one when something has changed."""
    connection, answer = stream(page.port)
    assert answer.getheader("Content-Type") == "text/event-stream"
    event, data, empty = lines(answer, 3)
    assert (event, empty) == ("event: state", "")
    assert json.loads(data.removeprefix("data: "))["screen"]["is_calm"]
    assert isinstance(page.backend, jobs.JobOnPage)
    page.backend.current = jobs.settled_job(2, 2)
    jobs.lose_host(page.backend.current, "nm02.example.com")
    _, data, _ = lines(answer, 3)
    assert not json.loads(data.removeprefix("data: "))["screen"]["is_calm"]
    loop.run(page.server.stop())
    assert answer.read() == b""
    connection.close()


def test_a_quiet_job_sends_a_sign_of_life(page: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A comment for proxies, and the time for the page."""
    monkeypatch.setattr(dashboard, "_HEARTBEAT_S", 0.01)
    connection, answer = stream(page.port)
    lines(answer, 3)
    comment, event, data, empty = lines(answer, 4)
    assert (comment, event, empty) == (": alive", "event: time", "")
    assert int(data.removeprefix("data: ")) > 0
    connection.close()


def test_streams_are_few_and_one_that_ends_makes_room(
    page: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page without a stream asks for the state itself."""
    monkeypatch.setattr(dashboard, "MAX_STREAMS", 1)
    monkeypatch.setattr(dashboard, "_HEARTBEAT_S", 0.01)
    connection, answer = stream(page.port)
    lines(answer, 3)
    assert page.error("GET", "/ui/stream") == (
        "503 1 pages have a stream already: ask for /ui/state"
    )
    assert page.call("GET", "/ui/state")[0] == 200
    assert answer.fp is not None
    connection.close()
    answer.close()
    while True:
        second, answer = stream(page.port)
        if answer.status == 200:
            break
        second.close()
    second.close()
    answer.close()


def test_a_page_that_takes_nothing_is_cut_off_and_holds_one_state(
    page: Served, loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """States that it has not taken do not wait for it."""
    monkeypatch.setattr(dashboard, "_STALL_S", 0.2)
    monkeypatch.setattr(dashboard, "_EVERY_S", 0.001)
    job = page.backend
    assert isinstance(job, jobs.JobOnPage)
    job.current = jobs.settled_job(400, 20)
    client = socket.create_connection(("127.0.0.1", page.port))
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.sendall(b"GET /ui/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
    panel = page.server._dashboard

    async def changes() -> int:
        most = 0
        for number in range(3000):
            job.current["job"]["health"] = str(number)
            most = max(most, panel._streams)
            if most and not panel._streams:
                return most
            await asyncio.sleep(0.005)  # the server works in this loop
        return 0

    assert loop.run(changes()) == 1
    client.close()


def test_all_pages_share_one_look(page: Served) -> None:
    """A second request within half a second makes no other."""
    job = page.backend
    looks = 0
    whole = job.status

    def status() -> object:
        nonlocal looks
        looks += 1
        return whole()

    job.status = status  # type: ignore[method-assign, assignment]  # it counts
    for _ in range(5):
        page.call("GET", "/ui/state")
    assert looks <= 2


def test_the_leader_alone_has_the_page(loop: Loop) -> None:
    """Others redirect there; a leader that no longer leads ends its streams."""
    job, members = jobs.JobOnPage(jobs.settled_job(1, 1)), Members()
    with serving(loop, job, TOKEN, job, peers=members) as served:
        connection, answer = stream(served.port)
        lines(answer, 3)
        members.leader = "http://127.0.0.1:1/"
        loop.loop.call_soon_threadsafe(served.server._dashboard._seen.end)
        assert answer.read() == b""
        connection.close()
        for path in ("/ui/", "/ui/state", "/ui/stream", "/ui/main.js"):
            status, headers, _ = served.call("GET", path)
            assert (status, headers["location"]) == (307, f"http://127.0.0.1:1{path}")


def test_a_fault_of_one_look_ends_no_page(page: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is logged; the next one goes on."""
    monkeypatch.setattr(dashboard, "_EVERY_S", 0.01)
    panel = page.server._dashboard
    whole, faults = panel._look, [UnavailableError("later"), RuntimeError("a fault")]

    async def look() -> object:
        if faults:
            raise faults.pop()
        return await whole()

    panel._look = look  # type: ignore[assignment]  # as above
    connection, answer = stream(page.port)
    assert lines(answer, 1) == ["event: state"]
    connection.close()
    answer.close()
    assert not faults
