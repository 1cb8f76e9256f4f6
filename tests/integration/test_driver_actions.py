"""Operators' actions by HTTP to a driver: planned, written into the stream, carried out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
from driver_attempts import CONFIG, FIRST, LIMIT_S, NM1, P0, Am, drive, told_as_test

from homeport.appmaster.driver.actions.operator_actions import DriverActions
from homeport.appmaster.driver.http_backend import DriverDecisions
from homeport.config.access_tokens import digest_of
from homeport.config.declarations import all_keys as keys
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.grouper.standby_models import temporary_id
from homeport.job_coordinator.http.actions import Operators
from homeport.job_coordinator.http.messages import OrderKind, Started, Stopped
from homeport.job_coordinator.http.server import JobCoordinatorServer
from homeport.job_coordinator.metadata.configuration import WRITER_SOURCE
from homeport.job_coordinator.model.ids import Host, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.status.container_report import ContainerReport, RestoreProgress
from homeport.job_coordinator.status.host_drain import UNDONE

SECOND = Incarnation(P0, 2)
WARM = temporary_id(P0)
ADA = "the-token-of-ada"
OPERATE = keys.JOB_COORDINATOR_OPERATE_TOKENS.name


class Operator:
    """Calls the server of a driver as ada."""

    def __init__(self, am: Am, url: str) -> None:
        self._am = am
        self._url = url

    async def ask(self, action: str, token: str = ADA, **body: object) -> tuple[int, Any]:
        """Status and body of one action; a dry run unless ``dry_run=False``."""
        headers = {"Authorization": f"Bearer {token}"}
        url = f"{self._url}ui/actions/{action}"
        body.setdefault("dry_run", True)
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.post(url, json=body) as answer,
        ):
            return answer.status, await answer.json()

    async def get(self, path: str) -> Any:  # noqa: ANN401 - JSON
        """What is served there."""
        headers = {"Authorization": f"Bearer {ADA}"}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.get(self._url + path) as answer,
        ):
            return json.loads(await answer.read())

    async def final(self, uuid: str) -> dict[str, Any]:
        """The last answer under that uuid."""
        async with asyncio.timeout(LIMIT_S):
            while True:
                answer: dict[str, Any] = await self.get(f"ui/answers/{uuid}")
                if answer["final"]:
                    return answer
                # As the page does: the answer has no event.
                await asyncio.sleep(0.05)

    async def changes(self) -> list[tuple[str, ...]]:
        """The audit trail: name, tool, what, before, after."""
        names = ("author", "through", "what", "before", "after")
        found = (await self.get("v1/audit"))["changes"]
        return [tuple(change[name] for name in names) for change in found]


def acting(story: Callable[[Am, Operator], Awaitable[None]]) -> Callable[[Path], None]:
    """Make a test of a story beside a driver with its server; ada's token is valid."""

    async def served(am: Am) -> None:
        await am.started()
        token = wire.set_config(OPERATE, f"ada:{digest_of(ADA.encode())}")
        am.stream.write([token._replace(source=WRITER_SOURCE)])
        await am.until(lambda: OPERATE in am.job_models.model.config)
        server = JobCoordinatorServer(
            am.backend,
            "own",
            "127.0.0.1",
            0,
            DriverDecisions(am.driver),
            operators=Operators(
                DriverActions(am.driver, CONFIG, lambda _: None), am.driver.audit.trail
            ),
            launchers=am.backend,
        )
        _, port = await server.start()
        try:
            await story(am, Operator(am, f"http://127.0.0.1:{port}/"))
        finally:
            await server.stop()

    return told_as_test(story, lambda folder: drive(folder / "history", served))


@acting
async def test_a_restart_is_planned_carried_out_and_audited_once(
    am: Am, operator: Operator
) -> None:
    """The dry run leaves the container alone; the answer comes under the uuid."""
    status, plan = await operator.ask("restart", processor="0")
    assert (status, plan["possible"]) == (200, True)
    assert plan["lines"] == ["0: stops, and starts again on nm1"]
    await am.rounds()
    assert (await am.check_in(FIRST)).kind is OrderKind.WAIT
    status, body = await operator.ask("restart", processor="0", dry_run=False)
    assert status == 200
    await am.until_order(OrderKind.STOP, FIRST)
    answer = await operator.get(f"ui/answers/{body['uuid']}")
    assert (answer["status"], answer["final"]) == ("IN_PROGRESS", False)
    await am.backend.stopped(Stopped(FIRST, StopCause.ORDERED, 143))
    await am.until_order(OrderKind.RUN)
    await am.check_in(SECOND)
    await am.backend.started(Started(SECOND))
    await am.rounds()
    answer = await operator.get(f"ui/answers/{body['uuid']}")
    assert answer == {"status": "SUCCEEDED", "message": "0@2 runs on nm1", "final": True}
    restart = ("ada", "http", "restart 0", "nm1", "FORCE_RESTART_LAST_SEEN")
    assert await operator.changes() == [
        ("user", WRITER_SOURCE, f"config {OPERATE}", None, "ada (new)"),
        restart,
    ]
    await am.finished(SECOND)
    await am.ended()
    audited = [line for line in am.history() if line["event"] == "audit"]
    assert [line["what"] for line in audited] == [f"config {OPERATE}", "restart 0"]
    assert audited[1]["address"] == "127.0.0.1"


