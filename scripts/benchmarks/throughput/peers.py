"""What contestants need beyond this clone: a virtual environment each, jars of Maven's.

Fetched when a run first needs them, and kept in the cache folder that all clones share.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from java_program import compile_java, java_command

from benchmarks.report import BenchmarkError
from homeport.job_coordinator.file_locks import exclusive
from homeport.local_cluster.jars import default_cache, ensure_jars

_HERE = Path(__file__).resolve().parent


def python_of(peer: str) -> str:
    """The interpreter of an environment with the packages of ``<peer>.txt``.

    BenchmarkError: it cannot be made.
    """
    pins = _HERE / f"{peer}.txt"

    def make(folder: Path) -> None:
        print(f"  packages of {peer}, once", file=sys.stderr, flush=True)
        _run([sys.executable, "-m", "venv", str(folder)], peer)
        install = [f"{folder}/bin/python", "-m", "pip", "install", "--quiet", "--no-deps"]
        _run([*install, "--disable-pip-version-check", "-r", str(pins)], peer)

    made = _made(peer, pins.read_bytes() + sys.version.encode(), make)
    return str(made / "bin" / "python")


def _made(name: str, content: bytes, make: Callable[[Path], None]) -> Path:
    """Return a folder of the cache that ``make`` has filled, once for this content."""
    folder = default_cache() / "peers" / f"{name}-{hashlib.sha256(content).hexdigest()[:12]}"
    stamp = folder / "complete"
    with exclusive(folder.with_name(f"{folder.name}.lock")):
        if not stamp.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            stamp.touch()
    return folder


def _run(command: list[str], peer: str) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        last = done.stdout.decode(errors="replace").strip().rpartition("\n")[2]
        raise BenchmarkError(
            f"the packages of {peer} cannot be had: {last}; leave it out by --contestants"
        )


def jars_of(peer: str) -> Path:
    """The folder of the peer's jars; ClusterError where Maven cannot fetch them."""
    return ensure_jars(
        default_cache(), peer, lambda step: print(f"  {step}", file=sys.stderr), _HERE / "pom.xml"
    )


def java_of(program: str, peer: str) -> list[str]:
    """The command of a program in Java, with the peer's jars.

    ClusterError: it cannot be made.
    """
    jars, source = jars_of(peer), _HERE / f"{program}.java"
    content = source.read_bytes() + str(jars).encode()
    folder = _made(peer, content, lambda made: compile_java(source, made, jars))
    return java_command(source, folder, jars)
