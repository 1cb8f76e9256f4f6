"""Versions of bounded data sets: where records go, what is whole, served or refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from homeport.container.adjunct.versions import (
    Catalogue,
    Cursor,
    Marker,
    MarkerKind,
    PartitionEnd,
    Progress,
    Run,
    Taken,
    VersionFault,
    Versions,
    VersionVerdict,
    Write,
    flush_step,
    parse_marker,
    removable,
    verdict_plan,
)
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_P, _Q = (SystemStreamPartition("kafka", "planes", number) for number in (0, 1))


def run(partition: SystemStreamPartition, first: int, text: str) -> Run:
    """Records from offset ``first`` on, at 1000 ms each.

    Words: ``.`` a record, ``begin`` and ``end`` with their number behind a colon, ``?`` a marker
    that is not understood.
    """
    words = text.split()
    markers: dict[int, Marker | None] = {}
    for index, word in enumerate(words):
        if word == "?":
            markers[index] = None
        elif word != ".":
            kind, _, number = word.partition(":")
            markers[index] = Marker(MarkerKind(kind), int(number) if number else None)
    offsets = range(first, first + len(words))
    return Run(partition, offsets, [offset * 1000 for offset in offsets], markers)


def _read(versions: Versions, *runs: tuple[SystemStreamPartition, int, str]) -> Taken:
    """What the last of ``runs`` comes to, once all before it were taken."""
    taken = Taken(versions, (), {}, 0)
    for one in runs:
        taken = taken.versions.take(run(*one))
    return taken


ONE = Versions((_P,))
TWO = Versions((_P, _Q))


@pytest.mark.parametrize(
    ("value", "marker"),
    [
        (b"begin", Marker(MarkerKind.BEGIN)),
        (b"end", Marker(MarkerKind.END)),
        (b" end 17\n", Marker(MarkerKind.END, 17)),
        (b"begin 0", Marker(MarkerKind.BEGIN, 0)),
        (b"end 123456789012345678", Marker(MarkerKind.END, 123456789012345678)),
        (None, None),
        (b"", None),
        (b"END", None),
        (b"end x", None),
        (b"end -1", None),
        (b"end 1234567890123456789", None),
        (b"\xff", None),
    ],
)
def test_a_marker_is_a_word_and_maybe_a_number(value: bytes | None, marker: Marker | None) -> None:
    """Anything else is reported, and taken for nothing."""
    assert parse_marker(value) == marker


def test_records_are_of_the_first_version_until_its_end() -> None:
    """What comes after the marker is of the next one."""
    taken = _read(ONE, (_P, 0, ". . end . ."))
    assert taken.writes == (Write(1, 0, 2), Write(2, 3, 5))
    assert taken.parts == {
        1: Progress(3, records=2, end=PartitionEnd.ENDED, began_ms=0),
        2: Progress(5, records=2, began_ms=3000),
    }
    assert taken.versions.building == {n: {_P: part} for n, part in taken.parts.items()}
    assert taken.versions.cursor(_P) == Cursor(5, 2)


def test_a_version_goes_on_over_many_runs() -> None:
    """It is whole when the marker comes, in a run of its own too."""
    taken = _read(ONE, (_P, 0, ". ."), (_P, 2, "."))
    assert taken.versions.verdict(0) is None
    taken = _read(taken.versions, (_P, 3, "end"))
    assert taken.writes == ()
    assert taken.versions.verdict(0) == VersionVerdict(1, 3)


def test_what_is_read_again_changes_nothing() -> None:
    """Offsets below the version's own position are passed over, their markers too."""
    taken = _read(ONE, (_P, 0, ". end . ."), (_P, 0, ". end . . ."))
    assert taken.writes == (Write(2, 4, 5),)
    assert taken.versions.building[2] == {_P: Progress(5, records=3, began_ms=2000)}


def test_a_served_version_is_the_one_that_is_shown_until_the_next_is_whole() -> None:
    """Its number and size, and where the next one begins, are one record."""
    versions = _read(ONE, (_P, 0, ". . end . ")).versions
    verdict = versions.verdict(0)
    assert verdict == VersionVerdict(1, 2)
    versions = versions.decided(verdict)
    assert versions.catalogue == Catalogue(settled=1, served=1, records=2, settled_below={_P: 3})
    assert set(versions.building) == {2}
    assert versions.verdict(0) is None


