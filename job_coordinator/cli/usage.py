"""How a command line is run, and what is wrong with it in one line."""

from __future__ import annotations

import typer

_NOISE = "Value error, "
_INTERRUPTED = 130


def run_app(app: typer.Typer) -> None:
    """Runs the command of this process's arguments; whatever it raises comes out.

    Typer turns a KeyboardInterrupt into a returned exit code: here it is one again.
    """
    if app(standalone_mode=False) == _INTERRUPTED:
        raise KeyboardInterrupt


def usage_error(error: typer.TyperException) -> str:
    """Typer's own words without line breaks, without the name of its exception, without full stop.

    Ready to be followed by a semicolon and a remedy.
    """
    return " ".join(error.format_message().split()).replace(_NOISE, "").rstrip(".")
