"""What each role may do: the table of docs/security-roles.md, tried on a server, row by row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import dashboard_jobs as jobs
import pytest
from aiohttp import web
from coordinator_server import (
    CHECK_IN,
    LOG_LINE,
    RUNNING,
    STARTED,
    STOPPED,
    TOKEN,
    Loop,
    Members,
    Served,
    serving,
)

from homeport.appmaster.driver.actions.operator_actions import DriverActions
from homeport.appmaster.driver.driver import Driver
from homeport.config.access_tokens import digest_of
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.secret_values import MASK
from homeport.job_coordinator.access.job_access import JobSecret
from homeport.job_coordinator.access.served_access import ServedAccess
from homeport.job_coordinator.http.actions import ACTION_ROUTE, Operators
from homeport.job_coordinator.http.audit import AuditTrail
from homeport.job_coordinator.http.server import JobCoordinatorServer
from homeport.job_coordinator.status.shape import ShownStatus

PAGE = Path(__file__).parents[4] / "docs" / "security-roles.md"
TOKENS = {"none": None, "read": "of-bob", "operate": "of-ada", "job": TOKEN}
UUID = "00000000-0000-0000-0000-000000000000"
ZIP = "ab" * 32
MOVE = {"dry_run": False, "processor": "0", "host": "nm02.example.com"}
SENT: dict[str, tuple[str, object]] = {
    "GET /v1/processors/{processor_id}/model": ("/v1/processors/0/model", None),
    "GET /ui/{file}": ("/ui/actions.js", None),
    "GET /ui/answers/{uuid}": (f"/ui/answers/{UUID}", None),
    "GET /containerHeartbeat": (f"/containerHeartbeat?executionContainerId={RUNNING}", None),
    "GET /v1/access": (f"/v1/access?nonce={ZIP[:32]}", None),
    "GET /v1/what-if": ("/v1/what-if?host=nm01.example.com", None),
    "GET /v1/packages/{name}": (f"/v1/packages/{ZIP}", None),
    "POST /ui/actions/move": ("/ui/actions/move", MOVE),
    "POST /ui/actions/restart": ("/ui/actions/restart", MOVE),
    "POST /ui/actions/cancel": ("/ui/actions/cancel", MOVE),
    "POST /ui/actions/drain": ("/ui/actions/drain", MOVE),
    "POST /ui/actions/config": (
        "/ui/actions/config",
        {"dry_run": False, "key": "task.commit.ms", "value": "5"},
    ),
    "POST /v1/shutdown": ("/v1/shutdown", {}),
    "POST /v1/check-in": ("/v1/check-in", CHECK_IN.to_json()),
    "POST /v1/started": ("/v1/started", STARTED.to_json()),
    "POST /v1/stopped": ("/v1/stopped", STOPPED.to_json()),
    "POST /v1/unfit": ("/v1/unfit", {"skein_id": "any_0", "reason": "no python3"}),
}
"""What a row is tried by; any other is a GET of its own path."""


def table() -> dict[str, dict[str, str]]:
    """{request: {role: what it may}}."""
    found: dict[str, dict[str, str]] = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 1 + len(TOKENS) and cells[0].startswith("`"):
            found[cells[0].strip("`")] = dict(zip(TOKENS, cells[1:], strict=True))
    return found


ROWS = table()


class Served4(Served):
    """A server of a job with everything: actions, decisions, a package, secrets and log lines."""

    def tried(self, row: str, token: str | None) -> tuple[int, str]:
        """Status and body, as text; of a stream without an end its beginning."""
        method, _, route = row.partition(" ")
        path, body = SENT.get(row, (route, None))
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = "application/json"
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            text = "" if row == "GET /ui/stream" else answer.read().decode(errors="replace")
            return answer.status, text
        finally:
            connection.close()


class Peers(Members):
    """A job of one processor, which answers for itself."""

    def __init__(self, job: jobs.JobOnPage) -> None:
        super().__init__()
        self._job = job

    def own_status(self) -> ShownStatus:
        """As of the job."""
        return self._job.status()


@pytest.fixture
def server(loop: Loop) -> Iterator[Served4]:
    """On a free port."""
    status = jobs.settled_job(1, 2)
    failure = {"processor_id": "0", "cause": "failed", "exit_code": 1, "last_lines": [LOG_LINE]}
    job = jobs.JobOnPage({**status, "failures": [failure]})
    job.packages[ZIP] = b"PK"
    job.answers[UUID] = {"status": "SUCCEEDED", "message": "done", "final": True}
    model = job.models[None]
    tokens = {
        keys.JOB_COORDINATOR_READ_TOKENS.name: f"bob:{digest_of(b'of-bob')}",
        keys.JOB_COORDINATOR_OPERATE_TOKENS.name: f"ada:{digest_of(b'of-ada')}",
    }
    job.models[None] = type(model)(model.config.merged(tokens), model.containers)
    operators = Operators(jobs.ActionsOnPage(job), AuditTrail(lambda _: None))
    access = ServedAccess(TOKEN, JobSecret(b"secret"))
    with serving(loop, job, access, job, peers=Peers(job), operators=operators) as served:
        yield Served4(job, served.server, served.port)


def _routes_of(server: JobCoordinatorServer) -> list[web.AbstractRoute]:
    port = server._port
    assert port is not None
    return list(port._runner.app.router.routes())


def test_each_request_has_a_row(server: Served4) -> None:
    """And each action that a driver has; no row is of a request that is not answered."""
    driver = cast("Driver", SimpleNamespace())
    actions = DriverActions(driver, Config(), lambda _: None).names
    routes = {
        f"{route.method} {'' if route.resource is None else route.resource.canonical}"
        for route in _routes_of(server.server)
        if route.method != "HEAD"
    }
    post = f"POST {ACTION_ROUTE}"
    assert post in routes
    expected = (routes - {post}) | {f"POST /ui/actions/{name}" for name in actions}
    assert set(ROWS) == expected


@pytest.mark.parametrize("role", TOKENS)
@pytest.mark.parametrize("row", ROWS)
def test_a_role_may_what_its_row_has(server: Served4, row: str, role: str) -> None:
    """No more and no less."""
    may = ROWS[row][role]
    status, text = server.tried(row, TOKENS[role])
    has_secret, has_lines = jobs.SECRET in text, LOG_LINE in text
    if may == "no":
        assert status == (401 if role == "none" else 403)
        assert set(json.loads(text)) == {"error"}
        return
    assert status in {200, 308}, text
    assert (has_secret, MASK in text) == (may == "secrets", may == "masked"), may
    assert has_lines is (may == "log lines")
    if may == "no log lines":
        assert '"failures"' in text


def test_what_is_not_allowed_changes_nothing(server: Served4) -> None:
    """Of all rows that a role may not send, none leaves a trace."""
    for row, cells in ROWS.items():
        for role, may in cells.items():
            if may == "no":
                server.tried(row, TOKENS[role])
    assert server.backend.said == []
    assert cast("jobs.JobOnPage", server.backend).asked == []
    assert json.loads(server.tried("GET /v1/audit", TOKENS["read"])[1])["changes"] == []
