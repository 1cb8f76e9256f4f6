"""``homeport what-if``: what would come of the loss of hosts, by the allocator itself."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Annotated

import typer

from homeport.cli.job.job_view import require_running
from homeport.cli.options import AsJson, ConfigPath, Overrides, loaded, new_app, note
from homeport.config.errors import ConfigError, WireError
from homeport.config.printable import printable_lines
from homeport.job_coordinator.model.ids import Host, host_of
from homeport.job_coordinator.model.wire_form import json_text
from homeport.job_coordinator.status.outlook import ShownFate, ShownOutlook
from homeport.job_coordinator.status.shape import ShownStatus

app = new_app()

_TIMEOUT_S = 120.0
"""A hundred of a thousand hosts, with 20,000 containers, take the AM some twenty seconds."""


@app.command()
def what_if(
    *,
    host: Annotated[
        list[str], typer.Option("--host", help="A host to lose; may be given many times.")
    ],
    config_path: ConfigPath,
    config: Overrides = None,
    why: Annotated[bool, typer.Option("--why", help="The reasons of each step too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Prints what would run where, and what could not be placed, if these hosts were lost now.

    The running job's allocator answers, from its present state; nothing is changed.
    """
    running = require_running(loaded(config_path, config), "what-if")
    client = running.client.at(running.client.url, _TIMEOUT_S)
    hosts = [host_of(name) for name in host]
    try:
        answer = client.what_if(hosts)
    except WireError:
        require_known(hosts, running.client.status())
        raise
    note(f"from {running}")
    if as_json:
        print(json_text(answer))
    else:
        print(printable_lines(outlook(answer, with_reasons=why)))


def require_known(hosts: Collection[Host], status: ShownStatus) -> None:
    """Every one of these hosts is one of the job's, by its status.

    Raises:
        ConfigError: one is not.
    """
    used = (c.host for c in status.containers if c.host)
    known = sorted({*status.hosts, *used})
    for host in hosts:
        if host not in known:
            remedy = f"give one of {', '.join(known)}" if known else "it knows none yet: ask later"
            raise ConfigError("--host", host, "the job knows no host of that name", remedy)


def outlook(answer: ShownOutlook, *, with_reasons: bool) -> Iterator[str]:
    """Return the answer of ``GET /v1/what-if``, line by line."""
    hosts = ", ".join(answer.hosts)
    fates = answer.containers
    yield f"if {hosts} were lost now: {len(fates)} of the job's containers would be affected"
    for fate in fates:
        yield f"  {_fate(fate)}"
        if with_reasons:
            yield from (f"      {sentence}" for sentence in fate.why)
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


def _fate(fate: ShownFate) -> str:
    role = f"standby of {fate.replica_of}" if fate.replica_of else fate.role
    who = f"{fate.processor_id} ({role})"
    if not fate.is_placed:
        return f"{who}: {fate.host_before or 'nowhere'} -> nowhere, {fate.phase}"
    if fate.phase is None:
        return f"{who}: gone from {fate.host_before or 'nowhere'}"
    way = f"{who}: {fate.host_before or 'nowhere'} -> {fate.host or fate.phase}"
    over = fate.takes_over
    return f"{way}, in the place of its standby {over}" if over else f"{way}, restarted"
