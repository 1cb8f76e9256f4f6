"""``homeport token``: new, list, revoke.

A token is printed once. The coordinator stream gets its digest, as a value of a key that a running
job takes at once, so that nothing restarts. While a token is rotated, two of one name are valid.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial
from typing import Annotated

import typer

from homeport.cli.job.coordinator_stream_writer import write_list
from homeport.cli.job.job_view import JobView, open_job
from homeport.cli.options import ConfigPath, Overrides, loaded, new_app, note
from homeport.config.access_tokens import NamedToken, digest_of, named_tokens
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import TokensKey
from homeport.config.errors import ConfigError
from homeport.job_coordinator.model.list_change import ListChange

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
    added = str(NamedToken(name, digest_of(token.encode())))
    with open_job(given) as job:
        _change(job, role.key, lambda _: ListChange((added,)))
    print(token)


@app.command("list", short_help="list whose tokens are valid")
def list_(*, config_path: ConfigPath, config: Overrides = None) -> None:
    """Prints role, name and the beginning of the digest of each token; of a name the newest last.

    ``printf %s TOKEN | sha256sum`` says which one a token is.
    """
    given = loaded(config_path, config)
    with open_job(given) as job:
        recorded = job.recorded_config() or given
    for role in TokenRole:
        for token in role.key.tokens(recorded):
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
    gone: list[str] = []

    def without(key: TokensKey, items: Sequence[str]) -> ListChange:
        own = tuple(str(token) for token in named_tokens(key.name, items) if token.name == name)
        left = own[:-1] if old else own
        gone.extend(left)
        return ListChange((), left)

    with open_job(given) as job:
        for role in TokenRole:
            _change(job, role.key, partial(without, role.key))
    if not gone:
        what = "has no older token" if old else "has no token"
        raise ConfigError("NAME", name, f"it {what}", "see homeport token list")
    note(f"{len(gone)} revoked")


def _change(job: JobView, key: TokensKey, wanted: Callable[[tuple[str, ...]], ListChange]) -> None:
    """The key has the change; standard error gets what that means, without a digest."""
    write_list(job, key, wanted, lambda meaning: note(f"{key.name}: {meaning}"))
