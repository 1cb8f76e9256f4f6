"""A page in Debian's Chromium, without a screen, driven by the DevTools protocol.

Started and stopped by the test. There is no driver program and no package of a driver: the protocol
is JSON on a WebSocket, which aiohttp speaks.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import aiohttp
from coordinator_server import Loop

_LIMIT_S = 30.0
_LOOK_S = 0.05
_COMMANDS = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless=new",
    "--remote-debugging-port=0",
    "--no-first-run",
    "--no-proxy-server",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
)
_AXE = """axe.run(document, {
  runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"],
}).then((found) => found.violations.map((v) =>
  `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html + " " + n.failureSummary).join(" | ")}`))"""


def find_chromium() -> str | None:
    """The program of a Chromium on this machine; None where there is none."""
    return next((found for name in _COMMANDS if (found := shutil.which(name))), None)


class Page:
    """One page. ``problems``: errors of its console, exceptions, and requests that failed."""

    def __init__(self, loop: Loop, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._loop = loop
        self._socket = socket
        self._number = 0
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.problems: list[str] = []
        self._reader = asyncio.run_coroutine_threadsafe(self._read(), loop.loop)
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """The result of one command of the protocol."""
        return self._loop.run(self._call(method, parameters))

    async def _call(self, method: str, parameters: dict[str, object]) -> dict[str, Any]:
        self._number += 1
        number = self._number
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        found = await asyncio.wait_for(answer, _LIMIT_S)
        assert "error" not in found, f"{method}: {found['error']}"
        result: dict[str, Any] = found["result"]
        return result

    async def _read(self) -> None:
        async for message in self._socket:
            body = json.loads(message.data)
            if "id" in body:
                self._answers.pop(body["id"]).set_result(body)
            else:
                self._note(body["method"], body["params"])

    def _note(self, method: str, event: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            details = event["exceptionDetails"]
            self.problems.append(str(details.get("exception", details).get("description", details)))
        elif method == "Runtime.consoleAPICalled" and event["type"] in {"error", "warning"}:
            self.problems.append(str([a.get("value") for a in event["args"]]))
        elif method == "Log.entryAdded" and event["entry"]["level"] in {"error", "warning"}:
            self.problems.append(f"{event['entry']['text']} {event['entry'].get('url', '')}")

    def open(self, url: str) -> None:
        """The page of that address is loaded, its modules have run."""
        self.call("Page.navigate", url=url)
        self.until(f"document.readyState === 'complete' && location.href.startsWith({url[:11]!r})")

    def run(self, script: str) -> Any:  # noqa: ANN401 - JSON
        """The value of an expression, awaited where it is a promise."""
        found = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, script: str, limit_s: float = _LIMIT_S) -> Any:  # noqa: ANN401 - JSON
        """The first value of the expression that counts as true."""
        ends_s = time.monotonic() + limit_s
        while True:
            found = self.run(script)
            if found:
                return found
            assert time.monotonic() < ends_s, (
                f"{script} stays {found!r}; {self.problems}; {self.text('body')[:2000]}"
            )
            time.sleep(_LOOK_S)  # neither page nor log announces it

    def text(self, selector: str) -> str:
        """What a reader sees of the first element of that selector; empty where there is none."""
        return str(self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def press(self, key: str) -> None:
        """That key is pressed and released."""
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def look(self, *, width: int = 1280, height: int = 800, dark: bool = False) -> None:
        """The page is that wide, in the light or the dark scheme; below 500 it is a phone."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def accessibility(self) -> list[str]:
        """What axe finds, a line for each rule."""
        source = (resources.files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
        # By the protocol, so that the page's own policy is not in its way.
        self.call("Runtime.evaluate", expression=source)
        found: list[str] = self.run(_AXE)
        return found

    def picture(self, file: Path) -> None:
        """A PNG file of what is in view."""
        data = self.call("Page.captureScreenshot", format="png")["data"]
        file.write_bytes(base64.b64decode(data))


@contextmanager
def page_in_chromium(folder: Path) -> Iterator[Page]:
    """A new page; the browser and all its processes end with it. ``folder``: for its profile."""
    command = find_chromium()
    assert command is not None, "no Chromium: scripts/setup.sh --with browser installs it"
    profile = folder / "profile"
    own = [f"--user-data-dir={profile}"]
    if os.geteuid() == 0:
        own.append("--no-sandbox")  # Chromium refuses to run as root with it
    log = (folder / "chromium.log").open("wb")
    browser = subprocess.Popen(
        [command, *_FLAGS, *own, "about:blank"], stdout=log, stderr=log, start_new_session=True
    )
    loop = Loop()
    try:
        port = _port(browser, profile, folder / "chromium.log")
        session, socket = loop.run(_connected(port))
        page = Page(loop, socket)
        page.look()
        try:
            yield page
        finally:
            loop.run(_closed(session, socket))
    finally:
        os.killpg(browser.pid, signal.SIGKILL)
        browser.wait(_LIMIT_S)
        log.close()
        loop.close()


def _port(browser: subprocess.Popen[bytes], profile: Path, log: Path) -> int:
    file = profile / "DevToolsActivePort"
    ends_s = time.monotonic() + _LIMIT_S
    while not (file.exists() and "\n" in file.read_text()):
        log_text = log.read_text(errors="replace")
        assert browser.poll() is None, log_text
        assert time.monotonic() < ends_s, log_text
        time.sleep(_LOOK_S)  # neither page nor log announces it
    return int(file.read_text().splitlines()[0])


async def _connected(port: int) -> tuple[aiohttp.ClientSession, aiohttp.ClientWebSocketResponse]:
    session = aiohttp.ClientSession()
    async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
        pages = [t for t in await answer.json() if t["type"] == "page"]
    # Without a limit: a picture is a long message.
    return session, await session.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=0)


async def _closed(session: aiohttp.ClientSession, socket: aiohttp.ClientWebSocketResponse) -> None:
    await socket.close()
    await session.close()
