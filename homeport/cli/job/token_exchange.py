"""``homeport token``, with what needs the files of a submission: exchange."""

from __future__ import annotations

import os
import time

from homeport.cli.job.coordinator_stream_writer import WritableType, message_of, write
from homeport.cli.job.job_view import PLACED_BY_USER, RunningJob, open_job, require_running
from homeport.cli.job.token_commands import app
from homeport.cli.options import ConfigPath, Overrides, loaded, note
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError, HomeportError, UnansweredError
from homeport.job_coordinator.access.job_access import JobSecret
from homeport.job_coordinator.client_files import application_secret, token_folder
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.private_files import private_folder

__all__ = ["app"]

_KEY = keys.JOB_COORDINATOR_ACCESS_GENERATION
_POLL_S = 0.5
_PATIENCE_S = 120.0
_EPILOG = """\
\b
When others may have got the job's own token, or a certificate's key:
  homeport token exchange --config-path=my.properties
Nothing restarts. What had the former token, or trusted the former certificate, is refused.
"""


@app.command(
    "exchange", short_help="exchange the running job's own token and certificate", epilog=_EPILOG
)
def exchange(*, config_path: ConfigPath, config: Overrides = None) -> None:
    """Exchange the token that launchers and containers show, and the certificate of https.

    They find the new ones by a secret that each has had since its submission, and that is never
    sent. The former ones are refused at once. It needs the user and the machine of the submission.
    """
    given = loaded(config_path, config)
    running = require_running(given, "token exchange", PLACED_BY_USER)
    secret = application_secret(os.environ, running.application)
    if secret is None:
        raise ConfigError(
            "HOMEPORT_CACHE_DIR",
            str(token_folder(os.environ)),
            f"it does not have the secret of {running.application}",
            "exchange as the user, and on the machine, of its submission",
        )
    with open_job(given) as job:
        generation = _KEY.read(job.recorded_config() or given) + 1
    message = message_of(WritableType.SET_CONFIG, _KEY.name, str(generation))
    write(given, message, say=lambda meaning: note(f"{_KEY.name}: {meaning}"))
    _await(running, secret, generation)
    token = secret.token(generation)
    with private_folder(token_folder(os.environ)) as folder:
        folder.write(running.application, token.encode())
    print(f"generation {generation}: the former token and certificate are refused")


def _await(running: RunningJob, secret: JobSecret, generation: int) -> None:
    """Wait until the AM proves that it has the generation; UnansweredError where it does not."""
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
