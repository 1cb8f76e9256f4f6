"""Parts and catalogue as text, and what is no such text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.config.errors import WireError
from homeport.container.adjunct.version_text import (
    awaited,
    catalogue_text,
    parse_catalogue,
    parse_parts,
    parts_text,
)
from homeport.container.adjunct.versions import (
    Catalogue,
    PartitionEnd,
    Progress,
    VersionFault,
    Versions,
    VersionVerdict,
)
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_P, _Q = (SystemStreamPartition("kafka", "all.planes", number) for number in (0, 1))
_PARTS = {
    _P: Progress(3, 2, PartitionEnd.ENDED, 17, VersionFault.CUT),
    _Q: Progress(0, begins={7: 5, 17: 9}),
}


def test_parts_come_back_as_they_were() -> None:
    """Names of topics may have dots."""
    assert parse_parts(parts_text(_PARTS)) == _PARTS
    assert parts_text({_Q: Progress(0)}) == (
        '{"kafka.all.planes.1":{"next":0,"records":0,"left":"open"}}'
    )
    assert '"begins":{"7":5,"17":9}' in parts_text(_PARTS)


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


@pytest.mark.parametrize("catalogue", [Catalogue(), Catalogue(7, 6, 100, {_P: 5, _Q: 0})])
def test_a_catalogue_comes_back_as_it_was(catalogue: Catalogue) -> None:
    """With and without a served version."""
    assert parse_catalogue(catalogue_text(catalogue)) == catalogue


_ODD_PLACE, _ODD_NUMBER = (
    f'{{"{name}":{{"next":{next_},"records":0,"left":"open"}}}}'
    for name, next_ in (("planes", "0"), ("k.p.0", "true"))
)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"planes":{}}', _ODD_PLACE, _ODD_NUMBER])
def test_what_is_no_text_of_parts_is_refused(text: str) -> None:
    """In one line with its beginning."""
    with pytest.raises(WireError, match=r"which is not the text of parts$"):
        parse_parts(text)


def test_a_catalogue_is_short() -> None:
    """No blanks: it is written at each switch."""
    assert catalogue_text(Catalogue(7, 6, 100, {_P: 5})) == (
        '{"settled":7,"served":6,"records":100,"floors":{"kafka.all.planes.0":5}}'
    )


@pytest.mark.parametrize(
    "text",
    ["null", "{}", '{"settled":"1"}', '{"settled":"1","served":null,"records":0,"floors":{}}'],
)
def test_what_is_no_text_of_a_catalogue_is_refused(text: str) -> None:
    """In one line with its beginning."""
    with pytest.raises(WireError, match=r"which is not the text of a catalogue$"):
        parse_catalogue(text)
