"""A checked copy of Skein's jar: request numbers only grow, and a reported end is the end.

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

The class, not the jar, is what is compared: zip metadata and zlib differ between machines. As its
hash fixes each byte, a change is an offset with the bytes before and after; a class compiled from
Java would need Skein's source of 1,400 lines and a JDK on each client, and have another hash.
With the patch, request numbers only grow.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import tempfile
import time
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from homeport.config.errors import UnavailableError, WireError

CLASS_ENTRY = "com/anaconda/skein/ApplicationMaster.class"
STOCK_SHA256 = "b0018461578cdb77034fa05623c7ed679adba38f947d62eb034763e67e1776c9"
PATCHED_SHA256 = "aa4e14b45c25a537cad76c41702279cc98bd905713a330b9d99f09d8aa751b34"

_LEFT_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class Change:
    """Bytes at an offset of the class, and those that replace them: as many."""

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


def patch_class(data: bytes, changes: Iterable[Change] = (*ONLY_GROW, *END_WHEN_REPORTED)) -> bytes:
    """Return the class with the changes; as long as before.

    WireError: not the class that the changes were made for.
    """
    for change in changes:
        end = change.offset + len(change.before)
        if data[change.offset : end] != change.before:
            raise WireError(f"the class has not the expected code at offset {change.offset}")
        data = data[: change.offset] + change.after + data[end:]
    return data


def class_sha256(jar: Path) -> str | None:
    """Return the SHA-256 of the class to patch in ``jar``; None: there is no such class or jar."""
    try:
        with zipfile.ZipFile(jar) as archive:
            return hashlib.sha256(archive.read(CLASS_ENTRY)).hexdigest()
    except (OSError, KeyError, zipfile.BadZipFile):
        return None


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
    copy = cache / "skein" / PATCHED_SHA256 / "skein.jar"
    if class_sha256(copy) == PATCHED_SHA256:
        return copy
    source = installed_jar() if stock is None else stock
    found = class_sha256(source)
    if found != STOCK_SHA256:
        raise UnavailableError(
            f"{source}: class {CLASS_ENTRY} has SHA-256 {found}, the patch was made for "
            f"{STOCK_SHA256}: install skein 0.8.2 from PyPI"
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
        if class_sha256(temporary) != PATCHED_SHA256:
            raise UnavailableError(
                f"{source}: the patched class has not the expected SHA-256: report this"
            )
        temporary.replace(copy)
    finally:
        temporary.unlink(missing_ok=True)
    return copy


def _write_patched(source: Path, target: IO[bytes]) -> None:
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            data = old.read(entry)
            new.writestr(entry, patch_class(data) if entry.filename == CLASS_ENTRY else data)
