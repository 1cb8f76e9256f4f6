"""Versions of bounded data sets: where records go, what is whole, served or refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.container.adjunct.version_text import parse_parts, parts_text
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
    VersionProgress,
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
_BEGAN_AGAIN, _CUT = VersionFault.BEGAN_AGAIN, VersionFault.CUT
_HOLE, _SHRUNKEN = VersionFault.HOLE, VersionFault.SHRUNKEN
_Words = tuple[SystemStreamPartition, int, str]
_Verdict = VersionVerdict


def _run(partition: SystemStreamPartition, first: int, text: str) -> Run:
    """Records from offset ``first`` on, at 1000 ms each.

    Words: ``.`` a record, ``begin`` and ``end`` with their number behind a colon, ``?`` a marker
    that is not understood; ``|`` in front: all below ``first`` is deleted.
    """
    gone_below = first if text.startswith("|") else 0
    words = text.removeprefix("|").split()
    markers: dict[int, Marker | None] = {}
    for index, word in enumerate(words):
        if word == "?":
            markers[index] = None
        elif word != ".":
            kind, _, number = word.partition(":")
            markers[index] = Marker(MarkerKind(kind), int(number) if number else None)
    offsets = range(first, first + len(words))
    return Run(partition, offsets, [offset * 1000 for offset in offsets], markers, gone_below)


def _read(versions: Versions, *runs: _Words) -> Taken:
    """What the last of ``runs`` comes to, once all before it were taken."""
    taken = Taken(versions, (), {}, 0)
    for one in runs:
        taken = taken.versions.take(_run(*one))
    return taken


_ONE, _TWO = Versions((_P,)), Versions((_P, _Q))
_BEGUN = _ONE.begun(_P, 7)


@pytest.mark.parametrize(
    ("value", "marker"),
    [
        (b"begin", Marker(MarkerKind.BEGIN)),
        (b"end", Marker(MarkerKind.END)),
        (b" end 17\n", Marker(MarkerKind.END, 17)),
        (b"begin 0", Marker(MarkerKind.BEGIN, 0)),
        (b"end 123456789012345678", Marker(MarkerKind.END, 123456789012345678)),
        *((None, None), (b"", None), (b"END", None), (b"end x", None), (b"end -1", None)),
        *((b"end 1234567890123456789", None), (b"\xff", None)),
    ],
)
def test_a_marker_is_a_word_and_maybe_a_number(value: bytes | None, marker: Marker | None) -> None:
    """Anything else is reported, and taken for nothing."""
    assert parse_marker(value) == marker


def test_records_are_of_the_first_version_until_its_end() -> None:
    """What comes after the marker is of the next one; no marker is stored."""
    taken = _read(_ONE, (_P, 0, ". . end . ."))
    assert taken.writes == (Write(1, 0, 2), Write(2, 3, 5))
    assert taken.parts == {
        1: Progress(3, records=2, end=PartitionEnd.ENDED, began_ms=0),
        2: Progress(5, records=2, began_ms=3000),
    }
    assert taken.versions.building == {n: {_P: part} for n, part in taken.parts.items()}
    assert taken.versions.cursor(_P) == Cursor(5, 2)
    assert _read(_ONE, (_P, 0, ". ? .")).writes == (Write(1, 0, 1), Write(1, 2, 3))


def test_what_is_read_again_changes_nothing() -> None:
    """Offsets below the version's own position are passed over, their markers too."""
    taken = _read(_ONE, (_P, 0, ". end . ."), (_P, 0, ". end . . ."))
    assert taken.writes == (Write(2, 4, 5),)
    assert taken.versions.building[2] == {_P: Progress(5, records=3, began_ms=2000)}
    versions = _read(_ONE, (_P, 0, ". end ."), (_P, 0, ". end . end .")).versions
    assert versions.building[2][_P].end is PartitionEnd.ENDED
    assert versions.cursor(_P) == Cursor(5, 3)


def test_what_is_settled_is_one_record() -> None:
    """The number and size of the served version, and where the next one begins."""
    versions = _read(_ONE, (_P, 0, ". . end . end")).versions.decided(_Verdict(1, 2))
    assert versions.catalogue == Catalogue(settled=1, served=1, records=2, settled_below={_P: 3})
    assert set(versions.building) == {2}
    versions = versions.decided(_Verdict(2, 1, _SHRUNKEN))
    assert versions.catalogue == Catalogue(settled=2, served=1, records=2, settled_below={_P: 5})


