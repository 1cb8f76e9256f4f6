"""Which jobs Prometheus gets as targets, and what it gets where YARN is away."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from email.message import Message
from typing import Any

import pytest

from homeport.appmaster.yarn.resource_manager_rest import (
    APPLICATION_TAG,
    HTTPS_TAG,
    Application,
    ResourceManagerRest,
)
from homeport.appmaster.yarn.scrape_targets import TargetServer, targets
from homeport.cli.usage import run_app
from homeport.cli.yarn import metrics_targets_command
from homeport.cli.yarn.metrics_targets_command import target
from homeport.config.config import Config
from homeport.config.errors import HomeportError, UnavailableError
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.standalone.plan import Registration

RM = "http://rm:8088"


def application(
    number: int, state: str = "RUNNING", url: str | None = None, *tags: str
) -> Application:
    """One of YARN's."""
    id_ = f"application_1_{number}"
    proxy = f"https://proxy:8090/proxy/{id_}/" if url is None else url
    own = frozenset(tags or (APPLICATION_TAG,))
    return Application(id_, f"my_job_{number}", state, "UNDEFINED", "", proxy, "", number, own)


def shown(place: str, scheme: str, path: str, application: str) -> dict[str, Any]:
    """The target of job 7, as Prometheus gets it."""
    labels = {"__scheme__": scheme, "__metrics_path__": path, "job_name": "my_job", "job_id": "7"}
    return {"targets": [place], "labels": {**labels, "application": application}}


def test_a_running_job_is_scraped_through_the_proxy_that_yarn_names() -> None:
    """Labels as the dashboard has them; a name may have the sign that stands before the id."""
    path = "/proxy/application_1_7/pages/homeport/metrics"
    of_job_7 = shown("proxy:8090", "https", path, "application_1_7")
    assert targets([application(7)], RM) == ([of_job_7], [])


def test_a_job_that_waits_for_its_application_master_stays_a_target() -> None:
    """It is missed, so it must be known; one that has ended, or never was ours, is none."""
    found, left_out = targets(
        [
            application(1, "ACCEPTED", "N/A"),
            application(2, "FINISHED"),
            application(3, "NEW"),
            application(4, "RUNNING", None, "another"),
            application(5, "RUNNING", None, APPLICATION_TAG, HTTPS_TAG),
        ],
        RM,
    )
    assert [target["targets"] for target in found] == [["rm:8088"]]
    assert [job.application_id for job in left_out] == ["application_1_5"]
    labels = found[0]["labels"]
    assert labels["__metrics_path__"] == "/proxy/application_1_1/pages/homeport/metrics"
    assert labels["__scheme__"] == "http"


def test_a_job_that_serves_https_is_scraped_itself_where_its_address_is_known() -> None:
    """One that does not answer yet is no target, and none that needs a remedy."""
    https = APPLICATION_TAG, HTTPS_TAG
    jobs = [application(number, "RUNNING", None, *https) for number in (1, 2, 3)]
    urls = {"application_1_1": "https://nm2:7443/", "application_1_2": ""}
    found, left_out = targets(jobs, RM, lambda job: urls.get(job.application_id))
    assert [target["targets"] for target in found] == [["nm2:7443"]]
    labels = found[0]["labels"]
    assert (labels["__scheme__"], labels["__metrics_path__"]) == ("https", "/metrics")
    assert [job.application_id for job in left_out] == ["application_1_3"]


class _Yarn(ResourceManagerRest):
    """It answers until it is away."""

    is_away = False

    def _get(self, path: str) -> dict[str, Any]:
        if self.is_away:
            raise UnavailableError("YARN is away")
        assert path.startswith("/ws/v1/cluster/apps?states=ACCEPTED,")
        assert path.endswith(f"&applicationTags={APPLICATION_TAG}")
        return {"apps": {"app": [self._of(2, f"{APPLICATION_TAG},{HTTPS_TAG}"), self._of(1)]}}

    def _of(self, number: int, tags: str = APPLICATION_TAG) -> Mapping[str, Any]:
        return {
            "id": f"application_1_{number}",
            "name": "flights_1",
            "state": "RUNNING",
            "trackingUrl": f"{RM}/proxy/application_1_{number}/",
            "applicationTags": tags,
            "startedTime": number,
        }