@acting
async def test_a_key_is_set_and_taken_back(am: Am, operator: Operator) -> None:
    """As by the writer tool, with the token's name; the running job takes it at once."""
    key = "cluster-manager.container.request.timeout.ms"
    status, plan = await operator.ask("config", key=key, value="7000")
    assert (status, plan["before"], plan["after"]) == (200, None, "7000")
    assert plan["lines"][0].startswith("the running job takes it within")
    assert key not in am.job_models.model.config
    assert (await operator.ask("config", key=key, value="7000", dry_run=False))[0] == 200
    await am.until(lambda: am.job_models.model.config.get(key) == "7000")
    record = (await am.driver.view.stream.written())[key]
    assert (record.source, record.username, record.host) == (WRITER_SOURCE, "ada", "127.0.0.1")
    assert (await operator.ask("config", key=key, dry_run=False))[0] == 200
    await am.until(lambda: key not in am.job_models.model.config)
    await am.rounds()
    assert (await operator.changes())[1:] == [
        ("ada", "http", f"config {key}", None, "7000"),
        ("ada", "http", f"config {key}", "7000", None),
    ]
    await am.finished()


@acting
async def test_what_cannot_be_done_is_refused_before_anything_is_written(
    am: Am, operator: Operator
) -> None:
    """One line each, in the dry run and without; no line in the trail."""
    refusals: list[tuple[str, dict[str, Any], str]] = [
        ("move", {"processor": "0", "host": "nm9"}, "no live host of the cluster"),
        ("move", {"processor": "0", "host": 7}, "field 'host'"),
        ("move", {"processor": "0", "host": "nm1", "warm": "yes"}, "field 'warm'"),
        ("drain", {"host": "nm9"}, "the job knows no host of that name"),
        ("drain", {}, "field 'host'"),
        ("drain", {"host": "nm1", "undo": 1}, "field 'undo'"),
        ("move", {"processor": "0" * 300, "host": "nm1"}, "at most 200 are read"),
        ("config", {"key": "job.name", "value": "x"}, "this is none of them"),
        ("config", {"key": OPERATE, "value": ""}, "this is none of them"),
        ("config", {"key": OPERATE}, "this is none of them"),
        ("config", {"key": "my.key", "value": "x", "force": True}, "homeport config set"),
        ("config", {"key": "task.commit.ms", "value": "\x1b[2J"}, "not one printable line"),
        ("config", {"key": "job.container.count", "value": "x"}, "a whole number"),
        ("config", {"key": "task.comit.ms", "value": "5"}, "write task.commit.ms, if that"),
        ("config", {"key": "a\nb", "value": "x"}, "no name of a key"),
        ("config", {"key": "a", "value": "x" * 100_001}, "at most 100000"),
    ]
    for action, body, text in refusals:
        for dry_run in (True, False):
            status, answer = await operator.ask(action, dry_run=dry_run, **body)
            assert status == 400
            assert text in answer["error"]
    for action, body, text in (
        ("restart", {"processor": "9"}, "no processor '9'"),
        ("config", {"key": "task.commit.ms"}, "nothing to take back"),
    ):
        status, plan = await operator.ask(action, **body)
        assert (status, plan["possible"]) == (200, False)
        assert text in plan["lines"][0]
        assert (await operator.ask(action, dry_run=False, **body))[0] == 400
    assert (await operator.ask("move", processor="0", host="last-seen"))[1]["possible"]
    assert (await operator.ask("move", "wrong", processor="0", host="any"))[0] == 401
    await am.rounds()
    assert len(await operator.changes()) == 1
    await am.finished()


