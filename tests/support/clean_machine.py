"""Make a Debian 12 with the packages of the image's base and git, and run commands there.

It is a folder entered by chroot(2), in namespaces of its own for mounts and processes, with the
network of this machine. How this machine reaches the registries comes along: apt's sources,
pip's and Maven's settings, certificates.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import docker_cluster

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
    """A Debian 12 below ``root``, with a clone of ``repository`` in ``/clone``."""

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
