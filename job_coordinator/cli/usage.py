"""How a command line is run, and what is wrong with it in one line."""

from __future__ import annotations

from collections.abc import Sequence

import typer

_NOISE = "Value error, "
_INTERRUPTED = 130


def run_app(
    app: typer.Typer, arguments: Sequence[str] | None = None, name: str | None = None
) -> None:
    """Runs the command of this process's arguments, or of those given; what it raises comes out.

    ``name`` is what help texts call the program. Typer turns a KeyboardInterrupt into a returned
    exit code: here it is one again.
    """
    given = None if arguments is None else list(arguments)
    if app(given, name, standalone_mode=False) == _INTERRUPTED:
        raise KeyboardInterrupt


def usage_error(error: typer.TyperException) -> str:
    """Typer's own words without line breaks, without the name of its exception, without full stop.

    Ready to be followed by a semicolon and a remedy.
    """
    return " ".join(error.format_message().split()).replace(_NOISE, "").rstrip(".")
