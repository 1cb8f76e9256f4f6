"""Exact bytes of the files OFFSET and OFFSET-v2: a checksum and a text in a Java object stream.

PURE. Source: Samza 1.8 ``FileUtil.writeWithChecksum``: the stream header, then block data with an
8-byte CRC32 of the text and the text itself in Java's modified UTF-8. The order of the files:
``StorageManagerUtil.readOffsetFile``.
"""

import json
import struct
import zlib

from homeport.config.config import LONG_MAX
from homeport.config.errors import WireError
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.coordinator_stream.message_bytes import whole_number
from homeport.job_coordinator.model.job_model import SystemStreamPartition

OFFSET_FILE = "OFFSET"
OFFSET_V2_FILE = "OFFSET-v2"
SIDE_INPUT_OFFSETS_FILE = "SIDE-INPUT-OFFSETS"
"""The text of OFFSET-v2 once more, beside a standby's store: Samza's standbys read it there."""
READ_ORDER = (OFFSET_V2_FILE, OFFSET_FILE, SIDE_INPUT_OFFSETS_FILE)
"""The first of these that exists has the position of the store."""

_HEADER = b"\xac\xed\x00\x05"
_SHORT_BLOCK = 0x77
_LONG_BLOCK = 0x7A
_BLOCK_BYTES = 1024
_SHORT_BYTES = 255
_CHECKSUM_BYTES = 8
_PIECE = 65535


class ForeignOffsetError(WireError):
    """The file is whole, and of another changelog."""


def encode(text: str) -> bytes:
    """Return the file's bytes for ``text``; WireError: it has a piece too long for ``writeUTF``."""
    checksum = struct.pack(">Q", zlib.crc32(text.encode("utf-8")))
    payload = checksum + b"".join(_utf(piece) for piece in _pieces(text))
    blocks = (payload[i : i + _BLOCK_BYTES] for i in range(0, len(payload), _BLOCK_BYTES))
    return _HEADER + b"".join(_block(block) for block in blocks)


def decode(data: bytes) -> str:
    """Return the text in ``data``; WireError: cut short, of another form, or a wrong checksum."""
    payload = _unblocked(data)
    if len(payload) < _CHECKSUM_BYTES:
        raise WireError("the file is cut short")
    (checksum,) = struct.unpack_from(">Q", payload)
    pieces: list[str] = []
    position = _CHECKSUM_BYTES
    while position < len(payload):
        if position + 2 > len(payload):
            raise WireError("the file is cut short")
        (length,) = struct.unpack_from(">H", payload, position)
        piece = payload[position + 2 : position + 2 + length]
        if len(piece) != length:
            raise WireError("the file is cut short")
        pieces.append(_from_modified_utf8(piece))
        position += 2 + length
    text = "".join(pieces)
    if zlib.crc32(text.encode("utf-8", "surrogatepass")) != checksum:
        raise WireError("its checksum does not match its text")
    return text


def offset_v2_text(system: str, stream: str, partition: int, offset: int) -> str:
    """Return the text of OFFSET-v2: a JSON map of the changelog partition's key to its offset."""
    key = SystemStreamPartition(system, stream, partition).name
    return json.dumps({key: str(offset)}, separators=(",", ":"), ensure_ascii=False)


def parse_offset(text: str) -> int:
    """Return the offset in the text of OFFSET; WireError: it is no number of at least 0."""
    offset = whole_number(text, LONG_MAX)
    if offset is None:
        raise WireError(f"it holds {text[:40]!r}, which is not an offset")
    return offset


def parse_offset_v2(text: str, changelog: SystemStream, partition: int) -> int:
    """Return the offset in a JSON map with this changelog partition as its only key.

    A text that is no map is the bare offset of the only partition, as in Samza. The key is compared
    as a whole: names of topics may have dots.

    Raises:
        ForeignOffsetError: the map has another partition.
        WireError: there is no offset.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        return parse_offset(text)
    key = SystemStreamPartition(changelog.system, changelog.stream, partition).name
    if list(found) != [key]:
        named = ", ".join(found) or "nothing"
        raise ForeignOffsetError(f"it is of {named[:200]}, not of {key}")
    return parse_offset(str(found[key]))


def _pieces(text: str) -> list[str]:
    return [text[i : i + _PIECE] for i in range(0, len(text), _PIECE)] or [""]


def _utf(piece: str) -> bytes:
    # Java writes NUL as two bytes and each half of a surrogate pair as three.
    units = struct.iter_unpack(">H", piece.encode("utf-16-be", "surrogatepass"))
    halves = "".join(chr(unit) for (unit,) in units)
    data = halves.encode("utf-8", "surrogatepass").replace(b"\x00", b"\xc0\x80")
    if len(data) > _PIECE:
        raise WireError(f"a text of {len(data)} bytes does not fit into one piece of {_PIECE}")
    return struct.pack(">H", len(data)) + data


def _block(block: bytes) -> bytes:
    if len(block) <= _SHORT_BYTES:
        return bytes((_SHORT_BLOCK, len(block))) + block
    return struct.pack(">BI", _LONG_BLOCK, len(block)) + block


def _unblocked(data: bytes) -> bytes:
    if data[:4] != _HEADER:
        raise WireError("it does not begin as a Java object stream does")
    payload = bytearray()
    position = 4
    while position < len(data):
        kind = data[position]
        width = {_SHORT_BLOCK: 1, _LONG_BLOCK: 4}.get(kind)
        if width is None:
            raise WireError(f"unknown block type {kind:#04x}")
        start = position + 1 + width
        length = int.from_bytes(data[position + 1 : start], "big")
        block = data[start : start + length]
        if start > len(data) or len(block) != length:
            raise WireError("the file is cut short")
        payload += block
        position = start + length
    return bytes(payload)


def _from_modified_utf8(data: bytes) -> str:
    try:
        halves = data.replace(b"\xc0\x80", b"\x00").decode("utf-8", "surrogatepass")
        return halves.encode("utf-16-be", "surrogatepass").decode("utf-16-be")
    except UnicodeDecodeError:
        raise WireError("its text is not in Java's modified UTF-8") from None
