"""The job coordinator's server and client, speaking real HTTP to each other over the loopback."""

from __future__ import annotations

import asyncio
import dataclasses
import gzip
import json
import logging
import threading
from collections.abc import Coroutine, Iterator, Mapping
from http.client import HTTPConnection
from typing import Any, TypeVar

import pytest

from homeport.config.config import Config
from homeport.config.errors import UnavailableError, WireError
from homeport.config.secrets import MASK
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.http.messages import (
    CheckIn,
    Order,
    OrderKind,
    Restored,
    RestoreKind,
    Started,
    StopCause,
    Stopped,
)
from homeport.job_coordinator.http.server import MAX_BODY_BYTES, JobCoordinatorServer
from homeport.job_coordinator.model.codec import encode_job_model
from homeport.job_coordinator.model.ids import Host, ProcessorId, ResourceId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskModel,
)

TOKEN = "a-token-of-a-test"  # noqa: S105 - opens a server of this test only
RUNNING = "container_e05_1700000000000_0001_01_000002"
ONE = Incarnation(ProcessorId("0"), 4)
CHECK_IN = CheckIn(ResourceId(RUNNING), "any_0", 1, Host("h1"), 77, ONE)
ORDER = Order(OrderKind.RUN, 500, 0, ONE, 2, (Incarnation(ProcessorId("0"), 3),))
STARTED = Started(ONE, {"s": {"t": Restored(RestoreKind.FULL, 0, 9, 10)}}, {"restore": 0.5})
STOPPED = Stopped(ONE, StopCause.FINISHED, 0, ("Grüße",))

T = TypeVar("T")


def _model(**config: str) -> JobModel:
    name = TaskName("Partition 0")
    task = TaskModel(name, (SystemStreamPartition("kafka", "in", 0),), 0)
    values = Config({"job.name": "Flüge", "db.password": "pw", **config})
    return JobModel(values, {ProcessorId("0"): ContainerModel(ProcessorId("0"), {name: task})})


class Backend:
    """The job behind the server: two versions of a model, one container, and what was said."""

    def __init__(self) -> None:
        """Version 2 is the present one."""
        self.models: dict[int | None, JobModel] = {1: _model(old="yes"), 2: _model()}
        self.models[None] = self.models[2]
        self.said: list[object] = []
        self.fault: Exception | None = None

    def job_model(self, version: int | None) -> JobModel | None:
        """One of the two."""
        return self.models.get(version)

    def locality(self) -> Mapping[ProcessorId, Host]:
        """One processor, on h1."""
        return {ProcessorId("0"): Host("h1")}

    def is_running(self, resource_id: ResourceId) -> bool:
        """One resource is in use."""
        return resource_id == RUNNING

    async def check_in(self, message: CheckIn) -> Order:
        """Always the same order, unless a fault is set."""
        if self.fault is not None:
            raise self.fault
        self.said.append(message)
        return ORDER

    async def started(self, message: Started) -> None:
        """Noted."""
        self.said.append(message)

    async def stopped(self, message: Stopped) -> None:
        """Noted."""
        self.said.append(message)

    async def shutdown(self) -> None:
        """Noted."""
        self.said.append("shutdown")

    def status(self) -> Mapping[str, Any]:
        """A little of everything JSON has."""
        return {"job": {"name": "Flüge", "state": "Running"}, "containers": [], "rank": None}


@dataclasses.dataclass
class Served:
    """A server that answers, and how to reach it."""

    backend: Backend
    port: int

    @property
    def url(self) -> str:
        """With the slash at its end."""
        return f"http://127.0.0.1:{self.port}/"

    def client(self, token: str | None = TOKEN) -> CoordinatorClient:
        """A client with that token."""
        return CoordinatorClient(self.url, token)

    def call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        **headers: str,
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers (names in lower case) and body of one request, without our client."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, content

    def error(self, method: str, path: str, body: bytes | None = None, **headers: str) -> str:
        """``<status> <text of the error>`` of a request that is refused."""
        status, answered, content = self.call(method, path, body, **headers)
        assert answered["content-type"] == "application/json"
        (name,), (text,) = zip(*json.loads(content).items(), strict=True)
        assert name == "error"
        assert "\n" not in text
        return f"{status} {text}"


class _Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of ``work`` on the loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout=30)

    def close(self) -> None:
        """The loop and its threads are gone."""
        self.run(self.loop.shutdown_default_executor())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(timeout=30)
        self.loop.close()


