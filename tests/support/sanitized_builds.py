"""Runs a program of this folder with a build of the native library that sanitizers watch."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from homeport.container.native import library


def run_sanitized(program: ModuleType, folder: Path, *arguments: str) -> None:
    """Run ``program`` with the path of a build in ``folder``, and ``arguments``; it must succeed.

    The sanitizers of addresses and of undefined behaviour end it at the first fault.
    """
    runtime = _runtime()
    built = library.make(folder, ("-fsanitize=address,undefined", "-fno-sanitize-recover", "-g"))
    environment = {
        **os.environ,
        "LD_PRELOAD": runtime,
        # Python's own objects live until its end.
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
    }
    done = subprocess.run(
        [sys.executable, str(program.__file__), str(built), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def _runtime() -> str:
    """The runtime of the compiler's address sanitizer, which must be loaded first."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    command = [compiler, "-print-file-name=libasan.so"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