@pytest.mark.parametrize(
    ("versions", "text", "number"),
    [
        (ONE, "begin", 1),
        (ONE, ". ?", 1),
        (ONE, ". end", 2),
        (ONE, ". begin", 2),
        (TWO, "begin:1", 1),
        (TWO, "begin:1 . begin:1", 1),
        (TWO, "begin:1 . end:1", None),
        (TWO, "begin:1 . ?", None),
        (TWO, "begin:1 . end:2", None),
    ],
)
def test_a_start_reads_on_behind_the_last_marker(
    versions: Versions, text: str, number: int | None
) -> None:
    """Kafka may delete the marker then, and no version lacks it."""
    taken = _read(versions, (_P, 0, text))
    assert taken.versions.cursor(_P) == Cursor(len(text.split()), number)


def test_an_empty_version_is_one_too() -> None:
    """Two ends in a row: only a minimum share keeps it away."""
    versions = _read(ONE, (_P, 0, ". end end")).versions
    versions = versions.decided(VersionVerdict(1, 1))
    assert versions.verdict(0) == VersionVerdict(2, 0)
    assert versions.verdict(1) == VersionVerdict(2, 0, VersionFault.SHRUNKEN)


@pytest.mark.parametrize(("share", "fault"), [(50, None), (51, VersionFault.SHRUNKEN)])
def test_a_version_that_shrank_below_the_share_is_refused(
    share: int, fault: VersionFault | None
) -> None:
    """Two records after four are a half; the first version has nothing to be compared with."""
    versions = _read(ONE, (_P, 0, ". . . . end . . end .")).versions
    first = versions.verdict(share)
    assert first == VersionVerdict(1, 4)
    versions = versions.decided(first)
    assert versions.verdict(share) == VersionVerdict(2, 2, fault)


def test_a_refused_version_leaves_the_served_one_in_place() -> None:
    """The next is compared with the one that is served, and the stream goes on behind it."""
    versions = _read(ONE, (_P, 0, ". . end . end . . end")).versions
    versions = versions.decided(VersionVerdict(1, 2)).decided(
        VersionVerdict(2, 1, VersionFault.SHRUNKEN)
    )
    assert versions.catalogue == Catalogue(settled=2, served=1, records=2, settled_below={_P: 5})
    assert versions.verdict(100) == VersionVerdict(3, 2)


def test_a_producer_that_begins_again_spoils_what_it_had_begun() -> None:
    """What follows is of the next version, so that no entry of the first attempt is left over."""
    versions = _read(ONE, (_P, 0, "begin . . begin . . . end")).versions
    spoiled = versions.verdict(0)
    assert spoiled == VersionVerdict(1, 2, VersionFault.BEGAN_AGAIN)
    assert versions.decided(spoiled).verdict(0) == VersionVerdict(2, 3)


def test_a_begin_where_a_version_begins_says_nothing_new() -> None:
    """Also twice, as a producer that dies between marker and first record leaves it."""
    taken = _read(ONE, (_P, 0, "begin begin . end begin ."))
    assert taken.versions.verdict(0) == VersionVerdict(1, 1)
    assert taken.strays == 0
    assert taken.versions.cursor(_P) == Cursor(6, 2)


def test_a_marker_that_is_not_understood_is_counted_and_not_stored() -> None:
    """The version goes on."""
    taken = _read(ONE, (_P, 0, ". ? ."))
    assert (taken.writes, taken.strays) == ((Write(1, 0, 1), Write(1, 2, 3)), 1)


def test_a_version_whose_beginning_is_gone_is_refused() -> None:
    """It was read from an offset above 0, and no marker shows that a version begins there."""
    cut = ONE.begun(_P, 7)
    assert cut.cursor(_P) == Cursor(7, 1)
    versions = _read(cut, (_P, 7, ". . end . end")).versions
    refused = versions.verdict(0)
    assert refused == VersionVerdict(1, 2, VersionFault.CUT)
    assert versions.decided(refused).verdict(0) == VersionVerdict(2, 1)
    versions = _read(cut, (_P, 7, ". begin . end")).versions
    assert versions.verdict(0) == VersionVerdict(1, 1, VersionFault.CUT)


def test_a_begin_marker_shows_that_nothing_is_missing() -> None:
    """Retention had removed exactly the versions before."""
    versions = _read(ONE.begun(_P, 7), (_P, 7, "begin . end")).versions
    assert versions.verdict(0) == VersionVerdict(1, 1)


@pytest.mark.parametrize("versions", [ONE, TWO])
def test_reading_from_the_first_record_cuts_nothing(versions: Versions) -> None:
    """Nor does a start where the partition is known."""
    begun = versions.begun(_P, 0)
    assert begun.building == {}
    assert begun.begun(_P, 9) is begun
    known = _read(versions, (_P, 0, "begin:1 .")).versions
    assert known.begun(_P, 9) is known


