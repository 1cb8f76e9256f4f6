"""Actions of operators by HTTP: planned first, carried out with a token, written down."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any

import dashboard_jobs as jobs
import pytest
from coordinator_server import TOKEN, Loop, Served, serving

from homeport.config.access_tokens import digest_of
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.http.actions import Operators
from homeport.job_coordinator.http.audit import MAX_CHANGES, MAX_TEXT, AuditTrail, Change

ADA = "the-token-of-ada"
UUID = "00000000-0000-0000-0000-000000000000"
MOVE = {"processor": "0", "host": "nm02.example.com"}


class ServedActions(Served):
    """A server of a job with actions."""

    actions: jobs.ActionsOnPage
    trail: AuditTrail

    def changes_so_far(self) -> list[dict[str, Any]]:
        """The audit trail, as it is in the server."""
        found: list[dict[str, Any]] = json.loads(self.trail.to_json())["changes"]
        return found

    def ask(
        self, action: str, body: dict[str, Any], token: str = ADA, **headers: str
    ) -> tuple[int, dict[str, Any]]:
        """Status and body of one request."""
        named = {"Content_Type": "application/json", "Authorization": f"Bearer {token}", **headers}
        path = f"/ui/actions/{action}"
        status, _, content = self.call("POST", path, json.dumps(body).encode(), **named)
        return status, json.loads(content)

    def changes(self) -> list[dict[str, Any]]:
        """The audit trail."""
        found: list[dict[str, Any]] = json.loads(
            self.call("GET", "/v1/audit", None, Authorization=f"Bearer {TOKEN}")[2]
        )["changes"]
        return found


@pytest.fixture
def page(loop: Loop) -> Iterator[ServedActions]:
    """The server of a job of two containers, on two hosts."""
    job = jobs.JobOnPage(jobs.settled_job(1, 2))
    config = job.models[None].config.merged(
        {keys.JOB_COORDINATOR_OPERATE_TOKENS.name: f"ada:{digest_of(ADA.encode())}"}
    )
    job.models[None] = type(job.models[None])(config, job.models[None].containers)
    actions = jobs.ActionsOnPage(job)
    trail = AuditTrail(lambda _: None)
    operators = Operators(actions, trail)
    with serving(loop, job, TOKEN, job, operators=operators) as served:
        opened = ServedActions(job, served.server, served.port)
        opened.actions, opened.trail = actions, trail
        yield opened


def test_the_page_learns_what_its_token_allows(page: ServedActions) -> None:
    """As the token has arrived here: a proxy may not pass it on."""
    for headers, name, role, may_act in (
        ({}, "", "none", False),
        ({"Authorization": f"Bearer {ADA}"}, "ada", "operate", True),
        ({"Authorization": f"Bearer {TOKEN}"}, "job", "job", True),
    ):
        page_data = json.loads(page.call("GET", "/ui/actions", None, **headers)[2])
        assert (page_data["name"], page_data["role"], page_data["may_act"]) == (name, role, may_act)
        assert page_data["actions"] == ["move", "restart", "cancel", "drain", "config"]


def test_a_dry_run_changes_nothing(page: ServedActions) -> None:
    """It says what would come of it, and leaves no line in the trail."""
    status, plan = page.ask("move", {**MOVE, "dry_run": True})
    assert (status, plan["what"], plan["before"]) == (200, "move 0", "nm01.example.com")
    assert plan["lines"] == ["0: nm01.example.com -> nm02.example.com"]
    assert plan["possible"]
    assert (page.actions.carried_out, page.changes()) == ([], [])


def test_an_action_is_carried_out_and_written_down(page: ServedActions) -> None:
    """With the name of the token; its answer comes under its uuid."""
    status, body = page.ask("move", {**MOVE, "dry_run": False})
    assert (status, body["uuid"]) == (200, UUID)
    assert [name for name, _ in page.actions.carried_out] == ["ada"]
    answer = json.loads(page.call("GET", f"/ui/answers/{UUID}")[2])
    assert answer == {
        "status": "SUCCEEDED",
        "message": "0@4 runs on nm02.example.com",
        "final": True,
    }
    (change,) = page.changes()
    assert (change["author"], change["address"], change["through"]) == ("ada", "127.0.0.1", "http")
    assert (change["before"], change["after"]) == ("nm01.example.com", "nm02.example.com")


def test_a_change_is_written_down_before_it_is_carried_out(
    page: ServedActions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A death in between leaves a line too many, not one too few; so does a failure."""

    async def dies(*_: object) -> dict[str, Any]:
        raise UnavailableError("Kafka does not answer")

    monkeypatch.setattr(page.actions, "carry_out", dies)
    status, _ = page.ask("move", {**MOVE, "dry_run": False})
    assert status == HTTPStatus.SERVICE_UNAVAILABLE
    (change,) = page.changes()
    assert (change["author"], change["what"]) == ("ada", "move 0")


