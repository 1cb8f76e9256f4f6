"""Folders and files that are this user's alone, below a folder that many may share.

The operator gives a folder (``below``): it may be a link, be of another user, and have mode 1777.
What the product makes in it is of mode 0700, and no link. Each part of the way is opened below what
was opened before it, so what happens to a path meanwhile changes nothing. Once the first part is
known to be this user's, and closed, no other user can change what follows.
"""

import contextlib
import errno
import grp
import os
import pwd
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from homeport.config.errors import StoreError

PRIVATE_UMASK = 0o077
"""Of each process that works on a job's state: what it makes is its user's alone."""

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_GROUP_READS = stat.S_IRGRP | stat.S_IXGRP
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Return ``HOMEPORT_CACHE_DIR``, by default ``${XDG_CACHE_HOME:-~/.cache}/homeport``."""
    given = environment.get("HOMEPORT_CACHE_DIR", "")
    if given:
        return Path(given).expanduser().absolute()
    base = environment.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache").absolute() / "homeport"


class NotOwnError(StoreError):
    """A folder that this user alone must own is another's, a link, or open to others."""

    def __init__(self, path: Path, reason: str, remedy: str) -> None:
        self.reason = reason
        super().__init__(f"{path}: {reason}; {remedy}")


@contextlib.contextmanager
def own_folder(path: Path, below: Path) -> Iterator[int]:
    """Yield a descriptor of the folder ``path``, made where it is missing, and closed to others.

    Args:
        path: the folder; it, and each one between it and ``below``, is this user's alone.
        below: the folder that was given, or ``path`` itself; it is made where it is missing.

    NotOwnError: a folder belongs to another user, is none, or others can write there; one line with
    path, reason and remedy.
    OSError: the system refuses.
    """
    try:
        below.mkdir(mode=0o755, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        remedy = "name a folder, or what can be made one"
        raise NotOwnError(below, "it is no folder, or leads to none", remedy) from None
    descriptor = os.open(below, _FOLDER)
    try:
        _require_sticky(below, os.fstat(descriptor))
        here = below
        for name in path.relative_to(below).parts:
            here = here / name
            inner = _entered(here, descriptor)
            os.close(descriptor)
            descriptor = inner
            close_to_others(here, descriptor)
        yield descriptor
    finally:
        os.close(descriptor)


def make_own_folder(path: Path, below: Path) -> None:
    """Make ``path`` as ``own_folder`` does, with its errors."""
    with own_folder(path, below):
        pass


def close_to_others(path: Path, descriptor: int) -> None:
    """Let no other user look into the open folder ``path``; NotOwnError where one could write."""
    found = os.fstat(descriptor)
    own, mode = os.geteuid(), stat.S_IMODE(found.st_mode)
    if found.st_uid != own:
        raise NotOwnError(
            path,
            f"it belongs to user {found.st_uid}, and this is user {own}",
            f"run this as user {found.st_uid}, or have it removed: what another user has made is "
            "not used until that user gives it away (chown)",
        )
    if mode & _OTHERS_WRITE:
        raise NotOwnError(
            path,
            f"other users can write there (mode {mode:04o})",
            "remove it, or make sure of what is in it and give it mode 0700",
        )
    if mode & ~stat.S_IRWXU:
        os.fchmod(descriptor, mode & stat.S_IRWXU)


def open_own_file(path: Path, flags: int) -> int:
    """Open the file ``path`` for this user alone, made where it is missing, and never by a link.

    Its group reads it where the folder passes its own group on and lets it read (mode 2750), as
    YARN's folders of logs do for the NodeManager, and an operator's for a shipper of logs.

    OSError: the system refuses, or the file is another user's.
    """
    descriptor = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        close_file_to_others(path, descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def close_file_to_others(path: Path, descriptor: int) -> None:
    """Give the open file ``path`` the mode of ``open_own_file``; OSError: it is another user's."""
    found = os.fstat(descriptor)
    if found.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, f"it belongs to user {found.st_uid}", str(path))
    folder = stat.S_IMODE(path.parent.stat().st_mode)
    is_shared = folder & stat.S_ISGID and folder & _GROUP_READS == _GROUP_READS
    wanted = 0o640 if is_shared else 0o600
    if stat.S_IMODE(found.st_mode) != wanted:
        os.fchmod(descriptor, wanted)


def _entered(path: Path, descriptor: int) -> int:
    """Open the folder ``path``, made where it is missing, below the open one of its parent."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(path.name, stat.S_IRWXU, dir_fd=descriptor)
    try:
        return os.open(path.name, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
    except NotADirectoryError:
        found = os.stat(path.name, dir_fd=descriptor, follow_symlinks=False)
        what = "a link, which is not followed" if stat.S_ISLNK(found.st_mode) else "no folder"
        raise NotOwnError(
            path, f"it is {what}", "put a folder of this user's in its place, or nothing"
        ) from None


def _require_sticky(path: Path, found: os.stat_result) -> None:
    """Raise NotOwnError where others may exchange what a user has made in the given folder."""
    mode = stat.S_IMODE(found.st_mode)
    is_shared = mode & stat.S_IWOTH or (mode & stat.S_IWGRP and not _is_own_group(found.st_gid))
    if is_shared and not mode & stat.S_ISVTX:
        raise NotOwnError(
            path,
            f"other users can exchange what this one has there (mode {mode:04o})",
            "set its sticky bit (chmod +t), or let no other user write there",
        )


def _is_own_group(number: int) -> bool:
    try:
        group, name = grp.getgrgid(number), pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return False
    return group.gr_name == name and {*group.gr_mem} <= {name}
