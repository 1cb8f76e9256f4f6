"""Windows over a task's store: sums per key and span of event time. See docs/windows.md."""

from homeport.container.windows.aggregates import Aggregate, Late, WindowResult
from homeport.container.windows.keyed_windows import Windows
from homeport.container.windows.spans import Hopping, Session, Tumbling

__all__ = ["Aggregate", "Hopping", "Late", "Session", "Tumbling", "WindowResult", "Windows"]
