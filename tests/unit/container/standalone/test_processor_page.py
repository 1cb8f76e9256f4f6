"""What a processor's page says, by the states that its machine went through."""

from __future__ import annotations

import asyncio
import json
import re
import socket

import pytest
from statuses import body_of_status

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import StoreError, WireError
from homeport.container.standalone import processor_page
from homeport.container.standalone.processor_page import ProcessorPage, Served
from homeport.container.standalone.stream_processor import ServerThread
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.http.query_params import EventsAsked
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import JobModel
from homeport.job_coordinator.standalone.machine import step
from homeport.job_coordinator.standalone.plan import Plan, Registration, Standby, next_plan
from homeport.job_coordinator.standalone.protocol import (
    BarrierPhase,
    BarrierSeen,
    Event,
    PlanSeen,
    ProcessorsSeen,
    Registered,
    SessionBegun,
)
from homeport.job_coordinator.standalone.standby_view import standbys_shown
from homeport.job_coordinator.standalone.state import ProcessorState
from homeport.job_coordinator.status.container_report import ContainerReport, StoreLag
from homeport.job_coordinator.status.shape import ShownChange, ShownConfiguration, ShownStandby

ONE, TWO = ProcessorId("one"), ProcessorId("two")
FIRST = Registration(1, ONE, Host("h1"), "http://h1:1/")
SECOND = Registration(2, TWO, Host("h2"), "http://127.0.0.1:1/")
PLAN = next_plan(
    None, (FIRST, SECOND), {ONE: (TaskName("a"),), TWO: (TaskName("b"),)}, {}, frozenset()
)
CONFIG = Config({"job.name": "j", "job.default.system": "kafka", "my.password": "secret"})


def _model_of(version: int) -> JobModel:
    if version != 1:
        raise StoreError("there is no such version")
    return JobModel(Config({}), {})


class _Stepped:
    """A page, and the machine whose steps it gets."""

    def __init__(self, own: Registration) -> None:
        served = Served(CONFIG, "zookeeper", own.processor_id, own.location)
        self.page = ProcessorPage(served, _model_of, lambda: None)
        self._state = ProcessorState(own.processor_id, own.location)

    def feed(self, *events: Event) -> None:
        for event in events:
            decision = step(self._state, event)
            self._state = decision.state
            self.page.decided(event, decision)