@pytest.mark.parametrize(
    ("versions", "text", "number", "strays"),
    [
        *((_ONE, "begin", 1, 0), (_ONE, ". ?", 1, 1), (_ONE, ". end", 2, 0)),
        *((_ONE, ". begin", 2, 0), (_ONE, "begin begin . end begin .", 2, 0)),
        *((_TWO, "begin:1", 1, 0), (_TWO, "begin:1 . begin:1", 1, 0)),
        *((_TWO, "begin:1 . end:1", None, 0), (_TWO, "begin:1 . ?", None, 1)),
        (_TWO, "begin:1 . end:2", None, 1),
    ],
)
def test_a_start_reads_on_behind_the_last_marker(
    versions: Versions, text: str, number: int | None, strays: int
) -> None:
    """Kafka may delete the marker then, and no version lacks it; an odd marker is counted."""
    taken = _read(versions, (_P, 0, text))
    assert taken.versions.cursor(_P) == Cursor(len(text.split()), number)
    assert taken.strays == strays


def _both(first: str, second: str) -> tuple[_Words, _Words]:
    return (_P, 0, first), (_Q, 0, second)


_VERDICTS = {
    "nothing is whole": (_ONE, 0, ("P0 . .", "P2 ."), ""),
    "over many runs": (_ONE, 0, ("P0 . .", "P2 .", "P3 end"), "1:3"),
    "empty": (_ONE, 0, ("P0 . end end",), "1:1, 2:0"),
    "empty, below the share": (_ONE, 1, ("P0 . end end",), "1:1, 2:0 SHRUNKEN"),
    "empty and the first": (_ONE, 100, ("P0 end",), "1:0"),
    "as large as the share": (_ONE, 50, ("P0 . . . . end . . end .",), "1:4, 2:2"),
    "below the share": (_ONE, 51, ("P0 . . . . end . . end .",), "1:4, 2:2 SHRUNKEN"),
    "behind a refused one": (_ONE, 100, ("P0 . . end . end . . end",), "1:2, 2:1 SHRUNKEN, 3:2"),
    "begun again": (_ONE, 0, ("P0 begin . . begin . . . end",), "1:2 BEGAN_AGAIN, 2:3"),
    "begun twice at once": (_ONE, 0, ("P0 begin begin . end begin .",), "1:1"),
    "no beginning": (_BEGUN, 0, ("P7 . . end . end",), "1:2 CUT, 2:1"),
    "no beginning, begun again": (_BEGUN, 0, ("P7 . begin . end",), "1:1 CUT, 2:1"),
    "a begin: nothing is missing": (_BEGUN, 0, ("P7 begin . end",), "1:1"),
    "a hole": (_ONE, 0, ("P0 . . .", "P100 | . end . end"), "1:4 HOLE, 2:1"),
    "a hole behind another fault": (_BEGUN, 0, ("P7 .", "P100 | end"), "1:1 CUT"),
    "a hole between two": (_ONE, 0, ("P0 . end", "P9 | . end"), "1:1, 2:1 CUT"),
    "a hole in front of a begin": (_ONE, 0, ("P0 . end", "P9 | begin . end"), "1:1, 2:1"),
    "no hole between two": (_ONE, 0, ("P0 . end", "P2 | . end"), "1:1, 2:1"),
    "no hole": (_ONE, 0, ("P0 . . .", "P3 | end"), "1:3"),
}
_OF_TWO = {
    "one part never ends": ("b:1 . e:1 b:2 . e:2", "b:1 . . b:2 . e:2", "2:2"),
    "one number begun again": ("b:1 . b:1 . e:1", "b:1 . e:1", "1:3 BEGAN_AGAIN"),
    "begun again in the other part": ("b:1 . e:1", "b:1 . b:1 . e:1", "1:3 BEGAN_AGAIN"),
    "begun again behind its end": ("b:1 . e:1 b:1", "b:1 e:1", ""),
    "begun again, and ended": ("b:1 . e:1 b:1 e:1", "b:1 e:1", "1:1 BEGAN_AGAIN"),
    "one number begun twice at once": ("b:1 b:1 . e:1", "b:1 e:1", "1:1"),
    "an empty one begun again": ("b:1 e:1 b:1 . e:1", "b:1 e:1", "1:1"),
}


