"""``homeport drain``: all containers of a running job leave a host. ``what-if``: if one is lost.

Which hosts are drained is a key of the configuration, which the running job takes at once and later
deployments keep: so the AM's death changes nothing. Each container that is there is moved by a
request of its own, an active one warm. A command that was interrupted is given again, and goes on.
"""

from collections.abc import Collection, Iterator, Sequence
from functools import partial

import typer

from homeport.cli.job import placement_request
from homeport.cli.job.coordinator_stream_writer import write_list
from homeport.cli.job.job_view import JobView, open_job, require_running
from homeport.cli.job.placement_request import Patience, write_order
from homeport.cli.options import AsJson, Given, described, new_app, note, note_origin, print_answer
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError, HomeportError, WireError
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
from homeport.job_coordinator.status.outlook import ShownFate, ShownOutlook
from homeport.job_coordinator.status.shape import ShownStatus

app = new_app()
what_if_app = new_app()

_EPILOG = """\
\b
Examples:
  homeport drain nm2 --dry-run --config-path=my.properties
  homeport drain nm2 --config-path=my.properties
  homeport drain nm2 --undo --config-path=my.properties
"""
_WHAT_IF_TIMEOUT_S = 120.0
"""A hundred of a thousand hosts, with 20,000 containers, take the AM some twenty seconds."""


@app.command(epilog=_EPILOG)
@described(
    host=typer.Argument(help="The host that the containers are to leave."),
    undo="The host gets containers again; a drain under way stops, none comes back.",
    dry_run="Show what would run where; change nothing.",
    force="Drain although not all containers have another place.",
)
def drain(
    *, host: str, given: Given, undo: bool = False, dry_run: bool = False, force: bool = False
) -> None:
    """Moves all containers of the job away from a host: active ones warm, standbys cold.

    No container is placed there until --undo, in later deployments too. It is refused where the
    other hosts have no room for all. Where it was interrupted, the same command goes on.
    """
    name = host_of(host)
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
        job.require_on_yarn("drain")
        wait = placement_request.Patience(job)
        _await_taken(name, wait)
        _move_all(job, name, wait)


def require_places(host: Host, answer: ShownOutlook, *, is_forced: bool) -> None:
    """Require that ``what-if`` has a place elsewhere for each container of the host."""
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
            responses = placement_request.answers(job.stream, request.uuid, wait)
            answer = placement_request.final(responses, f"{request.processor_id}: ")
            print(f"{request.processor_id}: {answer.status}: {answer.message}")
            under_way.answered(request.processor_id, answer.status, answer.message)
    fault = under_way.fault(wait.status())
    if fault is not None:
        raise HomeportError(fault)
    print(under_way.done())


def _written(job: JobView, due: Sequence[Move]) -> list[PlacementRequest]:
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


@what_if_app.command()
@described(host="A host to lose; may be given many times.", why="The reasons of each step too.")
def what_if(*, host: list[str], given: Given, why: bool = False, as_json: AsJson = False) -> None:
    """Prints what would run where, and what could not be placed, if these hosts were lost now.

    The running job's allocator answers, from its present state; nothing is changed.
    """
    running = require_running(given, "what-if")
    client = running.client.at(running.client.url, _WHAT_IF_TIMEOUT_S)
    hosts = [host_of(name) for name in host]
    try:
        answer = client.what_if(hosts)
    except WireError:
        require_known(hosts, running.client.status())
        raise
    note_origin(running)
    print_answer(answer, outlook(answer, with_reasons=why), as_json=as_json)


def require_known(hosts: Collection[Host], status: ShownStatus) -> None:
    """Require that each of these hosts is one of the job's, by its status."""
    used = (c.host for c in status.containers if c.host)
    known = sorted({*status.hosts, *used})
    for host in hosts:
        if host not in known:
            remedy = f"give one of {', '.join(known)}" if known else "it knows none yet: ask later"
            raise ConfigError("--host", host, "the job knows no host of that name", remedy)


def outlook(answer: ShownOutlook, *, with_reasons: bool) -> Iterator[str]:
    """Yield the answer of ``GET /v1/what-if``, line by line."""
    hosts = ", ".join(answer.hosts)
    fates = answer.containers
    yield f"if {hosts} were lost now: {len(fates)} of the job's containers would be affected"
    for fate in fates:
        yield f"  {_fate(fate)}"
        if with_reasons:
            yield from (f"      {sentence}" for sentence in fate.why)
    if answer.tasks_moved:
        yield from _tasks_moved(answer)
    if answer.unplaced or with_reasons:
        yield from answer.notes
    if answer.suspects_itself:
        yield (
            "that is more than half of all hosts: until the ResourceManager calls them lost, the "
            "driver takes the fault for its own"
        )
    unplaced = answer.unplaced
    yield f"cannot be placed: {', '.join(unplaced)}" if unplaced else "all can be placed"
    if answer.shortage:
        yield f"then {answer.shortage}"
    if answer.job != "active":
        yield f"the job would be {answer.job}"
    if not answer.is_settled:
        yield "it was not looked any further: that much would happen"


def _tasks_moved(answer: ShownOutlook) -> Iterator[str]:
    total = 0
    for lost, counts in answer.tasks_moved.items():
        total += sum(counts.values())
        to = ", ".join(f"{count} to {processor_id}" for processor_id, count in counts.items())
        yield f"tasks of {lost}: {to or 'they wait for it'}"
    if total:
        yield f"{total - answer.unbacked} of them start on a standby, {answer.unbacked} without one"


def _fate(fate: ShownFate) -> str:
    role = f"standby of {fate.replica_of}" if fate.replica_of else fate.role
    named = f"{fate.processor_id} ({role})"
    if not fate.is_placed:
        return f"{named}: {fate.host_before or 'nowhere'} -> nowhere, {fate.phase}"
    if fate.phase is None:
        return f"{named}: gone from {fate.host_before or 'nowhere'}"
    way = f"{named}: {fate.host_before or 'nowhere'} -> {fate.host or fate.phase}"
    over = fate.takes_over
    return f"{way}, in the place of its standby {over}" if over else f"{way}, restarted"
