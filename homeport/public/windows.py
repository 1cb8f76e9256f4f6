"""Windows over a task's store: sums per key and span of event time. See docs/windows.md."""

from homeport.container.windows import (
    Aggregate,
    Hopping,
    Late,
    Session,
    Tumbling,
    WindowResult,
    Windows,
)

__all__ = ["Aggregate", "Hopping", "Late", "Session", "Tumbling", "WindowResult", "Windows"]
