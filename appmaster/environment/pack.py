"""Packs the environment of a job: what is installed here for homeport, and the job's requirements.

All of it lies in ``<cache>/environments``, named by content: packed again without a change, it is
there already.
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import shutil
import tarfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from homeport.appmaster.environment import class_data
from homeport.appmaster.environment.class_data import HostJava
from homeport.appmaster.environment.distributions import HOMEPORT, Installed, required
from homeport.appmaster.environment.tree import (
    DESCRIPTION_NAME,
    UNPACKING,
    Machine,
    files_of,
    finish,
    install,
    place,
    place_file,
)
from homeport.config.errors import HomeportError

REQUIREMENTS_NAME = "requirements.txt"
_FORM = b"3"
"""Changes with the form of the tree, so that what older versions have packed is not taken."""
_KEPT = 4
"""Environments beside the one that is packed; each takes about 2 GB."""
_UNUSED_S = 7 * 24 * 3600
_UNPACKING_S = 24 * 3600
_STORED, _FAST = 0, 1
_NEEDED_BYTES = 3 * 1024**3


@dataclass(frozen=True, slots=True)
class Packed:
    """``archive``: the tar.gz; ``tree``: the same, unpacked; ``identity``: of its content."""

    archive: Path
    tree: Path
    identity: str


def pack(
    cache: Path,
    job: Path | None,
    extras: frozenset[str],
    say: Callable[[str], None],
    java: HostJava | None = None,
) -> Packed:
    """Return the environment with homeport and what the ``requirements.txt`` in ``job`` asks for.

    Args:
        cache: of this user, shared by all clones and installations.
        job: the folder of the job's code; None, or one without that file: homeport alone.
        extras: of homeport, as ``avro``.
        say: is called with what takes long.
        java: of the hosts, for Spark's class-data archive; None: the environment has none.

    Raises:
        HomeportError: something is not installed, cannot be installed, or the disk is full.
    """
    requirements = None if job is None else _requirements(job)
    machine, packages = Machine.own(), required(extras)
    folder = cache / "environments"
    try:
        with _locked(folder, say):
            remove_unfinished(folder)
            made = None if java is None else class_data.ensure(folder, java, packages, say)
            return _pack(folder, _Wanted(machine, packages, requirements, made), say)
    except OSError as error:
        raise HomeportError(
            f"the environment cannot be packed in {folder} ({error}): make room, "
            "or let HOMEPORT_CACHE_DIR name another folder"
        ) from None


def _requirements(job: Path) -> Path | None:
    if not job.is_dir():
        raise HomeportError(f"--job {job}: it must be the folder of the job's code: correct it")
    path = job.absolute() / REQUIREMENTS_NAME
    return path if path.is_file() else None


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What goes into an environment; ``class_data``: the folder of Spark's archive."""

    machine: Machine
    packages: list[Installed]
    requirements: Path | None
    class_data: Path | None

    def digest(self, packages: list[Installed]) -> str:
        """Return the digest of all but the packages, and of those given."""
        digest = hashlib.sha256(_FORM)
        digest.update(f"{self.machine}\n".encode())
        for package in packages:
            digest.update(f"{package.name} {package.digest}\n".encode())
        if self.requirements is not None:
            digest.update(self.requirements.read_bytes())
        if self.class_data is not None:
            digest.update(f"\n{self.class_data.name}".encode())
        return digest.hexdigest()[:16]


def _pack(folder: Path, wanted: _Wanted, say: Callable[[str], None]) -> Packed:
    machine, packages, requirements = wanted.machine, wanted.packages, wanted.requirements
    dependencies = wanted.digest([p for p in packages if p.name != HOMEPORT])
    identity = wanted.digest(packages)
    packed = Packed(folder / f"homeport-{identity}.tar.gz", folder / identity, identity)
    if packed.archive.exists() and (packed.tree / DESCRIPTION_NAME).exists():
        packed.archive.touch()
        return packed
    remove_unused(folder)
    _require_room(folder)
    start = time.monotonic()
    say(f"packing {len(packages)} packages for Python {machine.python[0]}.{machine.python[1]}")
    partial = folder / "partial"
    shutil.rmtree(partial, ignore_errors=True)
    place(partial, packages, machine)
    if requirements is not None:
        say(f"installing {requirements}")
        install(partial, requirements, packages, folder / "pip.log")
    for file in () if wanted.class_data is None else sorted(wanted.class_data.iterdir()):
        place_file(file, partial / "share" / HOMEPORT / file.name)
    finish(partial, machine, identity)
    own = [partial / machine.site_packages / HOMEPORT, partial / "bin"]
    own += [*partial.glob(f"{machine.site_packages}/{HOMEPORT}-*.dist-info")]
    own += [path for path in partial.iterdir() if path.is_file()]

    def is_own(path: Path) -> bool:
        return any(path.is_relative_to(p) for p in own)

    write_archive(partial, packed.archive, folder / f"{dependencies}.member", is_own)
    shutil.rmtree(packed.tree, ignore_errors=True)
    partial.replace(packed.tree)
    size = packed.archive.stat().st_size / 1e6
    say(f"packed {packed.archive}: {size:.0f} MB, {time.monotonic() - start:.0f} s")
    return packed


