"""Where ``homeport logs`` finds a log, by the status of the job."""

from __future__ import annotations

import json
from typing import Any

import pytest
from json_answers import require_promised
from statuses import status_of

from homeport.cli.yarn.logs_command import Printer, place_of
from homeport.config.errors import ConfigError


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
