"""The job coordinator's server and client, speaking real HTTP to each other over the loopback."""

from __future__ import annotations

import dataclasses
import json
import logging
import threading

import pytest
from coordinator_server import (
    CHECK_IN,
    LOG_LINE,
    ORDER,
    RUNNING,
    STARTED,
    STOPPED,
    TOKEN,
    Backend,
    Loop,
    Served,
)
from msgspec.structs import replace

from homeport.config.errors import UnavailableError, WireError
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.http.messages import Order, Started
from homeport.job_coordinator.http.port.port import MAX_BODY_BYTES
from homeport.job_coordinator.http.server import JobCoordinatorServer
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.outcomes import Restored, RestoreKind


def test_locality_is_served_as_samza_does(served: Served) -> None:
    """G30: all, none at all, one, and an unknown one with an empty host."""
    one = {"id": "0", "host": "h1", "jmx-url": "", "jmx-tunneling-url": ""}
    two = one | {"id": "a b", "host": "h2"}
    served.backend.localities = {ProcessorId("0"): Host("h1"), ProcessorId("a b"): Host("h2")}
    everything = {"processor-localities": {"0": one, "a b": two}}
    assert json.loads(served.call("GET", "/locality")[2]) == everything
    assert json.loads(served.call("GET", "/locality?processorId=0")[2]) == one
    assert json.loads(served.call("GET", "/locality?processorId=a%20b")[2]) == two
    unknown = json.loads(served.call("GET", "/locality?processorId=7")[2])
    assert unknown == one | {"id": "7", "host": ""}
    served.backend.localities = {}
    assert (
        served.call("GET", "/locality", Authorization=f"Bearer {TOKEN}")[2]
        == b'{"processor-localities":{}}'
    )


def test_one_query_parameter_of_any_name_asks_for_one_locality(served: Served) -> None:
    """G30: Samza counts the parameters; two mean all, one of another name selects none."""
    nobody = json.loads(served.call("GET", "/locality?other=0")[2])
    assert nobody == {"id": None, "host": "", "jmx-url": "", "jmx-tunneling-url": ""}
    twice = json.loads(served.call("GET", "/locality?processorId=0&processorId=7")[2])
    assert twice["id"] == "0"
    both = json.loads(served.call("GET", "/locality?processorId=0&other=1")[2])
    assert list(both) == ["processor-localities"]


def test_the_heartbeat_says_whether_a_container_is_ours(served: Served) -> None:
    """H5: alive for the one that runs; an id that is none is refused, as Samza does."""
    path = "/containerHeartbeat?executionContainerId="
    assert served.call("GET", path + RUNNING)[2] == b'{"alive":true}'
    other = "container_1700000000000_0001_01_000009"
    assert served.call("GET", path + other)[2] == b'{"alive":false}'
    assert served.error("GET", "/containerHeartbeat").startswith("400 executionContainerId")
    assert served.error("GET", f"{path}0").startswith("400 executionContainerId")


def test_status_has_log_lines_for_the_token_alone(served: Served) -> None:
    """A log may have anything in it: without the token a failure has all but its lines."""
    stated, whole = served.client(None).status(), served.backend.status()
    failed, other = whole.failures
    assert failed.last_lines == (LOG_LINE,)
    assert stated.failures == (replace(failed, last_lines=None), other)
    assert replace(stated, failures=()) == replace(whole, failures=())
    assert LOG_LINE not in served.call("GET", "/v1/status")[2].decode()


def test_messages_of_launchers_and_containers_arrive(served: Served) -> None:
    """Each message reaches the backend as it was sent, and the order comes back."""
    client = served.client(f" {TOKEN}\n")
    assert client.check_in(CHECK_IN) == ORDER
    client.started(STARTED)
    client.stopped(STOPPED)
    client.shutdown()
    assert served.backend.said == [CHECK_IN, STARTED, STOPPED, "shutdown"]


