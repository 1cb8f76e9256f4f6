"""``homeport token``: new, list, revoke, exchange.

A token is printed once. The coordinator stream gets its digest, as a value of a key that a running
job takes at once, so that nothing restarts. While a token is rotated, two of one name are valid.
"""

import os
import secrets
import time
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial
from typing import Annotated

import typer

from homeport.cli.job.coordinator_stream_writer import WritableType, message_of, write, write_list
from homeport.cli.job.job_view import JobView, OpenJob, RunningJob, open_job, require_running
from homeport.cli.options import Given, described, new_app, note
from homeport.config.access_tokens import NamedToken, digest_of, named_tokens
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import TokensKey
from homeport.config.errors import ConfigError, HomeportError, UnansweredError
from homeport.job_coordinator.access.job_access import JobSecret
from homeport.job_coordinator.client_files import application_secret, token_folder
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.model.list_change import ListChange
from homeport.job_coordinator.private_files import private_folder

app = new_app("Makes, lists and revokes the tokens by which operators use a job's HTTP port.")

_BYTES = 32
_SHOWN_DIGITS = 12
_GENERATION = keys.JOB_COORDINATOR_ACCESS_GENERATION
_POLL_S = 0.5
_PATIENCE_S = 120.0
_EPILOG = """\
\b
A token is rotated while the job runs:
  homeport token new ada --role=operate --config-path=my.properties
  (both are valid: give the new one to what uses the old one)
  homeport token revoke ada --old --config-path=my.properties
"""

_EXCHANGE_EPILOG = """\
\b
When others may have got the job's own token, or a certificate's key:
  homeport token exchange --config-path=my.properties
Nothing restarts. What had the former token, or trusted the former certificate, is refused.
"""


class TokenRole(StrEnum):
    """What a token is to allow."""

    READ = "read"
    OPERATE = "operate"

    @property
    def key(self) -> TokensKey:
        """Return the key that has the digests of such tokens."""
        if self is TokenRole.READ:
            return keys.JOB_COORDINATOR_READ_TOKENS
        return keys.JOB_COORDINATOR_OPERATE_TOKENS


Name = Annotated[str, typer.Argument(help="Whose token it is; it stands in the audit trail.")]


@app.command("new", short_help="make a token, and print it once", epilog=_EPILOG)
@described(role="read: last log lines too; operate: may also change the running job.")
def new(*, name: Name, role: TokenRole = TokenRole.READ, job: OpenJob) -> None:
    """Makes a token and prints it: it is kept nowhere, so that it cannot be printed again.

    An older token of the same name stays valid until it is revoked.
    """
    token = secrets.token_urlsafe(_BYTES)
    added = str(NamedToken(name, digest_of(token.encode())))
    _change(job, role.key, lambda _: ListChange((added,)))
    print(token)


@app.command("list", short_help="list whose tokens are valid")
def list_(*, job: OpenJob) -> None:
    """Prints role, name and the beginning of the digest of each token; of a name the newest last.

    ``printf %s TOKEN | sha256sum`` shows which one a token is.
    """
    recorded = job.recorded_config() or job.given
    for role in TokenRole:
        for token in role.key.tokens(recorded):
            print(f"{role:<8} {token.name:<40} {token.digest[:_SHOWN_DIGITS]}")


@app.command("revoke", short_help="make a name's tokens invalid")
@described(old="All but the newest: the end of a rotation.")
def revoke(*, name: Name, old: bool = False, job: OpenJob) -> None:
    """The tokens of that name are not valid any more, whatever their role."""
    gone: list[str] = []

    def without(key: TokensKey, items: Sequence[str]) -> ListChange:
        own = tuple(str(token) for token in named_tokens(key.name, items) if token.name == name)
        left = own[:-1] if old else own
        gone.extend(left)
        return ListChange((), left)

    for role in TokenRole:
        _change(job, role.key, partial(without, role.key))
    if not gone:
        what = "has no older token" if old else "has no token"
        raise ConfigError("NAME", name, f"it {what}", "see homeport token list")
    note(f"{len(gone)} revoked")


def _change(job: JobView, key: TokensKey, wanted: Callable[[tuple[str, ...]], ListChange]) -> None:
    """Change the key; standard error gets what that means, without a digest."""
    write_list(job, key, wanted, lambda meaning: note(f"{key.name}: {meaning}"))


@app.command(
    "exchange",
    short_help="exchange the running job's own token and certificate",
    epilog=_EXCHANGE_EPILOG,
)
def exchange(*, given: Given) -> None:
    """Exchange the token that launchers and containers show, and the certificate of https.

    They find the new ones by a secret that each has had since its submission, and that is never
    sent. The former ones are refused at once. It needs the user and the machine of the submission.
    """
    running = require_running(given, "token exchange")
    secret = application_secret(os.environ, running.application)
    if secret is None:
        rule = f"it does not have the secret of {running.application}"
        remedy = "exchange as the user, and on the machine, of its submission"
        raise ConfigError("HOMEPORT_CACHE_DIR", str(token_folder(os.environ)), rule, remedy)
    with open_job(given) as job:
        generation = _GENERATION.read(job.recorded_config() or given) + 1
    message = message_of(WritableType.SET_CONFIG, _GENERATION.name, str(generation))
    write(given, message, note_meaning=lambda meaning: note(f"{_GENERATION.name}: {meaning}"))
    _await(running, secret, generation)
    token = secret.token(generation)
    with private_folder(token_folder(os.environ)) as folder:
        folder.write(running.application, token.encode())
    print(f"generation {generation}: the former token and certificate are refused")


def _await(running: RunningJob, secret: JobSecret, generation: int) -> None:
    client = running.client
    end_s = time.monotonic() + _PATIENCE_S
    while _shown(client, secret) != generation:
        if time.monotonic() > end_s:
            raise UnansweredError(
                f"the AM at {client.url} has not taken generation {generation} in "
                f"{_PATIENCE_S:.0f} s; it will when it looks at the coordinator stream"
            )
        time.sleep(_POLL_S)


def _shown(client: CoordinatorClient, secret: JobSecret) -> int | None:
    try:
        return client.access(secret).generation
    except HomeportError:
        return None  # no answer now; the AM may begin just then
