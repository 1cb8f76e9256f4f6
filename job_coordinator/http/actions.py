"""The actions of operators on the running job by HTTP, below ``/ui/actions``.

SHELL. The server finds an action by its name. It reads the request, has the action planned, and
shows the plan or has it carried out. It makes a plan either way, so that a dry run and a real run
pass the same checks.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Protocol

import msgspec
from aiohttp import web

from homeport.config.errors import ConfigError, WireError
from homeport.job_coordinator.http.audit import AuditTrail, Change
from homeport.job_coordinator.http.callers import Caller, Role
from homeport.job_coordinator.http.guard import caller
from homeport.job_coordinator.http.responses import error_answer, json_answer, request_body
from homeport.job_coordinator.model.json_values import compact_json, required_field, shown
from homeport.job_coordinator.model.wire_form import json_text

ACTION_ROUTE: Final = "/ui/actions/{action}"
_JSON: Final = "application/json"


class Plan(msgspec.Struct, frozen=True, rename={"is_possible": "possible"}):
    """What an action would do now: the answer to a dry run.

    ``what``: action and subject, such as ``move 0``. ``before``, ``after``: the subject's value.
    ``lines``: the effects, for people; why not, if the action is not possible. Secrets are
    masked in all fields.
    """

    what: str
    before: str | None
    after: str | None
    lines: tuple[str, ...]
    is_possible: bool = True


class OperatorActions(Protocol):
    """The actions of one job. Errors as of a backend; the answer to a ConfigError is 400 too."""

    @property
    def names(self) -> Collection[str]:
        """The names of all actions."""

    async def plan(self, name: str, asked: Mapping[str, Any]) -> Plan:
        """Return what the action would do; change nothing."""

    async def carry_out(self, name: str, asked: Mapping[str, Any], by: Caller) -> Mapping[str, Any]:
        """Write the action's record; return ``message``, and ``uuid`` if its answer comes later."""

    async def answer(self, uuid: str) -> Mapping[str, Any] | None:
        """Return ``status``, ``message`` and ``final``; None while nothing is known."""


@dataclass(frozen=True, slots=True)
class Operators:
    """The actions that operators may take by HTTP (None: none), and the trail of all changes."""

    actions: OperatorActions | None
    audit: AuditTrail


class ActionRoutes:
    """Serves the actions; runs on the server's event loop.

    ``actions``: None: the job has none, like a standalone job. ``audit`` takes each change.
    """

    def __init__(self, actions: OperatorActions | None, audit: AuditTrail) -> None:
        self._actions = actions
        self._audit = audit

    def routes(self) -> list[web.RouteDef]:
        """Return what the server adds to its own."""
        return [
            web.get("/ui/actions", self._get_actions),
            web.post(ACTION_ROUTE, self._post_action),
            web.get("/ui/answers/{uuid:[0-9a-f-]{36}}", self._get_answer),
        ]

    async def _get_actions(self, request: web.Request) -> web.StreamResponse:
        asks = caller(request)
        body = {
            "name": asks.name,
            "role": asks.role.name.lower(),
            "may_act": asks.role >= Role.OPERATE,
            "actions": [] if self._actions is None else list(self._actions.names),
        }
        return json_answer(compact_json(body), {"Cache-Control": "no-store"})

    async def _post_action(self, request: web.Request) -> web.StreamResponse:
        # A form of another page can send every other type without a preflight request.
        if request.content_type != _JSON:
            text = f"the content type is not {_JSON}: {shown(request.content_type)}"
            return error_answer(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, text)
        name = request.match_info["action"]
        if self._actions is None or name not in self._actions.names:
            raise web.HTTPNotFound
        asked = await request_body(request)
        is_dry_run = required_field(asked, "dry_run", bool)
        try:
            plan = await self._actions.plan(name, asked)
            if is_dry_run:
                return json_answer(json_text(plan).encode())
            if not plan.is_possible:
                raise WireError("; ".join(plan.lines))
            by = caller(request)
            # First the trail: a death in between leaves a line too many, not one too few.
            self._audit.add(Change(by.name, by.address, "http", plan.what, plan.before, plan.after))
            said = await self._actions.carry_out(name, asked, by)
        except ConfigError as error:
            return error_answer(HTTPStatus.BAD_REQUEST, str(error))
        return json_answer(compact_json(dict(said)))

    async def _get_answer(self, request: web.Request) -> web.StreamResponse:
        found = None
        if self._actions is not None:
            found = await self._actions.answer(request.match_info["uuid"])
        if found is None:
            raise web.HTTPNotFound
        return json_answer(compact_json(dict(found)), {"Cache-Control": "no-store"})
