"""Removes directories that jobs have left on this host, once a day, by a process of its own.

The process is ``homeport clean --all-jobs --apply`` in the words of a launcher's log. It has Kafka
clients, which a launcher has not, and its memory is given back. It is started, and kept, only where
there is room for a spare (``config.memory_rule``), and gives way to the container.
"""

import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from homeport.config.settings.memory_rule import has_room_for_spare, must_spare_go
from homeport.container.launcher.spare import used_mb
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.own_folders import PRIVATE_UMASK
from homeport.job_coordinator.parent_death import ending_with_us

_PROGRAM = "homeport.cli.host.host_clean"
_DAY_MS = 86_400_000
_LIMIT_MS = 3_600_000
"""The launcher ends a process that takes longer; its removals stay."""
_SHORTAGE_MS = 60_000
"""From a look that found too little memory to the next."""

log = logging.getLogger("launcher")


class HostCleaning:
    """Keeps at most one such process; for the main thread, with which the process ends.

    ``after_ms``: the age of what goes; 0: nothing does. ``memory_mb``: the YARN container's; 0: not
    known, so that there is no room. ``command``: the program, without the age.
    """

    def __init__(
        self,
        after_ms: int,
        memory_mb: int,
        token_file: Path,
        command: Sequence[str] = (sys.executable, "-m", _PROGRAM),
    ) -> None:
        self._memory_mb = memory_mb
        self._command = (*command, str(after_ms))
        self._environment = {**os.environ, "HOMEPORT_TOKEN_FILE": str(token_file)}
        self._is_wanted = after_ms > 0
        self._process: subprocess.Popen[bytes] | None = None
        self._due_ms = boot_ms()

    def look_after(self) -> None:
        """Start the process when it is due; end it when it takes too long or too much memory."""
        now_ms = boot_ms()
        if self._process is not None:
            if (code := self._process.poll()) is not None:
                self._process = None
                if code:
                    log.warning("the cleaning of this host has failed, exit code %d", code)
            elif now_ms >= self._due_ms - _DAY_MS + _LIMIT_MS:
                self.end("it takes too long")
            elif must_spare_go(self._memory_mb, used_mb()):
                self.end("its memory is needed")
                self._due_ms = now_ms + _SHORTAGE_MS
        elif self._is_wanted and now_ms >= self._due_ms:
            self._due_ms = now_ms + _SHORTAGE_MS
            if has_room_for_spare(self._memory_mb, used_mb()):
                self._begin(now_ms)

    def end(self, why: str) -> None:
        """End the process, if there is one, and wait for it."""
        if self._process is not None:
            log.warning("the cleaning of this host ends early: %s", why)
            self._process.kill()
            self._process.wait()
            self._process = None

    def _begin(self, now_ms: int) -> None:
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                env=self._environment,
                umask=PRIVATE_UMASK,
                # As of a child: threads of a lease may run.
                preexec_fn=ending_with_us(),  # noqa: PLW1509 - two system calls
            )
        except OSError as error:
            log.warning("the cleaning of this host cannot be started: %s", error)
        self._due_ms = now_ms + _DAY_MS
