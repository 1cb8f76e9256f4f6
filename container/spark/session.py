"""LocalSpark: a JVM of our own on this machine, and the session of the job's pipeline in it.

We start the JVM, not pyspark. So it starts beside other work, we know its process from the first
moment, and it ends with us: if this process is killed, the JVM's standard input ends, and so does
the JVM. No module of the container imports pyspark at its own import. This one does when a Spark
starts, others in functions that use one.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import logging
import os
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from homeport.config.errors import HomeportError
from homeport.config.secret_names import has_secret
from homeport.config.settings.pipeline_section import SPARK_START_S
from homeport.container.spark.jvm import (
    JAVA_OPTIONS,
    JVM_FLAGS,
    archive_path,
    is_relative,
    jvm_command,
    lasting_flags,
    options_file,
)
from homeport.job_coordinator.user_code import IMPORTING

if TYPE_CHECKING:
    from py4j.clientserver import JavaClient
    from pyspark.sql import SparkSession

    from homeport.container.spark.micro_batch import SparkPipeline

_LOG = logging.getLogger(__name__)

_LEFT_OUT = frozenset(
    {"HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "CONTAINER_ID", "LOCAL_DIRS"}
)
"""YARN sets these for its containers. The folders would join the class path, so that the class-data
archive does not fit it, and would make the cluster's file system the default of this local Spark.
With the others, Spark would act as a part of YARN, and leave its files outside of our folder.
"""
_OOM_FLAG = "-XX:+ExitOnOutOfMemoryError"
_SPARKS_ERRORS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""PySpark's loggers of errors that name a place in a query."""
_CONNECTING = threading.Lock()
"""pyspark keeps one Spark for a process: the next one connects after the former one has ended."""
_POLL_S = 0.02
_END_S = 2.0
_WAIT_S = 0.1


def _forget_former() -> None:
    """Make pyspark, which keeps one Spark for a process, forget the one whose JVM has gone."""
    from pyspark.core.context import SparkContext  # noqa: PLC0415 - as in ``_connect``
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - pyspark has no other way
    SparkContext._active_spark_context = None  # noqa: SLF001 - as above
    SparkSession._instantiatedSession = SparkSession._activeSession = None  # noqa: SLF001 - as above


class SparkError(HomeportError):
    """The local Spark could not be started, or has died."""


@dataclass(frozen=True)
class SparkSettings:
    """The job's settings of its Spark; ``own`` properties replace ours.

    ``result_mb``: the most MB of a pipeline's rows.
    """

    app_name: str
    cores: int
    heap_mb: int
    work_dir: Path
    own: Mapping[str, str] = field(repr=False)
    max_rows: int
    result_mb: int = 64


