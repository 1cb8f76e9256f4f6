"""Progress on screen: one line per step with its seconds, and a live line while a step runs.

Everything goes to stderr; stdout belongs to the command that is set up.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TextIO

_QUIET_SECONDS = 15.0
"""Without a terminal, a step that takes long says so this often."""
_REFRESH_SECONDS = 0.5
_TAIL_LINES = 25
_DETAIL_LENGTH = 60
_END_SECONDS = 10.0


class SetupError(Exception):
    """Set-up cannot go on; the message says what to do, and no traceback is of use."""


class Progress:
    """Prints steps as they start, run and end."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()

    def say(self, text: str) -> None:
        """Print one line."""
        print(text, file=self._stream, flush=True)

    @contextmanager
    def step(self, title: str, detail: Callable[[], str] = str) -> Iterator[None]:
        """Run the body as a step: its title with a running clock, and one closing line.

        ``detail``: what it is busy with now; asked for while the step runs.
        """
        start = time.monotonic()
        done = threading.Event()
        ticker = threading.Thread(
            target=self._tick, args=(title, start, done, detail), name="progress", daemon=True
        )
        ticker.start()
        verdict = "interrupted after "
        try:
            yield
            verdict = ""
        except Exception:
            verdict = "FAILED after "
            raise
        finally:
            done.set()
            ticker.join()
            seconds = time.monotonic() - start
            self._rewrite(f"  {title}: {verdict}{seconds:.1f} s", end="\n")

    def _tick(
        self, title: str, start: float, done: threading.Event, detail: Callable[[], str]
    ) -> None:
        pause = _REFRESH_SECONDS if self._live else _QUIET_SECONDS
        if self._live:
            self._rewrite(f"  {title} ...", end="")
        while not done.wait(pause):
            seconds = time.monotonic() - start
            line = f"  {title} ... {seconds:.0f} s  {detail()[:_DETAIL_LENGTH]}".rstrip()
            self._rewrite(line, end="" if self._live else "\n")

    def _rewrite(self, line: str, end: str) -> None:
        if self._live:
            width = os.get_terminal_size(self._stream.fileno()).columns or 80
            line = "\r\x1b[K" + line[: width - 1]
        print(line, file=self._stream, end=end, flush=True)


def run_logged(
    progress: Progress,
    title: str,
    command: Sequence[str],
    log: Path,
    *,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run ``command`` as one step, its output appended to ``log``.

    SetupError: it could not be started or ended with another code than 0; the message holds the end
    of its output and the log's path.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as sink:
        sink.write(f"$ {' '.join(command)}\n".encode())
        sink.flush()
        start = sink.tell()
        with progress.step(title, lambda: _last_line(log)):
            try:
                code = _run(command, sink, env=env)
            except OSError as error:
                raise SetupError(f"{title}: {command[0]} cannot be started: {error}") from error
            if code != 0:
                shown = "\n".join("    " + line for line in _tail(log, start))
                raise SetupError(f"{title} failed with code {code}:\n{shown}\n  whole log: {log}")


def _tail(log: Path, start: int) -> list[str]:
    with log.open("rb") as source:
        source.seek(start)
        return source.read().decode(errors="replace").splitlines()[-_TAIL_LINES:]


def _last_line(log: Path) -> str:
    with log.open("rb") as source:
        source.seek(max(0, log.stat().st_size - 400))
        lines = source.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _run(command: Sequence[str], output: IO[bytes], *, env: Mapping[str, str] | None) -> int:
    """Return the exit code of ``command``, with its whole family in a group of its own.

    It gets no Ctrl-C of the terminal; this process ends the whole group instead, so that nothing (a
    build below pip, a JVM below Spark) goes on after an interruption.
    """
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=env,
        process_group=0,
    )
    try:
        return child.wait()
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
