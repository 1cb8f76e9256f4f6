"""Files of a user that submits jobs: the cache, and the tokens of applications."""

import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from homeport.config.errors import ConfigError
from homeport.job_coordinator.access.job_access import JobSecret
from homeport.job_coordinator.own_folders import cache_folder

_APPLICATION = re.compile(r"application_\d+_\d+", re.ASCII)
_TOKENS, _NOTE, _SECRET = "tokens", ".cluster", ".secret"
TOKEN_VARIABLE = "HOMEPORT_TOKEN_FILE"  # noqa: S105 - the name of a variable that holds a path


def is_application(text: str) -> bool:
    """Return whether ``text`` is the id of an application."""
    return _APPLICATION.fullmatch(text) is not None


def token_path(environment: Mapping[str, str], application_id: str) -> Path:
    """Return where the bearer token of an application is, for its submitter's tools."""
    given = environment.get(TOKEN_VARIABLE, "")
    return Path(given) if given else token_folder(environment) / application_id


def read_token(path: Path) -> str:
    """Return the token in the file ``path``.

    ConfigError: the file cannot be read, or has no token.
    """
    try:
        text = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        text, rule = "", f"there is no token ({error})"
    else:
        rule = "there is no token in it, which is a word of ASCII"
    if not text.isprintable() or len(text.split()) != 1:
        remedy = "put what homeport token new has printed into a file, and name that"
        raise ConfigError(TOKEN_VARIABLE, str(path), rule, remedy)
    return text


def token_folder(environment: Mapping[str, str]) -> Path:
    """Return where submissions leave the tokens of their applications."""
    return cache_folder(environment) / _TOKENS


@dataclass(frozen=True, slots=True)
class KeptToken:
    """The token of an application, and the cluster that runs it.

    ``conf``: the folder of the Hadoop configuration; ``resource_managers``: their URLs. Both are
    empty in the files of an earlier release.
    """

    application_id: str
    conf: str = ""
    resource_managers: tuple[str, ...] = ()

    @property
    def note_name(self) -> str:
        """The file that names the cluster, beside the token."""
        return f"{self.application_id}{_NOTE}"

    @property
    def secret_name(self) -> str:
        """The file beside the token from which later tokens of the application are made."""
        return f"{self.application_id}{_SECRET}"

    def note(self) -> bytes:
        """Return the bytes of the file that names the cluster."""
        return json.dumps({"conf": self.conf, "resource-managers": self.resource_managers}).encode()


def kept_tokens(folder: Path) -> list[KeptToken]:
    """Return the tokens in ``folder``, by application."""
    with contextlib.suppress(OSError):
        return [_kept(folder, path.name) for path in sorted(folder.glob("application_*[0-9]"))]
    return []


def _kept(folder: Path, application_id: str) -> KeptToken:
    try:
        note = json.loads((folder / f"{application_id}{_NOTE}").read_bytes())
        return KeptToken(application_id, note["conf"], tuple(note["resource-managers"]))
    except (OSError, ValueError, KeyError, TypeError):
        return KeptToken(application_id)


def application_secret(environment: Mapping[str, str], application_id: str) -> JobSecret | None:
    """Return the secret of an application that this user has submitted here; None: it is not known.

    The id may come from another program, and need not be one.
    """
    if not is_application(application_id):
        return None
    path = token_folder(environment) / KeptToken(application_id).secret_name
    return JobSecret(path.read_bytes()) if path.exists() else None


def forget_token(environment: Mapping[str, str], application_id: str) -> None:
    """Remove the token of an application that has ended."""
    _forget(token_folder(environment), application_id)


def forget_tokens_of_cluster(cache: Path, conf: Path) -> None:
    """Remove the tokens of a cluster that is gone; ``conf``: its clients' configuration."""
    folder = cache / _TOKENS
    for kept in kept_tokens(folder):
        if kept.conf == str(conf):
            _forget(folder, kept.application_id)


def _forget(folder: Path, application_id: str) -> None:
    kept = KeptToken(application_id)
    for name in (application_id, kept.note_name, kept.secret_name):
        with contextlib.suppress(OSError):
            (folder / name).unlink(missing_ok=True)
