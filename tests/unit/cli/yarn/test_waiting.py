"""What a running job waits for is said beside its status."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from statuses import status_of

from homeport.cli.yarn import waiting
from homeport.config.config import Config
from homeport.config.errors import UnavailableError


@pytest.mark.parametrize(
    ("status", "line"),
    [
        ({"waiting": {"says": "waiting for 1 container"}}, "waiting for 1 container\n"),
        ({"waiting": None}, ""),
        ({}, ""),
    ],
)
def test_the_sentence_of_the_am_is_said(
    status: dict[str, Any],
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On standard error, as standard output has Samza's word alone; an older AM says nothing."""
    running = SimpleNamespace(client=SimpleNamespace(status=lambda: status_of(status)))
    monkeypatch.setattr(waiting, "require_running", lambda _: running)
    waiting.log_shortage(Config({}))
    assert capsys.readouterr() == ("", line)


def test_an_am_that_does_not_answer_is_no_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The status is YARN's word, and that was said."""

    def away(_: Config) -> None:
        raise UnavailableError("nobody")

    monkeypatch.setattr(waiting, "require_running", away)
    waiting.log_shortage(Config({}))
    assert capsys.readouterr() == ("", "")
