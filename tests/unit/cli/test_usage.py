"""How command lines end."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NoReturn

import pytest
import typer

from homeport.cli.usage import Control, printable_streams, run_app, run_program
from homeport.config.errors import HomeportError, NoRightError, UnansweredError


def test_an_interrupt_exits_as_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a command that Ctrl-C has ended would seem to have succeeded."""
    app = typer.Typer()

    @app.command()
    def command() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sys.argv", ["command"])
    with pytest.raises(KeyboardInterrupt):
        run_app(app)


def _raises(error: BaseException) -> Callable[[], NoReturn]:
    def program() -> NoReturn:
        raise error

    return program


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (HomeportError("bad\x1b[2J"), 1, "error: bad\\u001b[2J\n"),
        (UnansweredError("it may go on"), 3, "error: it may go on\n"),
        (typer.BadParameter("Value error, x."), 1, "error: Invalid value: x; see p --help\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (typer.Abort(), 130, "interrupted\n"),
    ],
)
def test_each_end_has_its_line_and_code(
    error: BaseException, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line on standard error, which a terminal only shows."""
    before = sys.stdout, sys.stderr
    with pytest.raises(SystemExit) as ended:
        run_program(_raises(error), "p", "interrupted")
    assert ended.value.code == code
    assert capsys.readouterr().err == line
    assert (sys.stdout, sys.stderr) == before


def test_an_interrupt_may_have_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C needs no word about itself."""
    with pytest.raises(SystemExit):
        run_program(_raises(KeyboardInterrupt()), "p")
    assert not capsys.readouterr().err


def test_what_is_printed_only_shows(capsys: pytest.CaptureFixture[str]) -> None:
    """Of values, notes and echoed lines alike; a text made to act on the terminal does."""
    with printable_streams():
        print("a\x1b[2J", "b\nc\td")
        typer.echo("\x9b1m")
        print("\r", file=sys.stderr)
        sys.stdout.write(Control("\x1b[H"))
        sys.stdout.writelines(["\x07", "\x08"])
    shown = capsys.readouterr()
    assert shown.out == "a\\u001b[2J b\nc\td\n\\u009b1m\n\x1b[H\\u0007\\b"
    assert shown.err == "\\r\n"


def test_what_needs_a_token_says_how_one_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    """In the same line."""

    def refused() -> None:
        raise NoRightError("GET http://h:1/v1/audit: 401 a bearer token is needed")

    with pytest.raises(SystemExit, match="1"):
        run_program(refused, "homeport audit")
    assert capsys.readouterr().err == (
        "error: GET http://h:1/v1/audit: 401 a bearer token is needed; let HOMEPORT_TOKEN_FILE "
        "name a file with the token of an operator: homeport token new NAME --role=read makes one\n"
    )
