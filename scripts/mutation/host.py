"""A process that has collected the tests of one module, and is forked for each trial.

A trial there costs what its tests do: nothing is imported again. What it notices is noticed; what
it does not, another trial has to confirm that imports the changed source (``trial``), as a value
may have been computed at the import.
"""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from mutation.swap import Functions
from mutation.trial import Chosen, Outcome

_NOT_SWAPPED = "cannot be changed after the import"
_OPTIONS = ("-q", "-s", "-p", "no:cacheprovider", "--assert=plain", "--tb=line")


class Host:
    """The other end of it: asks for trials. One at a time is begun, any number may run.

    ``fork`` starts a process of this function, and returns its pid. ``files``: those of all tests
    that trials may ask for.
    """

    def __init__(
        self,
        fork: Callable[[Callable[[], None]], int],
        path: Path,
        source: str,
        files: Sequence[str],
    ) -> None:
        self._own, there = socket.socketpair()

        def work() -> None:
            self._own.close()
            serving = _Serving(there, path, source)
            pytest.main([*_OPTIONS, *files], plugins=[serving])

        self.pid = fork(work)
        there.close()
        self._answers = self._own.makefile("r", encoding="utf-8")

    def begin(self, source: Path, tests: Sequence[str], answer: Path) -> int | None:
        """Return the pid of a trial that has begun; None where the host has ended.

        The trial writes its outcome to ``answer``, or nothing where it crashes.
        """
        asked = {"source": str(source), "tests": list(tests), "answer": str(answer)}
        try:
            self._own.sendall(json.dumps(asked).encode() + b"\n")
            line = self._answers.readline()
        except OSError:
            return None
        return int(line) if line else None

    def close(self) -> None:
        """Let the host end by itself; trials that run go on."""
        self._answers.close()
        self._own.close()


class _Serving:
    """A plugin of pytest: in place of running what was collected, forks for each trial."""

    def __init__(self, channel: socket.socket, path: Path, source: str) -> None:
        self._channel = channel
        self._path, self._source = path, source

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Serve until the other end closes."""
        functions = Functions(str(self._path), self._source)
        items = {item.nodeid: item for item in session.items}
        with self._channel.makefile("r", encoding="utf-8") as asked:
            for line in asked:
                pid = os.fork()
                if not pid:
                    _try(session, functions, items, json.loads(line))
                self._channel.sendall(f"{pid}\n".encode())
                _reap(pid)
        return True


def _reap(newest: int) -> None:
    """Reap the trials that have ended, except the newest: the other end has yet to open its pid."""
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid == newest:
            return
        os.waitpid(ended.si_pid, 0)


def _try(
    session: pytest.Session,
    functions: Functions,
    items: Mapping[str, pytest.Item],
    asked: Mapping[str, Any],
) -> None:
    """The fork's whole life: the tests, up to the first that fails, and the answer."""
    code = 1
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        outcome = Outcome((), 0, _NOT_SWAPPED)
        if functions.take(Path(asked["source"]).read_text(encoding="utf-8")):
            outcome = _outcome(session, [items[t] for t in asked["tests"] if t in items])
        outcome.write(Path(asked["answer"]))
        code = 0
    finally:
        os._exit(code)


def _outcome(session: pytest.Session, chosen: Sequence[pytest.Item]) -> Outcome:
    noted = Chosen((), ())
    session.config.pluginmanager.register(noted)
    for item, following in zip(chosen, [*chosen[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if noted.failed:
            break
    return Outcome(tuple(noted.failed), noted.passed)
