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

The class, not the jar, is what is compared: zip metadata and zlib differ between machines.
With the patch, request numbers only grow.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import struct
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from homeport.config.errors import UnavailableError, WireError

CLASS_ENTRY = "com/anaconda/skein/ApplicationMaster.class"
STOCK_SHA256 = "b0018461578cdb77034fa05623c7ed679adba38f947d62eb034763e67e1776c9"
GROWING_SHA256 = "4eb93e047b51dc189959e9101360d4c87a9b4fedb53f58bb34b09ba4c6c7c23c"
"""With the first patch only."""
PATCHED_SHA256 = "aa4e14b45c25a537cad76c41702279cc98bd905713a330b9d99f09d8aa751b34"
"""With both patches."""

_LEFT_S = 24 * 3600
_MAGIC = 0xCAFEBABE
_PUTFIELD = 0xB5
_GETSTATIC, _GETFIELD = 0xB2, 0xB4
_IFEQ, _IF_ACMPEQ = 0x99, 0xA5
_POP2_NOP_NOP = b"\x58\x00\x00"
_NOP_NOP_NOP = b"\x00\x00\x00"

_UTF8, _FIELDREF = 1, 9
_FIXED_ENTRY_SIZES = {
    3: 4,  # Integer
    4: 4,  # Float
    5: 8,  # Long, takes two indices
    6: 8,  # Double, takes two indices
    7: 2,  # Class
    8: 2,  # String
    9: 4,  # Fieldref
    10: 4,  # Methodref
    11: 4,  # InterfaceMethodref
    12: 4,  # NameAndType
    15: 3,  # MethodHandle
    16: 2,  # MethodType
    17: 4,  # Dynamic
    18: 4,  # InvokeDynamic
    19: 2,  # Module
    20: 2,  # Package
}
_TWO_INDEX_TAGS = frozenset({5, 6})


class _Reader:
    """Big-endian numbers of a class file, read in order."""

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = data
        self.position = position

    def u1(self) -> int:
        return int(self._number(">B", 1))

    def u2(self) -> int:
        return int(self._number(">H", 2))

    def u4(self) -> int:
        return int(self._number(">I", 4))

    def skip(self, count: int) -> bytes:
        start = self.position
        self.position += count
        if self.position > len(self.data):
            raise WireError("class file ends in the middle of an item")
        return self.data[start : self.position]

    def _number(self, form: str, size: int) -> int:
        return int(struct.unpack(form, self.skip(size))[0])


@dataclass(frozen=True, slots=True)
class _ClassFile:
    """Of a class file: constants by index (tag, raw bytes), and where each method's code lies."""

    constants: dict[int, tuple[int, bytes]]
    code: dict[bytes, tuple[int, int]]

    def field(self, name: bytes, descriptor: bytes = b"") -> int:
        """Index of the only Fieldref of that name whose descriptor starts so."""
        found = [
            index
            for index, (tag, _) in self.constants.items()
            if tag == _FIELDREF
            and self._name_and_type(index)[0] == name
            and self._name_and_type(index)[1].startswith(descriptor)
        ]
        if len(found) != 1:
            raise WireError(f"the class has {len(found)} references to a field {name.decode()}")
        return found[0]

    def _name_and_type(self, fieldref: int) -> tuple[bytes, bytes]:
        _, name_and_type = struct.unpack(">HH", self.constants[fieldref][1])
        name, descriptor = struct.unpack(">HH", self.constants[name_and_type][1])
        return self.constants[name][1], self.constants[descriptor][1]


def _read_constants(reader: _Reader) -> dict[int, tuple[int, bytes]]:
    constants: dict[int, tuple[int, bytes]] = {}
    count = reader.u2()
    index = 1
    while index < count:
        tag = reader.u1()
        if tag == _UTF8:
            constants[index] = (tag, reader.skip(reader.u2()))
        elif tag in _FIXED_ENTRY_SIZES:
            constants[index] = (tag, reader.skip(_FIXED_ENTRY_SIZES[tag]))
        else:
            raise WireError(f"class file has a constant of unknown tag {tag}")
        index += 2 if tag in _TWO_INDEX_TAGS else 1
    return constants


