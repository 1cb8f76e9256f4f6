"""``homeport drain``: all containers of a running job leave a host, and none comes there.

Which hosts are drained is a key of the configuration, which the running job takes at once and later
deployments keep: so the AM's death changes nothing. Each container that is there is moved by a
request of its own, an active one warm. A command that was interrupted is given again, and goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer

from homeport.cli.job import placement_request
from homeport.cli.job.coordinator_stream_writer import write_list
from homeport.cli.job.job_view import (
    PLACED_BY_USER,
    JobView,
    open_job,
    require_on_yarn,
    require_running,
)
from homeport.cli.job.placement_request import Patience, write_order
from homeport.cli.job.what_if_command import outlook
from homeport.cli.options import ConfigPath, Overrides, loaded, new_app, note
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError, HomeportError
from homeport.config.printable import printable_lines
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.metadata.placement import PlacementManager
from homeport.job_coordinator.model.ids import Host, host_of
from homeport.job_coordinator.model.placement import ANY_HOST, PlacementRequest
from homeport.job_coordinator.status.host_drain import (
    TAKEN_MS,
    UNDONE,
    HostDrain,
    Move,
    am_stays,
    host_change,
    not_taken,
    require_host,
    without_place,
)
from homeport.job_coordinator.status.outlook import ShownOutlook

app = new_app()

_EPILOG = """\
\b
Examples:
  homeport drain nm2 --dry-run --config-path=my.properties
  homeport drain nm2 --config-path=my.properties
  homeport drain nm2 --undo --config-path=my.properties
"""
_WHAT_IF_TIMEOUT_S = 120.0


@app.command(epilog=_EPILOG)
def drain(
    *,
    host: Annotated[str, typer.Argument(help="The host that the containers are to leave.")],
    config_path: ConfigPath,
    config: Overrides = None,
    undo: Annotated[
        bool,
        typer.Option(
            "--undo",
            help="The host gets containers again; a drain under way stops, none comes back.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would run where; change nothing.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Drain although not all containers have another place.")
    ] = False,
) -> None:
    """Moves all containers of the job away from a host: active ones warm, standbys cold.

    No container is placed there until --undo, in later deployments too. It is refused where the
    other hosts have no room for all. Where it was interrupted, the same command goes on.
    """
    given, name = loaded(config_path, config), host_of(host)
    if undo:
        _write(given, name, is_drained=False)
        note(UNDONE)
        return
    running = require_running(given, "drain")
    status = running.client.status()
    require_host(name, status)
    about_am = am_stays(name, status)
    if about_am is not None:
        note(about_am)
    if name not in status.drained_hosts or dry_run:
        client = running.client.at(running.client.url, _WHAT_IF_TIMEOUT_S)
        answer = client.what_if([name])
        if dry_run:
            print(printable_lines(outlook(answer, with_reasons=False)))
            return
        require_places(name, answer, is_forced=force)
        _write(given, name, is_drained=True)
    with open_job(given) as job:
        require_on_yarn(given, job.stream, "drain", PLACED_BY_USER)
        wait = placement_request.Patience(job)
        _await_taken(name, wait)
        _move_all(job, name, wait)


def require_places(host: Host, answer: ShownOutlook, *, is_forced: bool) -> None:
    """Require that all containers of the host have a place elsewhere, by ``what-if``.

    Raises:
        ConfigError: they have not.
    """
    rule = without_place(answer)
    if rule is None:
        return
    if not is_forced:
        raise ConfigError("HOST", host, rule, "make room there, or move the rest by --force")
    note(f"{rule}; these stay, or wait")


def _write(given: Config, host: Host, *, is_drained: bool) -> None:
    key = keys.DRAINED_HOSTS
    what = "gets no container any more" if is_drained else "gets containers again"
    wanted = partial(host_change, host=host, is_drained=is_drained)
    with open_job(given) as job:
        if not write_list(job, key, wanted, lambda m: note(f"{host} {what} ({key.name}): {m}")):
            note(f"{host} is drained already" if is_drained else f"{host} is not drained")


def _await_taken(host: Host, wait: Patience) -> None:
    began_ms = boot_ms()
    while host not in wait.status().drained_hosts:
        if boot_ms() - began_ms > TAKEN_MS:
            raise not_taken(keys.DRAINED_HOSTS.name)
        wait()


def _move_all(job: JobView, host: Host, wait: Patience) -> None:
    under_way = HostDrain(host)
    while due := under_way.next_moves(wait.status()):
        for request in _written(job, due):
            said = placement_request.answers(job.stream, request.uuid, wait)
            answer = placement_request.final(said, f"{request.processor_id}: ")
            print(f"{request.processor_id}: {answer.status}: {answer.message}")
            under_way.answered(request.processor_id, answer.status, answer.message)
    fault = under_way.fault(wait.status())
    if fault is not None:
        raise HomeportError(fault)
    print(under_way.done())


def _written(job: JobView, due: Sequence[Move]) -> list[PlacementRequest]:
    """The requests, which are in the stream."""
    if job.running is None:
        return []
    application = job.running.application
    requests = [
        placement_request.new_request(
            application, processor, ANY_HOST, is_warm=is_warm, is_drain=True
        )
        for processor, is_warm in due
    ]
    write_order(job.stream, list(map(PlacementManager.request_message, requests)))
    return requests
