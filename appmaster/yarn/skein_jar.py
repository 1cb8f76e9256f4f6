"""A checked copy of Skein's jar: numbers only grow, a request names its host, an end is the end.

*Request numbers.* Stock Skein resets the number of its next request (the YARN priority) whenever
nothing is outstanding, and counts on from the highest number in use otherwise. Numbers come back,
and a request of a number used before is never granted when its locality differs: the AMRM client
keeps one table entry per number and size and never forgets whether it was relaxed. So
``ApplicationMaster.updatePriorities`` loses both of its stores to ``nextPriority``: each
``putfield`` becomes ``pop2; nop; nop``, three bytes for three, same effect on the stack, so that
offsets, frames and the verifier's verdict stay. Older requests keep the lower number and are still
served first.

*The end.* Stock Skein leaves an application that ends as FAILED or KILLED to be tried again while
attempts are left, even where its driver has reported that end: a stopped job would come back by
itself. So ``ApplicationMaster.runOnExit`` asks for exit code 0 (the driver reported the end, or
exited with 0) where it asked for the status SUCCEEDED; a crash and a signal are still tried again.

*The host.* Stock Skein takes the nodes of a request from its service, which is fixed at the
submission: a host that joins later has none. So ``ServiceTracker.requestContainer`` takes the host
that ``HOST_VARIABLE`` of the container's environment names, and the service's nodes without it. The
code is that for the service's racks, which no service of Homeport has, byte for byte as long.

The classes, not the jar, are what is compared: zip metadata and zlib differ between machines. As
its hash fixes each byte, a change is an offset with the bytes before and after; a class compiled
from Java would need Skein's source of 1,400 lines and a JDK on each client, and have another hash.
"""

import hashlib
import importlib.util
import os
import tempfile
import time
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from homeport.config.errors import UnavailableError, WireError

HOST_VARIABLE = "HOMEPORT_REQUESTED_HOST"
"""The variable of a request that names the one host for it."""

_LEFT_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class Change:
    """Bytes at an offset of the class, and those that replace them."""

    offset: int
    before: bytes
    after: bytes


_STORE, _DROP = bytes.fromhex("b5 00fa"), bytes.fromhex("58 00 00")
"""putfield nextPriority; pop2, nop, nop."""
ONLY_GROW = (Change(30_562, _STORE, _DROP), Change(30_570, _STORE, _DROP))
"""In ``updatePriorities``."""
END_WHEN_REPORTED = (
    Change(
        28_761,
        bytes.fromhex("b4 0109 b2 03c7 a5 0008"),  # getfield finalStatus, getstatic, if_acmpeq +8
        bytes.fromhex("b4 0102 99 000b 00 00 00"),  # getfield exitCode, ifeq +11 (as far), nop x 3
    ),
)
"""In ``runOnExit``, after aload_0: ``exitCode == 0``, no more ``finalStatus == SUCCEEDED``."""


_NAME = HOST_VARIABLE.encode()
_HOST = bytes.fromhex("2b b60246 13033d b9033e0200")
"""aload_1, invokevirtual getEnv, ldc_w HOST_VARIABLE, invokeinterface Map.get."""
NAME_THE_HOST = (
    # Three constants more: the text, the String of it, and Map.get.
    Change(8, bytes.fromhex("033c"), bytes.fromhex("033f")),
    Change(
        13_677,
        b"",
        b"\x01" + len(_NAME).to_bytes(2, "big") + _NAME + bytes.fromhex("08033c 0b023c017e"),
    ),
    # racks = the host of the environment, else the nodes.
    Change(
        16_772,
        bytes.fromhex(
            "2a b4008e b601a6 b901990100 990007 01 a70016"
            "2a b4008e b601a6 03 bd019d b901a10200 c001a3"
        ),
        # ... ifnonnull +7, aload_3, goto +22; iconst_1, anewarray String, dup, iconst_0 ... aastore
        _HOST + bytes.fromhex("c70007 2d a70016 04 bd019d 59 03") + _HOST + bytes.fromhex("53"),
    ),
    # new ContainerRequest(..., nodes, racks, ...): (racks, null) for (nodes, racks).
    Change(16_845, bytes.fromhex("2d 1904"), bytes.fromhex("1904 01")),
)
"""In ``requestContainer``."""


