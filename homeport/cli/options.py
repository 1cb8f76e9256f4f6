"""What the operator's commands have in common: how a job is named, how answers are printed."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from homeport.config.config import Config
from homeport.config.loading.loader import load
from homeport.config.loading.rewriters import TopicsOf
from homeport.config.secret_names import warnings_of_overrides

ConfigPath = Annotated[
    str, typer.Option("--config-path", help="The job's properties file: a path or a file: URL.")
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--config", help="key=value, laid over the properties file; may be given many times."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for a script.")]
ShowSecrets = Annotated[
    bool,
    typer.Option(
        "--show-secrets",
        help="Print secrets too. They are the coordinator stream's, which a reader of the job's "
        "properties file can see.",
    ),
]


def loaded(
    config_path: str, overrides: list[str] | None, topics_of: TopicsOf | None = None
) -> Config:
    """The job's configuration as it was given; secrets on the command line are warned of.

    Inputs by regular expression are looked up where ``topics_of`` is given.
    """
    for warning in warnings_of_overrides(overrides or ()):
        note(f"warning: {warning}")
    return load(config_path, overrides or (), topics_of)


def new_app(summary: str | None = None) -> typer.Typer:
    """An app in the one form of all commands: errors come out, nothing is decorated."""
    return typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, help=summary
    )


def note(line: str) -> None:
    """For people, beside the answer: on standard error."""
    print(line, file=sys.stderr, flush=True)
