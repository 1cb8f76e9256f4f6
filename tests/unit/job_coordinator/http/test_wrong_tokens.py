"""How many wrong tokens an address may show."""

from __future__ import annotations

import pytest

from homeport.job_coordinator.http.port.connections import (
    LIMIT,
    MAX_ADDRESSES,
    WINDOW_MS,
    WrongTokens,
    network_of,
)


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


def test_fewer_have_no_consequence() -> None:
    """An operator may mistype."""
    wrong = WrongTokens()
    for _ in range(LIMIT - 1):
        wrong.shown("10.0.0.1", 0)
    assert wrong.wait_ms("10.0.0.1", 0) == 0


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
