"""Why containers failed on YARN, from the coordinator stream, for lines that name a failure.

The reason is a line of the container's log, which may quote data of the job. So YARN's pages and
the status without a token have none: it takes the right to read the job's topic.
"""

import re
import time
from collections.abc import Mapping
from functools import partial

from msgspec import structs

from homeport.cli.job.job_view import open_stream
from homeport.cli.options import note
from homeport.config.config import Config
from homeport.config.errors import HomeportError
from homeport.config.settings.sections import JobConfig
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.metadata.epochs import EpochManager
from homeport.job_coordinator.metadata.lifecycle import JobEndManager, RetryManager
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.status.shape import ShownStatus

_RETRY_S = 60.0
"""A look at a stream that is away takes seconds, in which a watched status stands still."""


def with_reasons(text: str, reasons: Mapping[Incarnation, str]) -> str:
    """Return ``text`` with the reason of each incarnation behind the failure that it names."""
    for incarnation, reason in reasons.items():
        name = re.escape(f"{incarnation.processor_id}@{incarnation.epoch}")
        failure = re.compile(rf"(?<!\S){name} on \S+: [a-z-]+, exit code -?\d+")
        text = failure.sub(partial(_with, reason), text)
    return text


def _with(reason: str, failure: re.Match[str]) -> str:
    return f"{failure[0]}: {reason}"


class FailureReasons:
    """Adds reasons to statuses of a job; reads the stream where a failure is new.

    A stream that cannot be read gets a note, and the next look at it comes a minute later.
    """

    def __init__(self, given: Config) -> None:
        self._given = given
        self._known: list[str | None] = []
        self._reasons: Mapping[Incarnation, str] = {}
        self._due_s = 0.0

    def added_to(self, status: ShownStatus) -> ShownStatus:
        """Return ``status`` with the reasons of last failures, as far as they can be read."""
        failures = [container.last_failure for container in status.containers]
        if failures != self._known and any(failures) and time.monotonic() >= self._due_s:
            self._read(failures)
        containers = (
            structs.replace(c, last_failure=with_reasons(c.last_failure, self._reasons))
            if c.last_failure
            else c
            for c in status.containers
        )
        return structs.replace(status, containers=tuple(containers))

    def _read(self, failures: list[str | None]) -> None:
        try:
            with open_stream(self._given) as (_, stream):
                self._reasons = RetryManager(stream).reasons()
        except HomeportError as error:  # the status itself comes from the job
            note(f"failures are shown without their reasons: {error}")
            self._due_s = time.monotonic() + _RETRY_S
        else:
            self._known = failures


def end_of(config: Config, stream: CoordinatorStream) -> str | None:
    """Return how the last submission has ended on YARN, in one line; None where it has not."""
    submission = EpochManager(stream).read_submission()
    end = None if submission is None else JobEndManager(stream).read(submission.number)
    if submission is None or end is None:
        return None
    story = with_reasons(end.diagnostics, RetryManager(stream).reasons())
    job, why = JobConfig.of(config), f": {story}" if story else ""
    return f"{job.name}-{job.id}: ended, {submission.application}, {end.result}{why}"
