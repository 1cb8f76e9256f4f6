"""The other Pythons of this machine that the product supports, each with all that is pinned.

Packages of Python code alone are links to those of the interpreter of this test. The others are
installed by pip, once for these pins, into the cache folder.
"""

from __future__ import annotations

import configparser
import functools
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from installations import ROOT, Installation, is_pure

from homeport.job_coordinator.file_locks import exclusive
from local_setup.environment import cache_dir, pins

_MARK = "Programming Language :: Python :: 3."


@functools.cache
def others() -> dict[str, str]:
    """{version: interpreter} of those on PATH that ``setup.cfg`` names, but for our own."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    found = {}
    for line in config["metadata"]["classifiers"].splitlines():
        version = f"3.{line.removeprefix(_MARK)}"
        if line.startswith(_MARK) and version != f"3.{sys.version_info.minor}":
            # pyenv's program on PATH asks which of its versions is meant.
            environment = {**os.environ, "PYENV_VERSION": version}
            command = [f"python{version}", "-c", "import sys; print(sys.executable)"]
            if shutil.which(command[0]) is not None:
                done = subprocess.run(
                    command, env=environment, capture_output=True, text=True, check=False
                )
                if done.returncode == 0:
                    found[version] = done.stdout.strip()
    return found


def installed(version: str, folder: Path) -> Installation:
    """The wheel in an environment of that Python, below ``folder``, with all pins."""
    python = others()[version]
    # Nothing that builds: setuptools would lend Skein its distutils.
    names = {pin.partition("==")[0] for pin in pins()} - {"pip", "setuptools", "wheel"}
    made = Installation(folder, python, [n for n in names if is_pure(n)])
    (made.site / "compiled.pth").write_text(f"{_compiled(version, python)}\n", encoding="utf-8")
    return made


def _compiled(version: str, python: str) -> Path:
    """The folder of the pinned packages that are compiled for that Python."""
    wanted = [pin for pin in pins() if not is_pure(pin.partition("==")[0])]
    digest = hashlib.sha256("\n".join([python, *wanted]).encode()).hexdigest()[:16]
    folder = cache_dir() / "pythons"
    target = folder / f"{version}-{digest}"
    with exclusive(folder / f".{version}.lock"):
        if not target.is_dir():
            for former in folder.glob(f"{version}-*"):
                shutil.rmtree(former)
            partial = folder / f"{version}-partial"
            pip = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps"]
            options = ["--only-binary=:all:", "--no-compile", f"--target={partial}"]
            done = subprocess.run(
                [*pip, *options, *wanted], capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stdout + done.stderr
            partial.rename(target)
    return target
