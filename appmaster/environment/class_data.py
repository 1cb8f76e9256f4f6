"""Makes Spark's class-data archive for an environment that travels, with the hosts' Java.

``homeport.container.spark.class_data`` makes it, in a process of its own. It is bound to that Java
and to pyspark's jars, so the cache keeps it by these, whatever else an environment has.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from homeport.appmaster.environment.distributions import Installed
from homeport.job_coordinator.parent_death import run_child

PROGRAM = "homeport.container.spark.class_data"
_FORM = b"4"
"""Changes with the form of the program's output, so that older output is not used."""
_LIMIT_S = 900.0


@dataclass(frozen=True, slots=True)
class HostJava:
    """The hosts' Java.

    ``release``: the content of its file ``release``. ``command``: returns the command that makes
    the archive in a folder with this Java, from the packages installed here.
    """

    release: str
    command: Callable[[Path], list[str]]


def own_java(environment: Mapping[str, str]) -> HostJava | None:
    """Return the Java of this machine; None where there is none."""
    named = environment.get("JAVA_HOME")
    path = shutil.which(f"{named}/bin/java" if named else "java", path=environment.get("PATH"))
    if path is None:
        return None
    release = Path(path).resolve().parents[1] / "release"
    try:
        text = release.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return HostJava(text, lambda folder: [sys.executable, "-m", PROGRAM, str(folder)])


def ensure(
    cache: Path, java: HostJava, packages: Iterable[Installed], say: Callable[[str], None]
) -> Path | None:
    """Return the folder in ``cache`` with archive and JVM command; make it if it is not there.

    None where it cannot be made: without it, Spark only starts later.
    """
    digest = hashlib.sha256(_FORM + java.release.encode())
    for package in packages:
        if package.name in {"pyspark", "py4j"}:
            digest.update(f"{package.name} {package.digest}\n".encode())
    folder = cache / f"{digest.hexdigest()[:16]}.classes"
    if folder.is_dir():
        os.utime(folder)  # homeport pack removes what is not used
        return folder
    say("making Spark's class-data archive (a minute, once)")
    partial, log = folder.with_suffix(".partial"), cache / "class-data.log"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    if not _succeeds(java.command(partial), log):
        say(f"warning: without class-data archive: Spark starts slowly on the hosts: see {log}")
        shutil.rmtree(partial, ignore_errors=True)
        return None
    partial.rename(folder)
    return folder


def _succeeds(command: list[str], log: Path) -> bool:
    with log.open("wb") as sink:
        try:
            done = run_child(command, _LIMIT_S, log=sink)
        except (OSError, subprocess.TimeoutExpired) as error:
            sink.write(f"{error}\n".encode())
            return False
    return done.returncode == 0
