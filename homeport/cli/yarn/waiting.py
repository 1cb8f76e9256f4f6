"""How ``run-job`` waits for others, and the progress that it prints meanwhile."""

import contextlib
import threading
import time
from collections.abc import Iterator

from homeport.cli.job.job_view import require_running
from homeport.cli.options import Progress, note
from homeport.config.config import Config
from homeport.config.errors import HomeportError

_POLL_S = 0.3
_PROGRESS_S = 5.0


class Waiter:
    """Polls until something is so; prints every few seconds what it waits for."""

    def __init__(self, limit_s: float | None) -> None:
        self._started = time.monotonic()
        self._limit_s = limit_s
        self._progress = Progress(_PROGRESS_S, _PROGRESS_S)
        self._pause = threading.Event()

    @property
    def elapsed_s(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self._started

    def polls(self) -> Iterator[None]:
        """Yield once per poll until the limit."""
        while self._limit_s is None or self.elapsed_s < self._limit_s:
            yield
            self._pause.wait(_POLL_S)

    def polls_logging(self, what: str) -> Iterator[None]:
        """Yield as ``polls``, and print what is waited for."""
        for _ in self.polls():
            self.log_progress(what)
            yield

    def log_progress(self, what: str) -> None:
        """Print that ``what`` is waited for, if nothing was printed for a while."""
        self._progress.show(f"{self.elapsed_s:5.0f} s  {what}")


def log_shortage(config: Config) -> None:
    """Print, beside the status, what is short for the job; nothing if its AM does not answer."""
    with contextlib.suppress(HomeportError):
        waiting = require_running(config).client.status().waiting
        if waiting is not None:
            note(waiting.says)
