"""``homeport status``: what of a running job is not where it should be, and what runs where."""

import sys
import time
from collections.abc import Iterator, Sequence

import typer

from homeport.cli.formatting import table
from homeport.cli.job.failure_reasons import FailureReasons, end_of
from homeport.cli.job.job_view import RunningJob, open_stream, require_running, running_job
from homeport.cli.options import AsJson, Given, described, new_app, note, print_answer
from homeport.cli.usage import Control
from homeport.config.config import Config
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.status.container_report import ContainerReport
from homeport.job_coordinator.status.own_metrics import summary
from homeport.job_coordinator.status.shape import ShownContainer, ShownStandby, ShownStatus
from homeport.job_coordinator.ui.first_screen import first_screen
from homeport.job_coordinator.ui.times import span

app = new_app()

_CLEAR = Control("\x1b[H\x1b[2J")
_HEAD = ("PROCESSOR", "ROLE", "PHASE", "HOST", "FOR", "EPOCH", "LAG", "PROCESSED", "FAILURES")
_STANDBY_HEAD = ("STANDBY", "PROCESSOR", "STATE", "LAG", "SECONDS")
_METRIC_HEAD = ("METRIC", "VALUE")
_NUMBERS, _STANDBY_NUMBERS = range(6, len(_HEAD)), range(3, len(_STANDBY_HEAD))


@app.command()
@described(
    watch=typer.Option("--watch", min=0.2, help="Look again each so many seconds, until Ctrl-C.")
)
def status(*, given: Given, watch: float | None = None, as_json: AsJson = False) -> None:
    """Prints first what does not run, since when, and what it waits for; then all containers.

    LAG is, of an active container, what it has not read of its inputs, in records; of a standby,
    what it has not read of its changelogs. PROCESSED counts the records of committed transactions
    since the container began. Of a standalone job the standbys follow, with the processor that
    keeps each. The metrics of the job's own come last, added up over its containers. `homeport
    explain PROCESSOR` shows why one is where it is. Of a job that has ended one line is printed,
    with its end.
    """
    with open_stream(given) as (_, stream):
        running = running_job(given, stream)
        ended = None if running or as_json else end_of(given, stream)
    if ended is not None:
        print(ended)
        return
    running, reasons = running or require_running(given), FailureReasons(given)
    if watch is None:
        _print(running, reasons, as_json=as_json)
        return
    while True:
        try:
            clears = sys.stdout.isatty() and not as_json
            _print(running, reasons, as_json=as_json, clears=clears)
        except UnavailableError as error:
            note(f"{time.strftime('%H:%M:%S')}  {error}")
            running = _found_again(running, given)
        sys.stdout.flush()
        time.sleep(watch)  # as the user asked


def _found_again(running: RunningJob, given: Config) -> RunningJob:
    try:
        return require_running(given)
    except UnavailableError:
        return running


def _print(
    running: RunningJob, reasons: FailureReasons, *, as_json: bool, clears: bool = False
) -> None:
    client, now_ms = running.client, int(time.time() * 1000)
    body = client.status_body() if as_json else None
    shown = () if as_json else lines(reasons.added_to(client.status()), now_ms)
    if clears:
        sys.stdout.write(_CLEAR)
    print_answer(body, shown, as_json=as_json)


def lines(status: ShownStatus, now_ms: int) -> Iterator[str]:
    """Yield the first screen. ``now_ms``: since 1970, by the reader's clock."""
    job, containers = status.job, status.containers
    screen = first_screen(status, now_ms)
    health = "starting" if screen.is_calm and screen.late else job.health or job.state
    yield f"{job.name}-{job.id}: {health}, {job.application}, JobModel version {job.model_version}"
    yield screen.headline
    yield from (f"  {notice}" for notice in screen.notices)
    for late in screen.late:
        yield f"  {late.processor_id}: {late.phase}, for {_since(late.since_ms, now_ms)}"
        yield from (f"      waits {wait}" for wait in late.waits)
        yield from (f"      {why}" for why in late.why)
    yield from _restores(containers)
    yield ""
    yield from table([_HEAD, *(_row(each, now_ms) for each in containers)], _NUMBERS)
    yield from _standbys(status)
    metrics = summary(status.own_metrics)
    if metrics:
        yield ""
        yield from table([_METRIC_HEAD, *metrics])


def _restores(containers: Sequence[ShownContainer]) -> Iterator[str]:
    for container in containers:
        for store in () if container.report is None else container.report.restoring:
            left = store.seconds_left
            ends = "" if left is None else f", some {span(int(left * 1000))} left"
            yield (
                f"  {container.processor_id} restores {store.store} of {store.task}: "
                f"{store.records} records read, {store.remaining} offsets to go{ends}"
            )


def _standbys(status: ShownStatus) -> Iterator[str]:
    """Of a standalone job: which processor keeps which standby, and what deaths have cost."""
    rows = [
        (standby.name, container.processor_id, *_progress(standby))
        for container in status.containers
        for standby in container.standbys
    ]
    if rows:
        yield ""
        yield from table([_STANDBY_HEAD, *rows], _STANDBY_NUMBERS)
    taken = status.taken_over
    if taken is not None and taken.lost:
        yield (
            f"{taken.lost} tasks have lost their processor, the last in version "
            f"{taken.version}; {taken.unbacked} of them started without their standby"
        )


def _progress(standby: ShownStandby) -> tuple[str, str, str]:
    seconds = standby.lag_seconds
    state = "caught up" if standby.is_caught_up else "behind"
    return (
        "unknown" if standby.lag is None else state,
        _number(standby.lag),
        "-" if seconds is None else f"{seconds:.1f}",
    )


def _row(container: ShownContainer, now_ms: int) -> tuple[str, ...]:
    report = container.report or ContainerReport()
    return (
        container.processor_id,
        f"standby of {container.replica_of}" if container.is_standby else container.role,
        container.phase.value,
        container.host or "-",
        _since(container.since_ms, now_ms),
        _number(container.epoch),
        _number(container.lag if container.is_standby else report.input_lag),
        _number(report.processed),
        str(container.failures or 0),
    )


def _since(since_ms: int | None, now_ms: int) -> str:
    return span(now_ms - since_ms) if since_ms else "-"


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)
