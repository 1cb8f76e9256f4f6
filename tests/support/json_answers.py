"""Whether what a command printed with ``--json`` is what the table of answers promises."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence

import jsonschema

from homeport.cli.json_outputs import OUTPUTS, Form, Output, schema


def require_promised(words: Sequence[str], printed: str) -> None:
    """Each field of the table is there, in the type it is said to have.

    ``words``: of the command line, as far as they name the command.

    Raises:
        jsonschema.ValidationError: one is not.
        AssertionError: the table does not have the command.
    """
    output = OUTPUTS.get(" ".join(words[:2])) or OUTPUTS.get(words[0])
    assert output is not None, words
    answers = printed.splitlines() if output.form is Form.LINES else [printed]
    for answer in answers:
        validator_of(output).validate(json.loads(answer))


@functools.cache
def validator_of(output: Output) -> jsonschema.Draft202012Validator:
    """Return what judges such an answer; the schema itself is checked once."""
    made = schema(output)
    jsonschema.Draft202012Validator.check_schema(made)
    return jsonschema.Draft202012Validator(made)
