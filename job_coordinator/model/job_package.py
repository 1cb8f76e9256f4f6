"""A package of the job's code as it reaches running containers: a zip, named by its sha256.

It may name the Python environment that its code runs in, in the file ``ENVIRONMENT_NAME``: so one
name stands for code and environment, in orders, records and check-ins. PURE.
"""

import hashlib
import io
import json
import re
import stat
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated

from msgspec import Meta

from homeport.config.errors import WireError, in_one_line
from homeport.job_coordinator.model.json_values import compact_json, shown

MAX_BYTES = 8 * 1024 * 1024
"""Of the zip: all readers of the coordinator stream read it. Libraries are for the environment of
the job, which hosts fetch once."""

MAX_UNPACKED_BYTES = 128 * 1024 * 1024
"""Of all files in it: a zip of some bytes can have entries that fill a disk."""

PACKAGE_NAME = "[0-9a-f]{64}"
"""The pattern of a package's name: a SHA-256. A launcher names a folder after it."""
ENVIRONMENT_NAME = "homeport-environment.json"
"""The file of a package that names its environment."""
_LONGEST_PLACE = 4096
_ENCRYPTED = 0x1
_ENTRY_TIME = (1980, 1, 1, 0, 0, 0)

Package = Annotated[str, Meta(pattern=rf"\A{PACKAGE_NAME}\Z")]
"""A package's name, in records and in an order of an upgrade."""


def is_package_name(text: str) -> bool:
    """Return whether ``text`` is a sha256 in lower-case hexadecimal digits."""
    return re.fullmatch(PACKAGE_NAME, text) is not None


def package_entries(data: bytes) -> list[zipfile.ZipInfo]:
    """Return the files and folders of the zip ``data``, all fit to be unpacked into one folder.

    WireError: it is no zip, or too large, also once it is unpacked; or an entry is encrypted, names
    a place outside, or one below a file.
    """
    if len(data) > MAX_BYTES:
        raise WireError(f"a package of {len(data)} bytes is larger than {MAX_BYTES}")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
    # NotImplementedError: zipfile's, for a feature of a zip that it does not know.
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
        raise WireError(f"the package is no zip: {shown(str(error))}") from None
    require_one_place_each(entries, MAX_UNPACKED_BYTES)
    return entries


def require_one_place_each(entries: Sequence[zipfile.ZipInfo], most_bytes: int) -> None:
    """Require that all entries of a zip may be unpacked into one folder, in so many bytes.

    WireError: as ``package_entries``.
    """
    for entry in entries:
        parts = PurePosixPath(entry.filename).parts
        if not parts or parts[0] == "/" or ".." in parts or "\\" in entry.filename:
            raise WireError(f"the package has an entry outside it: {shown(entry.filename)}")
        if entry.flag_bits & _ENCRYPTED:
            raise WireError(f"the package has an encrypted entry: {shown(entry.filename)}")
    files = {PurePosixPath(entry.filename) for entry in entries if not entry.is_dir()}
    for entry in entries:
        path = PurePosixPath(entry.filename)
        if (path in files and entry.is_dir()) or not files.isdisjoint(path.parents):
            raise WireError(f"the package has a file and a folder of one name: {shown(str(path))}")
    size = sum(entry.file_size for entry in entries)
    if size > most_bytes:
        raise WireError(f"the package has files of {size} bytes, more than {most_bytes}")


def require_unpacked_alike(entries: Sequence[zipfile.ZipInfo]) -> None:
    """Require that YARN, a launcher and any host unpack the entries of a zip to the same files.

    WireError: an entry is a link or a special file, comes twice, differs from another in case
    alone, or is packed in a way that YARN does not know.
    """
    seen: dict[PurePosixPath, str] = {}
    for entry in entries:
        name = shown(entry.filename)
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
            what = "a link" if kind == stat.S_IFLNK else "a special file"
            raise WireError(f"the package has {what}: {name}")
        if entry.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            raise WireError(f"the package has an entry that is neither stored nor deflated: {name}")
        # Also a folder beside another: what is in the two would be in one on some hosts.
        path = PurePosixPath(entry.filename)
        if path in seen and not entry.is_dir():
            raise WireError(f"the package has an entry twice: {name}")
        seen[path] = entry.filename
    whole = {part for path in seen for part in (path, *path.parents)}
    by_case: dict[str, PurePosixPath] = {}
    for path in sorted(whole):
        other = by_case.setdefault(str(path).casefold(), path)
        if other != path:
            both = f"{shown(str(other))} and {shown(str(path))}"
            raise WireError(f"the package has names that differ in case alone: {both}")


def require_readable(data: bytes) -> None:
    """Require that all entries of the zip ``data`` can be unpacked.

    WireError: as ``package_entries``, or an entry is damaged, or packed in an unknown way.
    """
    package_entries(data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            damaged = archive.testzip()
    except Exception as error:  # noqa: BLE001 - each way to compress has errors of its own
        raise WireError(f"the package cannot be unpacked: {in_one_line(error)}") from None
    if damaged is not None:
        raise WireError(f"the package has a damaged entry: {shown(damaged)}")


@dataclass(frozen=True, slots=True)
class PackageContents:
    """What a package stands for.

    ``code``: the sha256 of its zip without an environment. ``place``: the environment, as an
    interpreter's absolute path on each host, or the URL of an archive of ``homeport pack``; None:
    the submission's.
    """

    code: str
    place: str | None = None


def contents_of(data: bytes) -> PackageContents:
    """Return what the zip ``data`` stands for; WireError: as ``package_entries``, or unknown."""
    if all(entry.filename != ENVIRONMENT_NAME for entry in package_entries(data)):
        return PackageContents(hashlib.sha256(data).hexdigest())
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return contents_from(archive.read(ENVIRONMENT_NAME))


def contents_from(file: bytes) -> PackageContents:
    """Return the contents in a file ``ENVIRONMENT_NAME``; WireError: it has none."""
    try:
        body = json.loads(file)
        found = PackageContents(body["code"], body["python"])
        is_sound = 0 < len(body["python"]) <= _LONGEST_PLACE and is_package_name(found.code)
    except (ValueError, KeyError, TypeError):
        is_sound = False
    if not is_sound:
        raise WireError(f"{ENVIRONMENT_NAME} names no environment: {shown(repr(file[:200]))}")
    return found


def with_environment(data: bytes, place: str) -> bytes:
    """Return the zip ``data`` with another environment, or with its first one.

    The same code and the same environment are the same bytes.
    """
    code = contents_of(data).code
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w") as new:
        for entry in old.infolist():
            if entry.filename != ENVIRONMENT_NAME:
                copied = zipfile.ZipInfo(entry.filename, entry.date_time)
                copied.compress_type = zipfile.ZIP_DEFLATED
                copied.external_attr = entry.external_attr
                new.writestr(copied, old.read(entry))
        marker = zipfile.ZipInfo(ENVIRONMENT_NAME, _ENTRY_TIME)
        new.writestr(marker, compact_json({"python": place, "code": code}))
    return made.getvalue()
