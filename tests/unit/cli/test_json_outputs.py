"""The promise of what ``--json`` prints: it has every command, and can be broken."""

from __future__ import annotations

import json
from collections.abc import Iterator

import jsonschema
import msgspec
import pytest
import typer
from golden_values import MODEL, P0, STATUS
from json_answers import require_promised, validator_of
from statuses import body_of_status, outlook_of

from homeport.cli import main as homeport
from homeport.cli.json_outputs import OUTPUTS, Form, Output, schema
from homeport.config.errors import ConfigError
from homeport.job_coordinator.http.audit import AuditTrail, Change
from homeport.job_coordinator.model.codec import encode_job_model, encode_locality
from homeport.job_coordinator.model.ids import Host
from homeport.job_coordinator.model.wire_form import json_text


class _Element(msgspec.Struct):
    b: int | None


class _Made(msgspec.Struct):
    a: tuple[_Element, ...] = ()
    c: dict[str, str] | msgspec.UnsetType = msgspec.UNSET


_OTHERWISE = {"local env", "local logs"}
"""What has ``--json`` and is no object of ours, or no more than names and texts."""


def _commands_with_json() -> Iterator[str]:
    for name, command in homeport.COMMANDS.items():
        found = typer.main.get_command(command.app())
        below = getattr(found, "commands", {"": found})
        for word, its in below.items():
            if any("--json" in parameter.opts for parameter in its.params):
                yield f"{name} {word}".strip()


def test_every_command_with_json_is_in_the_table() -> None:
    """And no other one; ``local logs`` prints paths."""
    assert set(_commands_with_json()) | _OTHERWISE == set(OUTPUTS) | _OTHERWISE


@pytest.mark.parametrize("command", list(OUTPUTS))
def test_each_schema_is_one(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """As the command prints it."""
    homeport.run(["json-schema", *command.split()])
    printed = capsys.readouterr()
    jsonschema.Draft202012Validator.check_schema(json.loads(printed.out))
    assert printed.err.startswith(f"homeport {command} --json prints one ")


def test_a_command_without_json_has_no_schema() -> None:
    """The error names those that have."""
    with pytest.raises(ConfigError, match="COMMAND = 'move': it is none of audit, checkpoint show"):
        homeport.run(["json-schema", "move"])


def test_a_schema_has_arrays_maps_and_what_may_be_missing() -> None:
    """Each in its place; more fields are no fault."""
    made = schema(Output(Form.ARRAY, _Made))
    for good in ([], [{"a": [], "more": 1}], [{"a": [{"b": None}], "c": {"x": "y"}}]):
        jsonschema.validate(good, made)
    bad: list[object] = [{}, [{}], [{"a": [{}]}], [{"a": [{"b": "1"}]}], [{"a": [], "c": {"x": 1}}]]
    for body in bad:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(body, made)


def test_a_running_jobs_answers_keep_the_promise() -> None:
    """Those that its commands print as they come: of the filled golden values."""
    trail = AuditTrail(lambda _: None)
    trail.add(Change("ann", "10.0.0.1", "http", "move 0", after="nm2"))
    answers: dict[str, object] = {
        "status": body_of_status(STATUS),
        "explain": {"container": body_of_status(STATUS)["containers"][0], "events": {}},
        "job-model": json.loads(encode_job_model(MODEL, mask_secrets=True)),
        "locality": json.loads(encode_locality({P0: Host("nm1")})),
        "audit": json.loads(trail.to_json())["changes"],
        "what-if": json.loads(json_text(outlook_of(Host("nm1")))),
    }
    for command, answer in answers.items():
        require_promised(command.split(), json.dumps(answer))


def test_what_a_status_writes_in_any_case_is_required() -> None:
    """Also a field with a default, which an answer of an earlier version may lack."""
    whole = body_of_status(STATUS)
    validator = validator_of(OUTPUTS["status"])
    for name in whole:
        with pytest.raises(jsonschema.ValidationError):
            validator.validate({n: v for n, v in whole.items() if n != name})
