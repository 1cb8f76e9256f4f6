"""Compiles and runs programs of one file in Java."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from homeport.local_cluster import preflight
from homeport.local_cluster.errors import ClusterError


def compile_java(source: Path, folder: Path, jars: Path) -> None:
    """Compile the program ``source`` into ``folder``, with the jars of another folder.

    The compiler by its module: Debian's JRE, which is all that scripts/setup.sh installs, has it
    too, but no javac.

    ClusterError: there is no Java, or it cannot be compiled.
    """
    compiler = (_java(), "-m", "jdk.compiler/com.sun.tools.javac.Main", "-encoding", "UTF-8")
    done = subprocess.run(
        [*compiler, "-cp", _class_path(folder, jars), "-d", folder, source],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        raise ClusterError(f"{source.name} was not compiled: {done.stdout}{done.stderr}")


def java_command(source: Path, folder: Path, jars: Path, *options: str) -> list[str]:
    """Return the command that runs it; ``options``: of the JVM. ClusterError: there is no Java."""
    return [_java(), *options, "-cp", _class_path(folder, jars), source.stem]


def _java() -> str:
    return str(preflight.find_java() / "bin" / "java")


def _class_path(folder: Path, jars: Path) -> str:
    return os.pathsep.join(map(str, (folder, *sorted(jars.glob("*.jar")))))
