"""The job as its user sees it: ``run-job``, the AM's status page, and the pids below it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from flights_demo.options import APP
from flights_demo.screen import DemoError
from homeport.job_coordinator.http.pinned_tls import client_context

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "flights"
CONTAINERS = 3
RUNNING_LIMIT_S = 120.0
FIRST_LIMIT_S = 300.0
"""On hosts that unpack an environment first."""
TOOL_LIMIT_S = 300.0
_END_LIMIT_S = 20.0


def file_of(form: str) -> Path:
    """The file of the flights job in one of its forms."""
    return EXAMPLE / (f"{form}.py" if form == APP else f"{form}.properties")


def package_of(form: str | None) -> Path:
    """What ``run-job`` ships of the flights job in one of its forms; None: the usual one."""
    return file_of(APP) if form == APP else EXAMPLE / "package"


class DemoJob:
    """A job of the examples on one local cluster; folder and configuration bear its name."""

    def __init__(
        self,
        example: Path,
        env: dict[str, str],
        bootstrap_servers: str,
        overrides: Sequence[str] = (),
        python: str = sys.executable,
        file: Path | None = None,
    ) -> None:
        """``overrides``: configuration beside the example's file, each ``key=value``.

        ``file``: instead of the example's.

        ``python``: the interpreter of ``run-job``, and so of the job.
        """
        self._python = python
        self._file = file or example / f"{example.name}.properties"
        self.name = example.name
        self._overrides = overrides
        self._env = {**os.environ, **env}
        self._bootstrap_servers = bootstrap_servers
        self.application = ""
        self.url = ""
        self._tls: ssl.SSLContext | None = None
        self.links: list[str] = []
        self.limit_s = RUNNING_LIMIT_S
        self.package = example / "package"
        """What the next ``run-job`` submits."""
        self.count = CONTAINERS
        """How many containers the job is to have."""

    def command(self, operation: str) -> list[str]:
        """The command line of ``run-job`` for this job; what ``--keep`` prints is this."""
        return [
            str(ROOT / "scripts" / "run-job"),
            f"--config-path={self._file}",
            f"--config=systems.kafka.consumer.bootstrap.servers={self._bootstrap_servers}",
            f"--config=yarn.package.path={self.package}",
            *(f"--config={override}" for override in self._overrides),
            f"--operation={operation}",
        ]

    def _run_job(self, operation: str, *options: str) -> str:
        # Straight to the module: the wrapper's set-up has been done by the time the demo runs.
        command = [*self.command(operation)[1:], *options]
        argv = [self._python, "-m", "homeport.cli.yarn.run_job", *command]
        # A process group of its own: it gets no Ctrl-C of the terminal. This script ends it with a
        # signal, so that it cleans up.
        child = subprocess.Popen(
            argv, env=self._env, stdout=subprocess.PIPE, text=True, process_group=0
        )
        try:
            out, _ = child.communicate()
        except BaseException:
            child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_END_LIMIT_S)
            child.kill()
            raise
        if child.returncode != 0:
            raise DemoError(
                f"run-job --operation={operation}: exit {child.returncode}: {out.strip()}"
            )
        return out

    def submit(self, *options: str) -> None:
        """The AM answers; ``application`` and ``url`` are set. ``options``: more of ``run-job``."""
        out = self._run_job("run", *options)
        self.links = [line for line in out.splitlines() if line.strip()]
        application = re.search(r"application_\d+_\d+", out)
        url = re.search(r"JobModel\s+(https?://\S+:\d+/)", out)
        if application is None or url is None:
            raise DemoError(f"run-job printed no application id or no URL: {out!r}")
        self.application, self.url = application.group(), url.group(1)
        self._tls = self._trusted()

    def pages(self) -> list[tuple[str, str]]:
        """What the AM can be asked for, and how; nothing before it has answered."""
        if not self.url:
            return []
        pages = (("JobModel", ""), ("locality", "locality"), ("status", "v1/status"))
        return [(name, f"curl {self.url}{path}") for name, path in pages]

    def kill(self) -> None:
        """The job has ended in order: whole transactions, OFFSET files written."""
        print(self._run_job("kill"), end="", flush=True)

    def get(self, path: str) -> Any:  # noqa: ANN401 - JSON
        """The JSON that the AM answers at ``path``."""
        https = urllib.request.HTTPSHandler(context=self._tls)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), https)
        with opener.open(self.url + path, timeout=10) as response:
            return json.load(response)

    def _trusted(self) -> ssl.SSLContext | None:
        if not self.url.startswith("https:"):
            return None
        said = self.homeport("coordinator-stream", "show", "--json", "--type", "set-config")
        records = [json.loads(line) for line in said.splitlines()]
        found = [r["values"] for r in records if r["key"] == "yarn.am.certificate"]
        if not found:
            raise DemoError("no certificate in the coordinator stream")
        return client_context(found[-1]["value"])

    def homeport(self, *words: str, code: int = 0, of_job: bool = True) -> str:
        """What the operator's tool prints, about this job if ``of_job``.

        DemoError: it ends with another exit code than ``code``; the message has its output.
        """
        module = "homeport.cli.main"
        job = [a for a in self.command("")[1:] if not a.startswith("--operation")]
        argv = [self._python, "-m", module, *words, *job * of_job]
        # A process group of its own: it gets no Ctrl-C of the terminal.
        done = subprocess.run(
            argv,
            env=self._env,
            capture_output=True,
            text=True,
            timeout=TOOL_LIMIT_S,
            check=False,
            process_group=0,
        )
        if done.returncode != code:
            said = (done.stderr or done.stdout).strip()
            raise DemoError(f"homeport {' '.join(words)}: exit {done.returncode}: {said}")
        return done.stdout

    def containers(self) -> list[dict[str, Any]]:
        """The containers of the status page, by processor."""
        return sorted(self.get("v1/status")["containers"], key=lambda c: c["processor_id"])

    def _status(self) -> Any:  # noqa: ANN401 - JSON
        """The status page; one without containers where no AM answers."""
        try:
            return self.get("v1/status")
        except (OSError, http.client.HTTPException, ValueError):
            return {"containers": []}

    @contextlib.contextmanager
    def writing_key(self, key: str, value: str) -> Iterator[None]:
        """``coordinator-stream-writer`` writes the key meanwhile, and has ended well afterwards."""
        argv = [
            sys.executable,
            "-m",
            "homeport.cli.job.coordinator_stream_writer",
            *(a for a in self.command("")[1:] if not a.startswith("--operation")),
            "--type=set-config",
            f"--key={key}",
            f"--value={value}",
        ]
        child = subprocess.Popen(argv, env=self._env, stdout=subprocess.PIPE, text=True)
        try:
            yield
            out, _ = child.communicate(timeout=_END_LIMIT_S)
        finally:
            child.kill()
            child.wait()
        if child.returncode != 0:
            raise DemoError(f"coordinator-stream-writer: exit {child.returncode}: {out.strip()}")

    def phases(self) -> dict[str, str]:
        """{processor: phase} of the status page; empty where no AM answers."""
        try:
            return {c["processor_id"]: c["phase"] for c in self.containers()}
        except (OSError, http.client.HTTPException, ValueError):
            return {}

    def wait_until_running(
        self, progress: Callable[[str], None], epochs_above: Mapping[str, int] | None = None
    ) -> list[dict[str, Any]]:
        """All containers have restored and take input, each above its epoch in ``epochs_above``.

        DemoError: they do not in time; the message has the last failures.
        """
        above = epochs_above or {}
        deadline = time.monotonic() + self.limit_s
        while True:
            status = self._status()
            containers = sorted(status["containers"], key=lambda c: c["processor_id"])
            phases = [
                f"{c['processor_id']} {c['phase']} on {c.get('host') or '-'}" for c in containers
            ]
            if len(containers) == self.count and all(
                c["phase"] == "running" and c["epoch"] > above.get(c["processor_id"], 0)
                for c in containers
            ):
                return containers
            if time.monotonic() > deadline:
                raise DemoError(
                    f"not all run after {self.limit_s:.0f} s: {phases}; {status.get('failures')}"
                )
            progress("containers: " + (", ".join(phases) or "none asked for yet"))
            time.sleep(0.3)  # the status page is polled; it has no event to wait for
