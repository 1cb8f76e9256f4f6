"""Bytes of OFFSET and OFFSET-v2."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.config.errors import WireError
from homeport.config.system_stream import SystemStream
from homeport.container.progress import offset_file

DOTTED = SystemStream("kafka", "a.b-log")


@pytest.mark.parametrize(
    ("characters", "blocks"),
    [
        (245, {4: "77ff"}),
        (246, {4: "7a00000100"}),
        (300, {4: "7a00000136"}),
        (1500, {4: "7a00000400", 4 + 5 + 1024: "7a000001e6"}),
    ],
)
def test_long_texts_are_split_into_blocks(characters: int, blocks: dict[int, str]) -> None:
    """As in Java: up to 255 bytes have a length of one byte; a longer block has at most 1024."""
    data = offset_file.encode("x" * characters)
    assert {at: data[at : at + len(head) // 2].hex() for at, head in blocks.items()} == blocks
    assert len(data) == 4 + sum(len(head) // 2 for head in blocks.values()) + 10 + characters


def test_a_text_of_more_than_one_piece_is_read_back() -> None:
    """Java writes no more than some bytes as one text; each piece has its length before it."""
    text = "".join(chr(ord("a") + n % 26) for n in range(2 * offset_file._PIECE + 1))
    assert offset_file.decode(offset_file.encode(text)) == text


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=3000))
def test_decoding_inverts_encoding(text: str) -> None:
    """Any text comes back, with NUL and characters beyond the basic plane."""
    assert offset_file.decode(offset_file.encode(text)) == text


@given(st.data())
def test_damage_is_seen(data: st.DataObject) -> None:
    """A file cut short anywhere, or with a changed byte in its text, is refused."""
    good = offset_file.encode("1234567")
    cut = data.draw(st.integers(0, len(good) - 1))
    with pytest.raises(WireError):
        offset_file.decode(good[:cut])
    place = data.draw(st.integers(len(good) - 7, len(good) - 1))
    with pytest.raises(WireError):
        offset_file.decode(good[:place] + b"9" + good[place + 1 :].replace(b"9", b"8") + b"")


def _file(payload: bytes) -> bytes:
    return b"\xac\xed\x00\x05" + bytes((0x77, len(payload))) + payload


_CHECKSUM = bytes(8)


@pytest.mark.parametrize(
    ("data", "stated"),
    [
        (b"", "does not begin as a Java object stream does"),
        (_file(b"")[:4] + b"\x70", "unknown block type 0x70"),
        (_file(b"abc"), "cut short"),
        (_file(b"abc")[:-1], "cut short"),
        (_file(_CHECKSUM + b"\x00"), "cut short"),
        *(
            (offset_file.encode("42") + begun, "the file is cut short")
            for begun in (b"\x77", b"\x77\x05", b"\x77\x05abc", b"\x7a\x00", b"\x7a\x00\x00")
        ),
        (_file(_CHECKSUM + b"\x00\x05abc"), "cut short"),
        (_file(_CHECKSUM + b"\x00\x031\xff2"), "not in Java's modified UTF-8"),
        (_file(_CHECKSUM + b"\x00\x0242"), "checksum does not match"),
    ],
)
def test_each_kind_of_damage_has_its_sentence(data: bytes, stated: str) -> None:
    """The error names the damage of the file, so that a full restore has a reason."""
    with pytest.raises(WireError, match=stated):
        offset_file.decode(data)


def test_a_text_that_java_cannot_write_is_refused() -> None:
    """A piece of 65,535 characters may be longer than that in bytes."""
    with pytest.raises(WireError, match="does not fit into one piece"):
        offset_file.encode("\u20ac" * 65535)


@pytest.mark.parametrize(
    ("text", "offset"),
    [('{"kafka.a.b-log.3":"42"}', 42), ('{"kafka.a.b-log.3":42}', 42), ("42", 42)],
)
def test_files_that_samza_wrote_are_read(text: str, offset: int) -> None:
    """R12: a map of the one partition, its topic with dots too, or the bare offset."""
    assert offset_file.parse_offset_v2(text, DOTTED, 3) == offset


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ('{"kafka.a.b-log.2":"42"}', "it is of kafka.a.b-log.2, not of kafka.a.b-log.3"),
        ('{"kafka.a.b-log.3":"42","kafka.c.0":"1"}', "it is of kafka.a.b-log.3, kafka.c.0, not of"),
        ("{}", "it is of nothing, not of kafka.a.b-log.3"),
        ('{"kafka.a.b-log.3":null}', "'None', which is not an offset"),
        ("[42]", "which is not an offset"),
        ("[" * 100_000, "which is not an offset"),
    ],
)
def test_a_map_of_other_partitions_is_refused(text: str, stated: str) -> None:
    """Exactly the store's own changelog partition is to be in it (reference, section 6.4)."""
    with pytest.raises(WireError, match=re.escape(stated)):
        offset_file.parse_offset_v2(text, DOTTED, 3)


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", " 1", "1.0", "\u0661", *("9" * digits for digits in (19, 400, 5_000))]
)
def test_an_offset_that_no_topic_has_is_damage(text: str) -> None:
    """Too many digits, a sign, a blank, or another script; also in a map: the store is rebuilt."""
    assert offset_file.parse_offset("0") == 0
    with pytest.raises(WireError, match="which is not an offset"):
        offset_file.parse_offset(text)
    in_a_map = offset_file.offset_v2_text("kafka", "a.b-log", 0, 1).replace('"1"', f'"{text}"')
    with pytest.raises(WireError, match="which is not an offset"):
        offset_file.parse_offset_v2(in_a_map, DOTTED, 0)