def _read_members(
    reader: _Reader, constants: dict[int, tuple[int, bytes]]
) -> dict[bytes, tuple[int, int]]:
    """Skips fields or methods; {name: (offset of the code, its length)} of those with code."""
    code: dict[bytes, tuple[int, int]] = {}
    for _ in range(reader.u2()):
        reader.u2()  # access flags
        name = constants[reader.u2()][1]
        reader.u2()  # descriptor
        for _ in range(reader.u2()):
            attribute = constants[reader.u2()][1]
            length = reader.u4()
            start = reader.position
            if attribute == b"Code":
                reader.skip(4)  # max_stack, max_locals
                code_length = reader.u4()
                code[name] = (reader.position, code_length)
            reader.position = start + length
    return code


def _parse(data: bytes) -> _ClassFile:
    reader = _Reader(data)
    if reader.u4() != _MAGIC:
        raise WireError("not a class file")
    reader.skip(4)  # version
    constants = _read_constants(reader)
    reader.skip(6)  # access flags, this class, super class
    reader.skip(2 * reader.u2())  # interfaces
    _read_members(reader, constants)  # fields
    return _ClassFile(constants, _read_members(reader, constants))


def patch_class(data: bytes) -> bytes:
    """The bytes of the stock class with both patches; as long as before.

    Raises:
        WireError: not the class that the patches were made for.
    """
    return end_when_reported(only_grow(data))


def only_grow(data: bytes) -> bytes:
    """The class without the two stores to ``nextPriority``."""
    parsed = _parse(data)
    store = _instruction(_PUTFIELD, parsed.field(b"nextPriority"))
    return _replaced(data, parsed, b"updatePriorities", (store, _POP2_NOP_NOP), times=2)


def end_when_reported(data: bytes) -> bytes:
    """The class that asks ``exitCode == 0`` where it asked ``finalStatus == SUCCEEDED``.

    Before: aload_0, getfield finalStatus, getstatic SUCCEEDED, if_acmpeq +8. After: aload_0,
    getfield exitCode, ifeq +11 (to the same place), nop, nop, nop.
    """
    parsed = _parse(data)
    status = _instruction(_GETFIELD, parsed.field(b"finalStatus"))
    succeeded = _instruction(
        _GETSTATIC, parsed.field(b"SUCCEEDED", b"Lorg/apache/hadoop/yarn/api/records/Final")
    )
    code = _instruction(_GETFIELD, parsed.field(b"exitCode"))
    before = status + succeeded + _instruction(_IF_ACMPEQ, 8)
    after = code + _instruction(_IFEQ, 11) + _NOP_NOP_NOP
    return _replaced(data, parsed, b"runOnExit", (before, after), times=1)


def _instruction(operation: int, operand: int) -> bytes:
    return struct.pack(">BH", operation, operand)


def _replaced(
    data: bytes, parsed: _ClassFile, method: bytes, change: tuple[bytes, bytes], times: int
) -> bytes:
    """``data`` with a change of equal length in one method's code, which must have it so often."""
    if method not in parsed.code:
        raise WireError(f"the class has no method {method.decode()}")
    offset, length = parsed.code[method]
    code = data[offset : offset + length]
    before, after = change
    if code.count(before) != times:
        raise WireError(f"method {method.decode()} has not the expected code")
    return data[:offset] + code.replace(before, after) + data[offset + length :]


def class_sha256(jar: Path) -> str | None:
    """SHA-256 of the class to patch in ``jar``; None where there is no such class or jar."""
    try:
        with zipfile.ZipFile(jar) as archive:
            return hashlib.sha256(archive.read(CLASS_ENTRY)).hexdigest()
    except (OSError, KeyError, zipfile.BadZipFile):
        return None


def installed_jar() -> Path:
    """Path of the jar that the installed package skein ships.

    Raises:
        UnavailableError: skein is not installed.
    """
    spec = importlib.util.find_spec("skein")
    if spec is None or spec.origin is None:
        raise UnavailableError(
            "package skein is not installed: install homeport with its dependencies"
        )
    return Path(spec.origin).parent / "java" / "skein.jar"


def ensure_patched_jar(cache: Path, stock: Path | None = None) -> Path:
    """The path of a patched, verified copy of ``stock`` (default: the installed jar).

    A copy in ``cache`` that is missing or damaged is made again; it appears whole or not at all, so
    two callers at once do no harm.

    Raises:
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
