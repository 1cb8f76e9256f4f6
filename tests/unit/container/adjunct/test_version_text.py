"""Texts of parts, of the catalogue and of ADJUNCT-META, and what is no such text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.config.errors import WireError
from homeport.container.adjunct.recovery import AdjunctMeta, meta_text, parse_meta
from homeport.container.adjunct.version_text import awaited, parse_catalogue, parse_parts
from homeport.container.adjunct.versions import PartitionEnd, Progress, Versions, VersionVerdict
from homeport.container.progress.clock_reading import NEVER, ClockReading
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_P, _Q = (SystemStreamPartition("kafka", "all.planes", number) for number in (0, 1))


def test_what_the_first_version_lacks_is_said() -> None:
    """The newest version decides, by its partitions."""
    versions = Versions((_P, _Q))
    assert awaited(versions) == "no version has begun in its stream"
    ended = Progress(9, end=PartitionEnd.ENDED)
    versions = replace(versions, building={1: {_P: ended, _Q: ended}, 2: {_Q: Progress(9)}})
    assert awaited(versions) == "version 2 has no end in partition 0, 1"
    versions = replace(
        versions, building={2: {_P: ended, _Q: Progress(9, end=PartitionEnd.ABANDONED)}}
    )
    assert awaited(versions) == "version 2 has no end in partition 1"
    versions = replace(versions, building={2: {_P: ended, _Q: ended}})
    assert awaited(versions) == "version 2 is not on the disk yet"
    versions = versions.decided(VersionVerdict(2, 9))
    assert awaited(versions) == "version 2 is not on the disk yet"


_ODD_PLACE, _ODD_NUMBER = (
    f'{{"{name}":{{"next":{next_},"records":0,"left":"open"}}}}'
    for name, next_ in (("planes", "0"), ("k.p.0", "true"))
)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"planes":{}}', _ODD_PLACE, _ODD_NUMBER])
def test_what_is_no_text_of_parts_is_refused(text: str) -> None:
    """In one line with its beginning."""
    with pytest.raises(WireError, match=r"which is not the text of parts$"):
        parse_parts(text)


@pytest.mark.parametrize(
    "text",
    ["null", "{}", '{"settled":"1"}', '{"settled":"1","served":null,"records":0,"floors":{}}'],
)
def test_what_is_no_text_of_a_catalogue_is_refused(text: str) -> None:
    """In one line with its beginning."""
    with pytest.raises(WireError, match=r"which is not the text of a catalogue$"):
        parse_catalogue(text)


_META = AdjunctMeta(
    "kafka.planes", "idé", "my_job:Models", ClockReading(7, "boot", 3), kept_ms=86_400_000
)


def test_a_directory_of_before_does_not_say_when_it_was_at_the_head() -> None:
    """It is judged where its stream is compacted."""
    text = '{"stream":"kafka.planes","topic_id":"id","extractor":"","version":1}'
    assert parse_meta(text) == AdjunctMeta("kafka.planes", "id", "", NEVER, None)


_ODD = (
    *(("1}", '"1"}'), ("1}", "true}"), ('"my_job:Models"', "7"), ('"boot"', "7")),
    *(("wall_ms", "wall"), (":3}", ":3.5}"), (":3}", ':"3"}'), ('"wall_ms":7', '"wall_ms":null')),
    *(("86400000", '"86400000"'), ("86400000", "true"), ("1}", '1,"forms":["string"]}')),
    *(("1}", '1,"forms":["string",7]}'), ("1}", '1,"forms":7}')),
)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "[" * 100_000, *(meta_text(_META).replace(*odd) for odd in _ODD)]
)
def test_anything_else_is_refused(text: str) -> None:
    """With what it holds, as far as that fits."""
    with pytest.raises(WireError, match="which is not an ADJUNCT-META") as caught:
        parse_meta(text)
    assert len(str(caught.value)) < 300