@pytest.fixture(scope="module")
def loop() -> Iterator[_Loop]:
    """One running event loop for all tests here."""
    running = _Loop()
    yield running
    running.close()


@pytest.fixture
def served(loop: _Loop) -> Iterator[Served]:
    """A server on a free port."""
    backend = Backend()
    server = JobCoordinatorServer(backend, f"{TOKEN}\n", "127.0.0.1", 0)
    host, port = loop.run(server.start())
    assert host == "127.0.0.1"
    yield Served(backend, port)
    loop.run(server.stop())
    loop.run(server.stop())


def test_the_client_reads_the_job_model_of_any_version(served: Served) -> None:
    """With the token the very model, secrets included; an older version where asked."""
    client = served.client()
    assert client.job_model() == served.backend.models[2]
    assert client.job_model(1) == served.backend.models[1]
    with pytest.raises(WireError, match="404 there is no JobModel of version 7"):
        client.job_model(7)


def test_without_token_secrets_are_masked(served: Served) -> None:
    """Anyone may read the model, but not the secrets in it."""
    config = served.client(None).job_model().config
    assert dict(config) == {"job.name": "Flüge", "db.password": MASK}


def test_the_job_model_is_served_as_samza_does(served: Served) -> None:
    """``GET /``: exact content type, and the codec's bytes."""
    status, headers, body = served.call("GET", "/")
    assert status == 200
    assert headers["content-type"] == "application/json"
    assert body == encode_job_model(served.backend.models[2], mask_secrets=True)
    status, headers, body = served.call("HEAD", "/")
    assert (status, body) == (200, b"")


def test_the_job_model_is_compressed_where_asked(served: Served) -> None:
    """Gzip gives the same bytes, also for a model of some megabytes."""
    served.backend.models[None] = model = _model(big=" ".join(str(n) for n in range(400_000)))
    status, headers, body = served.call("GET", "/", Accept_Encoding="gzip")
    plain = encode_job_model(model, mask_secrets=True)
    assert (status, headers["content-encoding"]) == (200, "gzip")
    assert len(body) < len(plain) / 2
    assert gzip.decompress(body) == plain
    assert served.client().job_model() == model


def test_an_unchanged_job_model_is_not_sent_again(served: Served) -> None:
    """The tag gives 304 until the model changes; the two maskings have different tags."""
    _, headers, _ = served.call("GET", "/")
    assert headers["vary"] == "Authorization, Accept-Encoding"
    tag = headers["etag"]
    status, headers, body = served.call("GET", "/", If_None_Match=f'"x", {tag}')
    assert (status, headers["etag"], body) == (304, tag, b"")
    token = f"Bearer {TOKEN}"
    status, headers, _ = served.call("GET", "/", If_None_Match=tag, Authorization=token)
    assert status == 200
    assert headers["etag"] != tag
    assert headers["cache-control"] == "private, no-cache"
    served.backend.models[None] = _model(new="yes")
    assert served.call("GET", "/", If_None_Match=tag)[0] == 200


def test_before_there_is_a_job_model_callers_are_told_to_wait(served: Served) -> None:
    """503, which the client takes for not available; not an error of the caller."""
    del served.backend.models[None]
    with pytest.raises(UnavailableError, match="503 there is no JobModel yet"):
        served.client().job_model()


@pytest.mark.parametrize("version", ["", "x", "-1", "1.0", "9" * 30, "%D9%A3"])
def test_a_version_is_a_number(served: Served, version: str) -> None:
    """Anything else is refused."""
    assert served.error("GET", f"/?version={version}").startswith("400 version is not a number")


def test_locality_is_served_as_samza_does(served: Served) -> None:
    """All, one, and an unknown one with an empty host."""
    one = {"id": "0", "host": "h1", "jmx-url": "", "jmx-tunneling-url": ""}
    assert json.loads(served.call("GET", "/locality")[2]) == {"processor-localities": {"0": one}}
    assert json.loads(served.call("GET", "/locality?processorId=0")[2]) == one
    unknown = json.loads(served.call("GET", "/locality?processorId=7")[2])
    assert unknown == one | {"id": "7", "host": ""}


