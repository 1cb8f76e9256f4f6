"""How command lines end."""

from __future__ import annotations

import pytest
import typer

from homeport.job_coordinator.cli.usage import run_app


def test_an_interrupt_exits_as_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a command that Ctrl-C has ended would seem to have succeeded."""
    app = typer.Typer()

    @app.command()
    def command() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sys.argv", ["command"])
    with pytest.raises(KeyboardInterrupt):
        run_app(app)
