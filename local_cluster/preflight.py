"""Checks the machine before a cluster starts; each error names its remedy."""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

from homeport.config.needed_java import (
    JAVA_PACKAGE,
    LEAST_JAVA,
    installed_by,
    java_major,
    lacking,
    no_java,
)
from homeport.job_coordinator.parent_death import run_child
from homeport.local_cluster.errors import ClusterError

MINIMUM_FREE_BYTES = 2 * 1024**3

_REMEDY = f"install a JDK {LEAST_JAVA} {installed_by(JAVA_PACKAGE)}"


def check_system() -> None:
    """Refuse systems without /proc and without 127.0.0.0/8 as loopback."""
    if sys.platform != "linux":
        raise ClusterError(f"the local cluster runs on Linux only, not on {sys.platform}")


def check_disk(cache: Path) -> None:
    """Refuse to start where the disk would soon be full."""
    cache.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(cache).free
    if free < MINIMUM_FREE_BYTES:
        raise ClusterError(
            f"only {free / 1024**3:.1f} GB free below {cache}, "
            f"{MINIMUM_FREE_BYTES / 1024**3:.0f} GB needed; "
            "free some or set HOMEPORT_CACHE_DIR to a folder on a larger disk"
        )


def require_tools(*, maven: bool, skein: bool) -> Path:
    """Return the home of the JDK; require the other programs of a cluster and its clients.

    Args:
        maven: jars must be fetched.
        skein: ``run-job`` must be able to submit a job.

    Raises:
        ClusterError: one line names all that is missing, and how to install it.
    """
    missing = {}
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        missing[f"Java {LEAST_JAVA}"] = JAVA_PACKAGE
    if maven and shutil.which("mvn") is None:
        missing["Maven (mvn), which fetches the jars of Kafka and YARN"] = "maven"
    if skein and not _has_libcrypt():
        missing["libcrypt.so.1, which Skein needs"] = "libcrypt1"
    if missing:
        raise ClusterError(lacking(missing))
    return find_java()


def _has_libcrypt() -> bool:
    try:
        ctypes.CDLL("libcrypt.so.1")
    except OSError:
        return False
    return True


def find_java() -> Path:
    """Return the home of the JDK to use: JAVA_HOME if set, else that of the `java` on PATH.

    ClusterError: there is none, or it is too old.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not os.access(java, os.X_OK):
            raise ClusterError(no_java(home))
    else:
        found = shutil.which("java")
        if found is None:
            raise ClusterError(no_java(home))
        java = Path(found).resolve()
    version = _java_version(java)
    if version < LEAST_JAVA:
        raise ClusterError(f"{java} is Java {version}, {LEAST_JAVA} is needed; {_REMEDY}")
    return java.parents[1]


def _java_version(java: Path) -> int:
    try:
        result = run_child([str(java), "-version"], 60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClusterError(f"{java} -version cannot be run ({error}); {_REMEDY}") from error
    version = java_major((result.stderr + result.stdout).decode(errors="replace"))
    if version is None:
        raise ClusterError(f"{java} -version does not say a version; {_REMEDY}")
    return version
