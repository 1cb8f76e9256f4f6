"""Joins the environment in whose folder this file is to the interpreter that runs it.

Any Python from 3.6 on can run it. It makes ``bin/python`` and ``pyvenv.cfg``; several containers
may do so at once. Where the interpreter or the machine does not fit, one line on standard error
names the host, the needed and the found versions; the exit code is 78.
"""

# mypy: disable-error-code="type-arg"
# Python 3.6 knows no list[int].
import json
import os
import platform
import sys
from pathlib import Path

EX_CONFIG = 78


def glibc() -> list:
    """Return the version of the C library, as [2, 36]; [0, 0] where it is not glibc."""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
        major, minor = version.split(".")[:2]
        return [int(major), int(minor)] if name == "glibc" else [0, 0]
    except (ValueError, OSError):
        return [0, 0]


def dotted(numbers: list) -> str:
    """Return [3, 11] as 3.11."""
    return ".".join(str(number) for number in numbers)


def refusal(needed: dict) -> str:
    """Return why the environment cannot be used here, in one line; empty: it can."""
    machine, implementation = platform.machine(), platform.python_implementation()
    libc = glibc()
    if (
        list(sys.version_info[:2]) == needed["python"]
        and implementation == "CPython"
        and machine == needed["machine"]
        and libc >= needed["glibc"]
    ):
        return ""
    host = os.environ.get("NM_HOST") or platform.node()
    python, found = dotted(needed["python"]), f"glibc {dotted(libc)}" if any(libc) else "no glibc"
    return (
        f"host {host}: the job's environment needs CPython {python} on {needed['machine']} with "
        f"glibc {dotted(needed['glibc'])} or later; found {implementation} "
        f"{platform.python_version()} ({sys.executable}) on {machine} with {found}: install "
        f"python{python} on the host, or pack the environment on a machine like it (homeport pack)"
    )


def join(folder: Path) -> None:
    """Make the folder a virtual environment of this interpreter."""
    own = Path(sys.executable).resolve()
    partial = folder / f"pyvenv.cfg.{os.getpid()}"
    partial.write_text(
        f"home = {own.parent}\ninclude-system-site-packages = false\n"
        f"version = {platform.python_version()}\n"
    )
    partial.replace(folder / "pyvenv.cfg")
    # Last: with this link the environment is ready.
    partial = folder / "bin" / f"python.{os.getpid()}"
    partial.symlink_to(own)
    partial.replace(folder / "bin" / "python")


def main() -> int:
    """Join the environment to this interpreter; return the exit code."""
    folder = Path(__file__).resolve().parent
    line = refusal(json.loads((folder / "environment.json").read_text()))
    if not line:
        try:
            join(folder)
        except OSError as error:
            host = os.environ.get("NM_HOST") or platform.node()
            line = f"host {host}: the environment in {folder} cannot be completed ({error})"
    if not line:
        return 0
    sys.stderr.write(f"{line}\n")
    return EX_CONFIG


if __name__ == "__main__":
    sys.exit(main())