def _verdicts(versions: Versions, share: int) -> str:
    """In turn, each as ``number:records`` and its fault, once all before it are carried out."""
    found = []
    while (verdict := versions.verdict(share)) is not None:
        fault = "" if verdict.fault is None else f" {verdict.fault.name}"
        found.append(f"{verdict.number}:{verdict.records}{fault}")
        versions = versions.decided(verdict)
    return ", ".join(found)


@pytest.mark.parametrize("case", _VERDICTS)
def test_each_whole_version_is_served_or_has_its_fault(case: str) -> None:
    """In their order, each compared with the one that is served then."""
    start, share, runs, expected = _VERDICTS[case]
    words = [(_P, int(run.split()[0][1:]), run.partition(" ")[2]) for run in runs]
    assert _verdicts(_read(start, *words).versions, share) == expected


@pytest.mark.parametrize("case", _OF_TWO)
def test_a_version_of_two_partitions_is_judged_by_both(case: str) -> None:
    """One that a producer left does not hold up the next."""
    *parts, expected = _OF_TWO[case]
    first, second = (text.replace("b:", "begin:").replace("e:", "end:") for text in parts)
    assert _verdicts(_read(_TWO, *_both(first, second)).versions, 0) == expected


@pytest.mark.parametrize(
    ("part", "fault"),
    [
        (Progress(9, records=100, end=PartitionEnd.ENDED), _SHRUNKEN),
        (Progress(9, records=1, end=PartitionEnd.ENDED, fault=_HOLE), _HOLE),
    ],
)
def test_the_size_counts_to_the_record_and_after_any_fault(
    part: Progress, fault: VersionFault
) -> None:
    """The one that is served has 101."""
    versions = Versions((_P,), Catalogue(records=101), {1: {_P: part}})
    assert versions.verdict(100) == _Verdict(1, part.records, fault)


@pytest.mark.parametrize("versions", [_ONE, _TWO])
def test_reading_from_the_first_record_cuts_nothing(versions: Versions) -> None:
    """Nor does a start where the partition is known."""
    begun = versions.begun(_P, 0)
    assert begun.building == {}
    assert begun.begun(_P, 9) is begun
    known = _read(versions, (_P, 0, "begin:1 .")).versions
    assert known.begun(_P, 9) is known
    assert _BEGUN.cursor(_P) == Cursor(7, 1)


def test_two_partitions_make_a_version_whole_together() -> None:
    """Each may be ahead of the other, versions ahead too."""
    taken = _read(_TWO, *_both("begin:5 . . end:5 begin:6 . end:6 begin:8", "begin:5 ."))
    assert taken.versions.verdict(0) is None
    taken = _read(taken.versions, (_Q, 2, "end:5 begin:6 . ."))
    assert taken.versions.verdict(0) == _Verdict(5, 3)
    assert sorted(taken.versions.building) == [5, 6, 8]
    left = taken.versions.decided(_Verdict(5, 3))
    assert left.catalogue.settled_below == {_P: 4, _Q: 3}
    assert sorted(left.building) == [6, 8]


def test_a_fault_of_before_stays_with_a_number_that_is_begun_again() -> None:
    """A start may find one of when the data set had a single partition."""
    stores = {1: {_P: Progress(1, fault=_CUT)}}
    taken = _read(Versions.found([_P, _Q], Catalogue(), stores), (_P, 1, "begin:1 . end:1"))
    assert taken.versions.building[1][_P].fault is _CUT


def test_numbers_only_grow() -> None:
    """A settled one that is begun again is passed over, with its records."""
    versions = _read(_TWO, *_both("begin:3 end:3", "begin:3 end:3")).versions
    taken = _read(versions.decided(_Verdict(3, 0)), (_P, 2, "begin:3 . . end:3 begin:4 ."))
    assert (taken.writes, taken.strays) == ((Write(4, 5, 6),), 4)


