"""What a launcher makes of its child's end: the cause, and the last lines that the child said.

Decides only.
"""

from __future__ import annotations

import signal

from homeport.container.host.exit_codes import (
    EXIT_CUT_OFF,
    EXIT_DISK_FULL,
    EXIT_OVERTAKEN,
    EXIT_TERMINATED,
    EXIT_UNAVAILABLE,
)
from homeport.job_coordinator.model.outcomes import StopCause

LAST_LINES = 20
EXITED = "exit code 0 before the tasks have finished: code of the job, or a library, has exited"
"""The last line of a child that exits as if it had finished."""

_TOLD = {
    EXIT_UNAVAILABLE: StopCause.UNAVAILABLE,
    EXIT_CUT_OFF: StopCause.CUT_OFF,
    EXIT_OVERTAKEN: StopCause.ORDERED,
    EXIT_DISK_FULL: StopCause.DISK_FULL,
}
"""Exit codes by which the child itself names the cause."""


def cause_of(
    exit_code: int, *, finished: bool, ordered: bool, signalled: bool = False
) -> StopCause:
    """Why a child ended: by Python's exit code (minus the signal that ended it) and our orders.

    ``finished``: the child has said so in its lease memory, which nothing but its orderly end does.
    ``signalled``: so was its launcher. YARN signals the whole process group, the child's JVM too,
    so that whatever the child then made of it is no fault of its own.
    """
    if exit_code == 0 and finished:
        return StopCause.FINISHED
    if ordered and exit_code in {EXIT_TERMINATED, -signal.SIGTERM, -signal.SIGKILL}:
        return StopCause.ORDERED
    if signalled or exit_code in {EXIT_TERMINATED, -signal.SIGTERM}:
        return StopCause.SIGNALLED
    if exit_code == -signal.SIGKILL:
        return StopCause.KILLED
    return _TOLD.get(exit_code, StopCause.FAILED)


def last_lines(text: bytes, count: int = LAST_LINES) -> tuple[str, ...]:
    """The last ``count`` lines of ``text`` that are not blank."""
    lines = text.decode("utf-8", "replace").splitlines()
    return tuple([line.rstrip() for line in lines if line.strip()][-count:])
