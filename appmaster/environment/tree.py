"""The unpacked environment: packages, commands, and the program that joins it to a node's Python.

It is a virtual environment without an interpreter: ``lib/python3.11/site-packages``, ``bin`` and
``share``, beside ``start``, ``adopt.py`` and ``environment.json``. ``bash start -m MODULE`` runs a
module in it on any host with a Python that fits.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from homeport.appmaster.environment.distributions import Installed, needed_glibc, versions_in
from homeport.config.errors import HomeportError
from homeport.job_coordinator.parent_death import run_child

DESCRIPTION_NAME = "environment.json"
START_NAME = "start"
UNPACKING = ".unpacking-"
"""The prefix of the folders in which run-job unpacks an environment."""
_NODE_FILES = ("start", "adopt.py")
_INSTALL_LIMIT_S = 1800.0
_SHEBANG = re.compile(rb"#!.*python[0-9.]*\n")
_RELOCATABLE = b"""#!/bin/sh
'''exec' "$(dirname "$0")/../bin/python" "$0" "$@"
' '''
"""
"""sh starts the interpreter beside the script; for Python it is a string without effect."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine that an environment is bound to, and the minor version of CPython."""

    python: tuple[int, int]
    machine: str
    glibc: tuple[int, int]

    @staticmethod
    def own() -> Machine:
        """Return the interpreter and the machine that run this.

        HomeportError: the C library is not glibc, for which the packages are built.
        """
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
        major, _, minor = version.partition(".")
        if name != "glibc":
            raise HomeportError(
                f"this machine has {name or 'no'} C library {version}, and an environment can be "
                "packed with glibc alone: pack it on a machine like the nodes"
            )
        python = sys.version_info
        glibc = (int(major), int(minor.partition(".")[0]))
        return Machine((python.major, python.minor), platform.machine(), glibc)

    @property
    def site_packages(self) -> str:
        """The folder of the packages, below the root of an environment."""
        return f"lib/python{self.python[0]}.{self.python[1]}/site-packages"


def place(tree: Path, packages: Iterable[Installed], machine: Machine) -> None:
    """Place the files of the packages below ``tree``, as hard links where the disk allows.

    HomeportError: a file is missing, or cannot be written.
    """
    site = tree / machine.site_packages
    for package in packages:
        for relative, source in package.files.items():
            target = Path(os.path.normpath(site / relative))
            if not target.is_relative_to(tree):
                continue  # a file of the machine, such as a manual page; no program reads it
            if not source.exists():
                if source.suffix == ".pyc":
                    continue
                raise HomeportError(
                    f"the package {package.name!r} lacks {source}: install it again (pip install "
                    f"--force-reinstall {package.name}=={package.version})"
                )
            place_file(source, target)


def place_file(source: Path, target: Path) -> None:
    """Place the file at ``target``, as a hard link where the disk allows; make its folder."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except FileExistsError:
        return  # two packages share it, such as a namespace's __init__.py
    except OSError:
        shutil.copy2(source, target)


def install(tree: Path, requirements: Path, packages: Iterable[Installed], log: Path) -> None:
    """Install the requirements into ``tree``, beside its packages, whose versions stay.

    pip uses the package index of its own configuration.

    HomeportError: pip fails; the message has its first error and the log.
    """
    venv = [sys.executable, "-m", "venv", "--without-pip", "--symlinks", str(tree)]
    _run(venv, requirements, log)
    constraints = tree / "constraints.txt"
    pins = "".join(f"{p.name}=={p.version}\n" for p in packages)
    constraints.write_text(pins, encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--python", str(tree / "bin" / "python"), "install"]
    options = ["--no-input", "--progress-bar=off", "--disable-pip-version-check"]
    try:
        _run([*pip, *options, "-c", str(constraints), "-r", str(requirements)], requirements, log)
    finally:
        constraints.unlink(missing_ok=True)
    for name in ("pyvenv.cfg", "lib64"):
        (tree / name).unlink(missing_ok=True)
    shutil.rmtree(tree / "include", ignore_errors=True)


def _run(command: list[str], requirements: Path, log: Path) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as sink:
        done = run_child(command, _INSTALL_LIMIT_S, folder=requirements.parent, log=sink)
    if done.returncode != 0:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        errors = [line for line in lines if line.startswith("ERROR:")] or lines[-1:]
        said = errors[0].removeprefix("ERROR: ") if errors else f"exit code {done.returncode}"
        raise HomeportError(
            f"the requirements in {requirements} cannot be installed ({said}): see {log}"
        )


def finish(tree: Path, machine: Machine, identity: str) -> None:
    """Make commands start the interpreter beside them; write node programs and description."""
    commands = tree / "bin"
    commands.mkdir(exist_ok=True)
    for command in list(commands.iterdir()):
        if command.is_dir():
            shutil.rmtree(command)  # byte code of scripts
        elif command.is_symlink() or command.name.startswith(("python", "activate", "Activate")):
            command.unlink()
        else:
            _relocate(command)
    for name in _NODE_FILES:
        text = resources.files(__package__).joinpath("node", name).read_text(encoding="utf-8")
        (tree / name).write_text(text, encoding="utf-8")
    description = {
        "identity": identity,
        "python": list(machine.python),
        "machine": machine.machine,
        "glibc": list(needed_glibc(tree / machine.site_packages, machine.glibc)),
        "packages": versions_in(tree / machine.site_packages),
    }
    # One line: start reads it by sed.
    (tree / DESCRIPTION_NAME).write_text(json.dumps(description), encoding="utf-8")


def _relocate(command: Path) -> None:
    content = command.read_bytes()
    found = _SHEBANG.match(content)
    if found:
        mode = command.stat().st_mode
        command.unlink()  # it may be a hard link to the command of the environment that is packed
        command.write_bytes(_RELOCATABLE + content[found.end() :])
        command.chmod(mode)


def describe(tree: Path) -> Mapping[str, object]:
    """Return the content of ``environment.json`` in ``tree``; empty: there is no such file."""
    try:
        found = json.loads((tree / DESCRIPTION_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def files_of(tree: Path) -> Iterator[Path]:
    """Yield every file and link below ``tree``, in sorted order."""
    for folder, below, names in os.walk(tree):
        below.sort()
        for name in sorted(names):
            yield Path(folder, name)