@pytest.mark.parametrize("marker", ["end", "begin", "end:2", "?"])
def test_with_several_partitions_a_marker_must_name_its_version(marker: str) -> None:
    """What it may have ended never becomes whole, and nothing after it is stored."""
    taken = _read(_TWO, (_P, 0, f"begin:1 . {marker} . ."))
    assert taken.strays == 3
    assert taken.versions.building[1][_P].end is PartitionEnd.ABANDONED
    assert taken.versions.cursor(_P).number is None


def test_records_outside_of_a_version_belong_to_none() -> None:
    """A stream that is read from its middle has some, before its first begin marker."""
    taken = _read(_TWO.begun(_P, 40), (_P, 40, ". end:7 begin:8 ."))
    assert (taken.writes, taken.strays) == ((Write(8, 3, 4),), 2)
    assert _TWO.begun(_P, 40).cursor(_P) == Cursor(40, None)


_FIRST, _SECOND = Progress(1, records=1), Progress(6, records=2, end=PartitionEnd.ENDED)


@pytest.mark.parametrize(
    ("parts", "text", "writes"),
    [
        ([_FIRST, Progress(5, records=2)], ". end . . .", [Write(1, 0, 1), Write(2, 4, 5)]),
        ([_FIRST, _SECOND], ". end . . end .", [Write(1, 0, 1), Write(3, 5, 6)]),
        (
            [_FIRST, _SECOND, Progress(9, records=4)],
            ". end . . end . . . .",
            [Write(1, 0, 1), Write(3, 8, 9)],
        ),
    ],
    ids=["open", "ended", "ended and open"],
)
def test_a_start_passes_over_what_later_versions_have(
    parts: list[Progress], text: str, writes: list[Write]
) -> None:
    """A crash took the end of version 1 alone: it is read on, and no later one filled twice."""
    stores = {number: {_P: part} for number, part in enumerate(parts, 1)}
    versions = Versions.found([_P], Catalogue(), stores)
    assert versions.cursor(_P) == Cursor(1, 1)
    assert _read(versions, (_P, 1, text)).writes == tuple(writes)


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
    """By its first record, which a partition that has only begun it lacks; not the served one."""
    versions = _read(_TWO, (_P, 1, "begin:1 ."), (_Q, 3, "begin:1 . begin:2 .")).versions
    assert versions.late(2000 + 10, 10) == ()
    assert versions.late(2000 + 11, 10) == (1,)
    assert versions.late(99_999, 10) == (1, 2)
    assert _TWO.late(99_999, 10) == _read(_TWO, (_P, 0, "begin:1")).versions.late(99_999, 10) == ()
    assert _read(_TWO, *_both("begin:1 .", "begin:1")).versions.late(2_001, 1_000) == (1,)


def test_a_counted_version_waits_for_an_older_one_whose_end_a_crash_took() -> None:
    """It is judged by what that one has, which is read again."""
    versions = _read(_ONE, (_P, 0, ". . . end . end")).versions
    (older,) = versions.building[1].values()
    older = replace(older, next=1, records=1, end=PartitionEnd.OPEN)
    versions = replace(versions, building={**versions.building, 1: {_P: older}})
    assert versions.verdict(60) is None
    versions = _read(versions, (_P, 1, ". . end . end")).versions
    assert versions.verdict(60) == _Verdict(1, 3)


@pytest.mark.parametrize(
    ("second", "first", "text", "number", "fault"),
    [
        (Progress(10, records=2), 6, "| . . . . . end", 1, _HOLE),
        (Progress(10, records=2), 20, "| . end", 2, _HOLE),
        (Progress(10, records=2, end=PartitionEnd.ENDED), 20, "| . end", 3, _CUT),
    ],
)
def test_what_a_crash_left_of_a_later_version_outlives_a_hole_before_it(
    second: Progress, first: int, text: str, number: int, fault: VersionFault
) -> None:
    """The older one is over; were it still read, it would take what is of the later one."""
    stores: dict[int, VersionProgress] = {1: {_P: Progress(3, records=3)}, 2: {_P: second}}
    taken = _read(Versions.found([_P], Catalogue(), stores), (_P, first, text))
    assert taken.versions.building[1][_P].end is PartitionEnd.ENDED
    assert taken.versions.building[number][_P].fault is fault
    assert {write.number for write in taken.writes} <= {2, 3}
    assert taken.versions.verdict(0) == _Verdict(1, 3, _HOLE)


