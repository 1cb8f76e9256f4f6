"""The clocks of this machine, as times in ms."""

import time


def boot_ms() -> int:
    """Return milliseconds since the machine started, time asleep included."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def wall_ms() -> int:
    """Return milliseconds since 1970."""
    return time.time_ns() // 1_000_000
