"""Servers of a job that has one for each processor: one answers for the job, others redirect."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from coordinator_server import BEARER, RUNNING, TOKEN, Backend, Loop, Members, Served, serving

from homeport.config.errors import UnavailableError, WireError
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.model.ids import ProcessorId

TEMPORARY_REDIRECT = 307


@pytest.fixture
def pair(loop: Loop) -> Iterator[tuple[Served, Members, Served, Members]]:
    """A leader, and a follower that knows where it answers."""
    leads, follows = Members("one"), Members("two")
    with (
        serving(loop, Backend(), peers=leads) as leader,
        serving(loop, Backend(), peers=follows) as follower,
    ):
        follows.leader = leader.url
        yield leader, leads, follower, follows


def test_a_follower_redirects_what_the_leader_answers(
    pair: tuple[Served, Members, Served, Members],
) -> None:
    """With the path and the query of the request; a client without a token goes there."""
    leader, members, follower, _ = pair
    status, headers, _ = follower.call("GET", "/?version=1")
    assert (status, headers["location"]) == (TEMPORARY_REDIRECT, f"{leader.url}?version=1")
    client = CoordinatorClient(follower.url, None)
    assert client.status().job == leader.backend.status().job
    assert members.gathered == 2  # once for the first point of the plots
    assert client.job_model(1).containers.keys() == {"0"}
    with pytest.raises(WireError, match="307 answered at"):
        CoordinatorClient(follower.url, TOKEN).status()


def test_each_processor_answers_of_itself(pair: tuple[Served, Members, Served, Members]) -> None:
    """Health, metrics, and what the leader asks it."""
    _, _, follower, _ = pair
    health = json.loads(follower.call("GET", "/health")[2])
    assert health == {"state": "member", "health": "deployed"}
    assert json.loads(follower.call("GET", "/v1/processor")[2])["job"]["name"] == "two"
    assert follower.call("GET", "/metrics")[0] == 200
    assert follower.error("GET", "/nothing") == "404 Not Found: GET /nothing"


def test_decisions_are_those_of_the_processor_that_is_named(
    pair: tuple[Served, Members, Served, Members],
) -> None:
    """Of another one by its URL; there are none here."""
    leader, members, follower, _ = pair
    members.urls["two"] = follower.url
    client = CoordinatorClient(leader.url, None)
    with pytest.raises(WireError, match="decisions are not served here"):
        client.events(ProcessorId("two"))
    assert leader.call("GET", "/v1/events?processor=two")[0] == TEMPORARY_REDIRECT
    assert leader.error("GET", "/v1/events").startswith("404 ")
    assert leader.error("GET", "/v1/events?processor=three").startswith("503 ")


def test_nobody_leads_for_a_moment(pair: tuple[Served, Members, Served, Members]) -> None:
    """503, which may be asked again; two that name each other are given up."""
    leader, members, follower, others = pair
    others.leader = None
    with pytest.raises(UnavailableError, match="is not known now; ask again"):
        CoordinatorClient(follower.url, None).status()
    members.leader, others.leader = follower.url, leader.url
    with pytest.raises(WireError, match="307 answered at"):
        CoordinatorClient(follower.url, None).status()


def test_an_application_master_has_no_peers(loop: Loop) -> None:
    """Its health is the job's; it is no processor."""
    with serving(loop, Backend()) as served:
        assert served.call("GET", "/health")[0] == 200
        assert served.error("GET", "/v1/processor").startswith("404 no processor")


@pytest.mark.parametrize("name", ["check-in", "started", "stopped", "unfit", "shutdown"])
def test_a_standalone_job_refuses_what_launchers_send(loop: Loop, name: str) -> None:
    """In one line that has the route and the reason; no container of it lives, and no package."""
    with serving(loop, Backend(), launchers=None) as served:
        refusal = served.error("POST", f"/v1/{name}", b"{}", **BEARER)
        assert refusal == (
            f"400 /v1/{name} has no meaning for a standalone job: its user places processors"
        )
        alive = served.call("GET", f"/containerHeartbeat?executionContainerId={RUNNING}")
        assert json.loads(alive[2]) == {"alive": False}
        assert served.call("GET", f"/v1/packages/{'ab' * 32}", None, **BEARER)[0] == 404
        assert served.backend.said == []
