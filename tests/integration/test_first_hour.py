"""docs/getting-started.md as a new user follows it: from the wheel to a job on an own cluster.

Nothing of the clone can be seen: another folder, another home, another PATH. pip and Maven fetch
what they need, from where this machine has them look; their caches are empty.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from installations import build_wheel
from page_commands import PAGE, commands_of

from homeport.local_cluster.cluster import LocalCluster

_LIMIT_S = 15 * 60
"""What a newcomer has: the page promises less than a quarter of an hour."""
_MACHINE = ("LANG", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "http_proxy", "https_proxy", "no_proxy")

pytestmark = pytest.mark.long


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """The home of a new user, empty; no cluster of that user is left afterwards."""
    folder = tmp_path / "home"
    folder.mkdir()
    yield folder
    LocalCluster("dev", cache=folder / ".cache" / "homeport").down(keep_logs=False)


def _environment(home: Path, wheel: Path) -> dict[str, str]:
    python = Path(sys.base_prefix) / "bin"
    kept = {k: v for k, v in os.environ.items() if k in _MACHINE or k.startswith("PIP_")}
    return {
        **kept,
        "HOME": str(home),
        "PATH": f"{python}:/usr/local/bin:/usr/bin:/bin",
        # Maven takes the user's home from the system, not from HOME.
        "MAVEN_OPTS": f"-Dmaven.repo.local={home}/.m2/repository",
        "wheel": str(wheel),
    }


def test_the_page_holds(home: Path, tmp_path: Path) -> None:
    """Each command as it is written: own test, own cluster, exact results, nothing left."""
    blocks = commands_of(PAGE)
    script = ["cd work"]
    for number, block in enumerate(blocks, start=1):
        script += [*block, f'echo "-- block {number} is done after $SECONDS s"']
    (tmp_path / "work").mkdir()
    wheel = build_wheel(tmp_path)
    began = time.monotonic()
    done = subprocess.run(
        ["/bin/bash", "-euo", "pipefail", "-c", "\n".join(script)],
        cwd=tmp_path,
        env=_environment(home, wheel),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - began
    sys.stdout.write(done.stdout)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert "2 passed" in done.stdout
    totals = [line for line in lines if line.startswith(("ann\t", "bob\t"))]
    first = ['ann\t{"total":5.0}', 'bob\t{"total":2.0}', 'ann\t{"total":12.0}']
    then = [*first, *first, 'ann\t{"total":13.0}']
    assert totals == [*first, *then, *then, 'ann\t{"total":14.0}']
    assert LocalCluster("dev", cache=home / ".cache" / "homeport").status()["state"] == "down"
    assert seconds < _LIMIT_S
