"""How much time lies between two readings of a machine's clocks."""

from __future__ import annotations

import pytest

from homeport.container.progress.clock_reading import ClockReading, elapsed_ms


@pytest.mark.parametrize(
    ("earlier", "later", "elapsed"),
    [
        (ClockReading(100), ClockReading(150), 50),
        (ClockReading(100), ClockReading(99), None),
        (ClockReading(100, "a", 10), ClockReading(150, "b", 1), 50),
        (ClockReading(100, "a", 10), ClockReading(90, "b", 500), None),
        (ClockReading(100, "a", 10), ClockReading(90, "a", 500), 490),
        (ClockReading(100, "a", 10), ClockReading(900, "a", 20), 800),
    ],
)
def test_the_time_away_is_never_too_short(
    earlier: ClockReading, later: ClockReading, elapsed: int | None
) -> None:
    """Within one start of the machine the longer of two; else the calendar's, unless set back."""
    assert elapsed_ms(earlier, later) == elapsed
