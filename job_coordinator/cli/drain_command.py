"""``homeport drain``: all containers of a running job leave a host, and none comes there.

Which hosts are drained is a key of the configuration, which the running job takes at once and later
deployments keep: so the AM's death changes nothing. Each container that is there is moved by a
request of its own, an active one warm. A command that was interrupted is given again, and goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError, HomeportError
from homeport.job_coordinator.cli import coordinator_stream_writer as writer
from homeport.job_coordinator.cli import placement_request
from homeport.job_coordinator.cli.job_view import (
    PLACED_BY_USER,
    JobView,
    open_job,
    require_on_yarn,
    require_running,
)
from homeport.job_coordinator.cli.options import ConfigPath, Overrides, loaded, new_app, note
from homeport.job_coordinator.cli.what_if_command import outlook
from homeport.job_coordinator.metadata.placement import PlacementManager
from homeport.job_coordinator.model.ids import Host, host_of
from homeport.job_coordinator.model.placement import ANY_HOST, PlacementRequest, PlacementStatus

app = new_app()

_EPILOG = """\
\b
Examples:
  homeport drain nm2 --dry-run --config-path=my.properties
  homeport drain nm2 --config-path=my.properties
  homeport drain nm2 --undo --config-path=my.properties
"""
_ROUNDS = 3
_ENDED = frozenset({"finished", "failed", "stopped"})
_WHAT_IF_TIMEOUT_S = 120.0


@app.command(epilog=_EPILOG)
def drain(
    *,
    host: Annotated[str, typer.Argument(help="The host that the containers are to leave.")],
    config_path: ConfigPath,
    config: Overrides = None,
    undo: Annotated[
        bool, typer.Option("--undo", help="The host gets containers again; none is moved back.")
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
        return
    running = require_running(given, "drain")
    status = running.client.status()
    require_host(name, status)
    note_master(name, status)
    if name not in status["drained_hosts"] or dry_run:
        client = running.client.at(running.client.url, _WHAT_IF_TIMEOUT_S)
        answer = client.what_if([name])
        if dry_run:
            print("\n".join(outlook(answer, with_reasons=False)))
            return
        require_places(name, answer, is_forced=force)
        _write(given, name, is_drained=True)
    with open_job(given) as job:
        require_on_yarn(given, job.stream, "drain", PLACED_BY_USER)
        wait = placement_request.patience(job)
        _await_taken(job, name, wait)
        _move_all(job, name, wait)


def require_host(host: Host, status: Mapping[str, Any]) -> None:
    """The job knows the host.

    Raises:
        ConfigError: it does not.
    """
    used = {c["host"] for c in status["containers"] if c["host"]}
    known = sorted({*status["hosts"], *used})
    if host not in known:
        raise ConfigError(
            "HOST", host, "the job knows no host of that name", f"there are {', '.join(known)}"
        )


def note_master(host: Host, status: Mapping[str, Any]) -> None:
    """It is said where the AM runs there, as no command moves it."""
    if status["job"].get("host") == host:  # an AM of an earlier version does not say it
        note(
            f"the ApplicationMaster runs on {host}, and stays there: when that host goes down all "
            "containers end too, and start again at home once YARN has started the next attempt"
        )


def require_places(host: Host, outlook_: Mapping[str, Any], *, is_forced: bool) -> None:
    """All containers of the host have a place elsewhere, by the answer of ``what-if``.

    Raises:
        ConfigError: they have not.
    """
    unplaced = outlook_["unplaced"]
    if not unplaced:
        return
    rule = f"the other hosts have no place for processor {', '.join(unplaced)}"
    if outlook_["shortage"]:
        rule = f"{rule}: {outlook_['shortage']}"
    if not is_forced:
        raise ConfigError("HOST", host, rule, "make room there, or move the rest by --force")
    note(f"{rule}; these stay, or wait")


def moves(host: Host, status: Mapping[str, Any]) -> list[tuple[str, bool]]:
    """(processor, whether its move is warm) of each container on the host, active ones first."""
    here = [
        c
        for c in status["containers"]
        if c["host"] == host and c["phase"] not in _ENDED and not c["is_temporary"]
    ]
    found = [(str(c["processor_id"]), c["role"] == "active") for c in here]
    return sorted(found, key=lambda move: (not move[1], move[0]))


def changed_hosts(before: Sequence[str], host: Host, *, is_drained: bool) -> str | None:
    """The value of the key with that host, or without it; None: the key goes."""
    left = {host_of(name) for name in before} - {host}
    hosts = sorted(left | {host} if is_drained else left)
    return ",".join(hosts) or None


def _write(given: Config, host: Host, *, is_drained: bool) -> None:
    key = keys.DRAINED_HOSTS
    with open_job(given) as job:
        before = key.read(job.recorded_config())
    if (host in map(host_of, before)) is is_drained:
        note(f"{host} is drained already" if is_drained else f"{host} is not drained")
        return
    value = changed_hosts(before, host, is_drained=is_drained)
    message = writer.message_of(writer.WritableType.SET_CONFIG, key.name, value)
    written = writer.write(given, message)
    what = "gets no container any more" if is_drained else "gets containers again"
    note(f"{host} {what} ({key.name}): {written.meaning}")


def _status(job: JobView) -> Mapping[str, Any]:
    return {} if job.running is None else job.running.client.status()


def _await_taken(job: JobView, host: Host, wait: Callable[[], None]) -> None:
    while host not in _status(job).get("drained_hosts", ()):
        wait()


def _move_all(job: JobView, host: Host, wait: Callable[[], None]) -> None:
    failed: dict[str, str] = {}
    for _ in range(_ROUNDS):
        due = moves(host, _status(job))
        if not due:
            print(f"{host} has no container of the job")
            return
        failed = dict(filter(None, _moved(job, due, wait)))
    left = [name for name, _ in moves(host, _status(job))]
    if left:
        why = "; ".join(f"{p}: {failed[p]}" for p in left if p in failed)
        raise HomeportError(
            f"{host} still has processor {', '.join(left)} ({why}); it gets no other container; "
            f"homeport drain {host} goes on, --undo takes it back"
        )
    print(f"{host} has no container of the job")


def _moved(
    job: JobView, due: Sequence[tuple[str, bool]], wait: Callable[[], None]
) -> list[tuple[str, str] | None]:
    """Of each: None, or the processor and why it was not moved."""
    if job.running is None:
        return []
    application = job.running.application
    requests = [
        placement_request.new_request(application, processor, ANY_HOST, is_warm=is_warm)
        for processor, is_warm in due
    ]
    job.stream.write(list(map(PlacementManager.request_message, requests)))
    return [_answered(job, request, wait) for request in requests]


def _answered(
    job: JobView, request: PlacementRequest, wait: Callable[[], None]
) -> tuple[str, str] | None:
    said = placement_request.answers(job.stream, request.uuid, wait)
    answer = placement_request.final(said, f"{request.processor_id}: ")
    print(f"{request.processor_id}: {answer.status}: {answer.message}")
    is_done = answer.status is PlacementStatus.SUCCEEDED
    return None if is_done else (str(request.processor_id), answer.message)
