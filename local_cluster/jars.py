"""Fetches the jars of a class path by Maven, once, into the shared cache folder.

A class path is a profile of a pom.xml, by default the local cluster's; its name is the role.
"""

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from homeport.job_coordinator.file_locks import exclusive
from homeport.job_coordinator.parent_death import ending_with_us
from homeport.local_cluster.errors import ClusterError

Progress = Callable[[str], None]

POM = Path(__file__).resolve().parent / "pom.xml"
REPORT_EVERY_S = 5.0
TIMEOUT_S = 900.0


def default_cache() -> Path:
    """Return the cache folder of all clones of one user: ``HOMEPORT_CACHE_DIR`` or its default."""
    own = os.environ.get("HOMEPORT_CACHE_DIR")
    if own:
        return Path(own).expanduser().resolve()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").expanduser().resolve() / "homeport"


def jars_dir(cache: Path, role: str, pom: Path = POM) -> Path:
    """Return the folder for the jars of one class path; another pom.xml has another folder."""
    return cache / "jars" / f"{role}-{hashlib.sha256(pom.read_bytes()).hexdigest()[:12]}"


def ensure_jars(cache: Path, role: str, progress: Progress = print, pom: Path = POM) -> Path:
    """Return the folder of the role's jars, complete; the first call of a cache runs Maven.

    One process fetches; others wait for it. A folder under its final name is always complete: Maven
    writes elsewhere, and the folder is renamed. ClusterError: Maven is absent or failed; the
    message names the log.
    """
    target = jars_dir(cache, role, pom)
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    lock = target.with_name(target.name + ".lock")
    with exclusive(lock, lambda: progress(f"waiting for another process that fetches {role} jars")):
        if not target.is_dir():
            _fetch(target, role, progress, pom)
    return target


def _fetch(target: Path, role: str, progress: Progress, pom: Path) -> None:
    """Run Maven; afterwards `target` exists and is complete. The caller holds the lock."""
    maven = shutil.which("mvn")
    if maven is None:
        raise ClusterError(
            f"the {role} jars are not in {target.parent} and Maven (mvn) is not on PATH; "
            "install it (Debian: apt-get install maven) and run this again"
        )
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    log = target.with_name(target.name + ".log")
    command = [maven, "-q", "-B", "-f", str(pom), f"-P{role}", "dependency:copy-dependencies"]
    progress(f"fetching the {role} jars with Maven (once per cache)")
    with log.open("wb") as out:
        maven_process = subprocess.Popen(
            [*command, f"-DoutputDirectory={partial}"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            preexec_fn=ending_with_us(),  # noqa: PLW1509 - it needs nothing that a thread holds
        )
        try:
            code = _wait(maven_process, role, progress)
        except BaseException:
            maven_process.kill()
            maven_process.wait()
            shutil.rmtree(partial, ignore_errors=True)
            raise
    if code != 0 or not any(partial.glob("*.jar")):
        shutil.rmtree(partial, ignore_errors=True)
        raise ClusterError(
            f"Maven could not fetch the {role} jars (exit code {code}): {_first_error(log)}; "
            f"check the network or ~/.m2/settings.xml and run this again; log: {log}"
        )
    partial.rename(target)


def _wait(process: subprocess.Popen[bytes], role: str, progress: Progress) -> int:
    began = time.monotonic()
    while True:
        try:
            code = process.wait(timeout=REPORT_EVERY_S)
        except subprocess.TimeoutExpired:
            seconds = time.monotonic() - began
            if seconds > TIMEOUT_S:
                raise ClusterError(
                    f"Maven did not finish fetching the {role} jars in {TIMEOUT_S:.0f} s; "
                    "check the network and run this again"
                ) from None
            progress(f"fetching the {role} jars: {seconds:.0f} s")
        else:
            if code == 0:
                progress(f"{role} jars ready after {time.monotonic() - began:.0f} s")
            return code


def _first_error(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    # Maven may write terminal escapes before the mark.
    stated = [line.partition("[ERROR]")[2].strip() for line in lines]
    return next((line for line in stated if line), "no reason given")
