"""CI on a machine that never ran it: set-up installs all that the tests need."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import docker_cluster
import pytest

from local_setup.prerequisites import WANTED

_FROM_HERE = (
    "etc/apt/sources.list",
    "etc/apt/sources.list.d",
    "etc/apt/apt.conf.d",
    "etc/pip.conf",
    "etc/resolv.conf",
    "etc/hosts",
    "etc/ssl/certs/ca-certificates.crt",
    "usr/local/share/ca-certificates",
    "root/.m2/settings.xml",
)
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MAKE_BASE = Path(docker_cluster.__file__).with_name("make_base.sh")
_KEPT = ("_proxy", "_PROXY", "SSL_CERT", "REQUESTS_CA_BUNDLE", "PIP_")
"""Variables whose names begin or end so name the way to a registry."""
_ENTER = """\
set -e
mount --rbind /dev "$1/dev"
mount --rbind /sys "$1/sys"
mount -t proc proc "$1/proc"
mount -t tmpfs tmpfs "$1/run"
cd /
root="$1"
shift
exec chroot "$root" "$@"
"""


class CleanMachine:
    """A Debian 12 below ``root``, with a clone of ``repository`` in ``/clone``.

    It is entered by chroot(2), in namespaces of its own for mounts and processes. It has this
    machine's network and ways to the registries: apt's sources, pip's and Maven's settings.
    """

    def __init__(self, root: Path, repository: Path) -> None:
        self._root = root
        root.mkdir()
        base = root.with_suffix(".tar")
        _run("bash", str(_MAKE_BASE), str(base))
        _run("tar", "-C", str(root), "-xf", str(base))
        base.unlink()
        (root / "etc/apt/sources.list").unlink()  # debootstrap's; this machine's come instead
        for name in _FROM_HERE:
            self._copy(Path("/", name))
        _run("git", "clone", "--quiet", "--no-hardlinks", str(repository), str(root / "clone"))
        log = root.with_suffix(".log")
        git = "apt-get update -q && apt-get install -q -y git"  # a clone is made by it
        assert self.run("bash", "-c", git, log=log) == 0, log.read_text(encoding="utf-8")[-2000:]

    def _copy(self, source: Path) -> None:
        target = self._root / source.relative_to("/")
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        elif source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            shutil.copyfile(source, target)

    def run(self, *command: str, log: Path) -> int:
        """Run the command in the clone, its output into ``log``; return its exit code.

        All its processes end with it: their namespace does.
        """
        kept = {k: v for k, v in os.environ.items() if k.startswith(_KEPT) or k.endswith(_KEPT)}
        environment = {**kept, "PATH": _PATH, "HOME": "/root", "LANG": "C.UTF-8"}
        enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c", _ENTER]
        inside = ["bash", "-c", 'cd /clone && exec "$@"', "bash", *command]
        with log.open("wb") as sink:
            return subprocess.run(
                [*enter, "bash", str(self._root), *inside],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                check=False,
            ).returncode


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


ROOT = Path(__file__).resolve().parents[2]
_USING = "test_completion or test_packet_rules or test_dashboard_page or test_travelling"
"""Modules that use the shells, iptables, the browser, Java with Spark; each skips without them."""

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="another root is made by root"),
    pytest.mark.skipif(not shutil.which("debootstrap"), reason="debootstrap is not installed"),
]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[CleanMachine]:
    """The machine; its files, some 4 GB, go with it."""
    root = tmp_path / "root"
    yield CleanMachine(root, ROOT)
    shutil.rmtree(root)


def test_ci_passes_there_and_skips_nothing(machine: CleanMachine, tmp_path: Path) -> None:
    """``.ci/run`` fails where a test is skipped; each program of the list is there afterwards."""
    log = tmp_path / "log"
    code = machine.run(".ci/run", "-k", _USING, log=log)
    printed = log.read_text(encoding="utf-8", errors="replace")
    assert code == 0, printed[-4000:]
    assert " skipped" not in printed.splitlines()[-1]
    for wanted in WANTED.values():
        found = [
            machine.run("bash", "-c", f"command -v {tool}", log=tmp_path / "found") == 0
            for tool in wanted.packages
        ]
        assert any(found) if wanted.is_any_enough else all(found), wanted
