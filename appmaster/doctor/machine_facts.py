"""Collects the facts of this machine for ``machine_checks``."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from homeport.appmaster.doctor.machine_checks import MachineFacts
from homeport.appmaster.yarn.resource_manager_rest import CONF_DIR_VARIABLE
from homeport.job_coordinator.own_folders import cache_folder
from homeport.job_coordinator.parent_death import run_child

_JAVA_LIMIT_S = 30.0
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_MB = 1 << 20


def machine_facts(environment: Mapping[str, str], native_fault: str | None) -> MachineFacts:
    """Return this machine's facts, for a process with that environment; nothing stays changed.

    ``native_fault``: as the field of ``MachineFacts``.
    """
    path = environment.get("PATH")
    home = environment.get("JAVA_HOME", "")
    java = shutil.which(f"{home}/bin/java" if home else "java", path=path)
    folder = cache_folder(environment)
    conf = environment.get(CONF_DIR_VARIABLE, "")
    fault, free_mb = _writing(folder)
    return MachineFacts(
        python=sys.version_info[:2],
        python_path=sys.executable,
        java=java,
        java_text="" if java is None else _java_version(java),
        packages=_packages(),
        yarn=shutil.which("yarn", path=path),
        hadoop_conf=conf if conf and (Path(conf) / "yarn-site.xml").is_file() else None,
        cache_folder=str(folder),
        cache_fault=fault,
        free_mb=free_mb,
        native_fault=native_fault,
    )


def _java_version(java: str) -> str:
    try:
        done = run_child([java, "-version"], _JAVA_LIMIT_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""  # judged as a Java whose version cannot be read
    return (done.stderr + done.stdout).decode(errors="replace")


def _packages() -> dict[str, str | None]:
    """Return {distribution that homeport requires: version; None: not installed}, no extras."""
    try:
        needed = metadata.requires("homeport") or []
    except metadata.PackageNotFoundError:
        return {"homeport": None}
    names = [found[0] for line in needed if ";" not in line and (found := _NAME.match(line))]
    return {name: _version(name) for name in names}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _writing(folder: Path) -> tuple[str | None, int]:
    """Return why nothing can be written there (None: it can), and the free MB."""
    there = folder
    while not there.exists():
        there = there.parent
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as fault:
        return os.strerror(fault.errno or 0), 0
    return None, shutil.disk_usage(there).free // _MB