@acting
async def test_a_drain_is_taken_back_and_a_warm_move_cancelled(am: Am, operator: Operator) -> None:
    """Both while a standby reads: it goes, and the container is not touched."""
    nm2 = Host("nm2")
    far = ContainerReport(restoring=(RestoreProgress("s", TaskName("t"), 5, 60, 7, 2.5, 3.0),))

    async def warming(am: Am, request_id: int) -> Incarnation:
        await am.until_order(OrderKind.RUN, request_id=request_id, host=nm2)
        standby = Incarnation(WARM, request_id - 1)
        await am.check_in(standby, request_id, report=far, host=nm2)
        await am.until(lambda: getattr(am.driver.state.container(WARM), "lag", None) == 7)
        (placement,) = am.status()["placements"]
        assert "0-warm@" in placement["waits"]
        assert placement["waits"].endswith("has 7 records left to read")
        return standby

    async def gone(am: Am, standby: Incarnation, request_id: int) -> None:
        await am.stops(standby, request_id, far, nm2)
        await am.until_order(OrderKind.EXIT, request_id=request_id, host=nm2)
        assert (await am.check_in(FIRST)).kind is OrderKind.WAIT
        assert am.status()["placements"] == []

    am.cluster.names = (NM1, nm2)
    await am.until(lambda: nm2 in (am.driver.state.hosts or ()))
    drained = (await operator.ask("drain", host="nm1", dry_run=False))[1]["uuid"]
    standby = await warming(am, 2)
    plan = (await operator.ask("drain", host="nm1", undo=True))[1]
    assert plan["lines"] == ["nm1 gets containers again; none is moved back", UNDONE]
    assert (await operator.ask("drain", host="nm1", undo=True, dry_run=False))[0] == 200
    await gone(am, standby, 2)
    answer = await operator.final(drained)
    stays = "the drain of nm1 was taken back: processor 0 stays"
    assert (answer["status"], answer["message"]) == ("FAILED", stays)
    nothing = (await operator.ask("cancel", processor="0"))[1]
    assert (nothing["possible"], nothing["lines"]) == (
        False,
        ["no command for processor 0 is under way"],
    )
    move: dict[str, Any] = {"processor": "0", "host": "nm2", "warm": True}
    moved = (await operator.ask("move", dry_run=False, **move))[1]["uuid"]
    standby = await warming(am, 3)
    plan = (await operator.ask("cancel", processor="0"))[1]
    expected = "nm2: cancelled; processor 0 is running on nm1"
    assert (plan["possible"], plan["lines"][-1]) == (True, expected)
    own = (await operator.ask("cancel", processor="0", dry_run=False))[1]["uuid"]
    assert (await operator.final(moved))["message"] == "it was cancelled"
    assert (await operator.final(own))["message"] == expected
    await gone(am, standby, 3)
    assert [change[2] for change in (await operator.changes())[1:]] == [
        "drain nm1",
        "undo drain nm1",
        "warm move 0",
        "cancel 0",
    ]
    await am.finished()


@acting
async def test_a_host_is_drained_and_gets_containers_again(am: Am, operator: Operator) -> None:
    """The plan is what-if's; then the key is in force, and the container moves warm."""
    nm2 = Host("nm2")
    standby = Incarnation(temporary_id(P0), 1)
    near = ContainerReport(lag=0)
    status, plan = await operator.ask("drain", host="nm1")
    assert (status, plan["possible"]) == (200, False)
    assert plan["lines"][0].startswith("the other hosts have no place for processor 0")
    assert (await operator.ask("drain", host="nm1", dry_run=False))[0] == 400
    forced = (await operator.ask("drain", host="nm1", force=True))[1]
    assert forced["possible"]
    assert forced["lines"][-2].endswith("these stay, or wait")
    am.cluster.names = (NM1, nm2)
    await am.until(lambda: nm2 in (am.driver.state.hosts or ()))
    plan = (await operator.ask("drain", host="NM1"))[1]
    assert plan["lines"] == ["0: nm1 -> nm2", "nm1 gets no other container"]
    assert (plan["before"], plan["after"]) == (None, "nm1")
    status, body = await operator.ask("drain", host="nm1", dry_run=False)
    assert status == 200
    assert not (await operator.ask("drain", host="nm1"))[1]["possible"]
    await am.until(lambda: len(am.cluster.asked) > 1)
    assert am.driver.state.settings.drained_hosts == {NM1}
    assert (await operator.get(f"ui/answers/{body['uuid']}"))["status"] == "IN_PROGRESS"
    await am.until_order(OrderKind.RUN, request_id=2, host=nm2)
    await am.check_in(standby, 2, host=nm2)
    await am.backend.started(Started(standby))
    await am.stops(standby, 2, near, nm2)
    await am.stops()
    await am.until_order(OrderKind.RUN, request_id=2, host=nm2)
    await am.check_in(SECOND, 2, host=nm2)
    await am.backend.started(Started(SECOND))
    answer = await operator.final(body["uuid"])
    assert (answer["status"], answer["message"]) == ("SUCCEEDED", "nm1 has no container of the job")
    plan = (await operator.ask("drain", host="nm1"))[1]
    assert plan["lines"][0] == "nm1 has no container of the job"
    assert (await operator.ask("drain", host="nm1", undo=True, dry_run=False))[0] == 200
    await am.until(lambda: not am.driver.state.settings.drained_hosts)
    status, plan = await operator.ask("drain", host="nm1", undo=True)
    assert (plan["possible"], plan["lines"]) == (False, ["nm1 is not drained"])
    assert (await operator.changes())[1:] == [
        ("ada", "http", "drain nm1", None, "nm1"),
        ("ada", "http", "undo drain nm1", "nm1", None),
    ]
    await am.finished(SECOND)
    await am.until_order(OrderKind.EXIT, request_id=2, host=nm2)
