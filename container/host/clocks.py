"""The clocks of this machine."""

from pathlib import Path

from homeport.container.progress.clock_reading import ClockReading
from homeport.job_coordinator.clocks import boot_ms, wall_ms

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def read_clocks() -> ClockReading:
    """Return what they show now."""
    boot_id = _BOOT_ID.read_text(encoding="ascii").strip() if _BOOT_ID.exists() else ""
    return ClockReading(wall_ms(), boot_id, boot_ms())
