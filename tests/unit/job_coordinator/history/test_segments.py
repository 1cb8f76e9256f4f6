"""Which files of a history go: a pure function of their sizes and times."""

from __future__ import annotations

import pytest

from homeport.job_coordinator.history.segments import (
    EVENTS,
    TRANSACTIONS,
    Segment,
    kind_bytes,
    segment_bytes,
    superfluous,
)


def files(*sizes: int, is_open: tuple[int, ...] = ()) -> list[Segment]:
    """Segments named by their place, the oldest last."""
    return [Segment(str(n), size, -n, n in is_open) for n, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "is_open", "gone"),
    [
        ((), (), []),
        ((100, 100, 700), (), []),
        ((100, 100, 701), (), ["2"]),
        ((300, 300, 300, 300), (), ["3"]),
        ((300, 300, 300, 300), (3,), ["2"]),
        ((10, 300, 300, 300), (0,), ["3"]),
        ((0, 900), (0,), ["1"]),
        ((2_000, 2_000), (0, 1), []),
    ],
)
def test_the_oldest_go_until_one_more_fits(
    sizes: tuple[int, ...], is_open: tuple[int, ...], gone: list[str]
) -> None:
    """Of 1,000 bytes, a full one having 100; what is open may grow to that, and stays."""
    assert [s.name for s in superfluous(files(*sizes, is_open=is_open), 1_000, 100)] == gone


def test_there_are_never_too_many_files_to_look_at() -> None:
    """However small they are."""
    most, full = kind_bytes(512, TRANSACTIONS), segment_bytes(512, TRANSACTIONS)
    gone = superfluous(files(*[1] * 5_000), most, full)
    assert 2_900 < len(gone) < 3_100


def test_a_quarter_is_for_what_is_no_transaction() -> None:
    """Both together are what the key says."""
    assert kind_bytes(512, EVENTS) == 128 << 20
    assert kind_bytes(512, TRANSACTIONS) == 384 << 20


@pytest.mark.parametrize(
    ("max_mb", "kind", "expected"),
    [
        (1024, EVENTS, 256 << 10),
        (256, EVENTS, 64 << 10),
        (64, EVENTS, 64 << 10),
        (1, EVENTS, 4 << 10),
        (256, TRANSACTIONS, 3 << 20),
        (1, TRANSACTIONS, 12 << 10),
    ],
)
def test_events_lie_in_smaller_files(max_mb: int, kind: str, expected: int) -> None:
    """Each process has one open; a small one has room for the events of a life."""
    assert segment_bytes(max_mb, kind) == expected


def test_five_hundred_processes_leave_room_for_what_is_past() -> None:
    """With the default size; what they have open counts as full."""
    most, full = kind_bytes(256, EVENTS), segment_bytes(256, EVENTS)
    found = files(*[100] * 500, *[full] * 400, is_open=tuple(range(500)))
    assert superfluous(found, most, full) == []
