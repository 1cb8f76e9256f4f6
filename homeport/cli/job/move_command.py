"""``homeport move`` and ``restart``: a running job's container goes to another host, or stays."""

from typing import Annotated

import typer

from homeport.cli.job import placement_request
from homeport.cli.job.placement_request import NoWait, destination_of
from homeport.cli.options import Given, Named, described, new_app
from homeport.config.errors import ConfigError
from homeport.job_coordinator.model.placement import CANCEL, FORCE_RESTART_LAST_SEEN, MAX_EXPIRY_MS

app = new_app()
restart_app = new_app()

Processor = Annotated[str, typer.Argument(help="Id of the container, such as 0 or 0-0.")]

_EPILOG = """\
\b
Examples:
  homeport move 0 nm2 --config-path=my.properties
  homeport move 0 any --expiry-ms=60000 --config-path=my.properties
  homeport move 0 nm2 --warm --config-path=my.properties
  homeport move 0 --cancel --config-path=my.properties
"""


@app.command(epilog=_EPILOG)
@described(
    host=typer.Argument(help="Where to: a host, any (another one), or last-seen (its own)."),
    expiry_ms=typer.Option(
        min=1,
        max=MAX_EXPIRY_MS,
        help="How long a place there is waited for, in ms; without it "
        "cluster-manager.container.request.timeout.ms.",
    ),
    warm="Read the state at the destination first, while the container runs on.",
    cancel="End the moves and restarts of the container that have not ended.",
)
def move(
    *,
    processor: Processor,
    host: str | None = None,
    job: Named,
    expiry_ms: int | None = None,
    warm: bool = False,
    cancel: bool = False,
    no_wait: NoWait = False,
) -> None:
    """Moves a container: a place is reserved first, then it is stopped, then started there.

    Until the place is sure it runs on as it is. Its state follows by the changelog, or lies there
    already. With --warm a standby on the destination reads the state first, and follows it; the
    container stops when that is near enough, so that the pause does not depend on the size of the
    state. The job's own standby, if it is there, gives way. The answer is printed when it is there,
    or why it is not; exit code 1. Without host affinity it goes to any other host. Others of its
    replicas are never on the same host. With --cancel, and no host, its moves and restarts end;
    the container goes on as it is.
    """
    if cancel is (host is not None) or (cancel and (warm or expiry_ms is not None)):
        rule = "a move needs a host, and --cancel goes without host, --warm and --expiry-ms"
        raise ConfigError("HOST", host, rule, "give a host, or --cancel alone")
    placement_request.ask(
        job.config(),
        processor,
        CANCEL if host is None else destination_of(host),
        expiry_ms=expiry_ms,
        no_wait=no_wait,
        is_warm=warm,
    )


@restart_app.command()
def restart(*, processor: Processor, given: Given, no_wait: NoWait = False) -> None:
    """Stops a container in order and starts it again on its host; nothing is charged to it.

    One that was given up after too many failures is started too, and they are forgiven. The answer
    is printed when it runs again, or why it does not; exit code 1.
    """
    placement_request.ask(given, processor, FORCE_RESTART_LAST_SEEN, no_wait=no_wait)
