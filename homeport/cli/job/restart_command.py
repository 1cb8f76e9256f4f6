"""``homeport restart``: a running job's container stops and starts again."""

from __future__ import annotations

from typing import Annotated

import typer

from homeport.cli.job import placement_request
from homeport.cli.job.placement_request import NoWait
from homeport.cli.options import ConfigPath, Overrides, loaded, new_app
from homeport.job_coordinator.model.placement import FORCE_RESTART_LAST_SEEN

app = new_app()


@app.command()
def restart(
    *,
    processor: Annotated[str, typer.Argument(help="Id of the container, such as 0 or 0-0.")],
    config_path: ConfigPath,
    config: Overrides = None,
    no_wait: NoWait = False,
) -> None:
    """Stops a container in order and starts it again on its host; nothing is charged to it.

    One that was given up after too many failures is started too, and they are forgiven. The answer
    is printed when it runs again, or why it does not; exit code 1.
    """
    placement_request.ask(
        loaded(config_path, config),
        processor,
        FORCE_RESTART_LAST_SEEN,
        expiry_ms=None,
        no_wait=no_wait,
    )
