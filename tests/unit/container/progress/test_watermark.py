"""Watermark: how far event time has come."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa

from homeport.container.progress.watermark import Watermark, newest_times


def test_it_is_the_oldest_of_the_newest_less_the_lateness() -> None:
    """Unknown until every source has brought a time."""
    mark = Watermark("ab", 10, None, 0)
    assert mark.at(0) is None
    assert mark.saw("a", 100, 0)
    assert mark.at(1_000_000) is None
    assert mark.saw("b", 50, 0)
    assert mark.at(0) == 40
    assert not mark.saw("b", 50, 0)
    assert mark.saw("b", 90, 0)
    assert mark.at(0) == 80


def test_it_never_goes_back() -> None:
    """Neither with a new source, nor where what was reached came from elsewhere."""
    mark = Watermark("a", 0, None, 0)
    mark.saw("a", 100, 0)
    assert mark.at(0) == 100
    mark.saw("b", 3, 0)
    assert mark.at(0) == 100
    mark.reach(200)
    mark.reach(150)
    assert mark.at(0) == 200
    assert mark.sources == ("a", "b")


def test_an_idle_source_holds_no_other_back() -> None:
    """It counts again with its next time; where all are idle, time stands."""
    mark = Watermark("ab", 0, 1000, 0)
    mark.saw("a", 100, 500)
    assert (mark.at(999), mark.idles_at_ms(999)) == (None, 1000)
    assert (mark.at(1000), mark.idles_at_ms(1000)) == (100, 1500)
    mark.saw("b", 120, 1200)
    mark.saw("a", 150, 1300)
    assert mark.at(1400) == 120
    assert mark.at(2250) == 150
    assert mark.at(9000) == 150
    assert mark.idles_at_ms(9000) is None
    single = Watermark("a", 0, 1, 0)
    single.saw("a", 100, 0)
    assert (single.at(50), single.idles_at_ms(50)) == (100, None), "it holds back no other"
    assert Watermark("ab", 0, None, 0).idles_at_ms(0) is None


PLACES = {"system": ["k"] * 4, "stream": ["a", "a", "b", "b"], "partition": [0, 0, 0, 1]}


def test_each_partition_of_the_rows_has_its_newest_time() -> None:
    """Rows without a time, with the -1 of a record that has none, or with one beyond, give none."""
    rows = pa.table({**PLACES, "timestamp": [5, 9, None, -1]})
    sources = [("k", "a", 0), ("k", "b", 0), ("k", "b", 1)]
    assert newest_times(rows, "timestamp", sources) == [(("k", "a", 0), 9)]
    rows = pa.table({"at": [3, 9, 7]})
    assert newest_times(rows, "at", ["x"], 8) == [("x", 7)]
    assert newest_times(rows, "at", ["x"], 2) == []


def test_a_pipeline_may_make_times_of_another_type() -> None:
    """Timestamps are times too; what is neither gives none."""
    at = [dt.datetime(1970, 1, 1, 0, 0, n, tzinfo=dt.UTC) for n in (3, 7)]
    assert newest_times(pa.table({"at": at}), "at", ["x"]) == [("x", 7000)]
    assert newest_times(pa.table({"at": ["late", "later"]}), "at", ["x"]) == []


def test_rows_without_a_system_are_of_the_sources_with_their_partition() -> None:
    """A pipeline's rows have the other columns by themselves."""
    places = {name: PLACES[name] for name in ("stream", "partition")}
    rows = pa.table({**places, "timestamp": [5, 9, 4, 3]})
    sources = [("k", "a", 0), ("k", "b", 0), ("k", "b", 1), ("l", "b", 1), "x"]
    assert newest_times(rows, "timestamp", sources) == [
        (("k", "a", 0), 9),
        (("k", "b", 0), 4),
        (("k", "b", 1), 3),
        (("l", "b", 1), 3),
    ]


def test_rows_that_name_no_place_are_of_all_sources() -> None:
    """As rows of a pipeline may be; of one source they are anyway."""
    rows = pa.table({"at": [3, 7]})
    assert newest_times(rows, "at", ["x", "y"]) == [("x", 7), ("y", 7)]
    placed = pa.table({**PLACES, "timestamp": [1, 2, 3, 4]})
    assert newest_times(placed, "timestamp", ["x"]) == [("x", 4)]
    assert newest_times(rows.slice(0, 0), "at", ["x"]) == []
