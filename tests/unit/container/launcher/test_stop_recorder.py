"""What a stop witness waits for: the end of a process that it holds the pidfd of."""

from __future__ import annotations

import os
import subprocess
import sys

from homeport.container.launcher.stop_recorder import has_ended

LIMIT_MS = 30_000


def test_a_process_has_ended_only_once_it_is_gone() -> None:
    """While it lives, the witness may not write that it has stopped (safety A4)."""
    waits_for_input = [sys.executable, "-c", "input()"]
    with subprocess.Popen(waits_for_input, stdin=subprocess.PIPE) as child:
        pid_fd = os.pidfd_open(child.pid)
        try:
            assert has_ended(pid_fd, 0) is False
            child.kill()
            assert has_ended(pid_fd, LIMIT_MS) is True
        finally:
            child.kill()
            os.close(pid_fd)
