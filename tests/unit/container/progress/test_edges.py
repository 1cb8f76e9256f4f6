"""The edges of what is read, measured and reported of a store: one byte, one offset, one ms."""

from __future__ import annotations

import pytest

from homeport.config.errors import WireError
from homeport.container.progress import checkpoint, offset_file
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.follow import CHANGELOG, Followed, HeadPoll
from homeport.container.progress.restore import RestorePlan
from homeport.container.progress.restore_meter import RestoreMeter
from homeport.container.progress.topic_rules import TopicRules, batch_size, story
from homeport.container.progress.transaction_plan import Send, TransactionContent
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

SSP = SystemStreamPartition("kafka", "in", 0)


def _followed() -> Followed:
    """A store that was restored up to offset 9, at the head, at 5,000 ms."""
    return Followed("id-1", 10, ClockReading(5_000), CHANGELOG, 60_000)


def _poll(asked_ms: int, head: int) -> HeadPoll:
    return HeadPoll(ClockReading(asked_ms), 0, head, "id-1")


# -- what follows a changelog


def test_a_store_at_the_end_is_no_time_behind() -> None:
    """The later of two polls saw no more than the first, which is what dates it at the head."""
    followed = _followed()
    assert followed.take_heads(_poll(7_000, 110), 10) is None
    assert followed.take_heads(_poll(8_000, 110), 10) is None
    assert followed.read(110, ClockReading(8_100)) is None
    assert followed.at_head.wall_ms == 7_000
    assert (followed.lag, followed.lag_s) == (0, 0.0)


def test_a_store_falls_behind_from_the_moment_it_was_at_the_head() -> None:
    """A poll at the very moment finds it some records behind, and no time."""
    followed = _followed()
    assert followed.take_heads(_poll(5_000, 12), 10) is None
    assert (followed.lag, followed.lag_s) == (2, 0.0)


# -- OFFSET


def test_a_text_of_more_than_one_piece_is_read_back() -> None:
    """Java writes no more than some bytes as one text; each piece has its length before it."""
    text = "".join(chr(ord("a") + n % 26) for n in range(2 * offset_file._PIECE + 1))
    assert offset_file.decode(offset_file.encode(text)) == text


def test_a_block_of_255_bytes_is_a_short_one() -> None:
    """As in Java: one byte has its length; one byte more takes four bytes; both are read."""
    short, long = "x" * 245, "x" * 246
    assert offset_file.encode(short)[4:6].hex() == "77ff"
    assert offset_file.encode(long)[4:9].hex() == "7a00000100"
    assert [offset_file.decode(offset_file.encode(text)) for text in (short, long)] == [short, long]


@pytest.mark.parametrize("rest", [b"\x77", b"\x77\x05abc", b"\x7a\x00\x00"])
def test_a_block_begun_behind_the_text_is_damage(rest: bytes) -> None:
    """What was written is longer than what is there, however whole the text looks."""
    with pytest.raises(WireError, match="the file is cut short"):
        offset_file.decode(offset_file.encode("42") + rest)


# -- checkpoints


def test_a_checkpoints_key_keeps_its_letters() -> None:
    """Samza's are not escaped; an escaped one would be another key to Kafka."""
    key = checkpoint.encode_key(checkpoint.CheckpointKey("G", TaskName("Größe 0")))
    assert "Größe 0".encode() in key
    assert checkpoint.decode_key(key).task_name == "Größe 0"


@pytest.mark.parametrize("name", ["systemstreampartition-grouper-factory", "taskName", "type"])
def test_each_field_of_a_checkpoints_key_is_a_text(name: str) -> None:
    """A number in the place of one is another's record."""
    whole = checkpoint.encode_key(checkpoint.CheckpointKey("G", TaskName("T")))
    key = whole.replace(f'"{name}":"'.encode(), f'"{name}":1,"x":"'.encode())
    assert key != whole
    with pytest.raises(WireError, match="checkpoint key lacks a field"):
        checkpoint.decode_key(key)


@pytest.mark.parametrize("offset", ["²", "٣"])
def test_an_offset_is_written_in_plain_digits(offset: str) -> None:
    """What Unicode calls a digit elsewhere is no offset of Kafka's."""
    value = checkpoint.encode_value({SSP: 7}).replace(b'"7"', f'"{offset}"'.encode())
    assert checkpoint.decode_value(value).offsets == {}


# -- records that are too large


def _sends(*sizes: int) -> TransactionContent:
    sends = [Send(f"out{n}", None, b"x" * size) for n, size in enumerate(sizes)]
    return TransactionContent(sends, [], {})


def test_a_record_that_just_fits_is_not_too_large() -> None:
    """With what stands beside it in its batch it is as large as the topic takes."""
    rules = {"out0": TopicRules(batch_size(None, b"x" * 1000, ()), batch_bytes=0)}
    assert story(_sends(1000), rules, 0) is None
    assert story(_sends(1001), rules, 0) is not None


def test_the_first_of_two_equally_large_records_is_named() -> None:
    """One line names one record."""
    said = story(_sends(1000, 1000), {"out0": TopicRules(10), "out1": TopicRules(10)}, 0)
    assert said is not None
    assert said.startswith("output stream out0: a record of 1000 bytes exceeds the limit of 10")


def test_a_limit_below_what_an_empty_record_needs_is_reported() -> None:
    """Such a topic takes nothing at all."""
    said = story(_sends(0), {"out0": TopicRules(batch_size(None, b"", ()) - 1)}, 0)
    assert said is not None
    assert "a record of 0 bytes exceeds the limit of 67 bytes" in said


def test_streams_of_checkpoints_are_distinguished_by_all_their_parts() -> None:
    """Two partitions of one stream, and one of another, are three entries."""
    offsets = {
        SSP: 1,
        SystemStreamPartition("kafka", "in", 1): 2,
        SystemStreamPartition("kafka", "other", 0): 3,
    }
    assert checkpoint.decode_value(checkpoint.encode_value(offsets)).offsets == offsets


# -- the rate of a restore


def test_the_rate_is_that_of_the_last_ten_seconds() -> None:
    """What was seen ten seconds ago counts, what was seen before that does not."""
    meter = RestoreMeter("s", TaskName("T"), RestorePlan(0, 1001), 100.0)
    meter.read(100, 0, 99)
    assert meter.progress(105.0).records_per_s == 20.0
    meter.read(300, 0, 399)
    assert meter.progress(110.0).records_per_s == 40.0
    assert meter.progress(110.5).records_per_s == 54.5
    assert meter.progress(110.5).seconds_left == 11.0


def test_at_the_moment_it_begins_a_restore_has_no_rate() -> None:
    """The remaining time is unknown, however much was read."""
    meter = RestoreMeter("s", TaskName("T"), RestorePlan(0, 1000), 100.0)
    meter.read(100, 0, 99)
    found = meter.progress(100.0)
    assert (found.records_per_s, found.seconds_left, found.remaining) == (0.0, None, 900)
