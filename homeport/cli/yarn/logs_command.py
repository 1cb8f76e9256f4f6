"""``homeport logs``: what a container of a running job prints, from the node that it runs on."""

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer
from msgspec import Struct

from homeport.appmaster.yarn.container_logs import ContainerLog
from homeport.appmaster.yarn.node_names import NodeNames
from homeport.appmaster.yarn.resource_manager_rest import CONF_DIR_VARIABLE, ResourceManagerRest
from homeport.cli.job.job_view import RunningJob, open_stream, require_on_yarn, running_job
from homeport.cli.options import AsJson, Given, described, new_app, note
from homeport.config.config import Config
from homeport.config.errors import ConfigError, UnavailableError
from homeport.config.settings.sections import JobConfig
from homeport.job_coordinator.metadata.epochs import EpochManager
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.wire_form import about, json_text
from homeport.job_coordinator.status.shape import ShownFailure, ShownStatus
from homeport.local_cluster.layout import name_of

app = new_app()

_POLL_S = 0.5
_LINE_BYTES = 400
"""A line of a log is shorter, nearly always; where it is not, fewer lines are printed."""
_OF = " of "
_ON_ITS_HOST = (
    "has no meaning for a standalone job, whose processors print where their user starts them",
    "look at what the processor prints; homeport status shows its host",
)
_Place = tuple[str, str, str]
"""Host, YARN's container, file."""


@app.command()
@described(
    processor=typer.Argument(help="The processor id of a container."),
    follow=typer.Option(
        "--follow", "-f", help="Go on as it grows, also where the container moves."
    ),
    tail=typer.Option("--tail", min=0, help="Print so many of the last lines; 0: all."),
    epoch=typer.Option("--epoch", min=1, help="The log of that epoch, which failed lately."),
)
def logs(
    *,
    processor: str,
    given: Given,
    follow: bool = False,
    tail: int = 100,
    epoch: int | None = None,
    as_json: AsJson = False,
) -> None:
    """Prints the log of the container that runs as PROCESSOR, or of its last one if none runs.

    HADOOP_CONF_DIR names the folder with the cluster's configuration; the NodeManager serves the
    file. With --follow the log of the next container follows when this one has ended. --json: one
    object per line of the log. YARN alone has the logs of a job that has ended; the refusal names
    the command that shows them.
    """
    running = _running(given)
    yarn = ResourceManagerRest.from_environment(os.environ)
    status = running.client.status()
    place = _required_place(status, processor, epoch)
    log, printer = _log(yarn, place), Printer(as_json=as_json)
    data, position = _last_lines(log, tail)
    if epoch is not None and not position and place != _place_of_running(status, processor):
        raise UnavailableError(f"the node {place[0]} does not have {log} any more")
    hint = None if epoch is not None else earlier_failure(status, processor, place)
    if hint is not None:
        note(f"{processor}@{hint.epoch} failed on {hint.host}: --epoch={hint.epoch} for its log")
    printer.write(data, place)
    while follow:
        time.sleep(_POLL_S)  # a NodeManager does not say that a file has grown
        now = place_of(running.client.status(), processor, epoch) or place
        data, position = log.after(position)
        printer.write(data, place)
        if now != place:
            printer.end(place)
            place, log, position = now, _log(yarn, now), 0
    printer.end(place)


def _running(given: Config) -> RunningJob:
    """Return the job; UnavailableError, with the way to its logs, where it does not run."""
    with open_stream(given) as (_, stream):
        require_on_yarn(given, stream, "logs", _ON_ITS_HOST)
        running = running_job(given, stream)
        submission = EpochManager(stream).read_submission()
    if running is not None:
        return running
    application = None if submission is None else submission.application
    way = "" if application is None else f": {way_to_logs(application, os.environ)}"
    raise UnavailableError(f"the job {JobConfig.of(given).name} does not run{way}")


def way_to_logs(application: str, environment: Mapping[str, str]) -> str:
    """Return how the user finds the logs of an application that has ended."""
    local = name_of(Path(environment.get(CONF_DIR_VARIABLE, "")))
    if local is not None:
        return f"homeport local logs --name {local} lists the logs, below {application}"
    return f"yarn logs -applicationId {application} prints the logs of its containers"


