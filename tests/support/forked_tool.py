"""The programs ``homeport`` and ``run-job`` in forks of a process that has their modules already.

A command costs 0.35 s of processor time, nine tenths of it for imports. A fork has arguments, an
environment, standard streams and an exit code of its own, as the program of a shell has.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn

MODULE, RUN_JOB = "homeport.cli.main", "homeport.cli.yarn.run_job"
WRITER = "homeport.cli.job.coordinator_stream_writer"
_PRELOADED = re.compile(r"homeport\.cli\.(job\.\w+|completion_command|migrate_check_command)")
"""Whose commands are imported before, beside ``RUN_JOB``. Others load what has threads."""
_MOST = 1 << 16
"""Bytes of a request."""


def run_about(
    keys: Mapping[str, str],
    file: Path,
    words: Sequence[str],
    environment: Mapping[str, str] = MappingProxyType({}),
    *,
    module: str = MODULE,
    typed: str = "",
    limit_s: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Run a program on the job of these keys, which ``file`` has then, as ``run_forked`` does."""
    text = "".join(f"{key}={value}\n" for key, value in keys.items())
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")  # several tools may be reading it
    variables = {"PYTHONPATH": ":".join(p for p in sys.path if p), **environment}
    full = [*words, f"--config-path={file}"]
    return run_forked(full, variables, typed=typed, limit_s=limit_s, module=module)


def run_forked(
    words: Sequence[str],
    environment: Mapping[str, str],
    *,
    typed: str = "",
    limit_s: float,
    module: str = MODULE,
) -> subprocess.CompletedProcess[str]:
    """Return exit code, output and errors of ``homeport``, or of ``module``, with these words.

    Raises:
        subprocess.TimeoutExpired: it ran for longer than ``limit_s``, and is killed.
    """
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection,
    ):
        given.write(typed.encode())
        given.seek(0)
        connection.settimeout(limit_s)
        connection.connect(_server())
        request = json.dumps([module, list(words), dict(environment)]).encode()
        socket.send_fds(connection, [request], [f.fileno() for f in (given, output, errors)])
        try:
            code = int(connection.recv(_MOST))
        except TimeoutError:
            raise subprocess.TimeoutExpired(list(words), limit_s) from None
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode())
    return subprocess.CompletedProcess(list(words), code, *texts)


@functools.cache
def _server() -> str:
    folder = tempfile.TemporaryDirectory(prefix="homeport-tool-")
    address = f"{folder.name}/socket"
    process = subprocess.Popen(
        [sys.executable, __file__, address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": ":".join(path for path in sys.path if path)},
    )

    def end() -> None:
        process.communicate()
        folder.cleanup()

    atexit.register(end)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return address


def _serve(address: str) -> None:
    """Fork a process for each connection, until standard input ends."""
    for command in importlib.import_module(MODULE).COMMANDS.values():
        if _PRELOADED.fullmatch(command.module):
            importlib.import_module(command.module)
    importlib.import_module(RUN_JOB)
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "a fork would lack the other threads"
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(address)
        listening.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while sys.stdin not in select.select([listening, sys.stdin], [], [])[0]:
            connection, _ = listening.accept()
            if os.fork() == 0:
                _answer(connection)
            connection.close()


def _answer(connection: socket.socket) -> NoReturn:
    """Run one command in a process of its own, send its exit code; kill it if its caller leaves."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    request, streams, _, _ = socket.recv_fds(connection, _MOST, 3)
    pid = os.fork()
    if pid == 0:
        connection.close()
        _become(streams, *json.loads(request))
    ended = os.pidfd_open(pid)
    if ended not in select.select([ended, connection.fileno()], [], [])[0]:
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(BrokenPipeError):
        connection.send(str(code).encode())
    os._exit(0)


def _become(
    streams: Sequence[int], module: str, words: list[str], environment: dict[str, str]
) -> NoReturn:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115 - descriptors
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["homeport" if module == MODULE else "run-job", *words]
    sys.path[:0] = [p for p in environment.get("PYTHONPATH", "").split(":") if p not in sys.path]
    code = 0
    try:
        importlib.import_module(module).main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - as an interpreter ends
        traceback.print_exc()
        code = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve(sys.argv[1])
