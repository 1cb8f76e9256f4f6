"""Versions whose records were deleted before they were read, or that a crash took in part."""

from __future__ import annotations

from homeport.container.adjunct.version_text import parse_parts, parts_text
from homeport.container.adjunct.versions import (
    Catalogue,
    Cursor,
    PartitionEnd,
    Progress,
    Run,
    Taken,
    VersionFault,
    Versions,
    VersionVerdict,
    Write,
)
from homeport.job_coordinator.model.job_model import SystemStreamPartition
from tests.unit.container.adjunct.test_versions import ONE, TWO, run

_P, _Q = (SystemStreamPartition("kafka", "planes", number) for number in (0, 1))


def _behind(versions: Versions, partition: SystemStreamPartition, first: int, text: str) -> Taken:
    """What comes of records from ``first`` on, below which all is deleted."""
    own = run(partition, first, text)
    return versions.take(Run(partition, own.offsets, own.timestamps, own.markers, first))


def test_a_version_with_a_hole_is_not_served() -> None:
    """Where the next marker is of another one, too."""
    versions = ONE.take(run(_P, 0, ". . .")).versions
    taken = _behind(versions, _P, 100, ". end . end")
    assert taken.versions.verdict(0) == VersionVerdict(1, 4, VersionFault.HOLE)
    assert taken.versions.decided(VersionVerdict(1, 4, VersionFault.HOLE)).verdict(
        0
    ) == VersionVerdict(2, 1)


def test_a_fault_that_came_before_the_hole_is_the_one_that_is_reported() -> None:
    """The version lacks its beginning."""
    versions = ONE.begun(_P, 5).take(run(_P, 5, ".")).versions
    taken = _behind(versions, _P, 100, "end")
    assert taken.versions.verdict(0) == VersionVerdict(1, 1, VersionFault.CUT)


def test_a_hole_between_two_versions_takes_the_beginning_of_the_next() -> None:
    """A begin marker behind it shows that all of that one is there."""
    versions = ONE.take(run(_P, 0, ". end")).versions.decided(VersionVerdict(1, 1))
    taken = _behind(versions, _P, 9, ". end")
    assert taken.versions.verdict(0) == VersionVerdict(2, 1, VersionFault.CUT)
    taken = _behind(versions, _P, 9, "begin . end")
    assert taken.versions.verdict(0) == VersionVerdict(2, 1)
    assert _behind(versions, _P, 2, ". end").versions.verdict(0) == VersionVerdict(2, 1)


def test_what_a_crash_left_of_a_later_version_outlives_a_hole_before_it() -> None:
    """The older one is over; were it still read, it would take what is of the later one."""
    stores = {1: {_P: Progress(3, records=3)}, 2: {_P: Progress(10, records=2)}}
    versions = Versions.found([_P], Catalogue(), stores)
    taken = _behind(versions, _P, 6, ". . . . . end")
    assert taken.versions.building[1][_P].end is PartitionEnd.ENDED
    assert taken.writes == (Write(2, 4, 5),)
    assert taken.versions.verdict(0) == VersionVerdict(1, 3, VersionFault.HOLE)
    stores = {1: {_P: Progress(3, records=3)}, 2: {_P: Progress(10, records=2)}}
    taken = _behind(Versions.found([_P], Catalogue(), stores), _P, 20, ". end")
    assert taken.versions.building[2][_P].fault is VersionFault.HOLE
    stores[2] = {_P: Progress(10, records=2, end=PartitionEnd.ENDED)}
    taken = _behind(Versions.found([_P], Catalogue(), stores), _P, 20, ". end")
    assert taken.versions.building[3][_P].fault is VersionFault.CUT


def test_a_numbered_version_with_a_hole_never_becomes_whole() -> None:
    """What follows belongs to none, up to the next begin marker."""
    versions = TWO.take(run(_P, 0, "begin:7 .")).versions
    versions = versions.take(run(_Q, 0, "begin:7 . end:7 begin:8 . end:8")).versions
    taken = _behind(versions, _P, 50, ". end:7 begin:8 . end:8")
    assert taken.parts[7] == Progress(50, 1, PartitionEnd.ABANDONED, began_ms=1000, begins={7: 0})
    assert (taken.writes, taken.strays) == ((Write(8, 3, 4),), 2)
    assert taken.versions.verdict(0) == VersionVerdict(8, 2)


