"""Which connections of a port end when there are too many."""

from __future__ import annotations

import pytest

from homeport.job_coordinator.http.port.connections import (
    FIRST_MS,
    LIMIT,
    MAX_ADDRESSES,
    WINDOW_MS,
    Connections,
    WrongTokens,
    network_of,
)

FILES = 128  # a room of 112: 14 for one address


def _came(table: Connections[int], numbers: range, address: str = "") -> list[int | None]:
    """What is closed for each of these; without an address each has one of its own."""
    return [table.came(n, address or f"10.0.{n // 256}.{n % 256}", n) for n in numbers]


def test_strangers_of_one_address_have_an_eighth() -> None:
    """The one that has asked nothing for longest makes place; other addresses keep theirs."""
    table = Connections[int](FILES)
    assert _came(table, range(200, 210)) == [None] * 10
    assert _came(table, range(14), "10.9.9.9") == [None] * 14
    table.asked(0)
    assert _came(table, range(14, 17), "10.9.9.9") == [1, 2, 3]
    table.asked(3)  # it is forgotten: nothing comes of it


def test_strangers_of_many_addresses_share_the_room() -> None:
    """What has shown the job's token is not closed for them, however long it is silent."""
    table = Connections[int](FILES)
    _came(table, range(12))
    for number in [*range(12), *range(12)]:
        table.is_known(number)
    assert _came(table, range(100, 200)) == [None] * 100
    assert _came(table, range(200, 203)) == [100, 101, 102]
    table.left(5)
    assert _came(table, range(203, 205)) == [None, 103]


def test_the_known_leave_strangers_a_few_places() -> None:
    """Else no launcher could come any more."""
    table = Connections[int](FILES)
    for number in range(300):
        table.came(number, "10.0.0.1", 0)
        table.is_known(number)
    assert _came(table, range(1000, 1007)) == [None] * 7
    assert _came(table, range(1007, 1009)) == [1000, 1001]
    table.is_known(1000)  # it was closed before its token came
    assert _came(table, range(1009, 1010)) == [1002]


def test_one_that_asks_nothing_is_late() -> None:
    """One that has asked once is not, nor one that is gone."""
    table = Connections[int](FILES)
    _came(table, range(5))
    table.asked(1)
    table.is_known(2)
    table.left(3)
    assert table.late(FIRST_MS - 1) == []
    assert table.late(FIRST_MS) == [0]
    assert table.late(FIRST_MS + 4) == [4]
    assert table.late(10 * FIRST_MS) == []


def test_the_oldest_makes_place_for_a_file_that_is_needed() -> None:
    """None where there are no strangers."""
    table = Connections[int](FILES)
    _came(table, range(3))
    table.asked(0)
    table.is_known(1)
    assert [table.oldest() for _ in range(3)] == [2, 0, None]


def test_a_process_of_very_few_files_takes_one_connection() -> None:
    """Of each address."""
    table = Connections[int](4)
    assert _came(table, range(2), "10.0.0.1") == [None, 0]


def test_an_address_has_to_wait_after_too_many() -> None:
    """Until its window is over; others are not touched."""
    wrong = WrongTokens()
    reached = [wrong.shown("10.0.0.1", 100 + n) for n in range(LIMIT)]
    assert reached == [False] * (LIMIT - 1) + [True]
    assert wrong.wait_ms("10.0.0.1", 100 + LIMIT) == WINDOW_MS - LIMIT
    assert wrong.wait_ms("10.0.0.2", 100 + LIMIT) == 0
    assert wrong.wait_ms("10.0.0.1", 100 + WINDOW_MS) == 0
    assert not wrong.shown("10.0.0.1", 100 + WINDOW_MS)
    assert wrong.wait_ms("10.0.0.1", 100 + WINDOW_MS) == 0


def test_the_number_of_addresses_is_bounded() -> None:
    """The one that has been silent for longest is forgotten."""
    wrong = WrongTokens()
    for _ in range(LIMIT):
        wrong.shown("0.0.0.1", 0)
        wrong.shown("0.0.0.2", 0)
    for number in range(MAX_ADDRESSES - 1):
        wrong.shown(f"1.0.{number // 256}.{number % 256}", 0)
    assert len(wrong) == MAX_ADDRESSES
    assert wrong.wait_ms("0.0.0.1", 0) == 0
    assert wrong.wait_ms("0.0.0.2", 0) == WINDOW_MS


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("10.1.2.3", "10.1.2.3"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:0:1", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("no address", "no address"),
    ],
)
def test_what_counts_as_one_address(address: str, network: str) -> None:
    """Of IPv6 the network: a machine has all of it."""
    assert network_of(address) == network
