"""Files of a store's directory have the bytes that earlier releases wrote and read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from homeport.config.system_stream import SystemStream
from homeport.container.adjunct import recovery as adjunct_meta
from homeport.container.adjunct.recovery import AdjunctMeta
from homeport.container.adjunct.version_text import (
    catalogue_text,
    parse_catalogue,
    parse_parts,
    parts_text,
)
from homeport.container.adjunct.versions import Catalogue, PartitionEnd, Progress, VersionFault
from homeport.container.progress import offset_file, store_meta
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.store_meta import StoreMeta
from homeport.job_coordinator.model.job_model import SystemStreamPartition

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "directory"
_ODD = 'a."\\/é€\U0001f600\x00\x1f\x7f\u2028\n'
_AT = ClockReading(1_700_000_000_000, "boot-é", 500)
_P, _Q = SystemStreamPartition("kafka", "all.planes", 0), SystemStreamPartition("kafka", "é", 12)
_SSPS = ("SystemStreamPartition [kafka, a, 1]", _ODD)
_META = StoreMeta("kafka.log partition 3", "tY6EnbQCT7SGcSuulnN2kg", _SSPS, "G", _AT)
_ADJUNCT = AdjunctMeta("kafka.all.planes", "idé", "my_job:Models")
_LOG = SystemStream("kafka", "a.b-log")


class File(NamedTuple):
    """One file: what it holds, and both directions of its codec."""

    value: Any
    write: Callable[[Any], str]
    read: Callable[[str], object]


def _store(meta: StoreMeta) -> File:
    return File(meta, store_meta.meta_text, store_meta.parse_meta)


def _adjunct(meta: AdjunctMeta) -> File:
    return File(meta, adjunct_meta.meta_text, adjunct_meta.parse_meta)


FILES = {
    "store-meta": _store(_META),
    "store-meta-of-before": _store(StoreMeta("l", "", (), "", ClockReading(0))),
    "store-meta-full": _store(
        StoreMeta(_ODD, "id", _SSPS, _ODD, _AT, 86_400_000, forms=("string", "avro 7f"))
    ),
    "adjunct-meta": _adjunct(_ADJUNCT),
    "adjunct-meta-full": _adjunct(
        AdjunctMeta(_ODD, "id", "", _AT, 86_400_000, forms=("string", _ODD))
    ),
    "catalogue": File(Catalogue(7, 6, 100, {_P: 5, _Q: 0}), catalogue_text, parse_catalogue),
    "catalogue-new": File(Catalogue(), catalogue_text, parse_catalogue),
    "parts": File(
        {
            _P: Progress(3, 2, PartitionEnd.ENDED, 17, VersionFault.CUT),
            _Q: Progress(0, 0, PartitionEnd.OPEN, begins={17: 9, 7: 5}),
            SystemStreamPartition("kafka", "z", 3): Progress(
                9, end=PartitionEnd.ABANDONED, began_ms=0
            ),
        },
        parts_text,
        parse_parts,
    ),
    "offset": File(9_223_372_036_854_775_807, str, offset_file.parse_offset),
    "offset-v2": File(
        42,
        lambda offset: offset_file.offset_v2_text("kafka", "a.b-log", 3, offset),
        lambda text: offset_file.parse_offset_v2(text, _LOG, 3),
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_has_the_bytes_of_its_golden_one(name: str) -> None:
    """An earlier release reads what this one writes, after a downgrade or in a rolling upgrade."""
    file = FILES[name]
    assert offset_file.encode(file.write(file.value)) == (GOLDEN / name).read_bytes()


@pytest.mark.parametrize("name", FILES)
def test_a_golden_file_is_read(name: str) -> None:
    """State that an earlier release has kept is found."""
    file = FILES[name]
    assert file.read(offset_file.decode((GOLDEN / name).read_bytes())) == file.value


def test_each_golden_file_is_read_by_a_test() -> None:
    """None is forgotten."""
    assert {path.name for path in GOLDEN.iterdir()} == set(FILES)
