"""The page of what commands print with ``--json``, made from the types of the answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from homeport.cli.json_outputs import OUTPUTS, Form, Output, schema

PAGE = "docs/json-output.md"

_HEAD = """\
<!-- Written by scripts/pages --write from homeport/cli/json_outputs.py. -->

# Output for scripts

Each command of `homeport` that reads has `--json`. Its answer is on standard output; its origin,
warnings and errors, of one line each, are on standard error. `homeport json-schema COMMAND` prints
the JSON Schema of an answer, with further fields.

Fields may be added; none goes, or gets another type or meaning. `x[]` is each element of the array
`x`, `{}` each value of an object with free names; `?` marks what may be missing. A running job
answers in its own version. `config get KEY` prints one text, `local logs` an array of
paths, `metrics-targets` what Prometheus reads, without `--json`.
"""


def page() -> str:
    """The text of the page."""
    return "\n".join(_lines()).rstrip("\n") + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD
    shown: dict[tuple[str, ...], str] = {}
    for command, output in OUTPUTS.items():
        yield f"## {command}"
        yield ""
        rows = tuple(_rows(output))
        if rows in shown:
            yield f"As {shown[rows]}."
            yield ""
            continue
        shown[rows] = command
        form = str(output.form)
        yield f"{form[0].upper()}{form[1:]}."
        yield ""
        yield "| field | type | |"
        yield "| --- | --- | --- |"
        yield from rows
        yield ""


def _rows(output: Output) -> Iterator[str]:
    """Return a row for each field that has a meaning."""
    root = schema(output)
    element = root["items"] if output.form is Form.ARRAY else root
    yield from _fields(element, "", root.get("$defs", {}))


def _fields(node: Mapping[str, Any], path: str, types: Mapping[str, Any]) -> Iterator[str]:
    for part in _alternatives(node, types):
        required = {*part.get("required", ()), "{}"}
        values = part.get("additionalProperties")
        fields = {**part.get("properties", {}), **({"{}": values} if values else {})}
        for name, field in fields.items():
            if "description" not in field:
                continue
            shown = f"{path}{name}" + ("" if name in required else "?")
            kinds = [_kind(each) for each in _alternatives(field, types)]
            yield f"| `{shown}` | {', '.join(kinds)} | {field['description']} |"
            yield from _fields(field, f"{path}{name}.", types)
            for each in _alternatives(field, types):
                if isinstance(each.get("items"), dict):
                    yield from _fields(each["items"], f"{path}{name}[].", types)


def _alternatives(node: Mapping[str, Any], types: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Return the schemas that the node may follow, references resolved."""
    for each in node.get("anyOf", [node]):
        yield types[each["$ref"].rpartition("/")[2]] if "$ref" in each else each


def _kind(node: Mapping[str, Any]) -> str:
    return str(node.get("type", "string" if "enum" in node else "any"))
