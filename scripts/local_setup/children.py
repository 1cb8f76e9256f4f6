"""Child processes of the set-up: each with its whole family in a group of its own.

A child gets no Ctrl-C of the terminal; the process that waits for it ends the whole group instead,
so that nothing (a build below pip, a JVM below Spark) goes on after an interruption.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

_END_SECONDS = 10.0


def run(
    command: Sequence[str],
    output: IO[bytes],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    limit_seconds: float | None = None,
) -> int:
    """Exit code of ``command``, its stdout and stderr having gone to ``output``.

    Raises:
        OSError: it cannot be started.
        subprocess.TimeoutExpired: it took longer than the limit; it has been ended.
    """
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=env,
        cwd=cwd,
        process_group=0,
    )
    try:
        return child.wait(limit_seconds)
    except BaseException:
        _end(child)
        raise


def _end(child: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        child.wait(_END_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
