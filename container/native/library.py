"""The C++ of this folder, compiled into one library and loaded.

``python -m homeport.container.native.library FOLDER``: afterwards the folder has the library, named
by its sources. It links neither Python nor librdkafka: it fits each version of both.

Set-up and the build of the wheel put it beside this module, where a C++ compiler is. Elsewhere the
pure Python path takes its place, which needs more CPU per record.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from homeport.config.errors import HomeportError
from homeport.job_coordinator.parent_death import run_child

_HERE = Path(__file__).parent
SUFFIX = ".so.1"
ArrowArray = ctypes.c_int64 * 10
"""``struct ArrowArray`` of Arrow's C data interface has so many words."""
_COMPILE_S = 300.0
_COMPILERS = ("c++", "g++", "clang++")
_FLAGS = ("-std=c++17", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra")


class NoLibraryError(HomeportError):
    """The library is not there, or does not fit this machine."""


def file_name() -> str:
    """Return the name of the library: by the sources and the machine's architecture.

    It must not end as a module of Python does: whatever imports all modules would try this one.
    """
    digest = hashlib.sha256(" ".join(_FLAGS).encode())
    for source in sorted([*_sources(), *_HERE.glob("*.h")]):
        digest.update(f"{source.name}\n".encode() + source.read_bytes())
    return f"homeport-{platform.machine()}-{digest.hexdigest()[:16]}{SUFFIX}"


def make(folder: Path, flags: tuple[str, ...] = ()) -> Path:
    """Return the library in ``folder``; compile it, with ``flags`` too, where it is not there.

    Raises:
        NoLibraryError: there is no C++ compiler, or it fails.
    """
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / file_name()
    if library.is_file():
        return library
    with tempfile.TemporaryDirectory(prefix=".partial-", dir=folder) as name:
        partial = Path(name) / "library"
        command = [_compiler(), *_FLAGS, *flags, "-o", str(partial), *map(str, _sources())]
        try:
            done = run_child(command, _COMPILE_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoLibraryError(f"{command[0]} fails: {error}") from None
        if done.returncode != 0:
            text = done.stderr.decode(errors="replace").strip()
            raise NoLibraryError(f"{command[0]} fails: {text[-300:]}")
        for former in folder.glob(f"homeport-*{SUFFIX}"):
            former.unlink()
        partial.replace(library)
    return library


@functools.cache
def load() -> ctypes.CDLL:
    """Return the library beside this module, loaded.

    Raises:
        NoLibraryError: it is not there, or this machine cannot load it.
    """
    path = _HERE / file_name()
    if not path.is_file():
        raise NoLibraryError("this installation was made without a C++ compiler")
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise NoLibraryError(f"this machine cannot load it ({error})") from None


def _compiler() -> str:
    named = os.environ.get("CXX")
    for name in (named,) if named else _COMPILERS:
        found = shutil.which(name)
        if found:
            return found
    raise NoLibraryError(f"no C++ compiler was found (CXX, {', '.join(_COMPILERS)})")


def _sources() -> list[Path]:
    return sorted(_HERE.glob("*.cpp"))


def main() -> int:
    """Make the library in the folder of the first argument; return the exit code."""
    try:
        make(Path(sys.argv[1]).absolute())
    except (NoLibraryError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