@pytest.mark.parametrize(("host", "named"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
def test_its_url_is_one_that_others_can_ask(host: str, named: str) -> None:
    """An address of IPv6 stands in brackets."""
    if ":" in host and not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    config = CONFIG.merged({keys.JOB_COORDINATOR_URL_HOST.name: host})
    thread = ServerThread(_planned(FIRST).page, config)
    url = thread.start()
    try:
        assert re.fullmatch(rf"http://{re.escape(named)}:\d+/", url)
        assert CoordinatorClient(url, None).status().job.name == "j"
    finally:
        thread.stop()


def _planned(
    own: Registration, plan: Plan = PLAN, phase: BarrierPhase = BarrierPhase.NEW
) -> _Stepped:
    stepped = _Stepped(own)
    stepped.feed(SessionBegun(), Registered(own.sequence), ProcessorsSeen((FIRST, SECOND)))
    stepped.feed(PlanSeen(plan), BarrierSeen(1, phase))
    return stepped


def test_the_first_registration_answers_for_the_job() -> None:
    """The others know where; without a connection it is not known."""
    leader, follower = _planned(FIRST), _planned(SECOND)
    assert leader.page.leader_url() == ""
    assert follower.page.leader_url() == "http://h1:1/"
    assert _Stepped(SECOND).page.leader_url() is None
    assert (leader.page.url_of(ONE), leader.page.url_of(TWO)) == ("", SECOND.url)
    assert leader.page.url_of(ProcessorId("three")) is None


def test_the_status_has_every_registered_processor() -> None:
    """What one does that was not asked is unknown; its own is known."""
    page = _planned(FIRST).page
    status = body_of_status(page.status())
    assert (status["job"]["leader"], status["job"]["model_version"]) == ("one", 1)
    own, other = status["containers"]
    assert (own["processor_id"], own["phase"], own["is_leader"]) == ("one", "waiting", True)
    assert (other["processor_id"], other["phase"], other["epoch"]) == ("two", "unknown", 1)
    change = page.status().change
    assert change == ShownChange(version=1, barrier="NEW", missing=("one", "two"))
    assert own["waits"] == ["until one, two have joined version 1"]
    assert status["hosts"] == ["h1", "h2"]
    assert [c["processor_id"] for c in body_of_status(page.own_status())["containers"]] == ["one"]
    assert page.locality() == {ONE: "h1", TWO: "h2"}


def test_the_leader_shows_the_topics_that_are_refused() -> None:
    """A follower judges none; without one there is nothing to show."""
    leader, follower = _planned(FIRST).page, _planned(SECOND).page
    assert leader.status().configuration is None
    for page in (leader, follower):
        page.topics_refused = lambda: ("kafka.odd matches",)
    assert leader.status().configuration == ShownConfiguration(
        version=1, topics_refused=("kafka.odd matches",)
    )
    assert follower.own_status().configuration is None


def test_a_processor_says_what_it_waits_for() -> None:
    """Each obstacle has its words."""

    def waits(stepped: _Stepped) -> list[str]:
        found: list[str] = body_of_status(stepped.page.own_status())["containers"][0]["waits"]
        return found

    stepped = _Stepped(SECOND)
    assert waits(stepped) == ["for ZooKeeper to answer"]
    stepped.feed(SessionBegun(), Registered(2), ProcessorsSeen((FIRST, SECOND)))
    due = "for version 1 (The processors are not the members of the newest version)"
    unplaced = "for a version after 0 that has a place for it"
    assert waits(stepped) == [unplaced, f"{due}: one at h1 leads"]
    twin = Registration(1, TWO, Host("h9"))
    stepped.feed(ProcessorsSeen((twin, SECOND)))
    assert waits(stepped)[0] == "for the end of registration 1 at h9, which has its id"
    empty = next_plan(None, (FIRST, SECOND), {ONE: (TaskName("a"),)}, {}, frozenset())
    stepped.feed(
        ProcessorsSeen((FIRST, SECOND)), PlanSeen(empty), BarrierSeen(1, BarrierPhase.DONE)
    )
    assert waits(stepped) == ["for tasks: version 1 has none for it"]


def test_a_processor_that_stands_still_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its page answers, with what was so when it went round last."""
    page, now = _Stepped(SECOND).page, 50_000
    monkeypatch.setattr(processor_page, "boot_ms", lambda: now)
    page.turned()
    now += 10_000
    (waits, _) = body_of_status(page.own_status())["containers"][0]["waits"]
    assert waits == "for its own coordination, still for 10000 ms: stop the process"
    page.turned()
    (wait,) = body_of_status(page.own_status())["containers"][0]["waits"]
    assert wait == "for ZooKeeper to answer"


def test_the_decisions_are_shown_with_their_reasons() -> None:
    """The newest, or those after a number."""
    page = _planned(FIRST).page
    stepped = json.loads(page.events(EventsAsked()))
    sentences = [r["sentence"] for event in stepped["events"] for r in event["reasons"]]
    assert "The session is new: processor one registers" in sentences
    assert stepped["events"][0]["cause"] == "SessionBegun"
    words = {
        word for event in stepped["events"] for word in event["records"] + event["instructions"]
    }
    assert words & {"SetTimer", "WriteLocality"}
    assert not words & {"StartTimer", "WriteLocations"}  # which the code calls them
    newest = json.loads(page.events(EventsAsked(limit=1)))
    assert [e["number"] for e in newest["events"]] == [stepped["last"]]
    assert newest["more"]
    assert json.loads(page.events(EventsAsked(since=stepped["last"])))["events"] == []


def test_a_version_has_the_configuration_of_the_processor() -> None:
    """The same object each time; no version that was not seen."""
    page = _planned(FIRST).page
    model = page.job_model(None)
    assert model is not None
    assert model.config == CONFIG
    assert page.job_model(1) is model
    assert page.job_model(7) is None
    assert _Stepped(FIRST).page.job_model(None) is None


def test_one_that_does_not_answer_stays_unknown() -> None:
    """The leader asks where the registration says, and goes on without an answer."""
    stepped = _planned(FIRST)
    asyncio.run(stepped.page.gather())
    assert body_of_status(stepped.page.status())["containers"][1]["phase"] == "unknown"


def test_what_only_yarn_has_is_refused() -> None:
    """In one line that says why."""
    with pytest.raises(WireError, match="no meaning for a standalone job"):
        asyncio.run(_Stepped(FIRST).page.what_if([]))


A, B = TaskName("a"), TaskName("b")
OF_A = Standby(A, TaskName("Standby-a-0"))


def test_the_status_has_each_standby_with_its_lag() -> None:
    """What was not said is not known: in a restore, and of a processor that does not answer."""
    standbys = {ONE: (Standby(B, TaskName("Standby-b-0")),), TWO: (OF_A,)}
    plan = next_plan(None, (FIRST, SECOND), {ONE: (A,), TWO: (B,)}, {}, standbys=standbys)
    stepped = _planned(FIRST, plan, BarrierPhase.DONE)
    unknown = {"lag": None, "lag_seconds": None, "is_caught_up": None}
    own, other = body_of_status(stepped.page.status())["containers"]
    assert own["standbys"] == [{"name": "Standby-b-0", "task": "b", **unknown}]
    assert other["standbys"] == [{"name": "Standby-a-0", "task": "a", **unknown}]


def test_the_lag_of_a_standby_is_that_of_all_its_stores() -> None:
    """It is caught up where no record was missing at the last look."""
    lags = [StoreLag("s", OF_A.name, 3, 0.5), StoreLag("t", OF_A.name, 4), StoreLag("s", A, 9)]
    behind = ShownStandby(name="Standby-a-0", task="a", lag=7, lag_seconds=0.5, is_caught_up=False)
    assert standbys_shown([OF_A], ContainerReport.following(lags)) == (behind,)
    none = ContainerReport.following([StoreLag("s", OF_A.name, 0, 0.0)])
    (caught_up,) = standbys_shown([OF_A], none)
    assert (caught_up.lag, caught_up.is_caught_up) == (0, True)


def test_the_leader_counts_the_tasks_that_lost_their_processor() -> None:
    """One that does not lead does not, so that the sum over all processors is right."""

    def counted(own: Registration) -> tuple[dict[str, int], dict[str, float]]:
        stepped = _Stepped(own)
        taken = Plan(2, PLAN.members, lost=3, unbacked=1)
        stepped.feed(SessionBegun(), Registered(own.sequence), ProcessorsSeen((FIRST, SECOND)))
        stepped.feed(PlanSeen(PLAN), PlanSeen(taken), PlanSeen(taken))
        metrics = {m.name: m.samples[0].value for m in stepped.page.metrics()}
        return dict(body_of_status(stepped.page.status())["taken_over"]), metrics

    assert counted(FIRST) == (
        {"lost": 3, "unbacked": 1, "version": 2},
        {"homeport_tasks_lost": 3, "homeport_tasks_unbacked": 1},
    )
    assert counted(SECOND) == (
        {"lost": 0, "unbacked": 0, "version": 0},
        {"homeport_tasks_lost": 0, "homeport_tasks_unbacked": 0},
    )
