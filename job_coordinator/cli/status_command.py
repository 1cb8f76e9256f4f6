"""``homeport status``: what of a running job is not where it should be, and what runs where."""

from __future__ import annotations

import sys
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from homeport.config.config import Config
from homeport.config.errors import UnavailableError
from homeport.config.printable import printable_lines
from homeport.job_coordinator.cli.job_view import RunningJob, require_running
from homeport.job_coordinator.cli.options import (
    AsJson,
    ConfigPath,
    Overrides,
    loaded,
    new_app,
    note,
)
from homeport.job_coordinator.cli.usage import Control
from homeport.job_coordinator.model.json_values import compact_json
from homeport.job_coordinator.ui.first_screen import first_screen
from homeport.job_coordinator.ui.times import span

app = new_app()

_CLEAR = Control("\x1b[H\x1b[2J")
_HEAD = ("PROCESSOR", "ROLE", "PHASE", "HOST", "FOR", "EPOCH", "LAG", "PROCESSED", "FAILURES")
_STANDBY_HEAD = ("STANDBY", "PROCESSOR", "STATE", "LAG", "SECONDS")
_LAG = 6


@app.command()
def status(
    *,
    config_path: ConfigPath,
    config: Overrides = None,
    watch: Annotated[
        float | None,
        typer.Option("--watch", min=0.2, help="Look again each so many seconds, until Ctrl-C."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Prints first what does not run, since when, and what it waits for; then all containers.

    LAG is, of an active container, what it has not read of its inputs, in records; of a standby,
    what it has not read of its changelogs. PROCESSED counts the records of committed transactions
    since the container began. Of a standalone job the standbys follow, with the processor that
    keeps each. `homeport explain PROCESSOR` shows why one is where it is.
    """
    given = loaded(config_path, config)
    running = require_running(given)
    if watch is None:
        _print(running, as_json=as_json)
        return
    while True:
        try:
            _print(running, as_json=as_json, clears=sys.stdout.isatty() and not as_json)
        except UnavailableError as error:
            note(f"{time.strftime('%H:%M:%S')}  {error}")
            running = _found_again(running, given)
        sys.stdout.flush()
        time.sleep(watch)  # as the user asked


def _found_again(running: RunningJob, given: Config) -> RunningJob:
    """Another attempt's AM, or another leader, if one answers by now."""
    try:
        return require_running(given)
    except UnavailableError:
        return running


def _print(running: RunningJob, *, as_json: bool, clears: bool = False) -> None:
    found = running.client.status()
    if as_json:
        print(compact_json(found).decode())
        return
    now_ms = int(time.time() * 1000)
    text = printable_lines(lines(found, now_ms))
    if clears:
        sys.stdout.write(_CLEAR)
    print(text)


def lines(status: Mapping[str, Any], now_ms: int) -> Iterator[str]:
    """The first screen, out of ``/v1/status``. ``now_ms``: since 1970, by the reader's clock."""
    job: Mapping[str, Any] = status["job"]
    version = job.get("model_version")
    yield (
        f"{job['name']}-{job['id']}: {job.get('health') or job.get('state')}, {job['application']}"
        f", JobModel version {version}"
    )
    containers: Sequence[Mapping[str, Any]] = status.get("containers", ())
    screen = first_screen(status, now_ms)
    yield screen.headline
    yield from (f"  {notice}" for notice in screen.notices)
    for late in screen.late:
        yield f"  {late.processor_id}: {late.phase}, for {_since(late.since_ms, now_ms)}"
        yield from (f"      waits {wait}" for wait in late.waits)
        yield from (f"      {why}" for why in late.why)
    yield from _restores(containers)
    yield ""
    yield from _table([_HEAD, *(_row(container, now_ms) for container in containers)])
    yield from _standbys(status, containers)


def _restores(containers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for container in containers:
        for store in (container.get("report") or {}).get("restoring") or ():
            left = store.get("seconds_left")
            ends = "" if left is None else f", some {span(int(left * 1000))} left"
            yield (
                f"  {container['processor_id']} restores {store['store']} of {store['task']}: "
                f"{store['records']} records read, {store['remaining']} offsets to go{ends}"
            )


def _standbys(status: Mapping[str, Any], containers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Of a standalone job: which processor keeps which standby, and what deaths have cost."""
    rows = [
        (standby["name"], container["processor_id"], *_progress(standby))
        for container in containers
        for standby in container.get("standbys") or ()
    ]
    if rows:
        yield ""
        yield from _table([_STANDBY_HEAD, *rows], numbers=range(3, 5))
    taken = status.get("taken_over") or {}
    if taken.get("lost"):
        yield (
            f"{taken['lost']} tasks have lost their processor, the last in version "
            f"{taken['version']}; {taken['unbacked']} of them started without their standby"
        )


def _progress(standby: Mapping[str, Any]) -> tuple[str, str, str]:
    lag, seconds, is_caught_up = (standby[n] for n in ("lag", "lag_seconds", "is_caught_up"))
    state = "unknown" if lag is None else ("caught up" if is_caught_up else "behind")
    return state, _number(lag), "-" if seconds is None else f"{seconds:.1f}"


def _row(container: Mapping[str, Any], now_ms: int) -> tuple[str, ...]:
    report: Mapping[str, Any] = container.get("report") or {}
    is_standby = container.get("replica_of") is not None
    lag = container.get("lag") if is_standby else report.get("input_lag")
    role = f"standby of {container['replica_of']}" if is_standby else container.get("role", "")
    return (
        str(container["processor_id"]),
        role,
        container["phase"],
        container.get("host") or "-",
        _since(container.get("since_ms"), now_ms),
        str(container.get("epoch", "-")),
        "-" if lag is None else str(lag),
        _number(report.get("processed")),
        str(container.get("failures") or 0),
    )


def _since(since_ms: int | None, now_ms: int) -> str:
    """How long it has been in its phase; "-" where that is not known."""
    return span(now_ms - since_ms) if since_ms else "-"


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _table(
    rows: Sequence[Sequence[str]], numbers: Container[int] = range(_LAG, len(_HEAD))
) -> Iterator[str]:
    """Columns as wide as what is in them; those of ``numbers`` to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.rjust(width) if number in numbers else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