def test_two_partitions_make_a_version_whole_together() -> None:
    """Each may be ahead of the other, versions ahead too."""
    taken = _read(TWO, (_P, 0, "begin:5 . . end:5 begin:6 . end:6 begin:8"), (_Q, 0, "begin:5 ."))
    assert taken.versions.verdict(0) is None
    taken = _read(taken.versions, (_Q, 2, "end:5 begin:6 . ."))
    assert taken.versions.verdict(0) == VersionVerdict(5, 3)
    assert sorted(taken.versions.building) == [5, 6, 8]
    left = taken.versions.decided(VersionVerdict(5, 3))
    assert left.catalogue.settled_below == {_P: 4, _Q: 3}
    assert sorted(left.building) == [6, 8]


def test_a_version_that_one_partition_never_ends_does_not_hold_up_the_next() -> None:
    """Its producer died and took the next number."""
    versions = _read(
        TWO, (_P, 0, "begin:1 . end:1 begin:2 . end:2"), (_Q, 0, "begin:1 . . begin:2 . end:2")
    ).versions
    assert versions.building[1][_Q].end is PartitionEnd.ABANDONED
    verdict = versions.verdict(0)
    assert verdict == VersionVerdict(2, 2)
    assert versions.decided(verdict).building == {}


def test_the_same_number_begun_again_is_refused() -> None:
    """Entries of the first attempt may be left in it."""
    versions = _read(TWO, (_P, 0, "begin:1 . begin:1 . end:1"), (_Q, 0, "begin:1 . end:1")).versions
    assert versions.verdict(0) == VersionVerdict(1, 3, VersionFault.BEGAN_AGAIN)
    versions = _read(TWO, (_P, 0, "begin:1 . end:1 begin:1"), (_Q, 0, "begin:1 end:1")).versions
    assert versions.building[1][_P].end is PartitionEnd.OPEN
    assert versions.building[1][_P].fault is VersionFault.BEGAN_AGAIN
    versions = _read(TWO, (_P, 0, "begin:1 begin:1 . end:1"), (_Q, 0, "begin:1 end:1")).versions
    assert versions.verdict(0) == VersionVerdict(1, 1)
    versions = _read(
        TWO, (_P, 0, "begin:1 end:1 begin:1 . end:1"), (_Q, 0, "begin:1 end:1")
    ).versions
    assert versions.verdict(0) == VersionVerdict(1, 1)


def test_a_fault_of_before_stays_with_a_number_that_is_begun_again() -> None:
    """A start may find one of when the data set had a single partition."""
    stores = {1: {_P: Progress(1, fault=VersionFault.CUT)}}
    taken = _read(Versions.found([_P, _Q], Catalogue(), stores), (_P, 1, "begin:1 . end:1"))
    assert taken.versions.building[1][_P].fault is VersionFault.CUT


def test_numbers_only_grow() -> None:
    """A settled one that is begun again is passed over, with its records."""
    versions = _read(TWO, (_P, 0, "begin:3 end:3"), (_Q, 0, "begin:3 end:3")).versions
    taken = _read(versions.decided(VersionVerdict(3, 0)), (_P, 2, "begin:3 . . end:3 begin:4 ."))
    assert (taken.writes, taken.strays) == ((Write(4, 5, 6),), 4)


@pytest.mark.parametrize("marker", ["end", "begin", "end:2", "?"])
def test_with_several_partitions_a_marker_must_name_its_version(marker: str) -> None:
    """What it may have ended never becomes whole, and nothing after it is stored."""
    taken = _read(TWO, (_P, 0, f"begin:1 . {marker} . ."))
    assert taken.strays == 3
    assert taken.versions.building[1][_P].end is PartitionEnd.ABANDONED
    assert taken.versions.cursor(_P).number is None


def test_records_outside_of_a_version_belong_to_none() -> None:
    """A stream that is read from its middle has some, before its first begin marker."""
    taken = _read(TWO.begun(_P, 40), (_P, 40, ". end:7 begin:8 ."))
    assert (taken.writes, taken.strays) == ((Write(8, 3, 4),), 2)
    assert TWO.begun(_P, 40).cursor(_P) == Cursor(40, None)


def test_a_start_reads_on_in_the_oldest_version_that_is_open() -> None:
    """A crash took the end of version 1, and left version 2, which is not filled twice."""
    stores = {1: {_P: Progress(1, records=1)}, 2: {_P: Progress(5, records=2, began_ms=1)}}
    versions = Versions.found([_P], Catalogue(), stores)
    assert versions.cursor(_P) == Cursor(1, 1)
    taken = _read(versions, (_P, 1, ". end . . ."))
    assert taken.writes == (Write(1, 0, 1), Write(2, 4, 5))
    assert taken.versions.building[2] == {_P: Progress(6, records=3, began_ms=1)}