def properties(settings: SparkSettings, archive: Path | None) -> dict[str, str]:
    """Return Spark's properties, as measured for micro-batches of Arrow tables."""
    scratch = settings.work_dir
    given = dict(settings.own)
    own_flags = given.pop(JAVA_OPTIONS, "")
    # A JVM that has met the end of its memory answers late, or never.
    flags = [lasting_flags(own_flags), _OOM_FLAG, f"-Djava.io.tmpdir={scratch}"]
    if archive is not None:
        flags.append(f"-XX:SharedArchiveFile={archive}")
    ours = {
        "spark.master": f"local[{settings.cores}]",
        "spark.app.name": settings.app_name,
        "spark.driver.memory": f"{settings.heap_mb}m",
        # More rows fail the batch, before the container exceeds its memory.
        "spark.driver.maxResultSize": f"{settings.result_mb}m",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        # The optimiser's second look costs more than it gains on a batch of this size.
        "spark.sql.adaptive.enabled": "false",
        # With the default of 48 MB every batch is inlined into the plan: half the throughput.
        "spark.sql.execution.arrow.localRelationThreshold": "0",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(
            max(1, -(-settings.max_rows // settings.cores))
        ),
    }
    joined = " ".join([*flags, own_flags]).strip()
    return {**ours, **given, JAVA_OPTIONS: joined}


def properties_file(given: Mapping[str, str]) -> str:
    """Return the text of the JVM's properties file, as Java reads it.

    A command line has a limit, and everybody on the machine can read it. Secrets are on no disk:
    the session sends them through its socket. Only secrets in the JVM's own options are in a file,
    which we alone can read: the JVM needs them at its start.
    """
    reported = {k: v for k, v in given.items() if k == JAVA_OPTIONS or not has_secret(k, v)}
    return "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in reported.items())


def _escaped(text: str) -> str:
    """Return ``text`` as Java's Properties reads it: ASCII, and escaped units of UTF-16."""
    units = struct.iter_unpack(">H", text.encode("utf-16-be", "surrogatepass"))
    return "".join(_PROPERTIES_ESCAPE.get(unit) or f"\\u{unit:04x}" for (unit,) in units)


_PROPERTIES_ESCAPE = {
    **{unit: chr(unit) for unit in range(ord("!"), ord("~") + 1)},
    **{ord(char): f"\\{char}" for char in "\\ =:#!"},
}
"""{unit of UTF-16: its form in a file of properties}; others are \\u and four digits."""


class LocalSpark:
    """Starts at once; ``pipeline`` waits for it, ``stop`` ends it at any time. Owned by one thread.

    ``prepare``: returns the pipeline, ready, in the background, once the session stands. ``made``:
    the folder of the JVM's command and archive, by default this environment's. ``first``: is called
    first in the JVM's process.

    Raises:
        SparkError: the program that starts the JVM cannot be run.
    """

    def __init__(
        self,
        settings: SparkSettings,
        prepare: Callable[[SparkSession], SparkPipeline],
        made: Path | None = None,
        first: Callable[[], None] | None = None,
    ) -> None:
        self._settings = settings
        self._made = made
        self._archive = archive_path(made)
        self._scratch = settings.work_dir
        self._scratch.mkdir(parents=True, exist_ok=True)
        self._info = self._scratch / "gateway"
        self._info.unlink(missing_ok=True)
        self._process = self._launch(first)
        self._prepare = prepare
        self._pipeline: Future[SparkPipeline] = Future()
        self._gateway_client: JavaClient | None = None
        self._thread = threading.Thread(target=self._connect, name="spark-start", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int:
        """Return the JVM's process id: the start script replaces itself with the JVM."""
        return self._process.pid

    def pipeline(self, may_go_on: Callable[[], None]) -> SparkPipeline:
        """Return the pipeline once the session stands; ``may_go_on`` raises to end the waiting.

        Raises:
            SparkError: Spark could not be started.
            ConfigError: the pipeline is invalid.
        """
        deadline = time.monotonic() + SPARK_START_S
        while time.monotonic() < deadline:
            may_go_on()
            with contextlib.suppress(TimeoutError):
                pipeline = self._pipeline.result(_WAIT_S)
                used = self._archive_use()
                _LOG.info("Spark stands, pid %d; class-data archive: %s", self.pid, used)
                return pipeline
        raise SparkError(f"Spark did not start within {SPARK_START_S:g} s")

    def collections(self) -> tuple[int, int] | None:
        """Return the number of the JVM's garbage collections, and their ms; None: no answer."""
        from py4j.protocol import Py4JError  # noqa: PLC0415 - as in ``_connect``
        from pyspark.core.context import SparkContext  # noqa: PLC0415 - as in ``_connect``

        jvm = SparkContext._jvm  # noqa: SLF001 - pyspark's only way to the JVM
        if jvm is None or not self.is_ready():
            return None
        try:
            beans = list(jvm.java.lang.management.ManagementFactory.getGarbageCollectorMXBeans())
            times = [(bean.getCollectionCount(), bean.getCollectionTime()) for bean in beans]
        except (Py4JError, OSError):
            return None  # it ends, which its next call reports
        return sum(count for count, _ in times), sum(ms for _, ms in times)

    def is_alive(self) -> bool:
        """Return whether the JVM runs."""
        return self._process.poll() is None

    def ended(self) -> int | None:
        """Return the exit code of a JVM that has ended, or ends soon; None: it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(_END_S)
        return None

    def is_ready(self) -> bool:
        """Return whether ``pipeline`` would return at once."""
        return self._pipeline.done() and self.is_sound()

    def is_sound(self) -> bool:
        """Return whether the JVM runs, and the pipeline has not failed so far."""
        return self.is_alive() and self.fault() is None

    def fault(self) -> BaseException | None:
        """Return why the pipeline has failed; None: it has not so far."""
        return self._pipeline.exception() if self._pipeline.done() else None

    def stop(self) -> None:
        """Kill the JVM, and remove its files.

        It has nothing to save by an orderly end, which would take a second.
        """
        if self._gateway_client is not None:
            # A thread of py4j reports each collected frame to the JVM, and logs a traceback if the
            # JVM has gone.
            self._gateway_client.is_connected = False
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def end_in_order(self, limit_s: float) -> int:
        """Let the JVM end by itself, with its shutdown work; return its exit code.

        Raises:
            SparkError: it does not end within ``limit_s``.
        """
        assert self._process.stdin is not None  # noqa: S101 - for the type checker
        self._process.stdin.close()
        try:
            return self._process.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise SparkError(f"Spark's JVM did not end within {limit_s:g} s") from None

    def _launch(self, first: Callable[[], None] | None) -> subprocess.Popen[bytes]:
        spec = importlib.util.find_spec("pyspark")
        if spec is None or not spec.submodule_search_locations:
            raise SparkError("pyspark is not installed for this interpreter")
        home = Path(spec.submodule_search_locations[0])
        wanted = properties(self._settings, self._archive)
        reported = self._private("spark.properties", properties_file(wanted))
        options = self._private("java.options", options_file(wanted))
        command = jvm_command(home, wanted, options, self._made)
        folder = home if is_relative(command) else None
        command += ["--properties-file", str(reported), "pyspark-shell"]
        environment = {
            **{name: value for name, value in os.environ.items() if name not in _LEFT_OUT},
            "SPARK_HOME": str(home),
            "SPARK_CONNECT_MODE": "0",
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYTHONHASHSEED": "0",  # as Spark's script sets it
            "SPARK_LOCAL_DIRS": str(self._scratch),
            "SPARK_LAUNCHER_OPTS": JVM_FLAGS,
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._info),
        }
        try:
            # The JVM ends with its standard input, and so with this process.
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                env=environment,
                cwd=folder,
                preexec_fn=first,  # noqa: PLW1509 - of one thread's program alone
            )
        except OSError as error:
            raise SparkError(f"{command[0]} cannot be run: {error.strerror}") from None

    def _private(self, name: str, text: str) -> Path:
        path = self._scratch / name
        path.unlink(missing_ok=True)
        path.touch(0o600, exist_ok=False)
        path.write_text(text, encoding="utf-8")
        return path

    def _connect(self) -> None:
        try:
            # Imported while the JVM starts, and only in containers with a pipeline.
            with IMPORTING:
                importlib.import_module("pyspark.sql")
            from pyspark.logger import PySparkLogger  # noqa: PLC0415 - as said above

            # An error of Spark has its reason; these loggers would add Java's traceback.
            for name in _SPARKS_ERRORS:
                PySparkLogger.getLogger(name).disabled = True
            with _CONNECTING:
                session = self._session()
            self._pipeline.set_result(self._prepare(session))
        except HomeportError as error:
            self._pipeline.set_exception(error)
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits for it
            failure = SparkError(f"Spark did not start: {type(error).__name__}: {error}")
            failure.__cause__ = error
            self._pipeline.set_exception(failure)

    def _session(self) -> SparkSession:
        """Return the session of this JVM, the only one that pyspark knows in this process."""
        from pyspark.core.context import SparkContext  # noqa: PLC0415 - as in ``_connect``
        from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

        _forget_former()
        port, secret = self._gateway()
        os.environ["PYSPARK_GATEWAY_PORT"] = str(port)
        os.environ["PYSPARK_GATEWAY_SECRET"] = secret
        os.environ["PYSPARK_PYTHON"] = sys.executable
        SparkContext._ensure_initialized()  # noqa: SLF001 - pyspark's only way to the JVM
        # The job's relative paths start here, wherever the JVM has started.
        jvm = SparkContext._jvm  # noqa: SLF001 - as above
        assert jvm is not None  # noqa: S101 - for the type checker
        jvm.java.lang.System.setProperty("user.dir", str(Path.cwd()))
        builder = SparkSession.builder
        for key, value in properties(self._settings, self._archive).items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        gateway = session.sparkContext._gateway  # noqa: SLF001 - pyspark's only way to it
        if gateway is not None:
            self._gateway_client = gateway._gateway_client  # noqa: SLF001 - py4j's, as above
        return session

    def _gateway(self) -> tuple[int, str]:
        while not self._info.is_file():
            try:
                code = self._process.wait(_POLL_S)
            except subprocess.TimeoutExpired:
                continue
            raise SparkError(f"its JVM ended with code {code}; its words are above")
        data = self._info.read_bytes()
        port, length = struct.unpack_from(">ii", data)
        return port, data[8 : 8 + length].decode()

    def _archive_use(self) -> str:
        if self._archive is None:
            return "none was made"
        try:
            maps = Path(f"/proc/{self.pid}/maps").read_text(encoding="utf-8")
        except OSError:
            return "unknown"
        used = str(self._archive) in maps
        return "used" if used else f"NOT used, it does not fit this JVM: {self._archive}"
