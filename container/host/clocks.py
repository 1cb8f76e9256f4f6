"""The clocks of this machine."""

from __future__ import annotations

import time
from pathlib import Path

from homeport.container.progress.clock_reading import ClockReading

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def read_clocks() -> ClockReading:
    """What they say now."""
    boot_id = _BOOT_ID.read_text(encoding="ascii").strip() if _BOOT_ID.exists() else ""
    boot_ms = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
    return ClockReading(time.time_ns() // 1_000_000, boot_id, boot_ms)
