"""What a running job waits for, said to whoever asks for its status."""

from __future__ import annotations

import contextlib

from homeport.appmaster.cli.waiting import say
from homeport.config.config import Config
from homeport.config.errors import HomeportError
from homeport.job_coordinator.cli.job_view import require_running


def tell_shortage(config: Config) -> None:
    """Says, beside the status, what is short for the job; nothing where its AM does not answer."""
    with contextlib.suppress(HomeportError):
        waiting = require_running(config).client.status().get("waiting")
        if waiting:
            say(str(waiting["says"]))
