"""``homeport token``: new, list, revoke.

A token is printed once. The coordinator stream gets its digest, as a value of a key that a running
job takes at once, so that nothing restarts. While a token is rotated, two of one name are valid.
"""

from __future__ import annotations

import secrets
from enum import StrEnum
from typing import Annotated

import typer

from homeport.config.access_tokens import NamedToken, digest_of, named_tokens
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import TokensKey
from homeport.config.errors import ConfigError
from homeport.job_coordinator.cli.coordinator_stream_writer import (
    WritableType,
    message_of,
    write,
)
from homeport.job_coordinator.cli.job_view import open_job
from homeport.job_coordinator.cli.options import ConfigPath, Overrides, loaded, new_app, note

app = new_app("Makes, lists and revokes the tokens by which operators use a job's HTTP port.")

_BYTES = 32
_SHOWN_DIGITS = 12
_EPILOG = """\
\b
A token is rotated while the job runs:
  homeport token new ada --role=operate --config-path=my.properties
  (both are valid: give the new one to what uses the old one)
  homeport token revoke ada --old --config-path=my.properties
"""


class TokenRole(StrEnum):
    """What a token is to allow."""

    READ = "read"
    OPERATE = "operate"

    @property
    def key(self) -> TokensKey:
        """The key that has the digests of such tokens."""
        if self is TokenRole.READ:
            return keys.JOB_COORDINATOR_READ_TOKENS
        return keys.JOB_COORDINATOR_OPERATE_TOKENS


Name = Annotated[str, typer.Argument(help="Whose token it is; it stands in the audit trail.")]


@app.command("new", short_help="make a token, and print it once", epilog=_EPILOG)
def new(
    *,
    name: Name,
    role: Annotated[
        TokenRole,
        typer.Option(help="read: last log lines too; operate: may also change the running job."),
    ] = TokenRole.READ,
    config_path: ConfigPath,
    config: Overrides = None,
) -> None:
    """Makes a token and prints it: it is kept nowhere, so that it cannot be printed again.

    An older token of the same name stays valid until it is revoked.
    """
    given = loaded(config_path, config)
    token = secrets.token_urlsafe(_BYTES)
    known = _written(given, role.key)
    added = NamedToken(name, digest_of(token.encode()))
    _write(given, role.key, (*known, added))
    print(token)


@app.command("list", short_help="list whose tokens are valid")
def list_(*, config_path: ConfigPath, config: Overrides = None) -> None:
    """Prints role, name and the beginning of the digest of each token; of a name the newest last.

    ``printf %s TOKEN | sha256sum`` says which one a token is.
    """
    given = loaded(config_path, config)
    for role in TokenRole:
        for token in _written(given, role.key):
            print(f"{role:<8} {token.name:<40} {token.digest[:_SHOWN_DIGITS]}")


@app.command("revoke", short_help="make a name's tokens invalid")
def revoke(
    *,
    name: Name,
    old: Annotated[
        bool, typer.Option("--old", help="All but the newest: the end of a rotation.")
    ] = False,
    config_path: ConfigPath,
    config: Overrides = None,
) -> None:
    """The tokens of that name are not valid any more, whatever their role."""
    given = loaded(config_path, config)
    found = 0
    for role in TokenRole:
        known = _written(given, role.key)
        own = [token for token in known if token.name == name]
        gone = own[:-1] if old else own
        if gone:
            _write(given, role.key, tuple(token for token in known if token not in gone))
        found += len(gone)
    if not found:
        what = "has no older token" if old else "has no token"
        raise ConfigError("NAME", name, f"it {what}", "see homeport token list")
    note(f"{found} revoked")


def _written(config: Config, key: TokensKey) -> tuple[NamedToken, ...]:
    with open_job(config) as job:
        return key.tokens(job.recorded_config() or config)


def _write(config: Config, key: TokensKey, tokens: tuple[NamedToken, ...]) -> None:
    """The key has these; what that means is said on standard error, without a digest."""
    named_tokens(key.name, map(str, tokens))
    value = ",".join(map(str, tokens)) or None
    given = key.given(config)
    if value is None and config.get(given):
        value = ""  # what the properties file has must not come back
    message = message_of(WritableType.SET_CONFIG, key.name, value)
    write(config, message, say=lambda meaning: note(f"{key.name}: {meaning}"))
