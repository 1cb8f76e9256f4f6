"""``homeport json-schema``: what a command prints with ``--json``, for a script's author."""

import json
from typing import Annotated

import typer

from homeport.cli.json_outputs import OUTPUTS, schema
from homeport.cli.options import new_app, note
from homeport.config.errors import ConfigError

app = new_app()


@app.command(name="json-schema")
def json_schema(
    words: Annotated[
        list[str], typer.Argument(metavar="COMMAND...", help="As in status, or checkpoint show.")
    ],
) -> None:
    """Prints the JSON Schema of what a command prints with --json.

    Fields may be added to an answer; none goes, or gets another type or meaning.
    """
    name = " ".join(words)
    if name not in OUTPUTS:
        rule = f"it is none of {', '.join(OUTPUTS)}"
        raise ConfigError("COMMAND", name, rule, "name a command that has --json")
    note(f"homeport {name} --json prints {OUTPUTS[name].form}")
    print(json.dumps(schema(OUTPUTS[name]), indent=1))
