"""The page of what commands print with ``--json``, made from its table in the code."""

from __future__ import annotations

from collections.abc import Iterator

from homeport.cli.json_outputs import OUTPUTS, Field

PAGE = "docs/json-output.md"

_HEAD = """\
<!-- Written by scripts/pages --write from homeport/cli/json_outputs.py. -->

# Output for scripts

Each command of `homeport` that reads has `--json`. Its answer is on standard output; where it comes
from, and warnings, are on standard error. An error is one line there, and exit code 1. `homeport
json-schema COMMAND` prints the JSON Schema of an answer.

Fields may be added; none goes, or gets another type or meaning. `x[]` is each element of the array
`x`, `{}` each value of an object whose names are data; `?` marks what may be missing. `config get
KEY` prints one text, `local logs` an array of paths, `metrics-targets` what Prometheus reads,
without `--json`.
"""


def page() -> str:
    """The text of the page."""
    return "\n".join(_lines()).rstrip("\n") + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD
    shown: dict[tuple[Field, ...], str] = {}
    for command, output in OUTPUTS.items():
        yield f"## {command}"
        yield ""
        if output.fields in shown:
            yield f"As {shown[output.fields]}."
            yield ""
            continue
        shown[output.fields] = command
        form = str(output.form)
        yield f"{form[0].upper()}{form[1:]}."
        yield ""
        yield "| field | type | |"
        yield "| --- | --- | --- |"
        for field in output.fields:
            types = field.type.replace("|", ", ")
            yield f"| `{field.path}` | {types} | {field.meaning} |"
        yield ""
