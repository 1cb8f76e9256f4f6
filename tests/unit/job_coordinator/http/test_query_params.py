"""Queries about decisions, and how the server parses them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator

import pytest
from coordinator_server import TOKEN, Backend, Loop, Served, serving
from prometheus_client.core import GaugeMetricFamily, Metric
from statuses import outlook_of

from homeport.config.errors import UnavailableError, WireError
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.http.query_params import EventsAsked, hosts_asked
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.status.outlook import ShownOutlook


class Decisions:
    """Returns the query it received."""

    def __init__(self) -> None:
        self.fault: Exception | None = None

    def events(self, asked: EventsAsked) -> bytes:
        """The question, as an object."""
        return json.dumps({"asked": [asked.processor_id, asked.since, asked.limit]}).encode()

    async def written(self) -> None:
        """There is no coordinator stream."""

    async def what_if(self, hosts: Collection[Host]) -> ShownOutlook:
        """The hosts."""
        if self.fault is not None:
            raise self.fault
        return outlook_of(*hosts)

    def metrics(self) -> Iterable[Metric]:
        """One number."""
        metric = GaugeMetricFamily("samza_Group_a_name", "group a-name.")
        metric.add_metric((), 7)
        return [metric]


@pytest.fixture
def telling(loop: Loop) -> Iterator[tuple[Served, Decisions]]:
    """A server that reports decisions, on a free port."""
    decisions = Decisions()
    with serving(loop, Backend(), TOKEN, decisions) as served:
        yield served, decisions


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ({}, EventsAsked()),
        ({"processor": "0-1", "since": "0", "limit": "1"}, EventsAsked(ProcessorId("0-1"), 0, 1)),
        ({"other": "x"}, EventsAsked()),
    ],
)
def test_events_are_selected_by_a_query(query: dict[str, str], asked: EventsAsked) -> None:
    """Each word may be left out."""
    assert EventsAsked.from_query(query) == asked


@pytest.mark.parametrize(
    ("query", "fault"),
    [
        ({"since": "-1"}, "since is not a number"),
        ({"since": ""}, "since is not a number"),
        ({"limit": "ten"}, "limit is not a number"),
        ({"limit": "0"}, "limit is 0: it must be from 1 to 1000"),
        ({"limit": "1001"}, "limit is 1001: it must be from 1 to 1000"),
    ],
)
def test_a_query_that_is_none_is_refused(query: dict[str, str], fault: str) -> None:
    """In one line that says which word."""
    with pytest.raises(WireError, match=fault):
        EventsAsked.from_query(query)


def test_each_host_of_a_query_counts_once() -> None:
    """In lower case, as all host names are; at least one."""
    assert hosts_asked(["NM2", "nm1", "nm2"]) == ("nm1", "nm2")
    with pytest.raises(WireError, match=r"no host is given: ask \?host=NAME"):
        hosts_asked([])


def test_the_client_asks_what_the_server_answers(telling: tuple[Served, Decisions]) -> None:
    """Ids and hosts go through the URL as they are."""
    client = CoordinatorClient(telling[0].url, None)
    assert client.events() == {"asked": [None, None, 100]}
    assert client.events(ProcessorId("a b&c"), since=3, limit=5) == {"asked": ["a b&c", 3, 5]}
    assert client.what_if([Host("nm1"), Host("nm2")]) == outlook_of(Host("nm1"), Host("nm2"))


def test_faults_of_the_question_and_of_the_moment(telling: tuple[Served, Decisions]) -> None:
    """400 for a faulty query, 503 for a query that may be repeated."""
    served, decisions = telling
    assert served.call("GET", "/v1/events?limit=x")[0] == 400
    assert served.call("GET", "/v1/what-if")[0] == 400
    decisions.fault = UnavailableError("ask again")
    status, _, body = served.call("GET", "/v1/what-if?host=a")
    assert (status, json.loads(body)) == (503, {"error": "ask again"})


def test_the_numbers_of_decisions_are_among_the_metrics(telling: tuple[Served, Decisions]) -> None:
    """Beside the server's own."""
    assert b"samza_Group_a_name 7.0" in telling[0].call("GET", "/metrics")[2]
