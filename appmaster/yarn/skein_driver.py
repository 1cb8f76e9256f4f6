"""Starts Skein's driver, the JVM through which run-job submits an application.

The start takes seconds of CPU, so it begins early and runs beside the checks of the job.
"""

import contextlib
import importlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from packaging.version import Version

from homeport.appmaster.yarn.kerberos import KerberosLogin
from homeport.appmaster.yarn.skein_jar import ensure_patched_jar
from homeport.config.errors import UnavailableError
from homeport.config.needed_java import no_java
from homeport.job_coordinator.own_folders import cache_folder

_DRIVER_JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"
_POLL_S = 0.05
_IMPORTING = threading.Lock()
_DRIVER_VARIABLE = "SKEIN_DRIVER_JAVA_OPTIONS"

Skein = Any
"""The module skein, or a value of its: it has no types."""


def import_skein(environment: Mapping[str, str]) -> Skein:
    """Return the module skein, imported so that it writes nothing into the user's home folder."""
    os.environ.setdefault("SKEIN_CONFIG", str(cache_folder(environment) / "skein-config"))
    # In each child, gRPC's fork handlers start a thread that may abort the child before its exec.
    # Our children only exec.
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
    with _distutils_version():
        import skein  # noqa: PLC0415 - it reads the environment when it is imported

    skein.Client.__del__ = _close
    skein.core.secure_channel = _direct_channel
    return skein


class _LooseVersion:
    """A version that Skein compares with a text: all that it takes from distutils."""

    def __init__(self, text: str) -> None:
        self._version = Version(text)

    def __lt__(self, other: str) -> bool:
        return self._version < Version(other)


@contextlib.contextmanager
def _distutils_version() -> Iterator[None]:
    """Let ``distutils.version``, which Python 3.12 lacks, be ours while Skein is imported."""
    name = "distutils.version"
    ours: Any = ModuleType(name)
    ours.LooseVersion = _LooseVersion
    with _IMPORTING:
        former = sys.modules.get(name)
        sys.modules[name] = ours
        try:
            yield
        finally:
            del sys.modules[name]
            if former is not None:
                sys.modules[name] = former


def _direct_channel(address: str, security: Skein) -> Skein:
    """Return a channel as Skein makes it, but without a proxy that the environment names.

    Both ends are the job's own: Skein's driver beside run-job, the AM's JVM beside its driver.
    """
    # By name, since it has no types; here, since it costs the supervisor's memory.
    grpc: Any = importlib.import_module("grpc")

    cert, key = (security._get_bytes(part) for part in ("cert", "key"))  # noqa: SLF001 - as Skein
    name = "skein-internal"
    options = [
        ("grpc.ssl_target_name_override", name),
        ("grpc.default_authority", name),
        ("grpc.enable_http_proxy", 0),
        # Of the containers that have ended, whose list grows as long as the AM lives.
        ("grpc.max_receive_message_length", -1),
    ]
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(cert, key, cert), options)


def _close(client: Skein) -> None:
    """End a client. Skein's own destructor fails, with a traceback, where the start has failed."""
    with contextlib.suppress(AttributeError):
        client.close()


def driver_java_options(environment: Mapping[str, str]) -> str:
    """Return the JVM options for a quick start of Skein's driver.

    The user's ``SKEIN_DRIVER_JAVA_OPTIONS`` come after our own. A JVM takes one garbage collector
    alone, so ours are left out where the user's name one.
    """
    given = environment.get(_DRIVER_VARIABLE, "")
    return given if "GC" in given else f"{_DRIVER_JAVA_OPTIONS} {given}".strip()


def require_client(environment: Mapping[str, str]) -> None:
    """Check that this machine has what Skein's driver runs on.

    UnavailableError: Java or the ``yarn`` command is missing.
    """
    java = environment.get("JAVA_HOME", "")
    if shutil.which(f"{java}/bin/java" if java else "java", path=environment.get("PATH")) is None:
        raise UnavailableError(no_java(java))
    if shutil.which("yarn", path=environment.get("PATH")) is None:
        raise UnavailableError("no `yarn` command on PATH: add the bin folder of the Hadoop client")


@contextlib.contextmanager
def skein_client(
    security: object, log: Path, environment: Mapping[str, str], login: KerberosLogin | None = None
) -> Iterator[Skein]:
    """Yield a connection to YARN through Skein's driver, a JVM that ends afterwards.

    ``login``: None: with the ticket from ``kinit``, if the cluster has Kerberos.

    UnavailableError: as for ``require_client``, or YARN cannot be reached; the message names the
    log.
    """
    require_client(environment)
    skein = import_skein(environment)
    skein.core._SKEIN_JAR = str(ensure_patched_jar(cache_folder(environment)))  # noqa: SLF001 - there is no other way
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    by_keytab = {} if login is None else asdict(login)
    options = driver_java_options(environment)
    with one_line(skein, log):
        client = skein.Client(security=security, log=str(log), java_options=options, **by_keytab)
    with client:
        yield client


@contextlib.contextmanager
def one_line(skein: Skein, log: Path) -> Iterator[None]:
    """Turn an error of Skein into an UnavailableError that names the log of its driver."""
    try:
        yield
    except (skein.exceptions.SkeinError, subprocess.SubprocessError, ValueError, OSError) as e:
        first = str(e).strip().splitlines()
        raise UnavailableError(
            f"Skein cannot submit to YARN ({first[0] if first else type(e).__name__}): see {log}"
        ) from None


@dataclass(frozen=True, slots=True)
class SkeinDriver:
    """A connection to YARN, the application's credentials and the log of the JVM."""

    client: Skein
    security: Skein
    log: Path


@contextlib.contextmanager
def starting_driver(
    log: Path, environment: Mapping[str, str], login: KerberosLogin | None
) -> Iterator[Callable[[], SkeinDriver]]:
    """Start Skein's driver beside the caller's work; yield a function that waits for it.

    The driver ends afterwards. One that is still starting is killed then: a caller that fails does
    not wait for it.

    UnavailableError: as for ``require_client``, at once; as for ``skein_client``, from the yielded
    function.
    """
    require_client(environment)
    threads: list[int] = []

    def start() -> SkeinDriver:
        threads.append(threading.get_native_id())
        security = import_skein(environment).Security.new_credentials()
        client = opened.enter_context(skein_client(security, log, environment, login))
        return SkeinDriver(client, security, log)

    opened = contextlib.ExitStack()
    with ThreadPoolExecutor(1) as pool:
        started = pool.submit(start)
        try:
            yield started.result
        finally:
            while not started.done():
                for thread in threads:
                    _kill_children_of(thread)
                time.sleep(_POLL_S)  # it may be between two processes
            opened.close()


def _kill_children_of(thread: int) -> None:
    """Kill the processes of that thread: ``yarn classpath``, or the driver's JVM."""
    # psutil knows the children of a process alone.
    try:
        pids = Path(f"/proc/self/task/{thread}/children").read_text(encoding="ascii").split()
    except OSError:
        return  # a kernel without that list: the driver's start is waited for
    for pid in map(int, pids):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
