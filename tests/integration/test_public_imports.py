"""What a process imports for a public name: no more than it needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

_LARGE = ("confluent_kafka", "pyspark", "rocksdict", "aiohttp", "pytest", "skein", "kazoo")
"""Libraries of parts that a job's own module does not use."""


@pytest.mark.parametrize(
    ("line", "loads"),
    [
        ("import homeport", "homeport"),
        ("from homeport import StreamTask, KeyValueStore", "homeport.container.api"),
        ("from homeport.windows import Windows", "homeport.container.windows"),
        ("from homeport import Job", "homeport.job"),
    ],
)
def test_a_name_brings_only_its_own_modules(line: str, loads: str) -> None:
    """A container that runs a task class has nothing of jobs in Python."""
    code = f"import sys; {line}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {*done.stdout.split()}
    assert loads in loaded
    assert not {name for name in loaded if name.split(".")[0] in _LARGE}
    if loads != "homeport.job":
        assert not {name for name in loaded if name.startswith(("homeport.job.", "homeport.cli"))}
    if loads == "homeport":
        assert {name for name in loaded if name.startswith("homeport.")} == set()
