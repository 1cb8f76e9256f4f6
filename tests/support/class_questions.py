"""Asks ``check_classes``, in this process, what run-job asks of it in another one."""

from __future__ import annotations

import io
from typing import Any

import msgspec

from homeport.cli.host.check_classes import main
from homeport.cli.host.class_question import Question


def code_of(**asked: Any) -> int:  # noqa: ANN401 - fields of the question
    """Return the exit code for a question of these fields."""
    return main(io.StringIO(msgspec.json.encode(Question(**asked)).decode()))