def test_a_partition_that_a_store_lacks_reads_that_version_again() -> None:
    """A crash took its part of version 1 whole, and left what it has of version 2."""
    versions = TWO.take(run(_P, 3, "begin:1 . end:1 begin:2 .")).versions
    assert versions.building[2][_P].begins == {1: 3, 2: 6}
    known = {1: {_Q: Progress(1)}, 2: parse_parts(parts_text(versions.building[2]))}
    for _ in range(2):  # the second time it dies before it has read anything
        found = Versions.found([_P, _Q], Catalogue(), known)
        assert found.cursor(_P) == Cursor(3, 1)
        known = {2: known[2], 1: found.building[1]}
    again = found.take(run(_P, 3, "begin:1 . end:1 begin:2 . .")).versions
    assert again.building[1][_P] == Progress(
        6, 1, PartitionEnd.ENDED, began_ms=4000, begins={1: 3, 2: 6}
    )
    assert again.building[2][_P] == Progress(9, 2, began_ms=7000, begins={1: 3, 2: 6})
    settled = Versions.found([_P, _Q], Catalogue(settled=1, served=1), {2: known[2]})
    assert settled.cursor(_P) == Cursor(8, 2)


def test_of_many_versions_that_a_store_lacks_all_are_read_again() -> None:
    """No later version knows what is settled."""
    versions = TWO.take(run(_P, 0, "begin:1 end:1")).versions
    versions = versions.take(run(_Q, 0, "begin:1 end:1 begin:2")).versions
    versions = versions.decided(VersionVerdict(1, 0))
    versions = versions.take(run(_P, 2, "begin:2 . end:2 begin:3")).versions
    assert versions.building[3][_P].begins == {2: 2, 3: 5}
    found = Versions.found([_P, _Q], versions.catalogue, {3: versions.building[3]})
    assert found.cursor(_P) == Cursor(2, 2)


def test_a_partition_is_read_on_where_it_stands_first() -> None:
    """Numbers that do not grow are read again as they were read at first."""
    stores = {3: {_P: Progress(9, records=1)}, 5: {_P: Progress(2, records=1)}}
    versions = Versions.found([_P, _Q], Catalogue(), stores)
    assert versions.cursor(_P) == Cursor(2, 5)


def test_where_nothing_is_missing_there_is_no_hole() -> None:
    """The partition is read on where it stands."""
    versions = ONE.take(run(_P, 0, ". . .")).versions
    assert _behind(versions, _P, 3, "end").versions.verdict(0) == VersionVerdict(1, 3)


def test_a_fault_is_reported_whatever_else_is_wrong() -> None:
    """In any partition, and before the size; the size counts to the record."""
    versions = TWO.take(run(_P, 0, "begin:1 . end:1")).versions
    versions = versions.take(run(_Q, 0, "begin:1 . begin:1 . end:1")).versions
    assert versions.verdict(0) == VersionVerdict(1, 3, VersionFault.BEGAN_AGAIN)
    assert ONE.take(run(_P, 0, "end")).versions.verdict(100) == VersionVerdict(1, 0)
    served = Catalogue(records=101)
    part = Progress(9, records=100, end=PartitionEnd.ENDED)
    versions = Versions((_P,), served, {1: {_P: part}})
    assert versions.verdict(100) == VersionVerdict(1, 100, VersionFault.SHRUNKEN)
    part = Progress(9, records=1, end=PartitionEnd.ENDED, fault=VersionFault.HOLE)
    versions = Versions((_P,), served, {1: {_P: part}})
    assert versions.verdict(100) == VersionVerdict(1, 1, VersionFault.HOLE)


def test_a_version_is_as_old_as_the_first_record_that_it_has() -> None:
    """A partition that has only begun it does not show its age."""
    versions = TWO.take(run(_P, 0, "begin:1 .")).versions.take(run(_Q, 0, "begin:1")).versions
    assert versions.late(2_001, 1_000) == (1,)


def test_of_markers_that_are_read_again_the_new_ones_count() -> None:
    """A run may have both."""
    versions = ONE.take(run(_P, 0, ". end .")).versions
    versions = versions.take(run(_P, 0, ". end . end .")).versions
    assert versions.building[2][_P].end is PartitionEnd.ENDED
    assert versions.cursor(_P) == Cursor(5, 3)
