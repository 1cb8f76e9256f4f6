"""What ``homeport move`` and ``homeport restart`` share: a request is written, and waited for.

The request is a record of the coordinator stream in Samza's bytes, and so is the answer. The
request stays the same when the command stops waiting.
"""

import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated

import typer

from homeport.cli.job.failure_reasons import end_of
from homeport.cli.job.job_view import JobView, open_job, running_job
from homeport.cli.options import note
from homeport.config.config import Config
from homeport.config.errors import (
    ConfigError,
    HomeportError,
    UnansweredError,
    UnavailableError,
    WireError,
)
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.metadata.epochs import EpochManager
from homeport.job_coordinator.metadata.placement import PlacementManager
from homeport.job_coordinator.model.ids import ProcessorId, host_of
from homeport.job_coordinator.model.placement import (
    ANY_HOST,
    CANCEL,
    FORCE_RESTART_LAST_SEEN,
    LAST_SEEN,
    PlacementRequest,
    PlacementResponse,
    PlacementStatus,
)
from homeport.job_coordinator.status.shape import Phase, ShownStatus
from homeport.job_coordinator.ui.first_screen import listed

DESTINATIONS = {"any": ANY_HOST, "last-seen": LAST_SEEN}
"""Words that an operator types for a host."""

NoWait = Annotated[
    bool, typer.Option("--no-wait", help="Do not wait for the answer; print the id of the request.")
]

NOT_LIVE = "it is no live host of the cluster"
_DRAINED = "it is drained, so that no container is placed there"
_SILENT = "it has fallen silent and is not asked"

_POLL_S = 0.5
_AM_POLL_S = 10.0
_SILENCE_S = 300.0
"""YARN's next attempt answers after a minute or two; a broker that starts again, sooner."""
_KAFKA, _AM = "Kafka", "the AM"


def ask(
    config: Config,
    processor: str,
    destination: str,
    *,
    no_wait: bool,
    expiry_ms: int | None = None,
    is_warm: bool = False,
) -> None:
    """Write the request, show its progress, and print the answer.

    ConfigError and UnavailableError: nothing was written. HomeportError: it was refused, or has
    failed. UnansweredError: its end is not known.
    """
    with open_job(config) as job:
        job.require_on_yarn("move and restart")
        running = job.require_running()
        status = running.client.status()
        check(status, processor, destination)
        if is_there(status, processor, destination):
            restart = f"homeport restart {processor} restarts it"
            print(f"processor {processor} runs on {destination} already; {restart}")
            return
        request = new_request(
            running.application, processor, destination, expiry_ms=expiry_ms, is_warm=is_warm
        )
        write_order(job.stream, [PlacementManager.request_message(request)])
        note(f"asked of {running}")
        if no_wait:
            print(request.uuid)
            return
        print(outcome(final(answers(job.stream, request.uuid, Patience(job)))))


def write_order(stream: CoordinatorStream, messages: Sequence[CoordinatorStreamMessage]) -> None:
    """Write the messages of an order; UnansweredError where it is not known if they are there."""
    try:
        stream.write(messages)
    except UnavailableError as error:
        raise UnansweredError(
            f"{error}; whether the order is in the coordinator stream is not known: see homeport "
            "status before you give it again"
        ) from None


def new_request(
    application: str,
    processor: str,
    destination: str,
    *,
    expiry_ms: int | None = None,
    is_warm: bool = False,
    is_drain: bool = False,
) -> PlacementRequest:
    """Return a request of now, for that run of the job."""
    return PlacementRequest(
        str(uuid.uuid4()),
        application,
        ProcessorId(processor),
        destination,
        expiry_ms,
        int(time.time() * 1000),
        is_warm,
        is_drain,
    )


def check(status: ShownStatus, processor: str, destination: str) -> None:
    """Require that the running job has the processor, and may request the host, if one is named."""
    known = [str(container.processor_id) for container in status.containers]
    if processor not in known:
        raise ConfigError("PROCESSOR", processor, "the job has none of that id", _one_of(known))
    if destination in {ANY_HOST, LAST_SEEN, FORCE_RESTART_LAST_SEEN, CANCEL}:
        return
    fault = host_fault(status, destination)
    if fault is not None:
        remedy = {
            NOT_LIVE: _one_of([*status.hosts, "any"]),
            _DRAINED: f"take that back: homeport drain {destination} --undo",
            _SILENT: "try another, or later",
        }
        raise ConfigError("HOST", destination, fault, remedy[fault])


