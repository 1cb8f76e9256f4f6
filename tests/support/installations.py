"""Environments that hold homeport and what it declares, made without a package index."""

from __future__ import annotations

import configparser
import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import shared_clusters
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

from homeport.job_coordinator.file_locks import exclusive
from local_setup.environment import copy_sources

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = ("avro", "demo", "protobuf", "schema-registry", "test", "testing", "traces")


def declared(extra: str | None = None) -> list[str]:
    """The requirements in setup.cfg: those of ``extra``, or those of a plain installation."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    section = config["options" if extra is None else "options.extras_require"]
    return section["install_requires" if extra is None else extra].split("\n")[1:]


def closure(requirements: Iterable[str]) -> set[NormalizedName]:
    """The installed distributions that ``requirements`` ask for, and all that those ask for.

    Raises:
        importlib.metadata.PackageNotFoundError: one of them is not installed here.
    """
    found: set[tuple[NormalizedName, str]] = set()
    waiting = [Requirement(line) for line in requirements]
    while waiting:
        asked = waiting.pop()
        name = canonicalize_name(asked.name)
        for extra in ("", *asked.extras):
            if (name, extra) in found:
                continue
            found.add((name, extra))
            for line in importlib.metadata.requires(name) or ():
                other = Requirement(line)
                if other.marker is None or other.marker.evaluate({"extra": extra}):
                    waiting.append(other)
    return {name for name, _ in found}


class Installation:
    """A virtual environment in ``folder``, with this tree's wheel or another one, without extras.

    Its other packages are the closure of what the wheel declares and nothing else, not even pip.
    They are not downloaded: their files, by the RECORD of each, are links to those that the
    interpreter of this test has. So what is not declared cannot be imported.
    """

    def __init__(
        self,
        folder: Path,
        python: str = sys.executable,
        names: Iterable[str] | None = None,
        wheel: Path | None = None,
    ) -> None:
        """``python``: of the environment; ``names``: of other packages; ``wheel``: of homeport."""
        self.python = folder / "env" / "bin" / "python"
        command = [python, "-m", "venv", "--without-pip", str(folder / "env")]
        subprocess.run(command, check=True)
        (self.site,) = folder.glob("env/lib/python3.*/site-packages")
        self.pip("install", "--no-compile", str(wheel or wheel_of_run()))
        (metadata,) = importlib.metadata.distributions(name="homeport", path=[str(self.site)])
        plain = [line for line in metadata.requires or () if "extra ==" not in line]
        for name in closure(plain) if names is None else names:
            _link(importlib.metadata.distribution(name), self.site)

    def pip(self, command: str, *arguments: str) -> str:
        """What pip, which is not in the environment, prints of this command in it."""
        return _pip(command, *arguments, python=self.python)


def wheel_of_run() -> Path:
    """The wheel of this tree: one for all workers of the run, made by the first that needs it."""
    folder = Path(os.environ[shared_clusters.VARIABLE]) / "wheel.made"
    with exclusive(folder.with_suffix(".lock")):
        if not folder.exists():
            partial = folder.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)  # of a worker that has crashed
            build_wheel(partial)
            partial.rename(folder)
    (wheel,) = folder.glob("homeport-*.whl")
    return wheel


def build_wheel(folder: Path) -> Path:
    """The wheel of this tree, in ``folder``."""
    copy_sources(folder / "sources")
    return wheel_of(folder / "sources", folder)


def wheel_of(sources: Path, folder: Path) -> Path:
    """The wheel of these sources, in ``folder``."""
    _pip("wheel", "--no-build-isolation", "-w", str(folder), str(sources))
    (wheel,) = folder.glob("homeport-*.whl")
    return wheel


def link_extra(extra: str, folder: Path) -> None:
    """``folder`` has, for PYTHONPATH, what this extra of homeport declares beyond the rest."""
    for name in closure(declared(extra)) - closure(declared()):
        _link(importlib.metadata.distribution(name), folder)


def _link(distribution: importlib.metadata.Distribution, folder: Path) -> None:
    """The folder has the modules and data of ``distribution``; not its programs."""
    for file in distribution.files or ():
        if file.parts[0] != "..":
            link = folder / file
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(str(distribution.locate_file(file)))


def is_pure(name: str) -> bool:
    """Whether this distribution, as it is installed here, serves each Python."""
    return "-none-any\n" in (importlib.metadata.distribution(name).read_text("WHEEL") or "")


def _pip(command: str, *arguments: str, python: Path | None = None) -> str:
    """What pip prints; it neither asks an index nor takes a requirement for granted."""
    where = [] if python is None else ["--python", str(python)]
    options = [] if command == "check" else ["--no-index", "--no-deps"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", *where, command, *options, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
