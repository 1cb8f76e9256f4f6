"""Since when a service has not answered: how long silence has to last before it means anything.

PURE. Times are given, in ms of a clock that goes on while a machine sleeps.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class Silence:
    """Finds a silence that has lasted for ``limit_ms``. Units: ms.

    ``since_ms``: the end of the first question that had no answer, after the last that had one. A
    process that stood still in the midst of a request thus sends another one before it counts that
    time.
    """

    limit_ms: int
    since_ms: int | None = None

    def asked(self, now_ms: int, *, is_answered: bool) -> bool:
        """Note the end of a question; return whether there was no answer for the whole limit."""
        if is_answered:
            self.since_ms = None
        elif self.since_ms is None:
            self.since_ms = now_ms
        return self.since_ms is not None and now_ms - self.since_ms >= self.limit_ms
