"""What is wrong with a command line, in one line."""

from __future__ import annotations

import typer

_NOISE = "Value error, "


def usage_error(error: typer.TyperException) -> str:
    """Typer's own words without line breaks, without the name of its exception, without full stop.

    Ready to be followed by a semicolon and a remedy.
    """
    return " ".join(error.format_message().split()).replace(_NOISE, "").rstrip(".")
