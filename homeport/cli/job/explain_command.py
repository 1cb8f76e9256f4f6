"""``homeport explain``: where one processor of the running job is, why, and what it waits for."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer
from msgspec import Struct, json

from homeport.cli.job.failure_reasons import FailureReasons
from homeport.cli.job.job_view import require_running
from homeport.cli.options import AsJson, Given, described, new_app, note_origin
from homeport.config.errors import HomeportError
from homeport.config.printable import printable_lines
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.json_values import shown
from homeport.job_coordinator.model.wire_form import about
from homeport.job_coordinator.status.shape import ShownContainer, ShownRecovery, ShownStatus
from homeport.job_coordinator.ui.first_screen import kept_standbys, listed, waits
from homeport.job_coordinator.ui.times import clock

app = new_app()

_MS_PER_S = 1000


class Explained(Struct, frozen=True):
    """Where a processor is, and why, for a script."""

    container: Annotated[ShownContainer, about("as an element of containers of homeport status")]
    events: Annotated[Mapping[str, Any], about("its last decisions, as /v1/events has them")]


@app.command()
@described(
    processor=typer.Argument(help='The processor, such as "0".'),
    last=typer.Option("--last", min=1, max=1000, help="How many of its last decisions."),
)
def explain(processor: str, *, given: Given, last: int = 10, as_json: AsJson = False) -> None:
    """Prints where a processor is, why, what it waits for, and what was decided of it last.

    Only a running job has reasons: they live as long as its driver, which says since when.
    """
    running = require_running(given)
    status = FailureReasons(given).added_to(running.client.status())
    container = find(status, processor)
    events = running.client.events(ProcessorId(processor), limit=last)
    note_origin(running)
    if as_json:
        print(json.encode(Explained(container, events)).decode())
    else:
        print(printable_lines(explanation(status, container, events)))


def find(status: ShownStatus, processor: str) -> ShownContainer:
    """Return the processor's part of the status; HomeportError where there is none."""
    container = status.container(ProcessorId(processor))
    if container is None:
        known = listed([c.processor_id for c in status.containers]) or "none yet"
        raise HomeportError(f"the job has no processor {shown(processor)}: it has {known}")
    return container


def explanation(
    status: ShownStatus, container: ShownContainer, events: Mapping[str, Any]
) -> Iterator[str]:
    """Yield the account, line by line, out of the status and ``/v1/events`` of the processor."""
    yield _head(container)
    yield f"  {_where(container)}"
    yield from (f"  waits: {wait}" for wait in waits(status, container))
    keeps = kept_standbys(container)
    if keeps is not None:
        yield f"  it {keeps}"
    if container.is_leader:
        yield "  it leads the job: it computes and publishes its versions"
    if container.failures:
        yield f"  failures that count against its retries: {container.failures}"
    if container.last_failure:
        yield f"  last failure: {container.last_failure}"
    if container.recovery is not None:
        yield f"  {_recovery(container.recovery)}"
    yield ""
    known: Sequence[Mapping[str, Any]] = events.get("events", ())
    since = clock(events["since_ms"])
    yield f"last decisions since {since}:" if known else f"nothing was decided of it since {since}"
    for event in known:
        yield f"  {clock(event['at_ms'])}  {event['cause']}"
        reasons = [r for r in event["reasons"] if _is_about(r, container.processor_id)]
        yield from (f"      {reason['sentence']}" for reason in reasons)
        yield from (f"      -> {what}" for what in (*event["records"], *event["instructions"]))


def _is_about(reason: Mapping[str, Any], processor_id: str) -> bool:
    about = (reason.get("processor_id"), reason.get("other"))
    return processor_id in about or about[0] is None


def _head(container: ShownContainer) -> str:
    active, version = container.replica_of, container.model_version
    role = f"standby of processor {active}" if active else container.role
    runs = f", JobModel version {version}" if version else ""
    return f"processor {container.processor_id} ({role}): epoch {container.epoch}{runs}"


def _where(container: ShownContainer) -> str:
    since = clock(container.since_ms or 0)
    host, last = container.host, container.last_host
    place = f" on {host}" if host else ""
    before = f"; it was on {last} before" if last and last != host else ""
    return f"{container.phase.value}{place} since {since}{before}"


def _recovery(found: ShownRecovery) -> str:
    state = "last recovery" if found.is_over else "recovers"
    way = f"{found.from_host or 'a host'} to {found.to_host or 'a place that is sought'}"
    kind = f"{found.kind}, " if found.kind else ""
    phases = ", ".join(f"{p} {ms / _MS_PER_S:.2f}" for p, ms in found.phases_ms.items() if ms)
    total_s = found.total_ms / _MS_PER_S
    since = clock(found.began_ms)
    return f"{state}: {kind}{way}, {found.cause} at {since}, {total_s:.2f} s: {phases or 'none'}"