def _required_place(status: ShownStatus, processor: str, epoch: int | None) -> _Place:
    place = place_of(status, processor, epoch)
    if place is None and epoch is not None:
        raise UnavailableError(
            f"{processor}@{epoch} neither runs nor is among the last failures that the job knows: "
            f"homeport explain {processor} names the last one"
        )
    if place is None:
        raise UnavailableError(
            f"container {processor} has not begun, so that there is no log of it: homeport "
            f"explain {processor} shows what it waits for"
        )
    return place


def _log(yarn: ResourceManagerRest, place: _Place) -> ContainerLog:
    host, container, file = place
    reports = [node.report for node in yarn.nodes()]
    webs = [report.web for report in reports if report.host == host and report.web]
    if not webs:
        raise UnavailableError(f"YARN does not know where the node {host} serves its logs")
    address = NodeNames.from_environment(os.environ).with_known_address(webs[0])
    log = ContainerLog(f"{urlsplit(yarn.url).scheme}://{address}", container, file)
    note(f"{log} on {host}")
    return log


def _last_lines(log: ContainerLog, tail: int) -> tuple[bytes, int]:
    """Return the last lines, and where the log ends."""
    data, length = log.after(0) if tail == 0 else log.last(tail * _LINE_BYTES)
    lines = data.splitlines(keepends=True)
    if len(data) < length:
        lines = lines[1:]  # a part of a line
    return b"".join(lines[-tail:] if tail else lines), length


class LogLine(Struct, frozen=True):
    """One line of a log, for a script."""

    host: Annotated[str, about("the node where the container runs")]
    container: Annotated[str, about("YARN's name of it")]
    file: Annotated[str, about("the log, in its folder there")]
    line: Annotated[str, about("of the log, without its end")]


class Printer:
    """Prints a log as it is, or each of its lines as an object."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._part = b""

    def write(self, data: bytes, place: _Place) -> None:
        """Print what has come to the log; as objects, lines without an end wait for it."""
        if not self._as_json:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
            return
        *lines, self._part = (self._part + data).split(b"\n")
        for line in lines:
            text = line.decode(errors="backslashreplace")
            print(json_text(LogLine(*place, text)), flush=True)

    def end(self, place: _Place) -> None:
        """End the log: its last line needs no end."""
        if self._part:
            self.write(b"\n", place)


def place_of(status: ShownStatus, processor: str, epoch: int | None = None) -> _Place | None:
    """Return where the log of that processor's container is, by the status; None: nowhere yet.

    That of the container that runs; of one that does not, its last failure's. ``epoch``: of that
    one alone. ConfigError: the job has no such processor.
    """
    container = status.container(ProcessorId(processor))
    if container is None:
        known = ", ".join(c.processor_id for c in status.containers)
        raise ConfigError("PROCESSOR", processor, f"the job has {known}", "name one of these")
    running = _place_of_running(status, processor)
    if running is not None and epoch in {None, container.epoch}:
        return running
    for failure in reversed(status.failures):
        place = _place_of_failure(failure, processor)
        if place is not None and epoch in {None, failure.epoch}:
            return place
    return None


def earlier_failure(status: ShownStatus, processor: str, place: _Place) -> ShownFailure | None:
    """Return the last failure of the processor whose log is not the one at ``place``."""
    for failure in reversed(status.failures):
        other = _place_of_failure(failure, processor)
        if other is not None and other != place:
            return failure
    return None


def _place_of_running(status: ShownStatus, processor: str) -> _Place | None:
    container = status.container(ProcessorId(processor))
    if container is None or not (container.resource and container.host and container.epoch):
        return None
    return container.host, container.resource, f"container-{processor}-{container.epoch}.log"


def _place_of_failure(failure: ShownFailure, processor: str) -> _Place | None:
    file, found, resource = (failure.log or "").partition(_OF)
    if failure.processor_id == processor and found and failure.host:
        return failure.host, resource, file
    return None
