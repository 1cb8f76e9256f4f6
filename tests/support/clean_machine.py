"""Make a Debian 12 that has the packages of a minimal installation and git, and run commands there.

It is a folder entered by chroot(2), in namespaces of its own for mounts and processes, with the
network of this machine. How this machine reaches the registries comes along: apt's sources,
pip's and Maven's settings, certificates.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

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
_KEPT = ("_proxy", "_PROXY", "SSL_CERT", "REQUESTS_CA_BUNDLE", "PIP_")
"""How the names of variables begin or end that tell programs how to reach a registry."""
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
        mirror = _mirror()
        packages = "--include=ca-certificates,git"
        _run("debootstrap", "--variant=minbase", packages, "bookworm", str(root), mirror)
        for name in _FROM_HERE:
            self._copy(Path("/", name))
        _run("git", "clone", "--quiet", "--no-hardlinks", str(repository), str(root / "clone"))

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
        environment = {**kept, "PATH": os.defpath, "HOME": "/root", "LANG": "C.UTF-8"}
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


def _mirror() -> str:
    """Return where this machine gets Debian's packages from."""
    sources = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]
    for file in sources:
        for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else []:
            words = line.split()
            if words[:1] == ["URIs:"]:
                return words[1]
            if words[:1] == ["deb"]:
                return next(word for word in words[1:] if "://" in word)
    raise AssertionError("this machine's apt has no sources")


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
