"""Skein's driver: its options, its start beside other work, and the end of a start."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from homeport.appmaster.yarn.skein_driver import driver_java_options, import_skein, starting_driver
from homeport.config.errors import UnavailableError


def test_skein_is_kept_out_of_the_home_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its configuration folder is below the cache, unless the user has set one."""
    monkeypatch.setenv("SKEIN_CONFIG", "/given")
    import_skein({"HOMEPORT_CACHE_DIR": str(tmp_path)})
    assert os.environ["SKEIN_CONFIG"] == "/given"
    monkeypatch.delenv("SKEIN_CONFIG")
    import_skein({"HOMEPORT_CACHE_DIR": str(tmp_path)})
    assert os.environ["SKEIN_CONFIG"] == str(tmp_path / "skein-config")


def test_each_child_of_a_process_with_grpc_starts(tmp_path: Path) -> None:
    """With gRPC's fork handlers, one start in about fifty was aborted before its exec."""
    script = (
        "import os\n"
        "from homeport.appmaster.yarn.skein_driver import import_skein\n"
        "import_skein(os.environ)\n"
        "import grpc\n"
        "from homeport.job_coordinator.parent_death import run_child\n"
        "channel = grpc.insecure_channel('127.0.0.1:1')\n"
        "try:\n    channel.unary_unary('/no/server')(b'', timeout=5)\n"
        "except grpc.RpcError:\n    pass\n"
        "ends = [run_child(['true'], 20) for _ in range(300)]\n"
        "print({(end.returncode, end.stderr) for end in ends})"
    )
    environment = {**os.environ, "HOMEPORT_CACHE_DIR": str(tmp_path)}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=60)
    assert done.stdout == b"{(0, b'')}\n"


def test_skein_needs_no_distutils(tmp_path: Path) -> None:
    """Which Python 3.12 lacks; what stands in for it goes with the import."""
    script = (
        "import os, sys; sys.modules['distutils'] = None\n"
        "from homeport.appmaster.yarn.skein_driver import import_skein\n"
        "import_skein(os.environ); print('distutils.version' in sys.modules)\n"
        "from skein.utils import LooseVersion as V; print(V('1.9.1') < '1.18.0')"
    )
    environment = {**os.environ, "HOMEPORT_CACHE_DIR": str(tmp_path)}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "False\nTrue\n", done.stderr


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ("", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"),
        ("-Dx=1", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Dx=1"),
        ("-XX:+UseParallelGC", "-XX:+UseParallelGC"),
    ],
)
def test_the_driver_starts_quickly_with_the_users_options(given: str, options: str) -> None:
    """A JVM refuses two garbage collectors."""
    assert driver_java_options({"SKEIN_DRIVER_JAVA_OPTIONS": given}) == options


@pytest.mark.parametrize(
    ("java_home", "line"),
    [("/nowhere", "JAVA_HOME=/nowhere has no bin/java"), ("", "this machine lacks Java 17")],
)
def test_a_machine_without_java_is_an_error_before_anything_is_done(
    tmp_path: Path, java_home: str, line: str
) -> None:
    """It names the variable where that is at fault."""
    environment = {"JAVA_HOME": java_home, "PATH": ""}
    with (
        pytest.raises(UnavailableError, match=line),
        starting_driver(tmp_path / "log", environment, None),
    ):
        pytest.fail("the caller's work has begun")


# Skein does not close its log when the start fails.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_caller_that_fails_does_not_wait_for_the_driver(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A JVM that would never serve is killed; the caller's own error stays as it is."""
    _program(tmp_path / "bin" / "java", f"echo $$ > {tmp_path}/pid; exec sleep 600")
    _program(tmp_path / "bin" / "yarn", "echo")
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    for name, value in {"PATH": path, "JAVA_HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOMEPORT_CACHE_DIR", str(tmp_path))

    def fail_beside_it() -> None:
        with starting_driver(tmp_path / "log", os.environ, None):
            _await(tmp_path / "pid")
            raise ValueError("of its own")

    with pytest.raises(ValueError, match="of its own"):
        fail_beside_it()
    pid = int((tmp_path / "pid").read_text(encoding="ascii"))
    assert not Path(f"/proc/{pid}").exists()
    gc.collect()  # the log ends here, not in another test


def _program(path: Path, line: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{line}\n", encoding="ascii")
    path.chmod(0o755)


def _await(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists() or not path.read_text(encoding="ascii").endswith("\n"):
        assert time.monotonic() < deadline, f"{path} was not written"
        time.sleep(0.01)  # a file is polled
