"""The published classes of Apache Samza 1.8.0, in one JVM that answers requests.

Jars by Maven (samza/pom.xml), once per cache; samza/SamzaPeer.java says what can be asked.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from java_program import compile_java, java_command

from homeport.local_cluster.jars import Progress, default_cache, ensure_jars

_HERE = Path(__file__).resolve().parent / "samza"
POM = _HERE / "pom.xml"
SOURCE = _HERE / "SamzaPeer.java"


class SamzaError(Exception):
    """A class of Samza's failed; its own words."""


class SamzaJvm:
    """One JVM with Samza's classes, in a block. ``log``: where their log goes."""

    def __init__(
        self, source: Path, folder: Path, progress: Progress, arguments: Sequence[str] = ()
    ) -> None:
        jars = ensure_jars(default_cache(), "samza", progress, POM)
        compile_java(source, folder, jars)
        # what Samza reads over HTTP it takes for the platform's charset
        options = ("-Xmx256m", "-Dfile.encoding=UTF-8")
        command = java_command(source, folder, jars, *options)
        self.log = folder / "samza.log"
        with self.log.open("wb") as log:
            self._jvm = subprocess.Popen(
                [*command, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                encoding="utf-8",
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._jvm.kill()
        self._jvm.communicate()


class SamzaPeer(SamzaJvm):
    """Answers requests.

    An answer that does not come within ``timeout_s`` ends the JVM.
    """

    def __init__(self, folder: Path, progress: Progress, timeout_s: float = 60.0) -> None:
        super().__init__(SOURCE, folder, progress)
        self._timeout_s = timeout_s

    def open(self, config: Mapping[str, str]) -> None:
        """Samza's store and its consumer are on the coordinator stream of ``config``."""
        self.ask("open", dict(config))

    def ask(self, operation: str, argument: object = None) -> Any:  # noqa: ANN401 - JSON value
        """What Samza answers.

        Raises:
            SamzaError: it failed, or did not answer in time.
        """
        if self._jvm.poll() is not None:
            raise SamzaError(f"{operation}: Samza's JVM has ended before; {self.log}")
        assert self._jvm.stdin is not None
        assert self._jvm.stdout is not None
        self._jvm.stdin.write(json.dumps([operation, argument]) + "\n")
        self._jvm.stdin.flush()
        timer = threading.Timer(self._timeout_s, self._jvm.kill)
        timer.start()
        line = self._jvm.stdout.readline()
        timer.cancel()
        if not line:
            raise SamzaError(f"{operation}: no answer within {self._timeout_s:g} s; {self.log}")
        answer = json.loads(line)
        if "failed" in answer:
            raise SamzaError(f"{operation}: {answer['failed']}")
        return answer["ok"]