def test_the_heartbeat_says_whether_a_container_is_ours(served: Served) -> None:
    """Alive for the one that runs; an id that is none is refused, as Samza does."""
    path = "/containerHeartbeat?executionContainerId="
    assert served.call("GET", path + RUNNING)[2] == b'{"alive":true}'
    other = "container_1700000000000_0001_01_000009"
    assert served.call("GET", path + other)[2] == b'{"alive":false}'
    assert served.error("GET", "/containerHeartbeat").startswith("400 executionContainerId")
    assert served.error("GET", f"{path}0").startswith("400 executionContainerId")


def test_config_is_flat_and_masked_without_token(served: Served) -> None:
    """``GET /config`` shows secrets to the token's holder only."""
    body = served.call("GET", "/config")[2]
    assert json.loads(body) == {"db.password": MASK, "job.name": "Flüge"}
    body = served.call("GET", "/config", Authorization=f"bearer {TOKEN}")[2]
    assert json.loads(body) == {"db.password": "pw", "job.name": "Flüge"}


def test_status_is_what_the_job_says(served: Served) -> None:
    """The client gets the status as it is, with or without token."""
    assert served.client(None).status() == served.backend.status()


def test_one_containers_model(served: Served) -> None:
    """The container's part of the JobModel, 404 where there is no such processor."""
    whole = json.loads(served.call("GET", "/")[2])
    assert json.loads(served.call("GET", "/v1/processors/0/model")[2]) == (whole["containers"]["0"])
    assert served.error("GET", "/v1/processors/7/model") == "404 the job has no processor '7'"


def test_what_launchers_and_containers_say_arrives(served: Served) -> None:
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
def test_nothing_is_taken_without_the_token(
    served: Served, route: str, headers: dict[str, str], reason: str
) -> None:
    """Every POST needs this job's token; without it nothing is read of the body."""
    assert served.error("POST", f"/v1/{route}", b"{", **headers) == f"401 {reason}"
    assert served.backend.said == []


def test_a_wrong_token_is_refused_for_reading_too(served: Served) -> None:
    """Whoever offers a token expects secrets: masked ones would fail later and elsewhere."""
    with pytest.raises(WireError, match="401 the bearer token is not this job's"):
        served.client("other").job_model()


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff", b"{}", b"[" * 100_000])
def test_a_bad_body_is_refused_in_one_line(served: Served, body: bytes) -> None:
    """400 and the reason; the backend hears nothing."""
    token = f"Bearer {TOKEN}"
    for route in ("check-in", "started", "stopped"):
        error = served.error("POST", f"/v1/{route}", body, Authorization=token)
        assert error.startswith("400 ")
    assert served.backend.said == []


def test_the_client_tells_why_the_server_refused(served: Served) -> None:
    """The server's words are in the client's error."""
    bad = dataclasses.replace(CHECK_IN, pid="x")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(WireError, match=r"v1/check-in: 400 field 'pid' is missing"):
        served.client().check_in(bad)


def test_a_body_has_a_limit(served: Served) -> None:
    """Up to 1 MiB is read, more is refused."""
    lines = ("x" * 1000,) * 1000
    served.client().stopped(dataclasses.replace(STOPPED, last_lines=lines))
    assert len(served.backend.said) == 1
    more = dataclasses.replace(STOPPED, last_lines=("x" * (MAX_BODY_BYTES + 1),))
    with pytest.raises(WireError, match="413 Request Entity Too Large"):
        served.client().stopped(more)
    assert len(served.backend.said) == 1


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


def test_a_port_in_use_is_told_with_its_remedy(served: Served, loop: _Loop) -> None:
    """One line that names the address and the key."""
    second = JobCoordinatorServer(Backend(), TOKEN, "127.0.0.1", served.port)
    with pytest.raises(
        UnavailableError, match=rf"127\.0\.0\.1:{served.port}: .*jobcoordinator\.url\.port=0"
    ):
        loop.run(second.start())
    assert served.client().status()


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
    """The AM is asked directly, whatever the environment says."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/")
    assert served.client().status()


def test_a_url_may_have_a_path_and_lack_its_slash(served: Served) -> None:
    """The slash at the end is added."""
    assert CoordinatorClient(served.url.rstrip("/"), TOKEN).url == served.url
    client = CoordinatorClient(f"{served.url}proxy/app", TOKEN)
    with pytest.raises(WireError, match="404 Not Found: GET /proxy/app/v1/status"):
        client.status()