@dataclass(frozen=True, slots=True)
class Patch:
    """The changes of one class of the jar, in the order of their offsets, and its hashes."""

    entry: str
    stock: str
    patched: str
    changes: tuple[Change, ...]


PATCHES = (
    Patch(
        "com/anaconda/skein/ApplicationMaster.class",
        "b0018461578cdb77034fa05623c7ed679adba38f947d62eb034763e67e1776c9",
        "aa4e14b45c25a537cad76c41702279cc98bd905713a330b9d99f09d8aa751b34",
        (*END_WHEN_REPORTED, *ONLY_GROW),
    ),
    Patch(
        "com/anaconda/skein/ApplicationMaster$ServiceTracker.class",
        "1a2abc5236e9642545eade7c7acca5b4a33001d98e35cc8e575855b563a7f3ae",
        "94489302fb51c5e1b3ed1e27ec740099c9cb380afff3014437487f4fbde8c17e",
        NAME_THE_HOST,
    ),
)


def patch_class(data: bytes, changes: Sequence[Change]) -> bytes:
    """Return the class with the changes, which are in the order of their offsets.

    WireError: not the class that the changes were made for.
    """
    for change in reversed(changes):
        end = change.offset + len(change.before)
        if len(data) < end or data[change.offset : end] != change.before:
            raise WireError(f"the class has not the expected code at offset {change.offset}")
        data = data[: change.offset] + change.after + data[end:]
    return data


def class_hashes(jar: Path) -> tuple[str | None, ...]:
    """Return the SHA-256 of each class to patch in ``jar``; None: no such class or jar."""
    try:
        with zipfile.ZipFile(jar) as archive:
            return tuple(hashlib.sha256(archive.read(p.entry)).hexdigest() for p in PATCHES)
    except (OSError, KeyError, zipfile.BadZipFile):
        return (None,) * len(PATCHES)


def installed_jar() -> Path:
    """Return the path of the jar that the installed package skein ships.

    UnavailableError: skein is not installed.
    """
    spec = importlib.util.find_spec("skein")
    if spec is None or spec.origin is None:
        raise UnavailableError(
            "package skein is not installed: install homeport with its dependencies"
        )
    return Path(spec.origin).parent / "java" / "skein.jar"


def ensure_patched_jar(cache: Path, stock: Path | None = None) -> Path:
    """Return the path of a patched, verified copy of ``stock`` (default: the installed jar).

    A copy in ``cache`` that is missing or damaged is made again; it appears whole or not at all, so
    two callers at once do no harm.

    UnavailableError: the stock jar is not the one that the patch was made for.
    """
    wanted = tuple(patch.patched for patch in PATCHES)
    name = hashlib.sha256("".join(wanted).encode()).hexdigest()
    copy = cache / "skein" / name / "skein.jar"
    if class_hashes(copy) == wanted:
        return copy
    source = installed_jar() if stock is None else stock
    for patch, found in zip(PATCHES, class_hashes(source), strict=True):
        if found != patch.stock:
            raise UnavailableError(
                f"{source}: class {patch.entry} has SHA-256 {found}, the patch was made for "
                f"{patch.stock}: install skein 0.8.2 from PyPI"
            )
    copy.parent.mkdir(parents=True, exist_ok=True)
    for left in copy.parent.glob(f"{copy.name}.*"):  # by a command that was killed
        if left.stat().st_mtime < time.time() - _LEFT_S:
            left.unlink(missing_ok=True)
    handle, name = tempfile.mkstemp(prefix="skein.jar.", dir=copy.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as target:
            _write_patched(source, target)
        if class_hashes(temporary) != wanted:
            raise UnavailableError(
                f"{source}: a patched class has not the expected SHA-256: report this"
            )
        temporary.replace(copy)
    finally:
        temporary.unlink(missing_ok=True)
    return copy


def _write_patched(source: Path, target: IO[bytes]) -> None:
    changes = {patch.entry: patch.changes for patch in PATCHES}
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            new.writestr(entry, patch_class(old.read(entry), changes.get(entry.filename, ())))
