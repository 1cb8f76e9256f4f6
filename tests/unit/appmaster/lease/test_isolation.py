"""An attempt without answers from others: how long it stays."""

from __future__ import annotations

import pytest

from homeport.appmaster.lease.isolation import limit_ms


@pytest.mark.parametrize(
    ("unseen_ms", "expiry", "limit"),
    [
        (42_000, "600000", 600_000),
        (42_000, "10000", 42_000),
        (42_000, None, 600_000),
        (42_000, "soon", 600_000),
        (900_000, None, 900_000),
    ],
)
def test_the_limit_is_the_longer_of_yarns_and_the_leases_time(
    unseen_ms: int, expiry: str | None, limit: int
) -> None:
    """Before YARN has given up the node, the attempt is what the job comes back to."""
    assert limit_ms(unseen_ms, expiry) == limit