def test_the_end_of_the_job_is_written_down_before_it_is_ordered(
    page: ServedActions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As every change."""
    seen: list[int] = []

    async def dies() -> None:
        seen.append(len(page.changes_so_far()))
        raise UnavailableError("the driver has just died")

    monkeypatch.setattr(page.backend, "shutdown", dies)
    named = {"Authorization": f"Bearer {ADA}"}
    assert page.call("POST", "/v1/shutdown", b"{}", **named)[0] == HTTPStatus.SERVICE_UNAVAILABLE
    assert seen == [1]
    (change,) = page.changes()
    assert (change["author"], change["what"], change["after"]) == ("ada", "the job", "is to end")


def test_a_secret_is_in_no_answer(page: ServedActions) -> None:
    """Of a key that names one."""
    body = {"key": "my.password", "value": "hunter3"}
    for dry_run in (True, False):
        assert "hunter3" not in str(page.ask("config", {**body, "dry_run": dry_run}))
    assert "hunter3" not in str(page.changes())


@pytest.mark.parametrize(
    ("action", "body", "status", "text"),
    [
        ("move", MOVE, 400, "field 'dry_run'"),
        ("move", {**MOVE, "dry_run": 1}, 400, "field 'dry_run'"),
        ("move", {"dry_run": True}, 400, "field 'processor'"),
        ("move", {**MOVE, "processor": "9", "dry_run": False}, 400, "no processor"),
        ("config", {"key": "yarn.x", "dry_run": True}, 400, "the AM writes it"),
        ("dance", {"dry_run": True}, 404, "Not Found"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(
    page: ServedActions, action: str, body: dict[str, Any], status: int, text: str
) -> None:
    """Before anything is carried out, and before anything is written down."""
    answer = page.ask(action, body)
    assert answer[0] == status
    assert text in answer[1]["error"]
    assert (page.actions.carried_out, page.changes()) == ([], [])


def test_a_form_of_another_page_is_refused(page: ServedActions) -> None:
    """It can send text without asking first; so can no program of ours."""
    status, answer = page.ask("move", {**MOVE, "dry_run": False}, Content_Type="text/plain")
    assert (status, answer["error"]) == (
        415,
        "the content type is not application/json: 'text/plain'",
    )


def test_an_answer_that_is_not_known_is_not_found(page: ServedActions, served: Served) -> None:
    """Neither one of another uuid, nor any of a job without actions."""
    other = UUID.replace("0", "1")
    assert page.error("GET", f"/ui/answers/{other}").startswith("404 ")
    assert served.error("GET", f"/ui/answers/{other}").startswith("404 ")
    assert json.loads(served.call("GET", "/ui/actions")[2])["actions"] == []
    token = {"Authorization": f"Bearer {TOKEN}", "Content_Type": "application/json"}
    assert served.error("POST", "/ui/actions/move", b"{}", **token).startswith("404 ")


CHANGE = Change("ada", "10.0.0.7", "http", "move 0", "nm1", "nm2")


def test_a_change_is_in_memory_in_the_log_and_in_the_history(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Author, from where, through what, what, before and after."""
    events = list[Mapping[str, Any]]()
    trail = AuditTrail(events.append)
    with caplog.at_level(logging.INFO, "audit"):
        trail.add(CHANGE)
        trail.add(replace(CHANGE, before=None))
    first, second = json.loads(trail.to_json())["changes"]
    assert first.pop("at_ms") > 0
    assert first == {"number": 1, **events[0]}
    assert (events[0]["author"], events[0]["address"]) == ("ada", "10.0.0.7")
    assert second["before"] is None
    assert caplog.messages == [
        "audit 1: ada from 10.0.0.7 by http: move 0: 'nm1' -> 'nm2'",
        "audit 2: ada from 10.0.0.7 by http: move 0: nothing -> 'nm2'",
    ]


def test_a_field_is_one_line_of_bounded_length() -> None:
    """No user can write a second line into the log, or act on a terminal."""
    bounded = replace(CHANGE, what="a\nb\x1b[2J\u2028", after="x" * 9_999).bounded()
    assert bounded.what == "a b?[2J"
    assert len(bounded.after or "") == MAX_TEXT


def test_the_newest_are_kept() -> None:
    """So many; their numbers go on."""
    trail = AuditTrail(lambda _: None)
    for _ in range(MAX_CHANGES + 5):
        trail.add(CHANGE)
    kept = json.loads(trail.to_json())["changes"]
    assert (len(kept), kept[0]["number"], kept[-1]["number"]) == (MAX_CHANGES, 6, MAX_CHANGES + 5)
