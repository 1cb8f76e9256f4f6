"""The dashboard in a real Chromium, before a real server: what a reader sees, and how fast."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http import HTTPStatus
from typing import Any

import aiohttp
import dashboard_jobs as jobs
import pytest
from aiohttp import web
from browser import Page, find_chromium, page_in_chromium
from coordinator_server import TOKEN, Loop, Served

from homeport.config.access_tokens import digest_of
from homeport.config.declarations import all_keys as keys
from homeport.job_coordinator.http.actions import Operators
from homeport.job_coordinator.http.audit import AuditTrail
from homeport.job_coordinator.http.server import JobCoordinatorServer

pytestmark = pytest.mark.skipif(
    find_chromium() is None, reason="no Chromium: scripts/setup.sh --with browser installs it"
)

LOST = "nm02.example.com"
ADA, EVE = "the-token-of-ada", "the-token-of-eve"
_WATCHED = """
window.touched = new Set(); window.tasks = []; window.updates = [];
new MutationObserver((changes) => {
  for (const { target } of changes) {
    const element = target.nodeType === Node.TEXT_NODE ? target.parentElement : target;
    // The ages of what is shown go on by themselves.
    if (element?.closest('.since') === null) touched.add(element.closest('[data-id]')?.dataset.id);
  }
}).observe(document.body, {childList: true, characterData: true, subtree: true});
const durations = (into) => (list) => into.push(...list.getEntries().map((e) => e.duration));
new PerformanceObserver(durations(tasks)).observe({type: 'longtask'});
new PerformanceObserver(durations(updates)).observe({type: 'measure'});
"""


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    """One running event loop for all servers here."""
    running = Loop()
    yield running
    running.close()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """One browser for all tests here; each opens the page of its own server."""
    with page_in_chromium(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


@pytest.fixture
def served(loop: Loop, page: Page) -> Iterator[Served]:
    """The server of a job of three pairs on three hosts; no page is open at the end."""
    job = jobs.JobOnPage(jobs.settled_job(3, 3))
    config = job.models[None].config.merged(
        {keys.JOB_COORDINATOR_OPERATE_TOKENS.name: f"ada:{digest_of(ADA.encode())}"}
    )
    job.models[None] = replace(job.models[None], config=config)
    operators = Operators(jobs.ActionsOnPage(job), AuditTrail(lambda _: None))
    server = JobCoordinatorServer(
        job, TOKEN, "127.0.0.1", 0, job, operators=operators, launchers=job
    )
    _, port = loop.run(server.start())
    page.problems.clear()
    page.look()
    yield Served(job, server, port)
    page.open("about:blank")
    loop.run(server.stop())


def job_of(served: Served) -> jobs.JobOnPage:
    """Its job."""
    assert isinstance(served.backend, jobs.JobOnPage)
    return served.backend


def show(page: Page, served: Served, path: str = "ui") -> None:
    """The page is open, and has drawn the job."""
    page.open(served.url + path)
    page.until("document.body.dataset.drawn")


def test_a_reader_sees_what_is_not_where_it_should_be(page: Page, served: Served) -> None:
    """Live: since when, why, what comes next; then the hosts with their containers."""
    show(page, served)
    assert page.text("h1") == "All 6 containers are where they should be."
    page.until("document.querySelector('#link').innerText.includes('Live')")
    assert page.run("[...document.querySelectorAll('.host-name')].map((h) => h.innerText)") == [
        f"nm0{n}.example.com" for n in (1, 2, 3)
    ]
    assert page.text('[data-id="0-0"].card .pair') == "standby of 0 on nm01"
    changed = jobs.settled_job(3, 3)
    jobs.lose_host(changed, LOST)
    job_of(served).current = changed
    page.until("document.querySelector('h1').dataset.mood === 'moves'")
    assert "because nm02.example.com is lost" in page.text("h1")
    assert "its state is restored in about 40s" in page.text("h1")
    assert "62 %, about 40s left" in page.text("#late")
    assert "lost" in page.text(".host[data-state=lost] h3")
    job_of(served).current = jobs.settled_job(3, 3)
    page.until("document.querySelector('h1').dataset.mood === 'good'")
    assert page.text("#late") == ""
    assert page.problems == []


def test_the_jobs_own_metrics_are_a_table_below_the_containers(page: Page, served: Served) -> None:
    """Of all containers together; a job without such metrics has no such table."""
    show(page, served)
    assert page.run("document.querySelector('#own').hidden")
    changed = jobs.settled_job(3, 3)
    own = [["orders", "counter", [["country", "<b>de"]], 3.0], ["depth", "gauge", [], 1.5]]
    for container in changed["containers"][:2]:
        container["report"]["own"] = own
    job_of(served).current = changed
    page.until("document.querySelectorAll('#metrics tr').length === 2")
    assert page.text("#metrics").split() == ["depth", "1.5", 'orders{country="<b>de"}', "6"]
    assert page.problems == []


def test_decisions_configuration_and_job_model_have_filters_and_keys(
    page: Page, served: Served
) -> None:
    """All by the keyboard; what the keys show has no secret."""
    job = job_of(served)
    job.decide("HostsObserved", "1", "Processor 1 asks for nm03.example.com, the best other host")
    job.decide("TimerFired", "2", "Processor 2 got no container on nm01.example.com in time")
    show(page, served)
    page.press("2")
    page.until("document.querySelectorAll('#decisions > li').length === 2")
    assert "Processor 2 got no container" in page.text("#decisions > li")
    job.decide("TimerFired", "1", "Processor 1 has backed off and is placed again")
    page.until("document.querySelectorAll('#decisions > li').length === 3")
    page.press("/")
    for letter in "processor 2":
        page.press(letter)
    shown = "[...document.querySelectorAll('#decisions > li')].filter((li) => !li.hidden).length"
    page.until(f"({shown}) === 1")
    page.run("document.activeElement.blur()")
    page.press("3")
    page.until("document.querySelectorAll('#configuration tr').length === 5")
    text = page.text("#configuration")
    assert "config set, or coordinator-stream-writer by ada on gateway" in text
    assert "********" in text
    page.run("document.querySelector('#only-changed').click()")
    assert page.text("#configuration").startswith("task.commit.ms")
    page.press("4")
    page.until("document.querySelectorAll('#model tr').length === 6")
    assert "JobModel version 4: 6 containers, 6 tasks" in page.text("#model-title")
    page.press("ArrowRight")
    assert page.run("document.activeElement.id") == "tab-actions"
    assert jobs.SECRET not in page.run("document.documentElement.outerHTML")
    assert page.problems == []


def type_token(page: Page, token: str) -> None:
    """As an operator does, in the view of actions."""
    page.run("document.querySelector('#token').focus()")
    for letter in token:
        page.press(letter)
    page.run("document.querySelector('#token-use').click()")


def test_a_job_that_is_closed_is_shown_with_a_token(page: Page, served: Served) -> None:
    """The page is there and asks for one; that of a reader is enough to see the job."""
    model = job_of(served).models[None]
    closed = {
        keys.JOB_COORDINATOR_READ_OPEN.name: "false",
        keys.JOB_COORDINATOR_READ_TOKENS.name: f"eve:{digest_of(EVE.encode())}",
    }
    job_of(served).models[None] = replace(model, config=model.config.merged(closed))
    page.open(served.url + "ui/")
    page.until("document.querySelector('#link').innerText.includes('Needs a token')")
    assert "nm01" not in page.run("document.documentElement.outerHTML")
    page.press("5")
    type_token(page, EVE)
    page.until("document.querySelector('#token-note').innerText.includes('role read')")
    page.until("document.body.dataset.drawn")
    assert page.text("h1") == "All 6 containers are where they should be."
    page.until("document.querySelector('#changes-note').innerText.includes('since')")


def operate(page: Page, served: Served) -> None:
    """The page is open at the actions, and has the token of an operator."""
    show(page, served)
    page.press("5")
    type_token(page, ADA)
    page.until("!document.querySelector('#act').hidden")


def fill(page: Page, **fields: str) -> None:
    """The fields of the chosen action have these values."""
    for name, value in fields.items():
        field = f"document.querySelector('#field-{name}')"
        page.run(
            f"{field}.value = {value!r};"
            f"{field}.dispatchEvent(new Event('input', {{bubbles: true}}))"
        )


def choose(page: Page, title: str) -> None:
    """The action of that title is chosen."""
    page.run(
        "(() => { const s = document.querySelector('#action');"
        f"s.value = [...s.options].find((o) => o.text === {title!r}).value;"
        "s.dispatchEvent(new Event('change')); })()"
    )


def test_an_operator_moves_a_container(page: Page, served: Served) -> None:
    """A plan first, then a confirmation; the token is in no address and in nothing that stays."""
    show(page, served)
    page.press("5")
    assert "only reads" in page.text("#token-note")
    assert page.run("document.querySelector('#act').hidden")
    type_token(page, ADA)
    page.until("!document.querySelector('#act').hidden")
    assert "The token of ada is in use" in page.text("#token-note")
    fill(page, processor="0", host=LOST)
    plan(page)
    assert "0: nm01.example.com -> nm02.example.com" in page.text("#plan-lines")
    assert job_of(served).current["containers"][0]["host"] == "nm01.example.com"
    # What is confirmed is what was shown: another value needs another plan.
    fill(page, processor="1")
    assert page.run("document.querySelector('#plan').hidden")
    fill(page, processor="0")
    plan(page)
    page.run("document.querySelector('#action-do').click()")
    page.until("document.querySelector('#outcome').innerText.startsWith('SUCCEEDED')")
    page.until("document.querySelector('#work-0').innerText.includes('nm02')")
    page.until("document.querySelectorAll('#changes tr').length === 1")
    assert "ada\t127.0.0.1\thttp\tmove 0" in page.text("#changes")
    choose(page, "Set a key")
    fill(page, key="my.own.password", value="hunter3")
    plan(page)
    assert "********" in page.text("#plan-what")
    everywhere = (
        "document.documentElement.outerHTML + location.href + document.cookie"
        "+ JSON.stringify({...localStorage}) + JSON.stringify({...sessionStorage})"
        "+ performance.getEntriesByType('resource').map((e) => e.name).join()"
        "+ document.querySelector('#token').value"
    )
    assert ADA not in page.run(everywhere)
    assert page.problems == []


def test_an_operator_drains_a_host_and_takes_it_back(page: Page, served: Served) -> None:
    """And moves a container warm, and ends that: each by its plan, and with what is not typed."""
    operate(page, served)
    choose(page, "Move a container warm: its state first")
    fill(page, processor="0", host=LOST)
    confirm(page, "move 0")
    page.until("document.querySelector('#outcome').innerText.startsWith('SUCCEEDED')")
    choose(page, "End the moves and restarts of a container")
    fill(page, processor="0")
    confirm(page, "cancel 0")
    page.until("document.querySelector('#outcome').innerText.startsWith('SUCCEEDED')")
    choose(page, "Drain a host")
    offered = "[...document.querySelectorAll('#known-nodes option')].map((o) => o.value)"
    assert LOST in page.run(offered)
    assert "any" not in page.run(offered)
    fill(page, host=LOST)
    confirm(page, f"drain {LOST}")
    page.until("document.querySelector('#outcome').innerText.includes('has no container')")
    choose(page, "Drain a host as far as there is room")
    fill(page, host=LOST)
    confirm(page, f"drain {LOST}")
    page.until("document.querySelector('#outcome').innerText.includes('0 leaves it')")
    job_of(served).answers.clear()
    page.until("document.querySelector('#outcome').innerText.includes('give it again')")
    choose(page, "Take a drain back")
    fill(page, host=LOST)
    confirm(page, f"undo drain {LOST}")
    page.until("document.querySelector('#outcome').innerText.includes('containers again')")
    page.until("document.querySelectorAll('#changes tr').length === 5")
    assert job_of(served).asked == [
        {"action": "move", "processor": "0", "host": LOST, "warm": True, "dry_run": False},
        {"action": "cancel", "processor": "0", "dry_run": False},
        {"action": "drain", "host": LOST, "dry_run": False},
        {"action": "drain", "host": LOST, "force": True, "dry_run": False},
        {"action": "drain", "host": LOST, "undo": True, "dry_run": False},
    ]
    # The browser names the one answer that was not there; it was not looked for again.
    (missing,) = page.problems
    assert "404" in missing
    assert "/ui/answers/" in missing


def plan(page: Page) -> None:
    """The plan of the chosen action is shown."""
    page.run("document.querySelector('#action-plan').click()")
    page.until("!document.querySelector('#plan').hidden")


def confirm(page: Page, what: str) -> None:
    """The plan is shown, and is carried out."""
    plan(page)
    assert page.text("#action-do") == f"Confirm: {what}"
    page.run("document.querySelector('#action-do').click()")
    page.until("document.querySelector('#plan').hidden")
    page.until("document.querySelector('#outcome').innerText !== ''")


def test_an_action_that_cannot_be_is_said_why(page: Page, served: Served) -> None:
    """Neither a wrong token nor a plan that is not possible offers a confirmation."""
    show(page, served)
    page.press("5")
    type_token(page, "wrong")
    page.until("document.querySelector('#token-note').innerText.includes('not this job')")
    assert page.run("document.querySelector('#act').hidden")
    type_token(page, ADA)
    page.until("!document.querySelector('#act').hidden")
    fill(page, processor="9", host="any")
    plan(page)
    assert "move 9 cannot be done" in page.text("#plan-what")
    assert page.run("document.querySelector('#action-do').hidden")
    choose(page, "Take a key back")
    fill(page, key="yarn.am")
    page.run("document.querySelector('#action-plan').click()")
    page.until("document.querySelector('#outcome').innerText.includes('the AM writes it')")
    page.run("document.querySelector('#token-forget').click()")
    assert page.run("document.querySelector('#act').hidden")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False)])
def test_axe_finds_nothing(page: Page, served: Served, width: int, *, dark: bool) -> None:
    """WCAG A and AA and best practice, in each view; a phone has no sideways scroll."""
    jobs.lose_host(job_of(served).current, LOST)
    job_of(served).decide("TimerFired", "2", "Processor 2 got no container in time")
    page.look(width=width, dark=dark)
    rows = {"1": "#work", "2": "#decisions", "3": "#configuration", "4": "#model"}
    operate(page, served)
    fill(page, processor="0", host="any")
    plan(page)
    assert page.accessibility() == []
    assert page.run("document.documentElement.scrollWidth <= innerWidth")
    for key, rows_of in rows.items():
        page.press(key)
        page.until(f"document.querySelector({rows_of!r}).children.length > 0")
        assert page.accessibility() == []
        assert page.run("document.documentElement.scrollWidth <= innerWidth")
    assert page.problems == []


def test_an_update_draws_what_has_changed_alone(
    page: Page, served: Served, announce: Callable[[str], None]
) -> None:
    """Of 200 containers, that with another lag; how long it takes while all change is printed."""
    job = job_of(served)
    job.current = jobs.settled_job(100, 10)
    show(page, served)
    page.until("document.querySelectorAll('#work tr').length === 200")
    page.run(_WATCHED)
    behind = [
        {**c, "lag": 777} if c["processor_id"] == "7-0" else c for c in job.current["containers"]
    ]
    job.current = {**job.current, "containers": behind}
    page.until("document.querySelector('#work-7-0').textContent.includes('777')")
    assert page.run("[...touched].filter(Boolean)") == ["7-0"]
    for _ in range(5):
        changed = jobs.settled_job(100, 10)
        for container in changed["containers"]:
            container["lag"] = container["since_ms"] = int(time.time() * 1000)
        jobs.lose_host(changed, LOST)
        _updated(page, job, changed)
    longest: dict[str, Any] = page.run(
        "({task: Math.max(0, ...tasks), update: Math.max(...updates)})"
    )
    announce(
        f"dashboard, 200 containers: longest update {longest['update']:.0f} ms, "
        f"longest task {longest['task']:.0f} ms"
    )
    assert page.problems == []


def _updated(page: Page, job: jobs.JobOnPage, status: dict[str, Any]) -> None:
    before = int(page.run("document.body.dataset.drawn"))
    job.current = status
    page.until(f"Number(document.body.dataset.drawn) > {before}")


def test_behind_a_proxy_that_holds_events_back_the_page_asks_itself(
    page: Page, served: Served, loop: Loop
) -> None:
    """Below a path of the proxy's, as YARN's has it: so each address of the page is relative."""
    proxy = _HoldingProxy(served.url)
    port = loop.run(proxy.start())
    try:
        page.open(f"http://127.0.0.1:{port}/proxy/application_1/pages/homeport/ui/")
        page.until("document.querySelector('#link').innerText.includes('Every 2 s')")
        assert page.text("h1") == "All 6 containers are where they should be."
        jobs.lose_host(job_of(served).current, LOST)
        page.until("document.querySelector('h1').dataset.mood === 'moves'")
        page.press("3")
        page.until("document.querySelectorAll('#configuration tr').length === 5")
        page.press("5")
        type_token(page, ADA)
        page.until("document.querySelector('#token-note').innerText.includes('does not pass')")
        assert page.problems == []
        page.open("about:blank")
    finally:
        loop.run(proxy.stop())


def test_a_job_that_does_not_answer_is_said_to_be_silent(
    page: Page, served: Served, loop: Loop
) -> None:
    """With the time of what is still shown; it is live again when the job is back."""
    show(page, served)
    loop.run(served.server.stop())
    page.until("!document.querySelector('#stale').hidden")
    assert "has not answered since" in page.text("#stale")
    assert page.text("#link") == "No answer"
    again = JobCoordinatorServer(job_of(served), TOKEN, "127.0.0.1", served.port, job_of(served))
    loop.run(again.start())
    page.until("document.querySelector('#stale').hidden")
    page.open("about:blank")
    loop.run(again.stop())


class _HoldingProxy:
    """A proxy below a path, which passes an answer on once it has all of it, as some do."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._runner: web.AppRunner | None = None
        self._over = asyncio.Event()

    async def start(self) -> int:
        """Its port."""
        app = web.Application()
        app.router.add_get("/proxy/application_1/pages/homeport/{path:.*}", self._pass)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port: int = self._runner.addresses[0][1]
        return port

    async def stop(self) -> None:
        """It has gone."""
        assert self._runner is not None
        self._over.set()
        await self._runner.cleanup()

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        url = f"{self._target}{request.match_info['path']}?{request.query_string}"
        # As YARN's proxy: of the headers only some are passed on, and no token is among them.
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            kept = ("Content-Type", "Content-Security-Policy")
            headers = {n: answer.headers[n] for n in kept if n in answer.headers}
            if headers["Content-Type"] == "text/event-stream":
                response = web.StreamResponse(headers=headers)
                await response.prepare(request)
                await self._over.wait()  # holds what comes until the test is over
                return response
            body = await answer.read()
        return web.Response(status=HTTPStatus(answer.status), body=body, headers=headers)
