"""``homeport what-if``: what would come of the loss of hosts, by the allocator's own word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from homeport.job_coordinator.cli.job_view import require_running
from homeport.job_coordinator.cli.options import (
    AsJson,
    ConfigPath,
    Overrides,
    loaded,
    new_app,
    note,
)
from homeport.job_coordinator.model.ids import host_of
from homeport.job_coordinator.model.json_values import compact_json

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
    """Prints who would take over where, and what could not be placed, if these hosts were lost now.

    The running job's allocator is asked, on the state that it is in; nothing is changed.
    """
    running = require_running(loaded(config_path, config))
    client = running.client.at(running.client.url, _TIMEOUT_S)
    answer = client.what_if([host_of(name) for name in host])
    note(f"from {running}")
    if as_json:
        print(compact_json(answer).decode())
    else:
        print("\n".join(outlook(answer, with_reasons=why)))


def outlook(answer: Mapping[str, Any], *, with_reasons: bool) -> Iterator[str]:
    """The answer of ``GET /v1/what-if``, line by line."""
    hosts = ", ".join(answer["hosts"])
    fates = answer["containers"]
    yield f"if {hosts} were lost now: {len(fates)} of the job's containers would be affected"
    for fate in fates:
        yield f"  {_fate(fate)}"
        if with_reasons:
            yield from (f"      {sentence}" for sentence in fate["why"])
    if answer["unplaced"] or with_reasons:
        yield from answer["notes"]
    if answer["suspects_itself"]:
        yield (
            "that is more than half of all hosts: until the ResourceManager calls them lost, the "
            "driver takes the fault for its own"
        )
    unplaced = answer["unplaced"]
    yield f"cannot be placed: {', '.join(unplaced)}" if unplaced else "all can be placed"
    if answer["shortage"]:
        yield f"then {answer['shortage']}"
    if answer["job"] != "active":
        yield f"the job would be {answer['job']}"
    if not answer["is_settled"]:
        yield "it was not looked any further: that much would happen"


def _fate(fate: Mapping[str, Any]) -> str:
    role = f"standby of {fate['replica_of']}" if fate["replica_of"] else fate["role"]
    who = f"{fate['processor_id']} ({role})"
    if not fate["is_placed"]:
        return f"{who}: {fate['from'] or 'nowhere'} -> nowhere, {fate['phase']}"
    if fate["phase"] is None:
        return f"{who}: gone from {fate['from'] or 'nowhere'}"
    way = f"{who}: {fate['from'] or 'nowhere'} -> {fate['to'] or fate['phase']}"
    over = fate["takes_over"]
    return f"{way}, in the place of its standby {over}" if over else f"{way}, started anew"
