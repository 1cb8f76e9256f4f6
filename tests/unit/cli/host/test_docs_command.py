"""``homeport docs``: the pages of the version."""

from __future__ import annotations

import pytest

from homeport.cli.main import run
from homeport.config.errors import ConfigError


def test_it_prints_a_page_and_their_list(capsys: pytest.CaptureFixture[str]) -> None:
    """By the name that a page or a person gives it."""
    run(["docs"])
    assert "getting-started.md" in capsys.readouterr().out
    for name in ("safety", "docs/safety.md"):
        run(["docs", name])
        assert capsys.readouterr().out.startswith("# Safety")
    run(["docs", "decisions/README"])
    assert capsys.readouterr().out.startswith("# Decisions")


def test_an_unknown_page_is_one_line() -> None:
    """It names the way to the list."""
    with pytest.raises(
        ConfigError, match=r"PAGE = '../setup': .*; homeport docs prints their list"
    ):
        run(["docs", "../setup"])
