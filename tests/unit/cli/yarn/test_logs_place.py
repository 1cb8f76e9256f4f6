"""Where ``homeport logs`` finds a log, by the status of the job."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from json_answers import require_promised
from statuses import status_of

from homeport.appmaster.yarn.resource_manager_rest import ResourceManagerRest
from homeport.cli.yarn import logs_command
from homeport.cli.yarn.logs_command import Printer, earlier_failure, place_of, way_to_logs
from homeport.config.config import Config
from homeport.config.errors import ConfigError, UnavailableError
from homeport.local_cluster.layout import Layout


def _status(**container: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    failure = {"processor_id": "0", "host": "nm2", "log": "container-0-1.log of c_1"}
    return {"containers": [{"processor_id": "0", **container}], "failures": [failure]}


def test_the_container_that_runs_comes_first() -> None:
    """Its name has its epoch."""
    found = place_of(status_of(_status(host="nm1", resource="c_7", epoch=3)), "0")
    assert found == ("nm1", "c_7", "container-0-3.log")


def test_the_last_failure_has_the_log_where_none_runs() -> None:
    """As the failure names it."""
    assert place_of(status_of(_status(host=None, resource=None)), "0") == (
        "nm2",
        "c_1",
        "container-0-1.log",
    )


def test_one_that_has_not_begun_has_none() -> None:
    """Nor has one whose failure was before its log, as a launch that YARN refused."""
    assert place_of(status_of({**_status(), "failures": []}), "0") is None
    unlogged = {"processor_id": "0", "host": "nm2", "log": None}
    assert place_of(status_of({**_status(), "failures": [unlogged]}), "0") is None


def _failures(*epochs: int) -> list[dict[str, Any]]:
    named = [(epoch, f"container-0-{epoch}.log of c_7") for epoch in epochs]
    return [{"processor_id": "0", "host": "nm1", "epoch": e, "log": log} for e, log in named]


def test_an_epoch_names_an_earlier_container() -> None:
    """While a failing one starts again and again; one that no failure has is nowhere."""
    running = _status(host="nm1", resource="c_7", epoch=3)
    status = status_of({**running, "failures": _failures(1, 2)})
    for epoch in (1, 2, 3):
        assert place_of(status, "0", epoch) == ("nm1", "c_7", f"container-0-{epoch}.log")
    assert place_of(status, "0", 4) is None


def test_the_earlier_failure_is_the_last_of_that_processor() -> None:
    """Not the one whose log is shown."""
    status = status_of({**_status(), "failures": _failures(1, 2)})
    for shown, epoch in ((3, 2), (2, 1)):
        failure = earlier_failure(status, "0", ("nm1", "c_7", f"container-0-{shown}.log"))
        assert failure is not None
        assert failure.epoch == epoch
    assert earlier_failure(status, "1", ("nm1", "c_7", "container-1-1.log")) is None


def test_yarn_has_the_logs_of_what_has_ended(tmp_path: Path) -> None:
    """A local cluster lists its files; another one's are read by YARN's own command."""
    layout = Layout(tmp_path, "dev")
    layout.conf.mkdir(parents=True)
    layout.state.write_text("{}")
    local = way_to_logs("application_1_2", {"HADOOP_CONF_DIR": str(layout.conf)})
    assert local == "homeport local logs --name dev lists the logs, below application_1_2"
    other = "yarn logs -applicationId application_1_2 prints the logs of its containers"
    for environment in ({}, {"HADOOP_CONF_DIR": "/etc/hadoop/conf"}):
        assert way_to_logs("application_1_2", environment) == other


def test_a_processor_that_the_job_has_not() -> None:
    """The line names those that it has."""
    with pytest.raises(ConfigError, match="the job has 0; name one of these"):
        place_of(status_of(_status()), "1")


_PLACE = ("nm1", "container_1", "container-0-2.log")


def test_each_line_is_an_object(capfd: pytest.CaptureFixture[str]) -> None:
    """One that comes in parts is one line; bytes that are no text do no harm; an end may lack."""
    printer = Printer(as_json=True)
    for data in (b"one\nt", b"wo\n\xff", b"!"):
        printer.write(data, _PLACE)
    printer.end(_PLACE)
    printer.end(_PLACE)
    printed = capfd.readouterr().out
    require_promised(["logs"], printed)
    found = [json.loads(line) for line in printed.splitlines()]
    assert [row["line"] for row in found] == ["one", "two", "\\xff!"]
    assert {(row["host"], row["container"], row["file"]) for row in found} == {_PLACE}


def test_a_log_is_printed_as_it_is(capfd: pytest.CaptureFixture[str]) -> None:
    """At once, whether a line has ended or not."""
    printer = Printer(as_json=False)
    printer.write(b"one\nt", _PLACE)
    printer.end(_PLACE)
    assert capfd.readouterr().out == "one\nt"


def test_an_empty_log_is_gone_unless_its_container_runs(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """One that has just begun has printed nothing; of one that failed, the node had the log."""
    running = _status(host="nm1", resource="c_7", epoch=3)
    status = status_of({**running, "failures": _failures(2)})
    job = SimpleNamespace(client=SimpleNamespace(status=lambda: status))
    nothing = SimpleNamespace(last=lambda _: (b"", 0))
    monkeypatch.setattr(logs_command, "_running", lambda _: job)
    monkeypatch.setattr(logs_command, "_log", lambda *_: nothing)
    monkeypatch.setattr(ResourceManagerRest, "from_environment", lambda _: None)
    logs_command.logs(processor="0", given=Config({}), epoch=3)
    assert capfd.readouterr().out == ""
    with pytest.raises(UnavailableError, match=r"the node nm1 does not have .* any more"):
        logs_command.logs(processor="0", given=Config({}), epoch=2)
