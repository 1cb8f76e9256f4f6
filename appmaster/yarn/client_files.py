"""Where the programs of a submitter keep files: the cache, tokens of applications."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from homeport.job_coordinator.access.job_access import JobSecret

TOKEN_VARIABLE = "HOMEPORT_TOKEN_FILE"  # noqa: S105 - the name of a variable that holds a path

SECRET_SUFFIX = ".secret"  # noqa: S105 - the end of a file's name
"""Of the file beside a token that has what the submission's later tokens are made from."""


def cache_folder(environment: Mapping[str, str]) -> Path:
    """``HOMEPORT_CACHE_DIR``, by default ``${XDG_CACHE_HOME:-~/.cache}/homeport``."""
    given = environment.get("HOMEPORT_CACHE_DIR", "")
    if given:
        return Path(given).expanduser().absolute()
    base = environment.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache").absolute() / "homeport"


def token_path(environment: Mapping[str, str], application_id: str) -> Path:
    """Where the bearer token of an application is, for its submitter's tools."""
    given = environment.get(TOKEN_VARIABLE, "")
    return Path(given) if given else token_folder(environment) / application_id


def token_folder(environment: Mapping[str, str]) -> Path:
    """Where submissions leave the tokens of their applications."""
    return cache_folder(environment) / "tokens"


def forget_token(environment: Mapping[str, str], application_id: str) -> None:
    """The token of an application that has ended is gone."""
    folder = token_folder(environment)
    for name in (application_id, f"{application_id}{SECRET_SUFFIX}"):
        (folder / name).unlink(missing_ok=True)


def application_secret(environment: Mapping[str, str], application_id: str) -> JobSecret | None:
    """Return the secret of an application that this user has submitted here, if it is known."""
    path = token_folder(environment) / f"{application_id}{SECRET_SUFFIX}"
    return JobSecret(path.read_bytes()) if path.exists() else None
