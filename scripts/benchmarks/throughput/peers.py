"""What contestants need beyond this clone: a virtual environment each, jars of Maven's.

Fetched when a run first needs them, and kept in the cache folder that all clones share.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.report import BenchmarkError
from homeport.job_coordinator.file_locks import exclusive
from homeport.local_cluster.jars import default_cache, ensure_jars

_HERE = Path(__file__).resolve().parent


def python_of(peer: str) -> str:
    """The interpreter of an environment with the packages of ``<peer>.txt``.

    BenchmarkError: it cannot be made.
    """
    pins = _HERE / f"{peer}.txt"
    digest = hashlib.sha256(pins.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = default_cache() / "peers" / f"{peer}-{digest}"
    python, stamp = folder / "bin" / "python", folder / "complete"
    with exclusive(folder.with_name(f"{folder.name}.lock")):
        if not stamp.exists():
            shutil.rmtree(folder, ignore_errors=True)
            print(f"  packages of {peer}, once", file=sys.stderr, flush=True)
            _run([sys.executable, "-m", "venv", str(folder)], peer)
            install = [str(python), "-m", "pip", "install", "--quiet", "--no-deps"]
            _run([*install, "--disable-pip-version-check", "-r", str(pins)], peer)
            stamp.touch()
    return str(python)


def _run(command: list[str], peer: str) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        last = done.stdout.decode(errors="replace").strip().rpartition("\n")[2]
        raise BenchmarkError(
            f"the packages of {peer} cannot be had: {last}; leave it out by --contestants"
        )


def spark_jars() -> Path:
    """The folder of Spark's connector to Kafka; ClusterError where Maven cannot fetch it."""
    return ensure_jars(
        default_cache(),
        "spark-kafka",
        lambda said: print(f"  {said}", file=sys.stderr),
        _HERE / "pom.xml",
    )
