"""The Python environments of a running job's processes: how a host has one, and how one changes.

YARN starts each launcher and each AM with the submission's environment. A package of an upgrade may
name another one: an interpreter that each host has, or an archive of ``homeport pack``. Launcher
and AM programs then go on in that one; their variables have which it is.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from homeport.config.errors import HomeportError
from homeport.job_coordinator.file_locks import exclusive
from homeport.job_coordinator.model.job_package import ENVIRONMENT_NAME, contents_from
from homeport.job_coordinator.parent_death import run_child

BLAS_VARIABLE = "OPENBLAS_NUM_THREADS"
"""How many threads numpy's OpenBLAS has in a process; it starts them when numpy is imported."""
OWN_VARIABLE = "HOMEPORT_PYTHON"
"""The environment of this process; missing or empty: the submission's."""
SUBMITTED_VARIABLE = "HOMEPORT_SUBMITTED_PYTHON"
"""The submission's interpreter on this host, for the way back."""
_ARCHIVE_SUFFIXES = (".tar.gz", ".tgz")
_FOLDER = "homeport-environments"
_START_LIMIT_S = 120.0
_FETCH_LIMIT_S = 1800.0


def own_place(environment: Mapping[str, str]) -> str | None:
    """Return the environment of this process; None: the submission's."""
    return environment.get(OWN_VARIABLE) or None


def place_in(package: Path) -> str | None:
    """Return the environment that an unpacked package names; None: the submission's.

    WireError: its file names none. OSError: it cannot be read.
    """
    file = package / ENVIRONMENT_NAME
    return contents_from(file.read_bytes()).place if file.exists() else None


def variables_for(place: str | None, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a process in that environment; None: the submission's."""
    submitted = environment.get(SUBMITTED_VARIABLE) or sys.executable
    return {**environment, OWN_VARIABLE: place or "", SUBMITTED_VARIABLE: submitted}


def words_for(place: str | None, environment: Mapping[str, str]) -> list[str]:
    """Return the words that start Python in that environment, once it is ``made_ready``."""
    if place is None:
        return [environment.get(SUBMITTED_VARIABLE) or sys.executable]
    if is_archive(place):
        return ["/bin/bash", str(_unpacked(place, environment) / "start")]
    return [place]


def is_archive(place: str) -> bool:
    """Return whether it is an archive of ``homeport pack``, not an interpreter."""
    return place.endswith(_ARCHIVE_SUFFIXES)


def is_same(place: str, other: str) -> bool:
    """Return whether both name one environment; archives are named by their content."""
    both = is_archive(place) and is_archive(other)
    return place == other or (both and Path(place).name == Path(other).name)


def make_ready(place: str | None, module: str, environment: Mapping[str, str]) -> None:
    """Have that environment on this host, fetched where it is an archive; run ``module`` in it.

    HomeportError: it cannot be had, or cannot import the module, in one line.
    """
    if place is not None and is_archive(place):
        _fetch(place, _unpacked(place, environment), environment)
    words, variables = words_for(place, environment), variables_for(place, environment)
    # This host works: ``start`` must not report to the AM that it is unfit.
    variables.pop("SAMZA_COORDINATOR_URL", None)
    require_starts(words, place or words[0], module, variables)


def require_starts(
    words: Sequence[str], place: str, module: str, environment: Mapping[str, str] | None = None
) -> None:
    """Require that this Python imports ``module``, of a version that can change its environment.

    ``environment``: None: this process's. HomeportError: it does not, in one line.
    """
    command = [*words, "-c", f"import {__name__}, {module}"]
    _run(command, f"environment {place}", _START_LIMIT_S, environment)


def become(place: str | None, arguments: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Replace this process by Python in that environment; it keeps its id and its folder.

    OSError: it cannot be started. Otherwise this does not return.
    """
    words = words_for(place, environment)
    variables = variables_for(place, environment)
    os.execve(words[0], [*words, *arguments], variables)  # noqa: S606 - a program by its path


def _unpacked(place: str, environment: Mapping[str, str]) -> Path:
    """Return where an archive is unpacked: one folder for all containers of the job on a host.

    YARN removes it with the application.
    """
    local = environment.get("LOCAL_DIRS", "").split(",")[0] or "."
    name = hashlib.sha256(place.encode()).hexdigest()[:16]
    return Path(local).absolute() / _FOLDER / name


def _fetch(place: str, folder: Path, environment: Mapping[str, str]) -> None:
    """Fetch and unpack an archive, once on a host, whole."""
    try:
        with exclusive(folder.with_suffix(".lock")):
            if folder.is_dir():
                return
            partial = folder.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            what = f"environment {place}"
            archive = partial / "archive.tar.gz"
            get = [_hadoop(environment), "fs", "-get", place, str(archive)]
            _run(get, what, _FETCH_LIMIT_S, environment)
            _run(["tar", "-xzf", str(archive), "-C", str(partial)], what, _FETCH_LIMIT_S)
            archive.unlink()
            partial.rename(folder)
    except OSError as error:
        raise HomeportError(f"environment {place}: it cannot be unpacked here: {error}") from None


def _hadoop(environment: Mapping[str, str]) -> str:
    """Return the node's own ``hadoop`` command; HomeportError: it has none."""
    homes = (environment.get(f"HADOOP_{name}HOME") for name in ("", "COMMON_", "HDFS_"))
    folders = [f"{home}/bin" for home in homes if home]
    path = os.pathsep.join([*folders, environment.get("PATH", "")])
    found = shutil.which("hadoop", path=path)
    if found is None:
        raise HomeportError(
            f"this host has no hadoop command to fetch the environment with on {path}: let the "
            "NodeManager's HADOOP_COMMON_HOME lead to it, or name an interpreter that each host has"
        )
    return found


def _run(
    command: Sequence[str], what: str, limit_s: float, environment: Mapping[str, str] | None = None
) -> None:
    """Run the command to its end; HomeportError: it fails, with its last line."""
    try:
        done = run_child(command, limit_s, environment=environment)
    except OSError as error:
        raise HomeportError(f"{what}: {error}") from None
    except subprocess.TimeoutExpired:
        raise HomeportError(f"{what}: {command[0]} has not ended in {limit_s:.0f} s") from None
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").split("\n")
        said = next((line.strip() for line in reversed(lines) if line.strip()), "")
        raise HomeportError(f"{what}: {said or f'exit code {done.returncode}'}")
