"""The promise of what ``--json`` prints: it has every command, and can be broken."""

from __future__ import annotations

import json
from collections.abc import Iterator

import jsonschema
import pytest
import typer
from json_answers import require_promised

from homeport.cli import main as homeport
from homeport.cli.json_outputs import OUTPUTS, Field, Form, Output, schema
from homeport.config.errors import ConfigError

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
    output = Output(
        Form.ARRAY,
        (
            Field("a", "array", "m"),
            Field("a[].b", "integer|null", "m"),
            Field("c?", "object", "m"),
            Field("c.{}", "string", "m"),
        ),
    )
    made = schema(output)
    for good in ([], [{"a": [], "more": 1}], [{"a": [{"b": None}], "c": {"x": "y"}}]):
        jsonschema.validate(good, made)
    bad: list[object] = [{}, [{}], [{"a": [{}]}], [{"a": [{"b": "1"}]}], [{"a": [], "c": {"x": 1}}]]
    for body in bad:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(body, made)


def test_the_reference_keeps_its_promise(capsys: pytest.CaptureFixture[str]) -> None:
    """It needs no job."""
    homeport.run(["config", "reference", "catch-up", "--json"])
    require_promised(["config", "reference"], capsys.readouterr().out)
