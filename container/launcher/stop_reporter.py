"""StopReporter: reports the stop of a child straight to Kafka, past the AM.

If the AM's attempt dies, the next one waits long for an incarnation without such a record
(safety A4). ``stop_recorder``, a program of its own, writes the record.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.http.messages import Stopped
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.json_values import compact_json, parse_object
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.model.wire_form import body_of, value_of

_PATIENCE_MS = 2000
"""How long the AM may take to accept a report of a stop."""
_WAIT_MARGIN_MS = 5000

log = logging.getLogger("launcher")


@dataclass(frozen=True)
class Brief:
    """The process to wait for and the record to write; ``pid_fd`` None: it has ended already."""

    config: Mapping[str, str]
    incarnation: Incarnation
    cause: str
    pid_fd: int | None
    wait_ms: int

    def to_json(self) -> bytes:
        """Return the bytes on the recorder's standard input."""
        return compact_json({"pid_fd": None} | body_of(self, flat="incarnation"))

    @staticmethod
    def from_json(data: bytes) -> Brief:
        """Return the brief of ``data``; WireError where it is something else."""
        return value_of(Brief, parse_object(data, "a brief"), "a brief", flat="incarnation")


class StopReporter:
    """Starts recorders of stops; ``shutdown_ms``: how long a child may take to end."""

    def __init__(
        self,
        shutdown_ms: int,
        command: tuple[str, ...] = (
            sys.executable,
            "-m",
            "homeport.container.launcher.stop_recorder",
        ),
    ) -> None:
        self._wait_ms = shutdown_ms + _WAIT_MARGIN_MS
        self._command = command
        self._config: Mapping[str, str] | None = None
        self._said: set[Incarnation] = set()
        self._overdue_ms: int | None = None
        self._recorders: list[subprocess.Popen[bytes]] = []

    def prepare(self, client: CoordinatorClient) -> None:
        """Ask the AM how Kafka is reached, for later; HomeportError: it does not say."""
        if self._config is None:
            self._config = client.config()

    def of_running(self, incarnation: Incarnation, pid_fd: int) -> None:
        """Write the stop once the process of ``pid_fd`` has ended, even after our own end."""
        self._record(incarnation, StopCause.SIGNALLED, pid_fd)

    def of_stopped(self, report: Stopped) -> None:
        """Write the stop of a child that has ended, at once."""
        self._record(report.incarnation, report.cause, None)

    def is_unanswered(self, report: Stopped) -> None:
        """Note that the AM did not take the report; after two seconds write it to Kafka."""
        now_ms = boot_ms()
        if self._overdue_ms is None:
            self._overdue_ms = now_ms + _PATIENCE_MS
        elif now_ms >= self._overdue_ms:
            self.of_stopped(report)

    def is_answered(self) -> None:
        """Note that the AM takes reports."""
        self._overdue_ms = None

    def _record(self, incarnation: Incarnation, cause: StopCause, pid_fd: int | None) -> None:
        self._recorders = [w for w in self._recorders if w.poll() is None]
        if self._config is None or incarnation in self._said:
            return
        # Not a pipe, which may have no reader yet: this is called by a signal's handler too.
        stdin = os.memfd_create("homeport-brief")
        try:
            brief = Brief(dict(self._config), incarnation, cause.value, pid_fd, self._wait_ms)
            os.write(stdin, brief.to_json())
            os.lseek(stdin, 0, os.SEEK_SET)
            recorder = subprocess.Popen(
                self._command,
                stdin=stdin,
                cwd="/",  # YARN may remove ours
                pass_fds=() if pid_fd is None else (pid_fd,),
                start_new_session=True,
            )
        except OSError as e:
            log.warning("the stop of %s cannot be written to Kafka: %s", incarnation, e)
        else:
            self._said.add(incarnation)
            self._recorders.append(recorder)
        finally:
            os.close(stdin)