@pytest.fixture
def yarn() -> _Yarn:
    """With a job, and one that serves https."""
    return _Yarn((RM,), "test")


@pytest.fixture
def server(yarn: _Yarn) -> Iterator[TargetServer]:
    """It serves."""
    with TargetServer(yarn, "127.0.0.1", 0) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def _asked(server: TargetServer) -> tuple[int, Message, str]:
    url = f"http://127.0.0.1:{server.server_address[1]}/"
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()


def test_prometheus_is_answered_as_it_asks(
    server: TargetServer, yarn: _Yarn, caplog: pytest.LogCaptureFixture
) -> None:
    """JSON and 200, else it would take nothing; a job that is left out is named once."""
    for _ in range(2):
        status, headers, body = _asked(server)
        assert (status, headers["Content-Type"]) == (200, "application/json")
        found = [target["labels"]["application"] for target in json.loads(body)]
        assert found == ["application_1_1"]
    assert [text.split(":")[0] for text in caplog.messages] == [
        "application_1_2 (flights_1) is no target"
    ]
    caplog.clear()
    yarn.is_away = True
    for _ in range(2):
        status, _, body = _asked(server)
        assert (status, body) == (503, "YARN is away\n")
    assert caplog.messages == ["YARN is away"]


def test_a_port_that_is_taken_is_one_line(server: TargetServer, yarn: _Yarn) -> None:
    """It names the option."""
    with pytest.raises(UnavailableError, match=r"^cannot listen on .* give --listen a free port"):
        TargetServer(yarn, "127.0.0.1", server.server_address[1])


def test_the_command_prints_them_for_a_file(
    yarn: _Yarn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As file_sd_configs reads it."""
    monkeypatch.setattr(ResourceManagerRest, "from_environment", lambda _: yarn)
    run_app(metrics_targets_command.app, [], "homeport metrics-targets")
    printed = capsys.readouterr()
    assert [target["targets"] for target in json.loads(printed.out)] == [["rm:8088"]]
    assert "it serves https" in printed.err


@pytest.mark.parametrize("listen", ["9400", ":9400", "host:", "host:x", "host:65536", "h:-1"])
def test_an_address_of_another_form_is_refused(
    listen: str, yarn: _Yarn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line with an example, before anything listens."""
    monkeypatch.setattr(ResourceManagerRest, "from_environment", lambda _: yarn)
    with pytest.raises(HomeportError, match=r"^--listen .* it must be HOST:PORT"):
        run_app(metrics_targets_command.app, ["--listen", listen], "homeport metrics-targets")


@pytest.mark.parametrize(("error", "lines"), [(BrokenPipeError(), 0), (ValueError("odd"), 1)])
def test_a_client_that_has_gone_is_no_error(
    error: Exception, lines: int, server: TargetServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Prometheus waits ten seconds at most; anything else is shown."""
    try:
        raise error
    except type(error):
        server.handle_error(server.socket, ("127.0.0.1", 1))
    assert capsys.readouterr().err.count(f"{type(error).__name__}: ") == lines


def test_without_yarn_only_the_others_are_targets() -> None:
    """Processors of standalone jobs, by the same server."""
    processor = Registration(0, ProcessorId("one"), Host("h"), "http://h:1234/")
    found = target(
        Config({"job.name": "my_job", "job.id": "7", "job.default.system": "kafka"}), processor
    )
    assert found == shown("h:1234", "http", "/metrics", "standalone")
    with TargetServer(None, "127.0.0.1", 0, others=lambda: [found]) as server:
        assert json.loads(server.answer()) == [found]