def test_a_numbered_version_with_a_hole_never_becomes_whole() -> None:
    """What follows belongs to none, up to the next begin marker."""
    versions = _read(_TWO, *_both("begin:7 .", "begin:7 . end:7 begin:8 . end:8")).versions
    taken = _read(versions, (_P, 50, "| . end:7 begin:8 . end:8"))
    assert taken.parts[7] == Progress(50, 1, PartitionEnd.ABANDONED, began_ms=1000, begins={7: 0})
    assert (taken.writes, taken.strays) == ((Write(8, 3, 4),), 2)
    assert taken.versions.verdict(0) == _Verdict(8, 2)


def test_a_partition_that_a_store_lacks_reads_that_version_again() -> None:
    """A crash took its part of version 1 whole, and left what it has of version 2."""
    versions = _read(_TWO, (_P, 3, "begin:1 . end:1 begin:2 .")).versions
    assert versions.building[2][_P].begins == {1: 3, 2: 6}
    known = {1: {_Q: Progress(1)}, 2: parse_parts(parts_text(versions.building[2]))}
    for _ in range(2):  # the second time it dies before it has read anything
        found = Versions.found([_P, _Q], Catalogue(), known)
        assert found.cursor(_P) == Cursor(3, 1)
        known = {2: known[2], 1: found.building[1]}
    again = _read(found, (_P, 3, "begin:1 . end:1 begin:2 . .")).versions
    ended = Progress(6, 1, PartitionEnd.ENDED, began_ms=4000, begins={1: 3, 2: 6})
    assert again.building[1][_P] == ended
    assert again.building[2][_P] == Progress(9, 2, began_ms=7000, begins={1: 3, 2: 6})
    settled = Versions.found([_P, _Q], Catalogue(settled=1, served=1), {2: known[2]})
    assert settled.cursor(_P) == Cursor(8, 2)


def test_of_many_versions_that_a_store_lacks_all_are_read_again() -> None:
    """No later version knows what is settled."""
    versions = _read(_TWO, *_both("begin:1 end:1", "begin:1 end:1 begin:2")).versions
    versions = versions.decided(_Verdict(1, 0))
    versions = _read(versions, (_P, 2, "begin:2 . end:2 begin:3")).versions
    assert versions.building[3][_P].begins == {2: 2, 3: 5}
    found = Versions.found([_P, _Q], versions.catalogue, {3: versions.building[3]})
    assert found.cursor(_P) == Cursor(2, 2)


def test_a_partition_is_read_on_where_it_stands_first() -> None:
    """Numbers that do not grow are read again as they were read at first."""
    stores = {3: {_P: Progress(9, records=1)}, 5: {_P: Progress(2, records=1)}}
    assert Versions.found([_P, _Q], Catalogue(), stores).cursor(_P) == Cursor(2, 5)


_SERVED = _read(_ONE, (_P, 0, ". end . end")).versions
_NEVER_ENDED = _read(_TWO, *_both("begin:1 begin:2 end:2", "begin:2 end:2")).versions


@pytest.mark.parametrize(
    ("versions", "verdict", "steps"),
    [
        (_SERVED, _Verdict(1, 1), "flush-version v1, write-catalogue v1, switch-version v1"),
        (
            _SERVED.decided(_Verdict(1, 1)),
            _Verdict(2, 1),
            "flush-version v2, write-catalogue v2, switch-version v2, drop-version v1",
        ),
        (
            _SERVED.decided(_Verdict(1, 1)),
            _Verdict(2, 1, _SHRUNKEN),
            "write-catalogue v2, drop-version v2",
        ),
        (
            _NEVER_ENDED,
            _Verdict(2, 0),
            "flush-version v2, write-catalogue v2, switch-version v2, drop-version v1",
        ),
    ],
    ids=["the first", "the next", "a refused one", "behind one that never ended"],
)
def test_a_version_is_flushed_named_shown_and_then_the_old_one_goes(
    versions: Versions, verdict: VersionVerdict, steps: str
) -> None:
    """In this order: each crash in between finds one or the other, and whole."""
    first = flush_step("airlines", verdict)
    plan = *(() if first is None else (first,)), *verdict_plan("airlines", versions, verdict)
    assert all(str(step) == f"{step.action} airlines" for step in plan)
    assert ", ".join(f"{step.action} v{step.version}" for step in plan) == steps
