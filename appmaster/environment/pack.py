"""Packs the environment of a job: homeport as installed here, and the job's requirements.

Environments are in ``<cache>/environments``, named by content: without a change, nothing is packed
again.
"""

import gzip
import hashlib
import shutil
import tarfile
import time
from collections.abc import Callable, Iterable
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
from homeport.job_coordinator.file_locks import exclusive

REQUIREMENTS_NAME = "requirements.txt"
_FORM = b"3"
"""Changes with the form of the tree, so that environments of older versions are not used."""
_KEPT = 4
"""The most environments that are kept beside a new one; each takes about 2 GB."""
_UNUSED_S = 7 * 24 * 3600
_UNPACKING_S = 24 * 3600
_STORED, _FAST = 0, 1
_NEEDED_BYTES = 3 * 1024**3
_WAITS = "waiting for another command that packs an environment"


@dataclass(frozen=True, slots=True)
class Packed:
    """An environment. ``tree``: the content of ``archive``; ``identity``: the digest of it."""

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
    """Return the environment with homeport and the requirements of ``job``.

    Args:
        cache: this user's cache folder, shared by all clones and installations.
        job: the folder of the job's code, whose ``requirements.txt`` is installed too; or None.
        extras: extras of homeport, such as ``avro``.
        say: gets a line for each long piece of work.
        java: the hosts' Java, for Spark's class-data archive; None: no archive is packed.

    HomeportError: something is not installed, cannot be installed, or the disk is full.
    """
    requirements = None if job is None else _requirements(job)
    machine, packages = Machine.own(), required(extras)
    folder = cache / "environments"
    try:
        with exclusive(folder / ".lock", lambda: say(_WAITS)):
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
    """The parts of an environment; ``class_data``: the folder of Spark's archive."""

    machine: Machine
    packages: list[Installed]
    requirements: Path | None
    class_data: Path | None

    def digest(self, packages: list[Installed]) -> str:
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


def remove_unfinished(folder: Path) -> None:
    """Remove the remains of killed commands; the caller holds the lock of ``folder``.

    run-job unpacks without that lock: its remains are removed when they are a day old.
    """
    for found in [folder / "partial", *folder.glob("*.partial")]:
        _remove(found)
    limit = time.time() - _UNPACKING_S
    for found in folder.glob(f"{UNPACKING}*"):
        if found.stat().st_mtime < limit:
            shutil.rmtree(found, ignore_errors=True)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def remove_unused(folder: Path) -> None:
    """Remove what was not used for a week, and all but the last four of each kind."""
    archives = _by_last_use(folder, "homeport-*.tar.gz")
    for found in archives[_KEPT:] + _unused(archives[:_KEPT]):
        found.unlink()
        tree = folder / found.name.removeprefix("homeport-").removesuffix(".tar.gz")
        shutil.rmtree(tree, ignore_errors=True)
    for pattern in ("unpacked-*", "*.classes", "*.member"):
        others = _by_last_use(folder, pattern)
        for found in others[_KEPT:] + _unused(others[:_KEPT]):
            _remove(found)


def _by_last_use(folder: Path, pattern: str) -> list[Path]:
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
    """Write the archive; half written, it has another name.

    It is a chain of gzip members: jars, other dependencies, and homeport last. After a change of
    homeport alone, only the last one is made again: the others are kept. Jars are stored: they are
    compressed already, and a second compression would cost each node seconds.

    ``kept``: the path of the members without homeport, by ``is_own``.
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