@contextmanager
def _locked(folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another command that packs an environment")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def remove_unfinished(folder: Path) -> None:
    """Remove what killed commands have begun; the caller holds the lock of ``folder``.

    What run-job unpacks without that lock goes when it is a day old.
    """
    for found in [folder / "partial", *folder.glob("*.partial")]:
        if found.is_dir():
            shutil.rmtree(found, ignore_errors=True)
        else:
            found.unlink(missing_ok=True)
    limit = time.time() - _UNPACKING_S
    for found in folder.glob(f"{UNPACKING}*"):
        if found.stat().st_mtime < limit:
            shutil.rmtree(found, ignore_errors=True)


def remove_unused(folder: Path) -> None:
    """Remove what no command asked for in a week, and all but the four archives used last."""
    archives = _by_last_use(folder, "homeport-*.tar.gz")
    for found in archives[_KEPT:] + _unused(archives[:_KEPT]):
        found.unlink()
        tree = folder / found.name.removeprefix("homeport-").removesuffix(".tar.gz")
        shutil.rmtree(tree, ignore_errors=True)
    trees = _by_last_use(folder, "unpacked-*")
    for tree in trees[_KEPT:] + _unused(trees[:_KEPT]):
        shutil.rmtree(tree, ignore_errors=True)
    made = _by_last_use(folder, "*.classes")
    for found in made[_KEPT:] + _unused(made[:_KEPT]):
        shutil.rmtree(found, ignore_errors=True)
    members = _by_last_use(folder, "*.member")
    for member in members[_KEPT:] + _unused(members[:_KEPT]):
        member.unlink()


def _by_last_use(folder: Path, pattern: str) -> list[Path]:
    """Return the one used last first."""
    return sorted(folder.glob(pattern), key=lambda path: path.stat().st_mtime, reverse=True)


def _unused(paths: list[Path]) -> list[Path]:
    limit = time.time() - _UNUSED_S
    return [path for path in paths if path.stat().st_mtime < limit]


def _require_room(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < _NEEDED_BYTES:
        raise HomeportError(
            f"{folder} has {free / 1e9:.1f} GB free, packing needs {_NEEDED_BYTES / 1e9:.1f} GB: "
            "make room, or let HOMEPORT_CACHE_DIR name another folder"
        )


def write_archive(tree: Path, target: Path, kept: Path, is_own: Callable[[Path], bool]) -> None:
    """Write the archive; what is half written has another name.

    It is a chain of gzip members: jars, other dependencies, which are both kept, and homeport last.
    After a change of homeport alone only the last is made again. Jars are compressed already; a
    second time would cost each node seconds.

    Args:
        tree: the unpacked environment.
        target: where the archive is put.
        kept: where the members of all files but one's own are, or are put.
        is_own: whether a file is homeport's own.
    """
    files = list(files_of(tree))
    if not kept.exists():
        jars = [f for f in files if f.suffix == ".jar"]
        others = [f for f in files if f.suffix != ".jar" and not is_own(f)]
        partial = kept.with_suffix(".partial")
        partial.unlink(missing_ok=True)
        _append(partial, tree, jars, _STORED)
        _append(partial, tree, others, _FAST)
        partial.replace(kept)
    partial = target.with_suffix(".partial")
    shutil.copyfile(kept, partial)
    _append(partial, tree, filter(is_own, files), _FAST, is_last=True)
    partial.replace(target)


def _append(
    target: Path, tree: Path, files: Iterable[Path], level: int, *, is_last: bool = False
) -> None:
    """Append one more member."""
    with gzip.GzipFile(target, "ab", compresslevel=level, mtime=0) as compressed:
        archive = tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115 - closing it writes the end of the whole archive
        for path in files:
            archive.add(path, path.relative_to(tree).as_posix(), filter=_plain)
        if is_last:
            archive.close()


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return the member without owner, with whole seconds: Python's byte code has those."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = int(entry.mtime)
    return entry