@pytest.mark.parametrize("route", ["check-in", "started", "stopped", "shutdown"])
@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({}, "a bearer token is needed"),
        ({"Authorization": TOKEN}, "a bearer token is needed"),
        ({"Authorization": "Basic eDp5"}, "a bearer token is needed"),
        ({"Authorization": "Bearer"}, "the bearer token is not this job's"),
        ({"Authorization": f"Bearer {TOKEN}x"}, "the bearer token is not this job's"),
        ({"Authorization": f"Bearer {TOKEN[:-1]}"}, "the bearer token is not this job's"),
        ({"Authorization": "Bearer \xe4"}, "the bearer token is not this job's"),
    ],
)
def test_no_message_is_accepted_without_the_token(
    served: Served, route: str, headers: dict[str, str], reason: str
) -> None:
    """Every POST needs this job's token; without it nothing is read of the body."""
    assert served.error("POST", f"/v1/{route}", b"{", **headers) == f"401 {reason}"
    assert served.backend.said == []


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff", b"{}", b"[" * 100_000])
def test_a_bad_body_is_refused_in_one_line(served: Served, body: bytes) -> None:
    """400 and the reason; the backend hears nothing."""
    token = f"Bearer {TOKEN}"
    for route in ("check-in", "started", "stopped"):
        error = served.error("POST", f"/v1/{route}", body, Authorization=token)
        assert error.startswith("400 ")
    assert served.backend.said == []


def test_the_client_says_why_the_server_refused(served: Served) -> None:
    """The server's words are in the client's error."""
    bad = dataclasses.replace(CHECK_IN, pid="x")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(WireError, match=r"v1/check-in: 400 a check-in: .*at `\$\.pid`"):
        served.client().check_in(bad)


def test_a_body_has_a_limit(served: Served) -> None:
    """Up to 1 MiB is read, more is refused."""
    lines = ("x" * 1000,) * 1000
    served.client().stopped(dataclasses.replace(STOPPED, last_lines=lines))
    assert len(served.backend.said) == 1
    more = dataclasses.replace(STOPPED, last_lines=("x" * (MAX_BODY_BYTES + 1),))
    with pytest.raises(WireError, match=r"413 (Request Entity|Content) Too Large"):
        served.client().stopped(more)
    assert len(served.backend.said) == 1


def test_a_start_of_any_number_of_stores_is_taken(served: Served) -> None:
    """Tasks are summed up where the report of each would be more than the server takes."""
    full = Restored(RestoreKind.FULL, 123_456_789, 123_556_789, 100_000, "it was recreated", "anew")
    tasks = {f"Partition {n}": full for n in range(1000)}
    many = dataclasses.replace(STARTED, restored={f"store-{n}": tasks for n in range(20)})
    served.client().started(many)
    (taken,) = served.backend.said
    assert isinstance(taken, Started)
    assert sum(r.tasks for of_store in taken.restored.values() for r in of_store.values()) == 20_000


def test_other_paths_and_methods_are_refused(served: Served) -> None:
    """Only ``/`` is the JobModel; a method that a path does not have is named with those it has."""
    token = f"Bearer {TOKEN}"
    assert served.error("GET", "/nothing/here") == "404 Not Found: GET /nothing/here"
    assert served.error("GET", "/v1/check-in") == "405 Method Not Allowed: GET /v1/check-in"
    assert served.error("POST", "/", Authorization=token) == "405 Method Not Allowed: POST /"
    assert served.call("POST", "/", Authorization=token)[1]["allow"] == "GET,HEAD"
    assert served.error("DELETE", "/").startswith("401 ")


def test_a_fault_behind_the_server_is_logged_and_the_server_goes_on(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    """500 without details for the caller, the story for the log, and the next answer is good."""
    served.backend.fault = RuntimeError("details")
    with (
        caplog.at_level(logging.ERROR),
        pytest.raises(UnavailableError, match="500 internal error") as caught,
    ):
        served.client().check_in(CHECK_IN)
    assert "details" not in str(caught.value)
    assert "RuntimeError: details" in caplog.text
    served.backend.fault = None
    assert served.client().check_in(CHECK_IN) == ORDER


def test_a_backend_that_cannot_answer_now_says_so(served: Served) -> None:
    """UnavailableError crosses the wire as itself."""
    served.backend.fault = UnavailableError("Kafka did not answer")
    with pytest.raises(UnavailableError, match="503 Kafka did not answer"):
        served.client().check_in(CHECK_IN)


def test_a_port_in_use_is_reported_with_its_remedy(served: Served, loop: Loop) -> None:
    """One line that names the address and the key."""
    second = JobCoordinatorServer(Backend(), TOKEN, "127.0.0.1", served.port)
    with pytest.raises(
        UnavailableError, match=rf"127\.0\.0\.1:{served.port}: .*jobcoordinator\.url\.port=0"
    ):
        loop.run(second.start())
    assert served.client().status().job.name


def test_a_server_without_token_is_not_built() -> None:
    """An empty token would be everyone's."""
    with pytest.raises(ValueError, match="token is empty"):
        JobCoordinatorServer(Backend(), " \n", "127.0.0.1", 0)


def test_many_threads_share_a_client(served: Served) -> None:
    """Calls of one client from several threads do not disturb each other."""
    client = served.client()
    orders: list[Order] = []
    threads = [
        threading.Thread(target=lambda: orders.append(client.check_in(CHECK_IN))) for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert orders == [ORDER] * 16


def test_proxies_of_the_environment_are_not_used(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client calls the AM directly, whatever the environment says."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/")
    assert served.client().status().job.name


def test_a_url_may_have_a_path_and_lack_its_slash(served: Served) -> None:
    """The slash at the end is added."""
    assert CoordinatorClient(served.url.rstrip("/"), TOKEN).url == served.url
    client = CoordinatorClient(f"{served.url}proxy/app", TOKEN)
    with pytest.raises(WireError, match="404 Not Found: GET /proxy/app/v1/status"):
        client.status()