def host_fault(status: ShownStatus, host: str) -> str | None:
    """Return why the job places no container on ``host`` now; None: it may, or knows no hosts."""
    if not status.hosts:
        return None
    if host not in status.hosts:
        return NOT_LIVE
    if host in status.drained_hosts:
        return _DRAINED
    return _SILENT if host in status.excluded_hosts else None


def is_there(status: ShownStatus, processor: str, destination: str) -> bool:
    """Return whether the processor runs on that host, and no command moves it."""
    (container,) = (c for c in status.containers if c.processor_id == processor)
    is_moving = any(each.processor_id == processor for each in status.placements)
    return container.phase is Phase.RUNNING and container.host == destination and not is_moving


def _one_of(names: list[str]) -> str:
    return f"there are {listed(names)}"


def destination_of(host: str) -> str:
    """Return what the request has where an operator typed ``host``: one of two words, or a name."""
    name = host_of(host)
    return DESTINATIONS.get(name, name)


def answers(
    stream: CoordinatorStream, uuid: str, patience: Callable[[], None]
) -> Iterator[PlacementResponse]:
    """Yield every answer that is seen, up to the last one.

    ``patience``: waits, then reads the stream on; what it raises comes out.
    """
    manager, seen = PlacementManager(stream), None
    while True:
        response = manager.read_responses().get(uuid)
        if response is not None and response != seen:
            seen = response
            yield response
            if response.status.is_final:
                return
        patience()


def final(responses: Iterator[PlacementResponse], about: str = "") -> PlacementResponse:
    """Return the last answer; those before it are shown, behind ``about``."""
    answer = next(responses)
    while not answer.status.is_final:
        note(f"{about}{answer.status}: {answer.message}")
        answer = next(responses)
    return answer


def outcome(answer: PlacementResponse) -> str:
    """Return the one line of an answer that is good; HomeportError with the line of another."""
    line = f"{answer.status}: {answer.message}"
    if answer.status is not PlacementStatus.SUCCEEDED:
        raise HomeportError(line)
    return line


class Patience:
    """Waits for the end of an order, which the running job carries out without it.

    It names what does not answer, and waits on: the order is in the coordinator stream.
    """

    def __init__(self, job: JobView, clock: Callable[[], float] = time.monotonic) -> None:
        self._job = job
        self._clock = clock
        self._pause = threading.Event()
        self._asked_s = now_s = clock()
        self._heard_s = {_KAFKA: now_s, _AM: now_s}
        self._silent: set[str] = set()
        self._submission = self._newest_submission()

    def __call__(self) -> None:
        """Pause, then read the stream on; UnansweredError after a long silence.

        HomeportError: the job has ended without an answer in the stream. A next run deletes the
        answers of the one before.
        """
        if self._newest_submission() != self._submission:
            raise HomeportError(
                "that run of the job has ended, and another submission has begun: what was ordered "
                "ended with it; see homeport status"
            )
        if (ended := end_of(self._job.given, self._job.stream)) is not None:
            raise HomeportError(f"{ended}; what was ordered ends with it")
        self._pause.wait(_POLL_S)
        try:
            self._job.stream.catch_up()
        except UnavailableError as error:
            self._unanswered(_KAFKA, f"{error}")
            return
        now_s = self._heard(_KAFKA)
        if now_s - self._asked_s < _AM_POLL_S:
            return
        self._asked_s = now_s
        if running_job(self._job.given, self._job.stream) is None:
            self._unanswered(_AM, "the AM does not answer")
        else:
            self._heard(_AM)

    def status(self) -> ShownStatus:
        """Return the AM's status once it answers; UnansweredError after a long silence."""
        while True:
            running = running_job(self._job.given, self._job.stream)
            with contextlib.suppress(UnavailableError, WireError):
                if running is not None:
                    return running.client.status()
            self()

    def _newest_submission(self) -> int:
        last = EpochManager(self._job.stream).read_submission()
        return 0 if last is None else last.number

    def _heard(self, partner: str) -> float:
        self._silent.discard(partner)
        self._heard_s[partner] = now_s = self._clock()
        return now_s

    def _unanswered(self, partner: str, fault: str) -> None:
        if partner not in self._silent:
            note(f"{fault}; what was ordered stays in the coordinator stream, and goes on")
        self._silent.add(partner)
        silent_s = self._clock() - self._heard_s[partner]
        if silent_s >= _SILENCE_S:
            raise UnansweredError(
                f"{partner} has not answered for {silent_s:.0f} s: what was ordered may go on; see "
                "homeport status, and homeport coordinator-stream show for its records"
            )