def test_a_start_passes_over_what_later_versions_have_left_too() -> None:
    """Counted: version 2 has ended, version 3 is open."""
    ended = Progress(6, records=2, end=PartitionEnd.ENDED)
    stores = {1: {_P: Progress(1, records=1)}, 2: {_P: ended}}
    taken = _read(Versions.found([_P], Catalogue(), stores), (_P, 1, ". end . . end ."))
    assert taken.writes == (Write(1, 0, 1), Write(3, 5, 6))
    stores = {1: {_P: Progress(1, records=1)}, 2: {_P: ended}, 3: {_P: Progress(9, records=4)}}
    taken = _read(Versions.found([_P], Catalogue(), stores), (_P, 1, ". end . . end . . . ."))
    assert taken.writes == (Write(1, 0, 1), Write(3, 8, 9))


def test_a_numbered_start_enters_a_later_version_where_that_stands() -> None:
    """Open or ended."""
    stores = {1: {_P: Progress(2, records=1)}, 2: {_P: Progress(7, records=2)}}
    taken = _read(Versions.found([_P, _Q], Catalogue(), stores), (_P, 2, "end:1 begin:2 . . . ."))
    assert (taken.writes, taken.strays) == ((Write(2, 5, 6),), 0)
    stores[2] = {_P: Progress(7, records=2, end=PartitionEnd.ENDED)}
    taken = _read(Versions.found([_P, _Q], Catalogue(), stores), (_P, 2, "end:1 begin:2 . . end:2"))
    assert (taken.writes, taken.versions.cursor(_P)) == ((), Cursor(7, None))


def test_a_start_forgets_what_is_settled() -> None:
    """And removes all that is on the disk of it but what is served."""
    catalogue = Catalogue(settled=4, served=3, records=9, settled_below={_P: 50})
    versions = Versions.found([_P], catalogue, {3: {_P: Progress(40)}, 4: {_P: Progress(50)}})
    assert versions.building == {}
    assert versions.cursor(_P) == Cursor(50, 5)
    assert removable(catalogue, {2, 3, 4, 5}) == (2, 4)
    assert removable(Catalogue(), {1}) == ()


def test_a_version_that_lasts_is_reported() -> None:
    """By the time of its first record; the one that is served stays."""
    versions = _read(TWO, (_P, 1, "begin:1 ."), (_Q, 3, "begin:1 . begin:2 .")).versions
    assert versions.late(2000 + 10, 10) == ()
    assert versions.late(2000 + 11, 10) == (1,)
    assert versions.late(99_999, 10) == (1, 2)
    assert TWO.late(99_999, 10) == ()


def test_a_counted_version_waits_for_an_older_one_whose_end_a_crash_took() -> None:
    """It is judged by what that one has, which is read again."""
    versions = _read(ONE, (_P, 0, ". . . end . end")).versions
    (older,) = versions.building[1].values()
    older = replace(older, next=1, records=1, end=PartitionEnd.OPEN)
    versions = replace(versions, building={**versions.building, 1: {_P: older}})
    assert versions.cursor(_P) == Cursor(1, 1)
    assert versions.verdict(60) is None
    versions = _read(versions, (_P, 1, ". . end . end")).versions
    assert versions.verdict(60) == VersionVerdict(1, 3)


def _steps(versions: Versions, verdict: VersionVerdict) -> Sequence[str]:
    first = flush_step("airlines", verdict)
    plan = *(() if first is None else (first,)), *verdict_plan("airlines", versions, verdict)
    assert all(str(step) == f"{step.action} airlines" for step in plan)
    return [f"{step.action} v{step.version}" for step in plan]


def test_a_version_is_flushed_named_shown_and_then_the_old_one_goes() -> None:
    """In this order: each crash in between finds one or the other, and whole."""
    versions = _read(ONE, (_P, 0, ". end . end")).versions
    assert _steps(versions, VersionVerdict(1, 1)) == [
        "flush-version v1",
        "write-catalogue v1",
        "switch-version v1",
    ]
    versions = versions.decided(VersionVerdict(1, 1))
    assert _steps(versions, VersionVerdict(2, 1)) == [
        "flush-version v2",
        "write-catalogue v2",
        "switch-version v2",
        "drop-version v1",
    ]
    assert _steps(versions, VersionVerdict(2, 1, VersionFault.SHRUNKEN)) == [
        "write-catalogue v2",
        "drop-version v2",
    ]


def test_versions_that_never_ended_go_with_the_one_that_is_served() -> None:
    """They are older than it."""
    versions = _read(TWO, (_P, 0, "begin:1 begin:2 end:2"), (_Q, 0, "begin:2 end:2")).versions
    assert _steps(versions, VersionVerdict(2, 0))[2:] == ["switch-version v2", "drop-version v1"]
